/*
 * generator_state.h
 *	  The state of a generator, in shared memory.
 *
 * A generator issues IDs of one kind.  There are two: one for IDs of type bigint, and one for IDs
 * of type sno.  They share only the code.  src/README.md has the invariants.
 *
 * A generator is in one of four states (sf_generator_state):
 *
 *	UNOPENED	It has not issued an ID in this run of the server.  Only its durable state shows
 *				what was issued before; cursor and wall_safe are not valid.
 *	OPEN		Everything below the cursor was issued or is lost, and nothing at or above it.
 *				Sessions take batches up to reserved_until, which is on disk.
 *	UNRESERVED	As OPEN, but nothing is issued, because reserved_until is 0: the generator is
 *				being changed, by the process that holds the lock, or nothing has been reserved
 *				since it was opened without a lease, or since another lease began.
 *	NO LEASE	As UNRESERVED, with a registry, before the first lease or after the last one.
 *
 * Each transition is made under the lock, by these functions:
 *
 *	UNOPENED -> OPEN, UNRESERVED or NO LEASE		sf_generator_open (reservation.c)
 *	OPEN -> UNRESERVED								sf_stop_issuing
 *	UNRESERVED -> OPEN								sf_resume_issuing; sf_reservation_extend
 *	OPEN -> NO LEASE								sf_change_close (change.c)
 *	NO LEASE -> UNRESERVED or OPEN					sf_change_lease (change.c)
 *
 * A generator whose durable state is lost stays UNOPENED until its floor is set (sf_change_floor).
 */
#ifndef SF_GENERATOR_STATE_H
#define SF_GENERATOR_STATE_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "port/atomics.h"
#include "utils/timestamp.h"

#include "clocks.h"
#include "compat.h"
#include "core/phase.h"
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
 * An extension of the reservation that is written, and that need not be on disk yet
 * (reservation.c).  Protected by the lock, except that until is read without it.
 */
typedef struct SfPendingExtension
{
	pg_atomic_uint64 until;		/* the new end, a position; 0 for none */
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
	SfSequenceRange range;		/* not yet limited to the layout */

	/* Whether a registry grants leases to this server (lease.h). */
	bool		leased;

	/*
	 * Changes with each change of the generator (change.c), so that sessions
	 * drop the batches that they hold.  Read with each ID.
	 */
	pg_atomic_uint32 generation;

	/*
	 * snowflake.max_ahead, in microseconds, as published (SfShared).  It is
	 * not each session's own, so that a session in the middle of a long
	 * statement does not use an older and longer one.  Read with each ID.
	 */
	pg_atomic_uint32 max_ahead;

	/*
	 * The machine ID, or partition, in use, or SF_MACHINE_ID_NOT_PINNED.
	 * Without a registry it changes once, from that to a number, by
	 * compare-and-swap; with one, when another lease begins.
	 */
	pg_atomic_uint32 machine_id;

	/*
	 * A position; this one and all above it must not be issued (invariant 1).
	 * Written under the lock, read without it: a session that reads an old
	 * value requests an extension too early, and never takes too much,
	 * because an extension only increases the value.  Every change that
	 * lowers it follows the protocol of change.c.
	 */
	pg_atomic_uint64 reserved_until;
	SfPendingExtension pending;

	/*
	 * The microseconds that recent flushes of the durable state took
	 * (core/reserved_time.h).  Written under the lock.
	 */
	pg_atomic_uint32 write_time;

	/*
	 * The lease: positions at or above lease_start and below lease_end.
	 * Without a registry these are all positions; with a registry there are
	 * none at first.  Written under the lock.
	 */
	pg_atomic_uint64 lease_start;
	pg_atomic_uint64 lease_end;

	/*
	 * See core/phase.h; written under the lock.  wall_safe is a tick.  A
	 * generator without phases has a wall_safe as well: the tick before its
	 * floor or its lease, below which nothing is issued.
	 */
	pg_atomic_uint64 wall_safe;
	pg_atomic_uint32 drifts;

	/*
	 * The cursor at the last opening or move: if the cursor is still equal to
	 * it, nothing was taken since.
	 */
	pg_atomic_uint64 opened;

	/*
	 * The time of the position at which the generator was opened or to which
	 * its floor was set last, an SfInstant; for the view only.
	 */
	pg_atomic_uint64 floor;

	/*
	 * The floor that an administrator has set last in this run, an SfInstant,
	 * or 0; for messages only.
	 */
	pg_atomic_uint64 floor_set;

	char		layout_text[SF_LAYOUT_TEXT_SIZE];

	char		pad_clock[PG_CACHE_LINE_SIZE];

	/*
	 * Written up to a thousand times a second, or with each tick that is used
	 * up.
	 */

	/*
	 * The latest reading of the wall clock (generator/clock.c), a
	 * TimestampTz, or SF_CLOCK_NOT_SEEN.
	 */
	pg_atomic_uint64 latest_clock;

	/*
	 * The second that is examined for an overflow (generator/wait.c): its
	 * first tick, and how many of its ticks are used up.
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
	SfLogLimit	reservation_logged;

	char		pad_cursor[PG_CACHE_LINE_SIZE];

	/* Read and written with each batch. */

	/*
	 * The next free position; 0 before the generator is opened.  Changed by
	 * compare-and-swap only (core/batch.h).  The cursor of a generator with
	 * phases contains the phase as well.
	 */
	pg_atomic_uint64 cursor;

	/*
	 * The time until which sessions that have not waited leave free positions
	 * to sessions that have (generator/wait.c), a TimestampTz.  Read with
	 * each batch, like the cursor.
	 */
	pg_atomic_uint64 yield_until;

	char		pad_stats[PG_CACHE_LINE_SIZE];

	SfCounters	stats;

	char		pad_next[PG_CACHE_LINE_SIZE];
} SfGenerator;

