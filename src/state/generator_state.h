/*
 * generator_state.h
 *	  The state of a generator, in shared memory.
 *
 * A generator issues IDs of one kind.  There are two: one for IDs of type bigint, and one for IDs
 * of type sno, which has two lines (core/line.h).  They share only the code.  src/README.md lists
 * the invariants.  A line has a cursor, an end of its reservation, and a durable number, which is
 * the end on disk.  In a run of the server these only move forward; only the end in memory is cut
 * to the lease.
 *
 * A generator is in one of these states:
 *
 *	UNOPENED	It has not issued an ID in this run of the server.  Only its durable numbers show
 *				which IDs were issued before.  The generation is SF_GENERATION_UNOPENED.
 *	OPEN		In each line everything below the cursor was issued or is lost, and nothing at or
 *				above it was issued.  Sessions take batches up to reserved_until, which is on disk.
 *				The generation is even.
 *	CHANGING	The process that holds the lock changes it (change.c).  Sessions take no batches.
 *				The generation is odd.
 *	CLOSED		As OPEN, but nothing is issued, because the lease and the reservations are empty:
 *				with a registry, before the first lease or after the last one; or until the next
 *				start, because an administrator has moved the generator back.
 *
 * Each transition is made under the lock, by these functions:
 *
 *	UNOPENED -> OPEN or CLOSED			sf_generator_open (reservation.c)
 *	OPEN or CLOSED -> CHANGING			sf_begin_change
 *	CHANGING -> OPEN or CLOSED			sf_end_change
 *
 * A generator whose durable state is lost stays UNOPENED until its floor is set (sf_change_floor).
 */
#ifndef SF_GENERATOR_STATE_H
#define SF_GENERATOR_STATE_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "utils/timestamp.h"

#include "core/line.h"
#include "core/reserved_time.h"
#include "log_limit.h"
#include "state/lock.h"

typedef enum SfGeneratorKind
{
	SF_GENERATOR_BIGINT,
	SF_GENERATOR_SNO,
} SfGeneratorKind;

#define SF_GENERATOR_COUNT	(SF_GENERATOR_SNO + 1)

/* The counters, for the view pg_stat_snowflake; times are in microseconds. */
typedef enum SfCounter
{
	SF_COUNTER_BATCHES,
	SF_COUNTER_IDS_ALLOCATED,
	SF_COUNTER_OVERFLOW_TICKS,
	SF_COUNTER_WAITS,
	SF_COUNTER_WAIT_TIME,
	SF_COUNTER_CLOCK_REGRESSIONS,
	SF_COUNTER_MAX_REGRESSION,	/* the greatest, not a sum */
	SF_COUNTER_RESERVATION_WRITES,
	SF_COUNTER_RESERVATION_WRITE_TIME,
} SfCounter;

#define SF_COUNTER_COUNT (SF_COUNTER_RESERVATION_WRITE_TIME + 1)

/*
 * Numbers in shared memory, since the start of the server or the last reset.
 * Changed by atomic operations; only the view reads them, so they need no order
 * among each other.
 */
typedef struct SfCounters
{
	pg_atomic_uint64 numbers[SF_COUNTER_COUNT];
	pg_atomic_uint64 since;		/* TimestampTz */
} SfCounters;

/*
 * An extension of a reservation that is written, and that need not be on disk yet (reservation.c).
 * Protected by the lock.  It can be dropped at any time: the end on disk is then later than that in
 * memory.
 */
typedef struct SfPendingExtension
{
	int			line;
	uint64		until;			/* the new end, a position; 0 for none */
	XLogRecPtr	lsn;			/* the end of its record in WAL */
	int64		since;			/* when it was written */
	int64		taken;			/* us after which it was not on disk yet */
} SfPendingExtension;

/*
 * The fields are grouped by how often they are read and written.  A cache line of padding separates
 * the groups, so that a write to a field of one group does not invalidate the cache line of another
 * group in other processors.  generator_state.c asserts the distances.
 */
