/*
 * wait.c
 *	  The procedure snowflake_wait(), which sleeps until there can be rows that a reader has not
 *	  read.
 *
 * A function would hold the snapshot of its statement, and so hold back VACUUM.  A procedure that
 * is called by a separate statement holds only the snapshot of the statement, which it releases.
 * Where others are held, the rows would not be visible anyway, and the call is refused.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/snapmgr.h"

#include "horizon/horizon.h"
#include "issue/generator.h"
#include "issue/shared.h"

PG_FUNCTION_INFO_V1(snowflake_wait);

/* The length of an interval, with days of 24 hours and months of 30 days, in microseconds. */
static int64
length_of(const Interval *interval)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		result;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &result) ||
		pg_add_s64_overflow(result, interval->time, &result))
		result = days > 0 ? PG_INT64_MAX : PG_INT64_MIN;
	return result;
}

/*
 * Release the snapshots of a CALL, or of a DO or CALL that has called it without a query.  A COMMIT
 * in a procedure releases the same ones (PreCommit_Portals and ForgetPortalSnapshots in
 * portalmem.c), and later statements take another one if they need it (EnsurePortalSnapshotExists
 * in pquery.c).
 */
static void
release_snapshots(void)
{
	Portal		portal = ActivePortal;

	if (portal != NULL && ActiveSnapshotSet() && portal->portalSnapshot == GetActiveSnapshot())
	{
		portal->portalSnapshot = NULL;
		PopActiveSnapshot();
		if (portal->holdSnapshot != NULL && portal->resowner != NULL)
			UnregisterSnapshotFromOwner(portal->holdSnapshot, portal->resowner);
		portal->holdSnapshot = NULL;
	}
	InvalidateCatalogSnapshot();
}

static void
refuse_snapshots(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("snowflake_wait() must be called in a READ COMMITTED transaction"),
				errdetail("The snapshot of this transaction does not show rows that are committed later."),
				errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED."));
	if (HaveRegisteredOrActiveSnapshot())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("snowflake_wait() cannot be called while a snapshot is held"),
				errdetail("The calling function or an open cursor of this transaction holds a snapshot."),
				errhint("Run CALL as a separate statement, and close cursors first."));
}

static void
check_arguments(FunctionCallInfo fcinfo)
{
	int64		first = sf_horizon_first();

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("arguments \"next_id\" and \"timeout\" must not be null"));
	if (length_of(PG_GETARG_INTERVAL_P(1)) < 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("argument \"timeout\" must not be negative"));
	if (first != SF_NO_ID && first <= PG_GETARG_INT64(0))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("snowflake_wait() cannot wait for the end of its own transaction"),
				errdetail("The horizon cannot pass %lld, because this transaction has taken the ID %lld.",
						  (long long) PG_GETARG_INT64(0), (long long) first),
				errhint("Commit the transaction first."));
}

Datum
snowflake_wait(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	SfGenerator *generator;
	int64		next_id;
	int64		timeout;
	Datum		horizon;
	bool		null = false;

	PreventCommandDuringRecovery("snowflake_wait()");
	check_arguments(fcinfo);
	next_id = PG_GETARG_INT64(0);
	timeout = length_of(PG_GETARG_INTERVAL_P(1));
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);
	generator = sf_await_open(sf_shared_required());
	release_snapshots();
	refuse_snapshots();
	horizon = Int64GetDatum(sf_horizon_await(generator, MyDatabaseId, next_id, timeout));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, &horizon, &null)));
}
