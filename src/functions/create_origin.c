/*
 * create_origin.c
 *	  The SQL function that creates the origins of a cluster, one for each kind of IDs.
 *
 * CREATE EXTENSION calls the function.  A transaction that has created an origin itself
 * cannot issue IDs: it can still roll back, and its reservation would be lost with the
 * origin.  But tools run CREATE EXTENSION, CREATE TABLE and INSERT in one transaction.
 * Therefore a background worker creates the origins, in a transaction of its own.  A
 * rollback of CREATE EXTENSION keeps them, and so does DROP EXTENSION.
 *
 * The worker needs a slot of max_worker_processes, and it can fail.  In both cases the
 * calling transaction creates the origins itself, or raises the same error as the worker.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "clocks.h"
#include "core/sno.h"
#include "state/origin.h"
#include "state/shared.h"

PG_FUNCTION_INFO_V1(snowflake_create_origin);

extern PGDLLEXPORT void snowflake_create_origin_main(Datum argument);

/*
 * The calling transaction can have locked the catalog, and it waits for the worker.  The
 * timeout ends this deadlock, which PostgreSQL does not detect.
 */
#define WORKER_LOCK_TIMEOUT	"1s"

/* The worker can also wait while it starts, before it has a lock timeout. */
#define WORKER_TIMEOUT		5000	/* ms */

static void
create_origins(void)
{
	char	   *before;

	if (sf_origin_create(SF_GENERATOR_BIGINT, sf_layout_in_force(), false, &before))
		ereport(LOG,
				errmsg("created the origin of Snowflake IDs for the layout \"%s\"",
					   sf_layout_in_force_text()));
	if (sf_origin_create(SF_GENERATOR_SNO, &sf_sno_layout, false, &before))
		ereport(LOG,
				errmsg("created the origin of IDs of type sno"));
}

/*
 * Main function of the worker.  The argument is the OID of the database to connect to.  The
 * catalog of origins is shared, so any database will do, but a process without a database
 * cannot open a catalog.
 */
void
snowflake_create_origin_main(Datum argument)
{
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	SetConfigOption("lock_timeout", WORKER_LOCK_TIMEOUT, PGC_SUSET, PGC_S_OVERRIDE);
	StartTransactionCommand();
	create_origins();
	CommitTransactionCommand();
}

/* Wait until the worker has ended, and terminate it if that takes too long. */
static void
wait_for_worker(BackgroundWorkerHandle *handle)
{
	SfStopwatch since = sf_start_stopwatch();
	pid_t		pid;

	while (GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED)
	{
		int64		left = WORKER_TIMEOUT - sf_stopwatch(since) / 1000;

		if (left <= 0)
		{
			TerminateBackgroundWorker(handle);
			(void) WaitForBackgroundWorkerShutdown(handle);
			return;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) left, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
run_worker(void)
{
	BackgroundWorker worker = {
		.bgw_name = "snowflake origin maker",
		.bgw_type = "snowflake origin maker",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "snowflake",
		.bgw_function_name = "snowflake_create_origin_main",
		.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId),
		.bgw_notify_pid = MyProcPid,
	};
	BackgroundWorkerHandle *handle;

	if (IsUnderPostmaster && RegisterDynamicBackgroundWorker(&worker, &handle))
		wait_for_worker(handle);
}

Datum
snowflake_create_origin(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("snowflake_create_origin()");
	if (!sf_origins_exist())
		run_worker();
	create_origins();
	PG_RETURN_VOID();
}
