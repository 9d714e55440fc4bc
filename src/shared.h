/*
 * shared.h
 *	  The state that all backends of a server share.
 */
#ifndef SF_SHARED_H
#define SF_SHARED_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "core/lease.h"
#include "log_limit.h"
#include "stats.h"

typedef struct SfShared
{
	/* Written once, before any backend can see the struct. */
	SfLayout	layout;
	SfSequenceRange range;		/* not yet cut to the layout */
	LWLock	   *lock;

	/*
	 * What the postmaster has for snowflake.machine_id, as an int.  Sessions
	 * see a reload one by one, and some late; the postmaster is the first.
	 */
	pg_atomic_uint32 configured_machine_id;

	/*
	 * The machine ID in use, or SF_MACHINE_ID_NOT_PINNED.  Changes once, from
	 * that to a number, by compare-and-swap.
	 */
	pg_atomic_uint32 machine_id;

	/*
	 * The register, 0 until the line has been opened in this run of the
	 * server, and while a register that was dropped is not found again.  Set
	 * under the lock, after cursor and ceiling.
	 */
	pg_atomic_uint32 origin;

	/*
	 * Changes when the line is moved, or the register is lost, so that
	 * backends drop the leases that they have of the line as it was.
	 */
	pg_atomic_uint32 generation;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was believed (clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	/*
	 * The latest reading of the wall clock (clock.c), a TimestampTz, or
	 * SF_CLOCK_NOT_SEEN.
	 */
	pg_atomic_uint64 latest_clock;

	/* Where the line was opened, an SfInstant; for the view alone. */
	pg_atomic_uint64 floor;

	/*
	 * The second that is looked at for an overflow (overflow.c): its first
	 * tick, and how many of its ticks are used up.
	 */
	pg_atomic_uint64 overflow_begin;
	pg_atomic_uint64 overflow_ticks;

	SfLogLimit	regression_logged;
	SfLogLimit	overflow_logged;
	SfLogLimit	raise_logged;

	/*
	 * Positions from here on must not be issued.  Written under the lock,
	 * read without it: a reader that sees an old value asks for a raise too
	 * early, never issues too much, because the ceiling rises; where it is
	 * lowered, ceiling.c says why that holds.
	 */
	pg_atomic_uint64 ceiling;

	/*
	 * The next free position, on a cache line of its own: it changes with
	 * every lease, while all of the above is read with every lease.  Changed
	 * by compare-and-swap alone, see core/lease.h.
	 */
	char		pad[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 cursor;
	char		pad_stats[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];
	SfStats		stats;
} SfShared;

#define SF_MACHINE_ID_NOT_PINNED	PG_UINT32_MAX
#define SF_CLOCK_NOT_SEEN			((uint64) PG_INT64_MIN)

/* Ask for shared memory, when loaded by shared_preload_libraries. */
extern void sf_shared_init(void);

/* The shared state, or NULL where the library was not preloaded. */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state where the library
 * was not preloaded, with a hint that says which line to add to which file.
 */
extern SfShared *sf_shared_required(void);

/* The layout of this server: the shared one, else what the setting says. */
extern const SfLayout *sf_layout_in_force(void);

#endif							/* SF_SHARED_H */
