/*
 * cores.c
 *	  Simulates the sessions of a server that has many cores, for bench/cores.
 *
 *	cores [NAME=VALUE]...	runs one simulation, and prints a line "NAME VALUE" for each result
 *
 * A session runs on each core, and calls snowflake_nextval() in transactions.  The batches and their
 * sizes are computed by the functions of src/core.  The steps around them, with their accesses to
 * shared memory, are those of generator.c, wait.c, clock.c and overflow.c in src/generator, in
 * the same order.
 *
 * Time is simulated in nanoseconds.  A step takes a fixed time of the processor, or it accesses a
 * cache line that sessions share.  There are four such lines: LINE_CURSOR has the cursor and
 * yield_until, LINE_CLOCK the latest reading of the clock and the used-up ticks, LINE_COUNTERS the
 * counters of batches, IDs, waits and used-up ticks, and LINE_WAIT_TIME the counter of the time
 * waited.  The places follow from SfGenerator, in lines of 64 bytes.
 *
 * A processor that has the line, for a swap alone and for a read perhaps with others, accesses it
 * at once.  Otherwise its request is on the way for half of the time of a transfer, and the line is
 * transferred for the other half; in between, the request waits until the line is free.  While a
 * line is transferred and swapped, no other access to it begins.  So the processor that has a line
 * can use it until a request arrives, and it is served before waiting requests for some time
 * longer ("hold") if it accesses the line again at once.  The time of a transfer depends on whether
 * both processors belong to one group (cores with a cache in common), to one socket, or to two.
 * Waiting requests are served in the order in which they have arrived, or with "nearest=1" from the
 * nearest processor on.  Real hardware is between the two.
 *
 * The simulation leaves out everything that happens a few times a second: extensions of the
 * reservation, reloads, changes of the generator, and readers of the horizon.  A slot of the
 * horizon is written only by its own session, so it costs the barrier alone.  A session that
 * sleeps is woken late by a random time.  No other process runs.
 *
 * Each batch and each ID is checked: a batch must not begin below the end of any earlier one, nor
 * end outside of its tick; its time must not be too far ahead of the clock; and the tick of an ID
 * must not have passed.  With mutant=N, one rule is broken, and a check has to fail: 1, a swap
 * succeeds although the cursor has changed; 2, batches are taken one tick too early; 3, a batch is
 * used although its tick has passed.  The exit status is then 1.
 *
 * The same arguments give the same results.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"

#define MAX_CORES		256
#define NEVER			INT64_MAX
#define START			INT64_C(946684800000000)	/* SfInstant: 2030-01-01 */

/* As in wait.c; in us, except MAX_SLICE. */
#define TIMER_SLACK		50
#define MAX_SLACK		5000
#define TIME_TO_WAKE	5000
#define MAX_SLICE		100		/* ms */
#define LONGEST_YIELD	(MAX_SLICE * 1000 + TIME_TO_WAKE)

/* As in clock.c; us. */
#define LATEST_GRAIN	1000

/*
 * Parameters
 */

typedef struct Parameters
{
	int64_t		cores;
	int64_t		ids_min;		/* IDs of a transaction; 0: one transaction
								 * without end */
	int64_t		ids_max;
	int64_t		work;			/* ns of other work for each ID */
	int64_t		end_work;		/* ns of other work for each transaction */
	int64_t		max_ahead;		/* us */
	int64_t		warmup;			/* ms before results are counted */
	int64_t		time;			/* ms for which they are counted */
	int64_t		seed;
	int64_t		mutant;
	int64_t		nearest;
	int64_t		bare;			/* sessions only 1: read and swap the cursor;
								 * 2: add to it; 3: pass it to the other one */

	/* Costs in ns. */
	int64_t		clock;			/* a reading of the clock */
	int64_t		call;			/* a call, without the reading */
	int64_t		batch;			/* instructions for a batch */
	int64_t		atomic;			/* an atomic operation on an own line */
	int64_t		fence;			/* a store and a full barrier */
	int64_t		backoff;		/* longest wait after the first failed swap */
	int64_t		group;			/* transfer of a line within a group, */
	int64_t		socket;			/* within a socket, */
	int64_t		far;			/* and between sockets */
	int64_t		hold;			/* percentage of this time for which a core
								 * can keep a line that others request */
	int64_t		wake;			/* by how much a sleeping session wakes late,
								 * at least */
	int64_t		wake_random;	/* and how much more, at most */

	int64_t		group_cores;	/* cores of a group, and of a socket */
	int64_t		socket_cores;
} Parameters;

