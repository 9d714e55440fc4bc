/*
 * make_register.c
 *	  The SQL function that makes the registers of a cluster: one for each kind of IDs.
 *
 * CREATE EXTENSION calls it.  A transaction that has made a register itself cannot issue
 * IDs: it may still roll back, and what it has reserved would be lost with the register.
 * But tools run CREATE EXTENSION, CREATE TABLE and INSERT in one transaction.  So a
 * background worker makes the registers, in a transaction of its own, and a rollback of
 * CREATE EXTENSION keeps them, as DROP EXTENSION does.
 *
 * The worker needs a place in max_worker_processes, and may fail.  Then the calling
 * transaction makes the registers, or gets the error that the worker had.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/guc.h"

#include "core/sno.h"
#include "register.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(snowflake_make_register);

extern PGDLLEXPORT void snowflake_make_register_main(Datum argument);

/*
 * The calling transaction may have locked the catalog, and waits for the worker: so the
 * worker does not wait for long.
 */
#define WORKER_LOCK_TIMEOUT	"1s"

static void
make_registers(void)
{
	char	   *before;

	if (sf_register_make(SF_LINE_BIGINT, sf_layout_in_force(), false, &before))
		ereport(LOG,
				errmsg("the register of Snowflake IDs was made, for the layout \"%s\"",
					   sf_layout_in_force_text()));
	if (sf_register_make(SF_LINE_SNO, &sf_sno_layout, false, &before))
		ereport(LOG,
				errmsg("the register of IDs of type sno was made"));
}

/*
 * Main function of the worker, for the OID of a database: any, but without one no catalog can
 * be opened, though this one is shared by all.
 */
void
snowflake_make_register_main(Datum argument)
{
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	SetConfigOption("lock_timeout", WORKER_LOCK_TIMEOUT, PGC_SUSET, PGC_S_OVERRIDE);
	StartTransactionCommand();
	make_registers();
	CommitTransactionCommand();
}

static void
run_worker(void)
{
	BackgroundWorker worker = {
		.bgw_name = "snowflake register maker",
		.bgw_type = "snowflake register maker",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "snowflake",
		.bgw_function_name = "snowflake_make_register_main",
		.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId),
		.bgw_notify_pid = MyProcPid,
	};
	BackgroundWorkerHandle *handle;

	if (IsUnderPostmaster && RegisterDynamicBackgroundWorker(&worker, &handle))
		(void) WaitForBackgroundWorkerShutdown(handle);
}

Datum
snowflake_make_register(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("snowflake_make_register()");
	if (!sf_register_all_exist())
		run_worker();
	make_registers();
	PG_RETURN_VOID();
}
