/*
 * memory.c
 *	  Shared memory, atomic operations and barriers (port/atomics.h).
 *
 * Each operation is a point at which another process can run.  Memory is sequentially consistent,
 * unless "weak" is set.  Then a plain write waits in a buffer of its process, from which it can leave out
 * of order, except over a write barrier; and a plain read can return a value that was overwritten
 * at most WINDOW points ago, except over a read barrier.  A swap is one step, but earlier writes can be
 * visible after it, and later reads can be from the point before it.  This is weaker than AArch64
 * in some respects and stronger in others.
 */
#include "world.h"

#include "oracles.h"

char		shmem[SHMEM_SIZE] __attribute__((aligned(128)));

/*
 * Names for the trace
 */

static const struct
{
	const char *name;
	size_t		offset,
				size;
}			fields[] = {
#define FIELD(field)	{#field, offsetof(SfGenerator, field), sizeof(((SfGenerator *) 0)->field)}
	FIELD(generation), FIELD(max_ahead), FIELD(machine_id), FIELD(switches),
	FIELD(reserved_until), FIELD(lease_start), FIELD(lease_end), FIELD(moved_back),
	FIELD(began), FIELD(floor), FIELD(latest_clock), FIELD(clock_difference), FIELD(lock), FIELD(cursor),
	FIELD(yield_until), FIELD(stats),
};

static const char *
name_of(const volatile void *p)
{
	static char name[60];
	size_t		offset = (size_t) ((const char *) p - shmem);
	size_t		first = offsetof(SfShared, generators);

	snprintf(name, sizeof(name), "shared+%zu", offset);
	if (offset >= sizeof(SfShared))
		snprintf(name, sizeof(name), "horizon+%zu", offset - sizeof(SfShared));
	else if (offset >= offsetof(SfShared, durable) && offset < offsetof(SfShared, lease))
		snprintf(name, sizeof(name), "durable[%zu]", (offset - offsetof(SfShared, durable)) / 8);
	else if (offset >= first)
		for (size_t i = 0; i < lengthof(fields); i++)
		{
			size_t		in_field = (offset - first) % sizeof(SfGenerator) - fields[i].offset;

			if (in_field < fields[i].size)
				snprintf(name, sizeof(name), "%s.%s[%zu]",
						 (offset - first) / sizeof(SfGenerator) == 0 ? "bigint" : "sno",
						 fields[i].name, in_field / 8);
		}
	return name;
}

/*
 * Weak memory: the last values of each location, and the times at which they were written
 */

#define VALUES	4

typedef struct Location
{
	int64		epoch;
	int			count;
	uint64		values[VALUES];
	int64		times[VALUES];
} Location;

static Location locations[SHMEM_SIZE / 4];
static int64 memory_time,
			memory_epoch;

void
forget_memory(void)
{
	memory_epoch++;
	memory_time = 0;
}

static uint64
peek(const volatile void *p, int size)
{
	return size == 4 ? *(const volatile uint32 *) p : *(const volatile uint64 *) p;
}

/* NULL for memory that is not in the segment: it is sequentially consistent. */
static Location *
location_of(const volatile void *p, int size)
{
	long		offset = (const char *) p - shmem;
	Location   *location;

	if (offset < 0 || offset >= SHMEM_SIZE)
		return NULL;
	location = &locations[offset / 4];
	if (location->epoch != memory_epoch)
	{
		location->epoch = memory_epoch;
		location->count = 1;
		location->values[0] = peek(p, size);
		location->times[0] = 0;
	}
	return location;
}

static void
read_barrier(View *view)
{
	view->floor = memory_time;
	view->seen_count = 0;
}

/* A process reads nothing older of a location than what it has read or written there. */
static void
note_seen(View *view, const volatile void *p, int64 time)
{
	if (view->seen_count == lengthof(view->seen))
		read_barrier(view);
	view->seen[view->seen_count].p = p;
	view->seen[view->seen_count++].time = time;
}

static void
poke(Process *process, volatile void *p, int size, uint64 value)
{
	Location   *location = weak ? location_of(p, size) : NULL;

	if (location != NULL)
	{
		if (location->count == VALUES)
		{
			memmove(location->values, location->values + 1, (VALUES - 1) * sizeof(uint64));
			memmove(location->times, location->times + 1, (VALUES - 1) * sizeof(int64));
			location->count--;
		}
		location->values[location->count] = value;
		location->times[location->count++] = ++memory_time;
		if (process != NULL)
			note_seen(&process->view, p, memory_time);
	}
	if (size == 4)
		*(volatile uint32 *) p = (uint32) value;
	else
		*(volatile uint64 *) p = value;
}

/* Whether an entry of the buffer can become visible next. */
static bool
can_leave(const View *view, int entry)
{
	if (view->buffer[entry].group != view->buffer[0].group)
		return false;
	for (int i = 0; i < entry; i++)
		if (view->buffer[i].p == view->buffer[entry].p)
			return false;
	return true;
}