static Parameters parameters = {
	.cores = 1,
	.max_ahead = 10000,
	.warmup = 100,
	.time = 1000,
	.seed = 1,
	.clock = 25,
	.call = 25,
	.batch = 20,
	.atomic = 10,
	.fence = 7,
	.backoff = 1000,
	.group = 23,
	.socket = 107,
	.far = 197,
	.hold = 35,
	.wake = 50000,
	.wake_random = 20000,
	.group_cores = 8,
	.socket_cores = 96,
};

static const char *layout_text = "twitter";

static const struct
{
	const char *name;
	int64_t    *value;
}			names[] = {
	{"cores", &parameters.cores},
	{"ids_min", &parameters.ids_min},
	{"ids_max", &parameters.ids_max},
	{"work", &parameters.work},
	{"end_work", &parameters.end_work},
	{"max_ahead", &parameters.max_ahead},
	{"warmup", &parameters.warmup},
	{"time", &parameters.time},
	{"seed", &parameters.seed},
	{"mutant", &parameters.mutant},
	{"nearest", &parameters.nearest},
	{"bare", &parameters.bare},
	{"backoff", &parameters.backoff},
	{"clock", &parameters.clock},
	{"call", &parameters.call},
	{"batch", &parameters.batch},
	{"atomic", &parameters.atomic},
	{"fence", &parameters.fence},
	{"group", &parameters.group},
	{"socket", &parameters.socket},
	{"far", &parameters.far},
	{"hold", &parameters.hold},
	{"wake", &parameters.wake},
	{"wake_random", &parameters.wake_random},
	{"group_cores", &parameters.group_cores},
	{"socket_cores", &parameters.socket_cores},
};

/*
 * State
 */

typedef enum LineName
{
	LINE_CURSOR,
	LINE_CLOCK,
	LINE_COUNTERS,
	LINE_WAIT_TIME,
} LineName;

#define LINE_COUNT	(LINE_WAIT_TIME + 1)
#define NO_LINE		(-1)

typedef struct Line
{
	int			last;			/* the core that got the line last */
	bool		shared;			/* whether others can have it as well */
	bool		has[MAX_CORES]; /* the cores that have it */
	bool		busy;			/* transferred or swapped */
	int64_t		kept_until;		/* until then the core that has it is served
								 * before waiting requests */
	int			queue[MAX_CORES];	/* requests that have arrived */
	int			queued;
} Line;

static Line lines[LINE_COUNT];

/* The numbers on these lines. */
static uint64_t cursor;
static int64_t yield_until;
static int64_t latest_clock;

typedef struct Session Session;

typedef void (*Step) (Session *session);

struct Session
{
	int			core;
	uint64_t	random;
	int64_t		time;			/* of its next event, or NEVER while its
								 * request waits */
	Step		step;			/* this event */
	bool		arrives;		/* whether it is the arrival of a request */

	/* The access that it makes. */
	bool		accesses;
	int			line;
	bool		exclusive;
	int			holds;			/* the line that is busy for it, or NO_LINE */
	int64_t		asked_at;

	/* The transaction, and the call. */
	int64_t		ids_left;
	int64_t		called_at;
	int64_t		now;			/* the last reading of the clock, us */
	int64_t		waits_since;	/* NEVER if the call has not waited */
	bool		slept;
	uint32_t	failed_in_row;	/* swaps of this attempt that failed */
	int64_t		yield_set;
	int64_t		remaining;		/* us to sleep */
	int64_t		sleeps_since;	/* NEVER if it does not sleep */
	int64_t		request_until;	/* to write to yield_until */

	/* The state that the call has read. */
	uint64_t	read_cursor;
	int64_t		read_latest;
	int64_t		allowance;
	SfBatchTerms terms;
	SfBatch		batch;

	/* The held batch, as in generator.c. */
	uint64_t	next;			/* position */
	uint32_t	left;
	uint32_t	size;
	uint32_t	taken;
	uint32_t	used;
	bool		first_tick;
	int64_t		tick_start;

