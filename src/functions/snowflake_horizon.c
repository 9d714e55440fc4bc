/*
 * snowflake_horizon.c
 *	  The procedure snowflake_horizon(), and the view of transactions that hold horizons back.
 *
 * A reader gets the horizon first and reads in a later statement, whose snapshot is taken after
 * that.  In the statement that reads, the horizon would be newer than the snapshot, and rows
 * that were committed in between would be missed.  So it is a procedure, which cannot be
 * part of a query, and which PostgreSQL refuses to call in functions that are not VOLATILE.
 * A transaction that keeps one snapshot is refused here.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "functions/arguments.h"
#include "generator/generator.h"
#include "generator/error.h"
#include "state/horizon.h"
#include "state/shared.h"

PG_FUNCTION_INFO_V1(snowflake_horizon);
PG_FUNCTION_INFO_V1(pg_stat_snowflake_horizon);

static void
check_transaction(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("cannot execute %s during recovery", "snowflake_horizon()"),
				errhint("Call it on the primary, then call pg_current_wal_insert_lsn() there, and read on this standby when it has replayed that LSN."));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("snowflake_horizon() must be called in a READ COMMITTED transaction"),
				errdetail("This transaction reads with the snapshot of its first statement, which can lack rows that were committed before the horizon was returned."),
				errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED."));
}

Datum
snowflake_horizon(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator;
	Datum		value;
	bool		null = false;

	check_transaction();
	generator = sf_await_open(shared, SF_GENERATOR_BIGINT);
	value = Int64GetDatum(sf_horizon_advance(generator, MyDatabaseId));
	return sf_row(fcinfo, &value, &null);
}

/*
 * The view
 */

#define HOLDER_COLUMNS 5

/*
 * As in pg_stat_activity: a role sees its own sessions, and those of others only with a privilege.
 */
static bool
may_see(const SfHorizonHolder *holder)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(holder->role) && has_privs_of_role(GetUserId(), holder->role));
}

static void
put_holder(ReturnSetInfo *result, const SfHorizonHolder *holder)
{
	bool		visible = may_see(holder);
	Datum		values[HOLDER_COLUMNS] = {
		ObjectIdGetDatum(holder->database),
		Int32GetDatum(holder->pid),
		TransactionIdGetDatum(XidFromFullTransactionId(holder->xid)),
		Int64GetDatum(holder->first),
		TimestampTzGetDatum(holder->since),
	};
	bool		nulls[HOLDER_COLUMNS] = {
		false,
		holder->pid == 0,
		!FullTransactionIdIsValid(holder->xid),
		!visible,
		!visible || holder->since == 0,
	};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
pg_stat_snowflake_horizon(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	SfHorizonHolder *holders;
	int			count;

	(void) sf_shared_required();
	InitMaterializedSRF(fcinfo, 0);
	count = sf_horizon_holders(&holders);
	for (int i = 0; i < count; i++)
		put_holder(result, &holders[i]);
	return (Datum) 0;
}
