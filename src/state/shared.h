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
	 * Written once: the version of the library that has made the state,
	 * whether the postmaster made it, and the tranche of its locks.
	 */
	char		version[16];
	bool		preloaded;
	int			tranche;

	/*
	 * The postmaster's values of snowflake.machine_id and
	 * snowflake.sno_partition, each an int.  Sessions see a reload one by
	 * one, and some late; the postmaster is the first.
	 */
	pg_atomic_uint32 configured_machine_id;
	pg_atomic_uint32 configured_sno_partition;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was accepted (clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	SfRegistry	registry;
	SfGenerator generators[SF_GENERATOR_COUNT];
} SfShared;

/* Request shared memory, when loaded by shared_preload_libraries. */
extern void sf_shared_init(void);

/*
 * The shared state.  If there is none yet, the session makes it (PostgreSQL 17 and later), even for
 * a function that only decodes, so that the layout does not change after its first use.  Returns
 * NULL if only the postmaster could have made it.
 *
 * Raises object_not_in_prerequisite_state if it was made by another version of the library.
 */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state if there is none, with a hint that
 * shows which line to add to which file, and if snowflake.registry is set and the library was not
 * preloaded.
 */
extern SfShared *sf_shared_required(void);

/*
 * Allow IDs to be max_ahead ms ahead of the clock from now on, if the configuration of this process
 * applies: it is the postmaster or, if the postmaster has not loaded the library, any session that
 * sees a reload.
 */
extern void sf_shared_set_max_ahead(int max_ahead);

/*
 * The layout of this server: that of the shared state, or else that of the setting; and its text.
 */
extern const SfLayout *sf_layout_in_force(void);
extern const char *sf_layout_in_force_text(void);

#endif							/* SF_SHARED_H */