#define SF_CLOCK_NOT_SEEN			((uint64) PG_INT64_MIN)
#define SF_MACHINE_ID_NOT_PINNED	PG_UINT32_MAX

typedef enum SfGeneratorState
{
	SF_UNOPENED,
	SF_OPEN,
	SF_UNRESERVED,
	SF_NO_LEASE,
} SfGeneratorState;

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

/* Whether the generator changes its phase when the clock steps back. */
static inline bool
sf_generator_has_phases(const SfGenerator *generator)
{
	return generator->kind == SF_GENERATOR_SNO;
}

/* The last tick in which IDs can be issued. */
static inline uint64
sf_generator_last_tick(const SfGenerator *generator)
{
	return sf_generator_has_phases(generator) ?
		SF_PHASE_TICKS - 1 : sf_layout_last_tick(&generator->layout);
}

/* The parts of a cursor.  Without phases, a position may need all of its bits. */
static inline uint64
sf_generator_position_of(const SfGenerator *generator, uint64 cursor)
{
	return sf_generator_has_phases(generator) ? sf_cursor_position(cursor) : cursor;
}

static inline bool
sf_generator_phase_of(const SfGenerator *generator, uint64 cursor)
{
	return sf_generator_has_phases(generator) && sf_cursor_phase(cursor);
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

/* The tick before that of a position; 0 if there is none. */
static inline uint64
sf_generator_tick_before(const SfGenerator *generator, uint64 position)
{
	uint64		tick = sf_position_tick(&generator->layout, position);

	return tick > 0 ? tick - 1 : 0;
}

/* The next free position. */
static inline uint64
sf_generator_position(SfGenerator *generator)
{
	return sf_generator_position_of(generator, pg_atomic_read_u64(&generator->cursor));
}

/*
 * Whether the generator has been opened in this run of the server, and so may have issued IDs.  All
 * that was written before it was opened is then visible.
 */
static inline bool
sf_generator_is_open(SfGenerator *generator)
{
	if (unlikely(pg_atomic_read_u64(&generator->cursor) == 0))
		return false;
	pg_read_barrier();			/* pairs with the one in open_locked */
	return true;
}

/* The state, which other processes can change unless the lock is held. */
static inline SfGeneratorState
sf_generator_state(SfGenerator *generator)
{
	if (!sf_generator_is_open(generator))
		return SF_UNOPENED;
	if (pg_atomic_read_u64(&generator->lease_end) == 0)
		return SF_NO_LEASE;
	return pg_atomic_read_u64(&generator->reserved_until) == 0 ? SF_UNRESERVED : SF_OPEN;
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

/*
 * Move the cursor, which sessions may be moving, to a position in its phase; to an earlier
 * one only if back is true.  The lock is held.
 */
extern void sf_generator_move_cursor(SfGenerator *generator, uint64 position, bool back);

/*
 * Move the cursor, which sessions may be moving, to the next tick: all batches that were taken, and
 * all batches that a session can still take with a cursor that it has read before, are in earlier
 * ticks.  The lock is held.
 */
extern void sf_generator_leave_tick(SfGenerator *generator);

/*
 * Move the cursor, which sessions may be moving, by one position: a session that has read the
 * cursor before cannot swap it any more.  The lock is held.
 */
extern void sf_generator_skip_position(SfGenerator *generator);

/* From now on issue nothing before a position, in either phase.  The lock is held. */
extern void sf_generator_start_at(SfGenerator *generator, uint64 position);

/*
 * Stop issuing, drop a pending extension, change the generator, and resume.  Between the two no
 * session takes a batch, and afterwards all sessions drop the batches that they hold.  The lock is
 * held from before the first call until after the second.
 *
 * sf_stop_issuing returns the end of the reservation.  sf_resume_issuing takes the new end, cuts it
 * to the lease, and must be called even if nothing was changed; with 0 nothing is issued.
 */
extern uint64 sf_stop_issuing(SfGenerator *generator);
extern void sf_resume_issuing(SfGenerator *generator, uint64 reserved_until);

static inline void
sf_counter_add(SfCounters *counters, SfCounter counter, int64 amount)
{
	(void) pg_atomic_fetch_add_u64(&counters->numbers[counter], amount);
}

/* Set a number to a value if the value is greater. */
static inline void
sf_counter_raise(SfCounters *counters, SfCounter counter, uint64 value)
{
	uint64		before = pg_atomic_read_u64(&counters->numbers[counter]);

	while (value > before &&
		   !pg_atomic_compare_exchange_u64(&counters->numbers[counter], &before, value))
		;
}

/* The name of a generator's IDs in messages. */
static inline const char *
sf_generator_kind_name(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno" : "Snowflake";
}

static inline const char *
sf_generator_name(const SfGenerator *generator)
{
	return sf_generator_kind_name(generator->kind);
}

#endif							/* SF_GENERATOR_STATE_H */
