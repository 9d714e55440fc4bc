/*
 * settings_worker.c
 *	  The background worker whose settings apply to all sessions, without the preload.
 *
 * If the library is preloaded, the postmaster fills shared memory from its settings, and
 * publishes those that a reload has changed (snowflake.c).  Without the preload no process of the
 * server has loaded the library before a session does, and the settings of a session cannot be
 * used: before the library is loaded, PostgreSQL accepts "snowflake.layout" or any other of our
 * names as an option of the connection, in ALTER ROLE and in ALTER DATABASE, and such a value
 * replaces that of the configuration file.  When the library defines the setting, PostgreSQL
 * rejects the value, and the setting is the built-in default: the configured value is lost in
 * this session.  (SET does not replace the configured value.  But a parallel worker of such a
 * session has the default as well.)
 *
 * So this worker does what the postmaster does with the preload.  It is forked by the postmaster,
 * and so has the values of the configuration file and of the server's command line.  It is
 * connected to no database, and has no client and no role, so that there are no other sources of
 * settings.  The first session that needs shared memory starts the worker, and waits until the
 * worker has filled it.  The worker continues to run, since sessions cannot publish the settings of
 * a reload either, and since a session that is in a long statement has not seen the latest one.
 *
 * No value that a session has decides what others do, or what the session itself is allowed to do.
 * Sessions make the memory, without any value of a setting; if two sessions start a worker at
 * the same time, the one that enters its PID into shared memory first continues.  If the worker is
 * terminated, the values that it has published apply, and the next session that attaches to shared
 * memory starts another one.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "clocks.h"
#include "compat.h"
#include "settings.h"
#include "state/shared.h"
#include "wait_event.h"

/* How often waiting sessions look at shared memory, in ms. */
#define LOOK_INTERVAL	2

/*
 * The worker may need this long to start on a busy server, also if snowflake.max_wait is less; and
 * to notice a reload, which the session has seen.
 */
#define WORKER_TIMEOUT	1000	/* ms */

static bool is_worker = false;

bool
sf_settings_worker_has_filled(SfShared *shared)
{
	if (pg_atomic_read_u32(&shared->filled) == 0)
		return false;
	pg_read_barrier();			/* pairs with the one in fill */
	return true;
}

void
sf_settings_worker_begin(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
}

static void
leave(int code, Datum shared)
{
	pg_atomic_write_u32(&((SfShared *) DatumGetPointer(shared))->settings_worker, 0);
	is_worker = false;
}

bool
sf_settings_worker_enter(SfShared *shared)
{
	uint32		none = 0;

	is_worker = pg_atomic_compare_exchange_u32(&shared->settings_worker, &none,
											   (uint32) MyProcPid);
	if (is_worker)
		before_shmem_exit(leave, PointerGetDatum(shared));
	return is_worker;
}

bool
sf_is_settings_worker(void)
{
	return is_worker;
}

void
sf_settings_worker_serve(void)
{
	while (!ShutdownRequestPending)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1,
						 sf_wait_event(SF_WAIT_SETTINGS_WORKER));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
	}
}

static bool
start_worker(pid_t notify_pid, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {
		.bgw_name = "snowflake settings worker",
		.bgw_type = "snowflake settings worker",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "snowflake",
		.bgw_function_name = "snowflake_settings_worker_main",
		.bgw_notify_pid = notify_pid,
	};

	return RegisterDynamicBackgroundWorker(&worker, handle);
}

static pid_t
pid_of_worker(SfShared *shared)
{
	return (pid_t) pg_atomic_read_u32(&shared->settings_worker);
}

pg_noreturn static void
report_no_worker(const char *detail)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the snowflake settings worker could not be started"),
			errdetail("%s", detail),
			errhint("The server's log can contain the reason.  Increase \"max_worker_processes\", or load snowflake via \"shared_preload_libraries\", which needs no such worker."));
}

static void
sleep_a_moment(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_INTERVAL,
					 sf_wait_event(SF_WAIT_SETTINGS));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

static void
report_if_too_late(int64 since, bool started)
{
	int64		limit = Max(sf_max_wait, WORKER_TIMEOUT) * INT64CONST(1000);

	if (sf_max_wait < 0 || sf_time_since(since) < limit)
		return;
	report_no_worker(started ?
					 "The worker was registered, and has not read the settings of the server in time." :
					 "No slot of \"max_worker_processes\" has become free in time.");
}

void
sf_settings_worker_await(SfShared *shared)
{
	int64		since = sf_time_since_boot();
	BackgroundWorkerHandle *started = NULL;
	pid_t		pid;

	if (sf_settings_worker_has_filled(shared) && pid_of_worker(shared) == 0)
		(void) start_worker(0, NULL);
	while (!sf_settings_worker_has_filled(shared))
	{
		if (started == NULL && pid_of_worker(shared) == 0)
			(void) start_worker(MyProcPid, &started);
		else if (started && GetBackgroundWorkerPid(started, &pid) == BGWH_STOPPED &&
				 pid_of_worker(shared) == 0 && !sf_settings_worker_has_filled(shared))
			report_no_worker("The worker has ended before it had read the settings of the server.");
		report_if_too_late(since, started != NULL);
		sleep_a_moment();
	}
}

/*
 * Whether the numbers that this session has seen in the configuration are published.
 *
 * The postmaster publishes a new value before sessions see it.  The settings worker, without the
 * preload, can see a reload after a session, which would then fix an earlier number.  A value of
 * this session that is not the default is that of a configuration, earlier or later.
 */
static bool
is_published(SfShared *shared)
{
	return (sf_settings_machine_id == SF_MACHINE_ID_UNSET ||
			(int) pg_atomic_read_u32(&shared->configured_machine_id) == sf_settings_machine_id) &&
		(sf_settings_sno_partition == SF_MACHINE_ID_UNSET ||
		 (int) pg_atomic_read_u32(&shared->configured_sno_partition) == sf_settings_sno_partition);
}

/*
 * The worker can have missed a reload while it was being started: PostgreSQL ignores the signal
 * until sf_settings_worker_begin.  So it is signalled again.
 */
void
sf_settings_worker_await_reload(SfShared *shared)
{
	int64		since = sf_time_since_boot();
	pid_t		pid = pid_of_worker(shared);

	if (pid == 0 || is_published(shared))
		return;
	(void) kill(pid, SIGHUP);
	while (!is_published(shared) && sf_time_since(since) < WORKER_TIMEOUT * INT64CONST(1000))
		sleep_a_moment();
}