typedef struct SfGenerator
{
	/*
	 * Read with each ID or each batch, and written rarely: at most a few
	 * times a second.
	 */

	/* Written once, before any session can see the struct. */
	SfGeneratorKind kind;
	SfLayout	layout;
	SfSequenceRange range;		/* within the layout */

	/* Whether a registry grants leases to this server (lease.h). */
	bool		leased;

	/*
	 * A sequence lock: odd before the generator is opened and while it is
	 * changed (change.c).  Each change increases it, so that sessions drop
	 * the batches that they hold.  Read with each ID.
	 */
	pg_atomic_uint32 generation;

	/*
	 * snowflake.max_ahead, in microseconds, as published (SfShared).  Read
	 * with each ID.
	 */
	pg_atomic_uint32 max_ahead;

	/*
	 * The machine ID, or partition, in use, or SF_MACHINE_ID_NOT_PINNED.
	 * Without a registry it changes once, from that to a number, by
	 * compare-and-swap; with one, when another lease begins.
	 */
	pg_atomic_uint32 machine_id;

	/*
	 * The lowest bit is the active line, from which sessions take batches. It
	 * is increased by compare-and-swap (issue/clock.c).  A session that still
	 * uses the other line repeats no ID.  Always 0 for bigint.
	 */
	pg_atomic_uint32 switches;

	/*
	 * A position in each line; this one and all above it must not be issued
	 * (invariant 1). Written under the lock, read without it: a session that
	 * reads an old value requests an extension too early.
	 */
	pg_atomic_uint64 reserved_until[SF_LINES];

	/*
	 * How long the reservations are.  Written under the lock; the length is
	 * read without it, as a hint.
	 */
	SfReservedTime reserved;
	SfPendingExtension pending;

	/*
	 * The lease: positions at or above lease_start and below lease_end.
	 * Without a registry these are all positions. If lease_end is 0, nothing
	 * can be issued or reserved. Written under the lock, except that a
	 * renewal raises the end.
	 */
	pg_atomic_uint64 lease_start;
	pg_atomic_uint64 lease_end;

	/*
	 * Whether an administrator has moved the generator back, so that
	 * lease_end stays 0 until the next start.  Written under the lock.
	 */
	pg_atomic_uint32 moved_back;

	/*
	 * The time of the position at which the generator was opened, or to which
	 * its floor was set since, an SfInstant; for the view only.
	 */
	pg_atomic_uint64 began;

	/*
	 * The floor that an administrator has set last in this run, an SfInstant,
	 * or 0; for messages only.
	 */
	pg_atomic_uint64 floor;

	char		layout_text[SF_LAYOUT_TEXT_SIZE];

	char		pad_clock[PG_CACHE_LINE_SIZE];

	/*
	 * Written up to a thousand times a second, or with each tick that is used
	 * up.
	 */

	/*
	 * The latest reading of the wall clock (issue/clock.c), a TimestampTz, or
	 * SF_CLOCK_NOT_SEEN.
	 */
	pg_atomic_uint64 latest_clock;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was accepted for this generator alone (issue/clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	/*
	 * The second that is examined for an overflow (issue/wait.c): its first
	 * tick, and how many of its ticks are used up.
	 */
	pg_atomic_uint64 overflow_begin;
	pg_atomic_uint64 overflow_ticks;

	/*
	 * Held by the process that changes the generator or writes its durable
	 * state, also while it waits for the disk.
	 */
	SfLock		lock;

	SfLogLimit	regression_logged;
	SfLogLimit	overflow_logged;

	char		pad_cursor[PG_CACHE_LINE_SIZE];

	/* Read and written with each batch. */

	/*
	 * The next free position of each line; 0 before the generator is opened.
	 * Changed by compare-and-swap only (core/batch.h), and only to a greater
	 * one.
	 */
	pg_atomic_uint64 cursor[SF_LINES];

	/*
	 * The time until which sessions that have not waited leave free positions
	 * to sessions that have (issue/wait.c), a TimestampTz.  Read with each
	 * batch, like the cursor.
	 */
	pg_atomic_uint64 yield_until;

	char		pad_stats[PG_CACHE_LINE_SIZE];

	SfCounters	stats;

	char		pad_next[PG_CACHE_LINE_SIZE];
} SfGenerator;

#define SF_CLOCK_NOT_SEEN			((uint64) PG_INT64_MIN)
#define SF_MACHINE_ID_NOT_PINNED	PG_UINT32_MAX
#define SF_GENERATION_UNOPENED		1

/*
 * Make a generator, in new memory: not opened, all numbers 0.  The text of the layout is for
 * messages.  Raises nothing.
 */
extern void sf_generator_init(SfGenerator *generator, SfGeneratorKind kind, const SfLayout *layout,
							  const char *layout_text, SfSequenceRange range,
							  bool leased);

/*
 * Write the machine ID and the bounds of a lease: times at or after from and before until.
 */
extern void sf_generator_set_lease(SfGenerator *generator, uint32 machine_id,
								   TimestampTz from, TimestampTz until);

/* The number of lines; and the active one. */
static inline int
sf_generator_lines(const SfGenerator *generator)
{
	return generator->kind == SF_GENERATOR_SNO ? SF_LINES : 1;
}

static inline int
sf_generator_line(SfGenerator *generator)
{
	return (int) (pg_atomic_read_u32(&generator->switches) & 1);
}

/* How far the time of an ID may be ahead of the clock, in microseconds. */
static inline int64
sf_generator_max_ahead(SfGenerator *generator)
{
	return pg_atomic_read_u32(&generator->max_ahead);
}

/* When the tick of a position begins. */
static inline TimestampTz
sf_generator_time(const SfGenerator *generator, uint64 position)
{
	return sf_layout_tick_start(&generator->layout, sf_position_tick(&generator->layout, position));
}

/* The next free position of the active line. */
static inline uint64
sf_generator_position(SfGenerator *generator)
{
	return pg_atomic_read_u64(&generator->cursor[sf_generator_line(generator)]);
}

/* The position above all positions that were issued in this run, in either line. */
extern uint64 sf_generator_end(SfGenerator *generator);

/*
 * Whether the generator has been opened in this run of the server, and so may have issued IDs.  All
 * that was written before it was opened is then visible.
 */
static inline bool
sf_generator_is_open(SfGenerator *generator)
{
	if (unlikely(pg_atomic_read_u32(&generator->generation) == SF_GENERATION_UNOPENED))
		return false;
	pg_read_barrier();			/* pairs with the barrier in sf_end_change */
	return true;
}

/* Whether nothing can be issued or reserved: there is no lease, or the generator was moved back. */
static inline bool
sf_generator_is_closed(SfGenerator *generator)
{
	return pg_atomic_read_u64(&generator->lease_end) == 0;
}

/* Whether a tick is after the lease. */
static inline bool
sf_generator_is_past_lease(SfGenerator *generator, uint64 tick)
{
	return tick >= sf_position_tick(&generator->layout, pg_atomic_read_u64(&generator->lease_end));
}

/* The machine ID in use; 0 in a layout that has none. */
static inline uint32
sf_generator_machine_id(SfGenerator *generator)
{
	return generator->layout.machine_bits > 0 ? pg_atomic_read_u32(&generator->machine_id) : 0;
}

/* Move the cursor of a line, which sessions may be moving, to a position or beyond it. */
extern void sf_generator_raise_cursor(SfGenerator *generator, int line, uint64 position);

/*
 * Move the cursor of each line to the next tick: all batches that were taken are in earlier ticks,
 * and so are all that a session can still take with a cursor that it has read before.
 */
extern void sf_generator_leave_tick(SfGenerator *generator);

/*
 * Begin a change, so that sessions take no batch, and end it, so that sessions drop the batches
 * that they hold.  change.c describes the protocol.  The lock is held from before the first call
 * until after the second; nothing in between raises an error.  sf_end_change also opens a
 * generator.
 */
extern void sf_begin_change(SfGenerator *generator);
extern void sf_end_change(SfGenerator *generator);

/* Release the lock of a generator, and assert the invariants that a single process can check. */
extern void sf_generator_unlock(SfGenerator *generator);

static inline void
sf_counter_add(SfCounters *counters, SfCounter counter, int64 amount)
{
	(void) pg_atomic_fetch_add_u64(&counters->numbers[counter], amount);
}

/* The name of a generator's IDs in messages. */
static inline const char *
sf_generator_name(const SfGenerator *generator)
{
	return generator->kind == SF_GENERATOR_SNO ? "sno" : "Snowflake";
}

#endif							/* SF_GENERATOR_STATE_H */
