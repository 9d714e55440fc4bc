/*
 * cores_machine.c
 *	  The simulated machine: events in the order of their times, and cache lines that are passed from
 *	  one core to another.  The rules are at the top of cores.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"

Session    *current;
int64_t		now_ns;

static Line lines[LINE_COUNT];

/*
 * Events
 */

/* Sessions that have an event, as a heap: the first one is the next. */
static Session *heap[MAX_CORES];
static int	heap_size;

void
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
int64_t
draw(Session *session, int64_t below)
{
	uint64_t	z = session->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return below <= 0 ? 0 : (int64_t) ((z ^ z >> 31) % (uint64_t) below);
}

void
after_exactly(Session *session, int64_t time, Step step)
{
	session->time = now_ns + time;
	session->step = step;
	push(session);
}

/* The session continues with a step after a time, which varies by an eighth. */
void
after(Session *session, int64_t time, Step step)
{
	after_exactly(session, time - time / 8 + draw(session, time / 4 + 2), step);
}

/* A time around the given one: half of it to three halves. */
int64_t
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

void
read_line(Session *session, LineName name, Step step)
{
	reach(session, name, false, step);
}

void
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

void
start_machine(void)
{
	compute_transfers();
	for (int i = 0; i < LINE_COUNT; i++)
		lines[i].has[0] = true;
}

void
run_until(int64_t end)
{
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
