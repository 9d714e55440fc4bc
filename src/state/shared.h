/*
 * shared.h
 *	  The state that all backends of a server share.
 */
#ifndef SF_SHARED_H
#define SF_SHARED_H

#include "postgres.h"

#include "port/atomics.h"

#include "state/generator_state.h"
#include "state/lease.h"

typedef struct SfShared
{
	/*
	 * Written once: the version of the library that has made it; whether that
	 * was in the postmaster; and of its locks.
	 */
	char		version[16];
	bool		preloaded;
	int			tranche;

	/*
	 * What the postmaster has for snowflake.machine_id and
	 * snowflake.sno_partition, as an int.  Sessions see a reload one by one,
	 * and some late; the postmaster is the first.
	 */
	pg_atomic_uint32 configured_machine_id;
	pg_atomic_uint32 configured_sno_partition;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was believed (clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	SfRegistry	registry;
	SfGenerator generators[SF_GENERATOR_COUNT];
} SfShared;

/* Ask for shared memory, when loaded by shared_preload_libraries. */
extern void sf_shared_init(void);

/*
 * The shared state, which a session makes if there is none yet (PostgreSQL 17 and
 * later), also for what only decodes, so that the layout stays what it was used as; or NULL,
 * where only the postmaster could have made it.
 *
 * Raises object_not_in_prerequisite_state where it was made by another version of the
 * library.
 */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state where there is none, with
 * a hint that says which line to add to which file; and where snowflake.registry
 * is set, and the library was not preloaded.
 */
extern SfShared *sf_shared_required(void);

/*
 * Let IDs be ahead of the clock by so many ms from now on, if this process is the one whose
 * configuration counts: the postmaster; or where it has not loaded the library any session,
 * when it sees a reload.
 */
extern void sf_shared_set_max_ahead(int max_ahead);

/* The layout of this server: the shared one, else what the setting says; and its text. */
extern const SfLayout *sf_layout_in_force(void);
extern const char *sf_layout_in_force_text(void);

#endif							/* SF_SHARED_H */
