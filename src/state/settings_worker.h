/*
 * settings_worker.h
 *	  The background worker whose settings apply to all sessions, without the preload.
 */
#ifndef SF_SETTINGS_WORKER_H
#define SF_SETTINGS_WORKER_H

#include "postgres.h"

#include "port/atomics.h"

/* In shared memory. */
typedef struct SfSettingsWorker
{
	/* The PID of the worker that fills shared memory and publishes, or 0. */
	pg_atomic_uint32 pid;

	/* Whether shared memory is filled, by a worker or by the postmaster. */
	pg_atomic_uint32 filled;
} SfSettingsWorker;

/* Make the struct, in new memory: there is no worker, and the memory is not filled. */
extern void sf_settings_worker_init(SfSettingsWorker *worker);

/* All of shared memory has been written.  A session that sees that can read it. */
extern void sf_settings_worker_set_filled(SfSettingsWorker *worker);
extern bool sf_settings_worker_has_filled(SfSettingsWorker *worker);

/*
 * Start the worker if it does not run, and wait until shared memory is filled.  Raises
 * object_not_in_prerequisite_state if the worker ends before that, or if that takes longer than
 * snowflake.max_wait, or a second if that is longer; reacts to interrupts.
 */
extern void sf_settings_worker_await(SfSettingsWorker *worker);

/*
 * Wait until the worker has published a value that this session has seen in the configuration.
 * Returns after a second at the latest: the session may be the one that has not seen a reload.
 */
extern void sf_settings_worker_await_value(SfSettingsWorker *worker, pg_atomic_uint32 *published,
										   int value);

/*
 * For the worker: begin, so that it has the settings of the server and notices reloads; become the
 * only one, or return false if there is another; and see reloads until the server is stopped.
 */
extern void sf_settings_worker_begin(void);
extern bool sf_settings_worker_enter(SfSettingsWorker *worker);
extern void sf_settings_worker_serve(void);

/* Whether this process is the only worker. */
extern bool sf_is_settings_worker(void);

#endif							/* SF_SETTINGS_WORKER_H */
