/*
 * cores.h
 *	  The simulation of a server that has many cores (cores.c): its parameters, its state, and the
 *	  interfaces of its parts.
 */
#ifndef CORES_H
#define CORES_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"

#define MAX_CORES		256
#define NEVER			INT64_MAX
#define START			INT64_C(946684800000000)	/* SfInstant: 2030-01-01 */

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

extern Parameters parameters;

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

extern Session sessions[MAX_CORES];
extern SfLayout layout;
extern SfSequenceRange range;

/* cores_machine.c: time, and cache lines */
extern Session *current;		/* the session whose event this is */
extern int64_t now_ns;			/* the simulated time */

extern void start_machine(void);
extern void run_until(int64_t end);
extern void fail(const char *what);
extern int64_t draw(Session *session, int64_t below);
extern int64_t around(Session *session, int64_t time);
extern void after_exactly(Session *session, int64_t time, Step step);
extern void after(Session *session, int64_t time, Step step);
extern void read_line(Session *session, LineName name, Step step);
extern void change_line(Session *session, LineName name, Step step);

/* cores_session.c: the steps of a session */
extern int64_t tick_length(void);	/* us */
extern void start_sessions(void);

/* cores.c: results */
extern bool counts(void);
extern int64_t counted(int64_t since);
extern void note_latency(int64_t latency, int64_t calls);

#endif							/* CORES_H */