	/* Results. */
	uint64_t	last;			/* the last position that was issued */
	int64_t		ids;
	int64_t		transactions;
	int64_t		batches;
	int64_t		allocated;
	int64_t		failed;			/* swaps */
	int64_t		waits;
	int64_t		wait_time;		/* ns */
	int64_t		sleep_time;		/* ns */
	int64_t		line_time;		/* ns from requests to accesses */
};

static Session sessions[MAX_CORES];
static Session *current;

/* Sessions that have an event, as a heap: the first one is the next. */
static Session *heap[MAX_CORES];
static int	heap_size;

static SfLayout layout;
static SfSequenceRange range;
static int64_t now_ns;			/* the simulated time */
static uint64_t taken_until;	/* the end of the highest batch */

/*
 * The times of calls, in ns: SUB buckets for each power of two.
 */
#define SUB			32
#define BUCKETS		(64 * SUB)

static int64_t latencies[BUCKETS];
static int64_t latency_count;
static int64_t latency_max;

static int
bucket_of(int64_t latency)
{
	int			power = 0;

	while (latency >> power >= 2 * SUB)
		power++;
	return power * SUB + (int) (latency >> power);
}

/* The middle of a bucket. */
static double
latency_of(int bucket)
{
	int			power = bucket < 2 * SUB ? 0 : bucket / SUB - 1;
	int64_t		low = (int64_t) (bucket - power * SUB) << power;

	return (double) low + (double) ((INT64_C(1) << power) - 1) / 2;
}

static bool
counts(void)
{
	return now_ns >= parameters.warmup * 1000000;
}

/* The time since an instant, without the part that does not count. */
static int64_t
counted(int64_t since)
{
	int64_t		begin = parameters.warmup * 1000000;

	if (now_ns < begin)
		return 0;
	return now_ns - (since < begin ? begin : since);
}

static void
note_latency(int64_t latency, int64_t calls)
{
	if (!counts())
		return;
	latencies[bucket_of(latency)] += calls;
	latency_count += calls;
	if (latency > latency_max)
		latency_max = latency;
}

static double
percentile(double part)
{
	int64_t		before = 0;
	int64_t		rank = (int64_t) (part * (double) latency_count);

	for (int i = 0; i < BUCKETS; i++)
	{
		before += latencies[i];
		if (before > rank)
			return latency_of(i);
	}
	return (double) latency_max;
}

/*
 * Events
 */

static void
fail(const char *what)
{
	fprintf(stderr, "the simulation is wrong: %s (core %d, %" PRId64 " ns)\n",
			what, current == NULL ? 0 : current->core, now_ns);
	exit(1);
}

static bool
is_before(const Session *a, const Session *b)
{
	return a->time < b->time || (a->time == b->time && a->core < b->core);
}