/* Make writes of a buffer visible. */
void
drain(Process *process, int count)
{
	View	   *view = &process->view;

	while (count-- > 0 && view->buffered > 0)
	{
		int			chosen = 0;
		Buffered	entry;

		for (int i = 1, candidates = 1; i < view->buffered; i++)
			if (can_leave(view, i) && chance(++candidates))
				chosen = i;
		entry = view->buffer[chosen];
		memmove(&view->buffer[chosen], &view->buffer[chosen + 1],
				(size_t) (--view->buffered - chosen) * sizeof(Buffered));
		poke(process, entry.p, entry.size, entry.value);
	}
}

void
memory_point(void)
{
	View	   *view = &current->view;

	view->points++;
	if (view->buffered > 0 && chance(3))
		drain(current, 1);
}

void
full_barrier(void)
{
	drain(current, BUFFERED);
	read_barrier(&current->view);
	current->view.group++;
}

static uint64
weak_load(View *view, const volatile void *p, int size)
{
	Location   *location = location_of(p, size);
	int64		bound = view->recent[view->points % WINDOW];
	int			chosen;

	view->recent[view->points % WINDOW] = memory_time;
	for (int i = view->buffered - 1; i >= 0; i--)
		if (view->buffer[i].p == p)
			return view->buffer[i].value;
	if (location == NULL)
		return peek(p, size);
	bound = Max(bound, view->floor);
	for (int i = 0; i < view->seen_count; i++)
		if (view->seen[i].p == p)
			bound = Max(bound, view->seen[i].time);
	chosen = location->count - 1;
	while (chosen > 0 && location->times[chosen] > bound && chance(2))
		chosen--;
	note_seen(view, p, location->times[chosen]);
	return location->values[chosen];
}

/* Earlier writes without a barrier can stay in the buffer, and later reads be from before it. */
static uint64
before_swap(const volatile void *p, int size)
{
	int64		before = memory_time;
	View	   *view;

	point();
	if (!weak || current == NULL)
		return peek(p, size);
	view = &current->view;
	for (int i = 0; i < view->buffered; i++)
		if (view->buffer[i].p == p || view->buffer[i].group < view->group || chance(2))
			drain(current, BUFFERED);
	view->floor = Max(view->floor, before);
	return peek(p, size);
}

/*
 * The operations
 */

uint64
sim_load(const volatile void *p, int size, const char *function)
{
	uint64		value;

	point();
	value = weak && current ? weak_load(&current->view, p, size) : peek(p, size);
	if (tracing && current)
		trace("%-28s reads %s: %lld%s", function, name_of(p), (long long) value,
			  value == peek(p, size) ? "" : " (old)");
	return value;
}

void
sim_store(volatile void *p, int size, uint64 value, const char *function)
{
	View	   *view;

	point();
	if (tracing && current)
		trace("%-28s writes %s: %lld", function, name_of(p), (long long) value);
	if (!weak || current == NULL)
	{
		poke(current, p, size, value);
		return;
	}
	view = &current->view;
	if (view->buffered == BUFFERED)
		drain(current, BUFFERED);
	if (view->buffered == 0)
		view->buffered_since = steps;
	view->buffer[view->buffered++] = (Buffered)
	{
		p, size, value, view->group
	};
}

bool
sim_swap(volatile void *p, int size, void *expected, uint64 value, const char *function)
{
	uint64		found = before_swap(p, size);
	bool		equal = found == peek(expected, size);

	if (equal)
		poke(current, p, size, value);
	else if (size == 4)
		*(uint32 *) expected = (uint32) found;
	else
		*(uint64 *) expected = found;
	if (tracing && current)
		trace("%-28s swaps %s: %lld -> %lld%s", function, name_of(p), (long long) found,
			  (long long) value, equal ? "" : " fails");
	return equal;
}

uint64
sim_add(volatile void *p, int size, uint64 value, const char *function)
{
	uint64		found = before_swap(p, size);

	poke(current, p, size, found + value);
	if (tracing && current)
		trace("%-28s adds %lld to %s: %lld", function, (long long) value, name_of(p),
			  (long long) found);
	return found;
}

uint64
sim_exchange(volatile void *p, int size, uint64 value, const char *function)
{
	uint64		found = before_swap(p, size);

	poke(current, p, size, value);
	if (tracing && current)
		trace("%-28s exchanges %s: %lld -> %lld", function, name_of(p), (long long) found,
			  (long long) value);
	return found;
}

void
sim_barrier(bool reads, bool writes)
{
	point();
	if (!weak || current == NULL)
		return;
	if (reads && writes)
		drain(current, BUFFERED);
	if (reads)
		read_barrier(&current->view);
	if (writes)
		current->view.group++;
}
