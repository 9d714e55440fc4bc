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
	 * Written once: the version of the library that has made the memory, and
	 * whether the postmaster made it.
	 */
	char		version[16];
	bool		preloaded;

	/* Without the preload: the PID of the settings worker, or 0. */
	pg_atomic_uint32 settings_worker;

	/* Whether all fields below have been written. */
	pg_atomic_uint32 filled;

	/*
	 * The server's values of settings that a reload changes, published by the
	 * postmaster or the settings worker.  A session can have other ones
	 * (state/settings_worker.c), or see a reload late, so it never uses its
	 * own.  snowflake.max_ahead is in each generator.
	 */
	pg_atomic_uint32 configured_machine_id; /* an int */
	pg_atomic_uint32 configured_sno_partition;	/* an int */
	pg_atomic_uint32 max_clock_step;	/* ms; 0: no check */
	pg_atomic_uint32 sequence_jitter;
	pg_atomic_uint32 registry_is_set;	/* a bool */

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
 * The shared state.  If there is none yet, the session lets the settings worker make it (PostgreSQL
 * 17 and later), even for a function that only decodes, so that the layout does not change after
 * its first use.  Returns NULL if only the postmaster could have made it.
 *
 * Raises object_not_in_prerequisite_state if it was made by another version of the library, or if
 * there is none and the worker does not make it (sf_settings_worker_await).
 */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state if there is none, with a hint that
 * shows which line to add to which file, and if snowflake.registry is set and the library was not
 * preloaded.
 */
extern SfShared *sf_shared_required(void);

/*
 * Whether the settings of this process are those of the server, so that it publishes them: it is
 * the postmaster or, without the preload, the settings worker.
 */
extern bool sf_shared_publishes(void);

/* Allow IDs to be max_ahead ms ahead of the clock from now on. */
extern void sf_shared_set_max_ahead(SfShared *shared, int max_ahead);

/*
 * The layout of this server: that of the shared state, or else that of the setting; and its text.
 */
extern const SfLayout *sf_layout_in_force(void);
extern const char *sf_layout_in_force_text(void);

/*
 * The settings worker (settings_worker.c)
 */

/*
 * Start the worker if it does not run, and wait until shared memory is filled.  Raises
 * object_not_in_prerequisite_state if the worker ends before that, or if that takes longer than
 * snowflake.max_wait, or a second if that is longer; reacts to interrupts.
 */
extern void sf_settings_worker_await(SfShared *shared);

/* Whether shared memory is filled, by a worker or by the postmaster, and can be read. */
extern bool sf_settings_worker_has_filled(SfShared *shared);

/*
 * Wait until the worker has published the numbers of this server that this session has seen in the
 * configuration.  Returns after a second at the latest: the session may be the one that has not
 * seen a reload.
 */
extern void sf_settings_worker_await_reload(SfShared *shared);

/*
 * For the worker: begin, so that it has the settings of the server and notices reloads; become the
 * only one, or return false if there is another; and see reloads until the server is stopped.
 */
extern void sf_settings_worker_begin(void);
extern bool sf_settings_worker_enter(SfShared *shared);
extern void sf_settings_worker_serve(void);

/* Whether this process is the only worker. */
extern bool sf_is_settings_worker(void);

#endif							/* SF_SHARED_H */