static void
push(Session *session)
{
	int			i = heap_size++;

	while (i > 0 && is_before(session, heap[(i - 1) / 2]))
	{
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = session;
}

static Session *
pop(void)
{
	Session    *first = heap[0];
	Session    *moved = heap[--heap_size];
	int			i = 0;

	for (;;)
	{
		int			child = 2 * i + 1;

		if (child + 1 < heap_size && is_before(heap[child + 1], heap[child]))
			child++;
		if (child >= heap_size || !is_before(heap[child], moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
	return first;
}

/* A number from 0 to the given one, exclusive (splitmix64). */
static int64_t
draw(Session *session, int64_t below)
{
	uint64_t	z = session->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return below <= 0 ? 0 : (int64_t) ((z ^ z >> 31) % (uint64_t) below);
}

static void
after_exactly(Session *session, int64_t time, Step step)
{
	session->time = now_ns + time;
	session->step = step;
	push(session);
}

/* The session continues with a step after a time, which varies by an eighth. */
static void
after(Session *session, int64_t time, Step step)
{
	after_exactly(session, time - time / 8 + draw(session, time / 4 + 2), step);
}

/* A time around the given one: half of it to three halves. */
static int64_t
around(Session *session, int64_t time)
{
	return time / 2 + draw(session, time + 1);
}

/*
 * Cache lines
 */

static int	transfers[MAX_CORES][MAX_CORES];

static int64_t
transfer(int a, int b)
{
	if (a == b)
		return 0;
	if (a / parameters.socket_cores != b / parameters.socket_cores)
		return parameters.far;
	return a / parameters.group_cores == b / parameters.group_cores ?
		parameters.group : parameters.socket;
}

static void
compute_transfers(void)
{
	for (int a = 0; a < MAX_CORES; a++)
		for (int b = 0; b < MAX_CORES; b++)
			transfers[a][b] = (int) transfer(a, b);
}

/* The time of the transfer: that from the farthest core that has the line. */
static int64_t
distance(const Line *line, int core, bool exclusive)
{
	const int  *to = transfers[core];
	int			most = to[line->last];

	if (!line->shared || !exclusive)
		return most;
	for (int i = 0; i < parameters.cores; i++)
	{
		if (line->has[i] && to[i] > most)
			most = to[i];
	}
	return most;
}

static bool
has_line(const Line *line, int core, bool exclusive)
{
	return line->has[core] && !line->busy && !(exclusive && line->shared) &&
		(line->queued == 0 || now_ns < line->kept_until);
}

/* The session gets the line, after a time, and then makes its access. */
static void
give_line(Session *session, int64_t time)
{
	Line	   *line = &lines[session->line];

	if (session->exclusive || !line->shared)
	{
		line->busy = true;
		session->holds = session->line;
	}
	if (session->exclusive)
	{
		memset(line->has, 0, sizeof(line->has));
		line->shared = false;
	}
	else if (!line->has[session->core])
		line->shared = true;
	line->has[session->core] = true;
	if (time > 0)
		line->kept_until = now_ns + time + 2 * time * parameters.hold / 100;
	line->last = session->core;
	after(session, time + (session->exclusive ? parameters.atomic : 1), session->step);
}

/* Access a line, and continue with a step at the moment of the access. */
static void
reach(Session *session, LineName name, bool exclusive, Step step)
{
	Line	   *line = &lines[name];

	session->accesses = true;
	session->line = name;
	session->exclusive = exclusive;
	session->asked_at = now_ns;
	session->step = step;
	if (has_line(line, session->core, exclusive))
		give_line(session, 0);
	else
	{
		session->arrives = true;
		after(session, distance(line, session->core, exclusive) / 2, step);
	}
}

static void
read_line(Session *session, LineName name, Step step)
{
	reach(session, name, false, step);
}

static void
change_line(Session *session, LineName name, Step step)
{
	reach(session, name, true, step);
}

/* The place in the queue of the request to serve next. */
static int
next_request(const Line *line)
{
	int			best = 0;

	if (!parameters.nearest)
		return 0;
	for (int i = 1; i < line->queued; i++)
	{
		if (transfers[line->last][line->queue[i]] < transfers[line->last][line->queue[best]])
			best = i;
	}
	return best;
}

static void
serve_queue(Line *line)
{
	while (line->queued > 0 && !line->busy)
	{
		int			place = next_request(line);
		Session    *next = &sessions[line->queue[place]];

		line->queued--;
		memmove(line->queue + place, line->queue + place + 1,
				sizeof(int) * (size_t) (line->queued - place));
		give_line(next, distance(line, next->core, next->exclusive) / 2);
	}
}

/* A request has arrived. */
static void
arrive(Session *session)
{
	Line	   *line = &lines[session->line];

	session->arrives = false;
	session->time = NEVER;
	line->queue[line->queued++] = session->core;
	serve_queue(line);
}

/*
 * An access is complete: continue with the session's step.  If that accesses the line again, the
 * line is busy again.  Otherwise waiting requests are served.
 */
static void
complete_access(Session *session)
{
	Line	   *line = session->holds == NO_LINE ? NULL : &lines[session->holds];

	session->line_time += counted(session->asked_at);
	session->accesses = false;
	session->holds = NO_LINE;
	if (line != NULL)
		line->busy = false;
	session->step(session);
	if (line != NULL)
		serve_queue(line);
}

/*
 * Sessions, as in generator.c
 */

static void begin_transaction(Session *session);
static void begin_attempt(Session *session);
static void begin_call(Session *session);

static int64_t
clock_now(void)
{
	return START + now_ns / 1000;
}

static int64_t
tick_length(void)
{
	return layout.tick_length;
}

/* ns until the tick of the held batch has passed; not positive if it has. */
static int64_t
ns_of_tick(const Session *session)
{
	return (session->tick_start + tick_length() - START) * 1000 - now_ns;
}

static bool
can_use_batch(const Session *session)
{
	int64_t		ahead = session->tick_start - session->now;

	if (session->left == 0)
		return false;
	return ahead <= parameters.max_ahead &&
		(ahead > -tick_length() || parameters.mutant == 3);
}

static void
note_use(Session *session)
{
	if (session->first_tick)
		session->used = session->taken - session->left;
	session->first_tick = false;
}

static void
end_transaction(Session *session)
{
	if (session->taken > 0)
		note_use(session);
	session->left = 0;
	session->taken = 0;
	if (counts())
		session->transactions++;
	begin_transaction(session);
}

/* Issue IDs of the batch: in bulk as many as the tick lasts, otherwise one. */
static void
issue(Session *session)
{
	int64_t		cost = parameters.clock + parameters.call;
	int64_t		count = 1;

	if (parameters.ids_min == 0 && parameters.work == 0 && cost > 0)
	{
		count = (ns_of_tick(session) + cost - 1) / cost;
		if (count > session->left)
			count = session->left;
		if (count < 1)
			count = 1;
	}
	if (session->now >= session->tick_start + tick_length() ||
		(count > 1 && (count - 1) * cost >= ns_of_tick(session)))
		fail("the tick of an ID has passed");
	if (session->next <= session->last && session->last != 0)
		fail("the IDs of a session do not increase");
	session->last = session->next + (uint64_t) count - 1;
	session->next += (uint64_t) count;
	session->left -= (uint32_t) count;
	if (counts())
		session->ids += count;
	note_latency(now_ns + parameters.call - session->called_at, 1);
	note_latency(cost, count - 1);
	if (parameters.ids_min > 0)
		session->ids_left--;
	after_exactly(session, parameters.call + (count - 1) * cost, begin_call);
}

static void
complete_call(Session *session)
{
	if (session->waits_since != NEVER)
	{
		session->wait_time += counted(session->waits_since);
		session->waits_since = NEVER;
	}
	session->slept = false;
	session->yield_set = 0;
	issue(session);
}

static void
count_overflow(Session *session)
{
	change_line(session, LINE_CLOCK, complete_call);
}

static void
count_ids(Session *session)
{
	if (sf_batch_ends_tick(&session->terms, &session->batch))
		change_line(session, LINE_COUNTERS, count_overflow);
	else
		complete_call(session);
}

static void
count_batch(Session *session)
{
	change_line(session, LINE_COUNTERS, count_ids);
}

static void
end_wait(Session *session)
{
	if (yield_until == session->yield_set)
		yield_until = 0;
	change_line(session, LINE_COUNTERS, count_batch);
}

static void
hold_batch(Session *session)
{
	int64_t		tick_start = sf_layout_tick_start(&layout, session->batch.tick);
	uint32_t	count = (uint32_t) (session->batch.end - session->batch.start);

	if (session->taken == 0)
		session->first_tick = true;
	else if (tick_start != session->tick_start)
		note_use(session);
	if (session->first_tick)
		session->taken += count;
	session->next = session->batch.start;
	session->left = count;
	session->size = session->terms.size;
	session->tick_start = tick_start;
	if (counts())
	{
		session->batches++;
		session->allocated += count;
	}
}

static void
check_batch(const Session *session)
{
	const SfBatch *batch = &session->batch;

	if (batch->start < taken_until)
		fail("two batches overlap");
	if (batch->end <= batch->start ||
		sf_position_tick(&layout, batch->start) != sf_position_tick(&layout, batch->end - 1) ||
		sf_position_sequence(&layout, batch->end - 1) > range.max)
		fail("a batch is not in its tick");
	if (sf_layout_tick_start(&layout, batch->tick) > clock_now() + parameters.max_ahead)
		fail("a batch is too far ahead of the clock");
	taken_until = batch->end;
}

/* The time that passes after a failed swap, as in sf_back_off. */
static int64_t
back_off(Session *session)
{
	int64_t		longest = parameters.backoff * sf_batch_longest_backoff(++session->failed_in_row);

	return longest > 0 ? draw(session, longest + 1) : 0;
}

/* The line of the cursor belongs to the session: swap it. */
static void
swap_cursor(Session *session)
{
	if (cursor != session->read_cursor && parameters.mutant != 1)
	{
		if (counts())
			session->failed++;
		after(session, back_off(session) + parameters.clock, begin_attempt);
		return;
	}
	check_batch(session);
	session->failed_in_row = 0;
	cursor = session->batch.end;
	hold_batch(session);
	if (session->yield_set != 0)
		change_line(session, LINE_CURSOR, end_wait);
	else
		change_line(session, LINE_COUNTERS, count_batch);
}

static void
try_swap(Session *session)
{
	change_line(session, LINE_CURSOR, swap_cursor);
}

/*
 * Waits, as in wait.c
 */

static bool
is_asked(int64_t until, int64_t now)
{
	return until > now && until <= now + LONGEST_YIELD;
}

/* The clock is read for the next attempt. */
static void
wake(Session *session)
{
	session->slept = true;
	after(session, parameters.clock, begin_attempt);
}

static void
count_wait_time(Session *session)
{
	session->sleep_time += counted(session->sleeps_since);
	session->sleeps_since = NEVER;
	change_line(session, LINE_WAIT_TIME, wake);
}

/* From a millisecond on, a latch sleeps for whole milliseconds. */
static void
go_to_sleep(Session *session)
{
	int64_t		time = session->remaining;

	if (time >= 1000)
		time = time / 1000 < MAX_SLICE ? time / 1000 * 1000 : MAX_SLICE * 1000;
	session->sleeps_since = now_ns;
	after_exactly(session, time * 1000 + parameters.wake + draw(session, parameters.wake_random),
				  count_wait_time);
}

static void
swap_yield(Session *session)
{
	if (!is_asked(yield_until, session->now) || yield_until < session->request_until)
		session->yield_set = yield_until = session->request_until;
	go_to_sleep(session);
}

static void
ask_to_yield(Session *session)
{
	session->request_until = session->now + session->remaining + TIME_TO_WAKE;
	if (!is_asked(yield_until, session->now) || yield_until < session->request_until)
		change_line(session, LINE_CURSOR, swap_yield);
	else
		go_to_sleep(session);
}

/* Sleep, or try again at once if little time is left. */
static void
wait_for_tick(Session *session)
{
	int64_t		allowed = sf_layout_tick_start(&layout, session->batch.tick) - session->allowance;
	int64_t		quarter = parameters.max_ahead / 4;
	int64_t		slack = session->slept ? 0 : quarter < MAX_SLACK ? quarter : MAX_SLACK;

	session->remaining = allowed - session->now + slack;
	if (session->remaining > MAX_SLICE * 1000)
		session->remaining = MAX_SLICE * 1000;
	if (session->remaining >= TIMER_SLACK)
		read_line(session, LINE_CURSOR, ask_to_yield);
	else
		after(session, parameters.clock, begin_attempt);
}

static void
judge_wait(Session *session)
{
	int64_t		allowed = sf_layout_tick_start(&layout, session->batch.tick) - session->allowance;

	session->now = clock_now();
	if (allowed <= session->now)
		after(session, parameters.clock, begin_attempt);
	else if (session->waits_since == NEVER)
	{
		session->waits_since = now_ns;
		if (counts())
			session->waits++;
		change_line(session, LINE_COUNTERS, wait_for_tick);
	}
	else
		wait_for_tick(session);
}

/*
 * A batch, as in take_batch
 */

static uint32_t
wanted_size(const Session *session)
{
	if (session->taken == 0)
		return sf_batch_size_first(session->used, sf_batch_size_max(range));
	return sf_batch_size_next(session->size, session->left,
							  session->now >= session->tick_start + tick_length(),
							  sf_batch_size_max(range));
}

static void
set_terms(Session *session)
{
	SfBatchTerms *terms = &session->terms;

	terms->layout = &layout;
	terms->range = range;
	terms->now_tick = sf_layout_tick_floor(&layout, session->now);
	terms->last_allowed_tick = sf_layout_tick_floor(&layout, session->now + session->allowance) +
		(parameters.mutant == 2);
	terms->last_tick = sf_layout_last_tick(&layout);
	terms->reserved_until = UINT64_MAX;
}

/* The session has read yield_until: compute the batch. */
static void
choose_batch(Session *session)
{
	session->allowance = parameters.max_ahead;
	if (!session->slept && is_asked(yield_until, session->now))
		session->allowance /= 2;
	set_terms(session);
	switch (sf_batch_next(&session->terms, session->read_cursor, &session->batch))
	{
		case SF_BATCH_OK:
			after(session, parameters.batch + parameters.fence, try_swap);
			break;
		case SF_BATCH_AHEAD:
			after(session, 2 * parameters.clock, judge_wait);
			break;
		default:
			fail("the layout is exhausted");
	}
}

static void
read_yield(Session *session)
{
	read_line(session, LINE_CURSOR, choose_batch);
}

static void
swap_latest(Session *session)
{
	if (latest_clock == session->read_latest)
		latest_clock = clock_now();
	read_yield(session);
}

static void
try_latest(Session *session)
{
	change_line(session, LINE_CLOCK, swap_latest);
}

static void
note_reading(Session *session)
{
	session->read_latest = latest_clock;
	if (session->now >= latest_clock && session->now < latest_clock + LATEST_GRAIN)
		read_yield(session);
	else
		after(session, parameters.clock, try_latest);
}

static void
check_clock(Session *session)
{
	read_line(session, LINE_CLOCK, note_reading);
}

/* The session reads the cursor, and then the clock that is never set. */
static void
see_cursor(Session *session)
{
	session->read_cursor = cursor;
	after(session, parameters.clock, check_clock);
}

static void
begin_attempt(Session *session)
{
	session->now = clock_now();
	read_line(session, LINE_CURSOR, see_cursor);
}

/* The clock was read. */
static void
see_clock(Session *session)
{
	session->now = clock_now();
	if (can_use_batch(session))
	{
		issue(session);
		return;
	}
	session->terms.size = wanted_size(session);
	begin_attempt(session);
}

static void
read_clock(Session *session)
{
	session->called_at = now_ns;
	after(session, parameters.clock, see_clock);
}

static void
begin_call(Session *session)
{
	if (parameters.ids_min > 0 && session->ids_left == 0)
		end_transaction(session);
	else
		after_exactly(session, around(session, parameters.work), read_clock);
}

static void
begin_transaction(Session *session)
{
	session->ids_left = parameters.ids_min +
		draw(session, parameters.ids_max - parameters.ids_min + 1);
	after_exactly(session, around(session, parameters.end_work), begin_call);
}

/*
 * Sessions that only read and swap, for comparison with bench/swap.c
 */

static void bare_read(Session *session);

static void
bare_swap(Session *session)
{
	if (cursor == session->read_cursor)
	{
		cursor++;
		session->batches += counts();
	}
	else
		session->failed += counts();
	read_line(session, LINE_CURSOR, bare_read);
}

static void
bare_read(Session *session)
{
	session->read_cursor = cursor;
	change_line(session, LINE_CURSOR, bare_swap);
}

static void
bare_add(Session *session)
{
	session->batches += counts();
	change_line(session, LINE_CURSOR, bare_add);
}

static void
bare_pass(Session *session)
{
	if ((cursor & 1) == (uint64_t) session->core)
	{
		cursor++;
		session->batches += counts();
	}
	change_line(session, LINE_CURSOR, bare_pass);
}

/*
 * The run
 */

static const Step first_steps[] = {begin_transaction, bare_read, bare_add, bare_pass};

static void
start(void)
{
	compute_transfers();
	cursor = sf_position(&layout, (uint64_t) sf_layout_tick_floor(&layout, START), 0);
	latest_clock = START;
	for (int i = 0; i < LINE_COUNT; i++)
		lines[i].has[0] = true;
	for (int i = 0; i < parameters.cores; i++)
	{
		Session    *session = &sessions[i];

		session->core = i;
		session->random = (uint64_t) parameters.seed * 1000 + (uint64_t) i;
		session->holds = NO_LINE;
		session->waits_since = NEVER;
		session->sleeps_since = NEVER;
		after(session, draw(session, 1000000), first_steps[parameters.bare]);
	}
}

static void
run(void)
{
	int64_t		end = (parameters.warmup + parameters.time) * 1000000;

	start();
	while (heap_size > 0 && heap[0]->time < end)
	{
		current = pop();
		now_ns = current->time;
		if (current->arrives)
			arrive(current);
		else if (current->accesses)
			complete_access(current);
		else
			current->step(current);
	}
	now_ns = end;
}

/*
 * Results
 */

static void
print(const char *name, double value)
{
	printf("%s %.6g\n", name, value);
}

static void
print_sum(const Session *sum)
{
	double		seconds = (double) parameters.time / 1000;
	double		limit = (double) (range.max - range.min + 1) * 1e6 / (double) tick_length();
	double		all_time = (double) parameters.cores * (double) parameters.time * 1e6;

	print("ids", (double) sum->ids / seconds);
	print("limit", limit);
	print("of_limit", 100 * (double) sum->ids / seconds / limit);
	print("transactions", (double) sum->transactions / seconds);
	print("swaps", (double) sum->batches / seconds);
	print("failed", 100 * (double) sum->failed / (double) (sum->failed + sum->batches));
	print("allocated", (double) sum->allocated / (double) sum->ids);
	print("waits", (double) sum->waits / seconds);
	print("waiting", 100 * (double) sum->wait_time / all_time);
	print("cpu", (all_time - (double) sum->sleep_time) / (double) sum->ids);
	print("lines", 100 * (double) sum->line_time / all_time);
}

/* Jain's index of the IDs of the sessions, and the least as a part of the greatest. */
static void
print_fairness(void)
{
	double		sum = 0;
	double		squares = 0;
	int64_t		least = INT64_MAX;
	int64_t		most = 0;

	for (int i = 0; i < parameters.cores; i++)
	{
		int64_t		ids = parameters.bare ? sessions[i].batches : sessions[i].ids;

		sum += (double) ids;
		squares += (double) ids * (double) ids;
		least = ids < least ? ids : least;
		most = ids > most ? ids : most;
	}
	print("jain", sum * sum / ((double) parameters.cores * squares));
	print("least", (double) least / (double) most);
}

static void
print_results(void)
{
	Session		sum = {0};

	for (int i = 0; i < parameters.cores; i++)
	{
		const Session *session = &sessions[i];

		sum.ids += session->ids;
		sum.transactions += session->transactions;
		sum.batches += session->batches;
		sum.allocated += session->allocated;
		sum.failed += session->failed;
		sum.waits += session->waits;
		sum.wait_time += session->wait_time;
		sum.line_time += session->line_time;
		sum.sleep_time += session->sleep_time;
		if (session->waits_since != NEVER)
			sum.wait_time += counted(session->waits_since);
		if (session->sleeps_since != NEVER)
			sum.sleep_time += counted(session->sleeps_since);
	}
	print_sum(&sum);
	print_fairness();
	print("p50", percentile(0.5) / 1000);
	print("p99", percentile(0.99) / 1000);
	print("p999", percentile(0.999) / 1000);
	print("max", (double) latency_max / 1000);
}

static void
usage(const char *argument)
{
	fprintf(stderr, "cores: unknown or wrong argument \"%s\"\n", argument);
	exit(2);
}

static void
set_parameter(const char *argument)
{
	size_t		length = strcspn(argument, "=");

	if (argument[length] == '\0')
		usage(argument);
	if (strncmp(argument, "layout=", 7) == 0)
	{
		layout_text = argument + 7;
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strlen(names[i].name) == length && strncmp(names[i].name, argument, length) == 0)
		{
			*names[i].value = strtoll(argument + length + 1, NULL, 10);
			return;
		}
	}
	usage(argument);
}

int
main(int argc, char **argv)
{
	SfSequenceRange all = {0, SF_SEQUENCE_MAX};
	SfParseError error;

	for (int i = 1; i < argc; i++)
		set_parameter(argv[i]);
	if (!sf_layout_parse(layout_text, &layout, &error))
		usage(layout_text);
	if (parameters.cores < 1 || parameters.cores > MAX_CORES || parameters.time < 1 ||
		parameters.ids_max < parameters.ids_min)
		usage("cores, time or ids_max");
	range = sf_sequence_range_within(&layout, all);
	run();
	print_results();
	return 0;
}
