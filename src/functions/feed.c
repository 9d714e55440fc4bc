/*
 * feed.c
 *	  The function snowflake_horizon(), the two functions by which several servers have one
 *	  horizon, and the trigger function snowflake_feed_guard() for tables that are read up to it.
 *
 * The horizon holds for rows whose ID was issued in the transaction that writes them.  Other rows
 * could appear below it: with IDs fetched in an earlier transaction, or chosen by a user.  The
 * trigger publishes the ID of each such row, so that the horizon waits for it as well, and raises
 * an error if a horizon above it was returned already.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_replication_origin.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "functions/arguments.h"
#include "horizon/horizon.h"
#include "issue/change.h"
#include "issue/generator.h"
#include "issue/opening_error.h"
#include "issue/shared.h"
#include "issue/wait.h"
#include "state/durable.h"

PG_FUNCTION_INFO_V1(snowflake_horizon);
PG_FUNCTION_INFO_V1(snowflake_propose_horizon);
PG_FUNCTION_INFO_V1(snowflake_promise_horizon);
PG_FUNCTION_INFO_V1(snowflake_feed_guard);

/*
 * A snapshot that was taken in recovery, or by logical decoding, does not list transactions as
 * others do.  Two processes can have different horizons for one snapshot.
 */
static void
check_snapshot(Snapshot snapshot)
{
	if (IsParallelWorker())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("cannot execute %s during a parallel operation", "snowflake_horizon()"),
				errdetail("The horizon of a parallel worker can differ from the horizon of its leader."),
				errhint("Mark the function that calls snowflake_horizon() as PARALLEL RESTRICTED."));
	if (snapshot->snapshot_type != SNAPSHOT_MVCC)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("no horizon is known for the snapshot of this statement"),
				errdetail("The snapshot does not belong to a query."));
	if (snapshot->takenDuringRecovery)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("no horizon is known for the snapshot of this statement"),
				errdetail("The snapshot was taken before this server was promoted."),
				errhint("Repeat the statement in a new transaction."));
}

/* The ends of transactions on other servers have no order with the snapshots of this one. */
static void
check_promises(void)
{
	if (IsolationUsesXactSnapshot() && sf_durable_read(SF_DURABLE_PROMISE) != 0)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("snowflake_horizon() must be called in a READ COMMITTED transaction"),
				errdetail("This server has made promises.  The snapshot of this transaction can lack rows of other servers that were committed before the horizon was promised."),
				errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED."));
}

/* The snapshot of the statement that calls the function. */
Datum
snowflake_horizon(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator;
	Snapshot	snapshot;
	int64		horizon;

	if (RecoveryInProgress())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("cannot execute %s during recovery", "snowflake_horizon()"),
				errhint("Call snowflake_horizon() and then pg_current_wal_insert_lsn() on the primary, and read on this standby when it has replayed that LSN."));
	if (!ActiveSnapshotSet())
		elog(ERROR, "no snapshot is active");
	snapshot = GetActiveSnapshot();
	check_snapshot(snapshot);
	generator = sf_await_open(shared);
	horizon = sf_horizon_of_snapshot(generator, MyDatabaseId, snapshot);
	check_promises();
	if (horizon == PG_INT64_MIN)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("no horizon is known for the snapshot of this statement"),
				errdetail("The snapshot was taken before the first call to snowflake_horizon() in this database, while a transaction was open that had begun before the first ID since the server started."),
				errhint("Repeat the statement in a new transaction."));
	PG_RETURN_INT64(horizon);
}

/*
 * Several servers
 */

/*
 * The cursor of a server that issues no IDs does not move, so an ID is issued if the cursor is
 * behind the clock.  A server that is ahead, for example after a crash, would wait for the clock.
 */
Datum
snowflake_propose_horizon(PG_FUNCTION_ARGS)
{
	SfGenerator *generator;

	PreventCommandDuringRecovery("snowflake_propose_horizon()");
	generator = sf_await_open(sf_shared_required());
	if (sf_generator_position(generator) <
		sf_position_at(&generator->layout, GetCurrentTimestamp()))
		(void) sf_next_id();
	PG_RETURN_INT64(sf_horizon_propose(generator));
}

/*
 * Raise the generator to the tick after a proposal that it has not reached.  It is not raised
 * again if it has no lease, without which no horizon is above its reservation.
 */
static void
reach_proposal(SfGenerator *generator, int64 proposal)
{
	uint64		tick = sf_layout_decompose(&generator->layout, proposal).tick + 1;
	bool		raised = false;
	bool		layout_recorded;
	SfOpening	status = SF_OPENING_DONE;

	if (sf_horizon_reaches(generator, proposal))
		return;
	sf_wait_and_lock(generator);
	if (sf_generator_position(generator) < sf_position(&generator->layout, tick, 0))
		status = sf_change_floor(generator, sf_layout_tick_start(&generator->layout, tick),
								 &raised, &layout_recorded);
	sf_generator_unlock(generator);
	if (status != SF_OPENING_DONE)
		sf_report_not_opened(generator, status);
	if (raised)
		ereport(LOG,
				errmsg("the generator of Snowflake IDs was raised to the horizon of other servers"),
				errdetail("The horizon is %lld.", (long long) proposal));
}

static void
check_proposal(const SfGenerator *generator, int64 proposal)
{
	const SfLayout *layout = &generator->layout;

	if (!sf_layout_holds(layout, proposal) ||
		sf_layout_decompose(layout, proposal).tick == sf_layout_last_tick(layout))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("cannot promise %lld as a horizon", (long long) proposal),
				errdetail("The number is not an ID of the layout \"%s\", or is in the last tick of the layout.",
						  generator->layout_text),
				errhint("Use the least number that snowflake_propose_horizon() has returned on any server."));
}

/* Write a promise to disk; 0: there is none. */
static void
write_promise(SfGenerator *generator, int64 promise)
{
	bool		written;

	sf_wait_and_lock(generator);
	written = sf_change_promise(generator, promise);
	sf_generator_unlock(generator);
	if (!written)
		sf_report_not_opened(generator, SF_OPENING_MOVED_BACK);
	sf_horizon_wake();
}

/* Make a promise, and return it; 0 if a higher horizon was returned without one. */
static int64
make_promise(SfGenerator *generator, int64 proposal)
{
	int64		durable;
	int64		promise;

	reach_proposal(generator, proposal);
	promise = sf_horizon_promise(generator, proposal, &durable);
	if (durable == 0)
		return 0;
	if ((int64) sf_durable_read(SF_DURABLE_PROMISE) < durable)
		write_promise(generator, durable);
	return promise;
}

/* Calls exclude each other, including a call that ends the promises. */
Datum
snowflake_promise_horizon(PG_FUNCTION_ARGS)
{
	int64		proposal = PG_GETARG_INT64(0);
	int64		promise = 0;
	SfGenerator *generator;

	PreventCommandDuringRecovery("snowflake_promise_horizon()");
	generator = sf_await_open(sf_shared_required());
	check_proposal(generator, proposal);
	LockSharedObject(ReplicationOriginRelationId, SF_DURABLE_PROMISE, 0, ExclusiveLock);
	if (proposal != 0)
		promise = make_promise(generator, proposal);
	else
	{
		sf_horizon_end_promises();
		write_promise(generator, 0);
	}
	UnlockSharedObject(ReplicationOriginRelationId, SF_DURABLE_PROMISE, 0, ExclusiveLock);
	PG_RETURN_INT64(promise);
}

/*
 * The guard
 */

static void
check_trigger_call(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ||
		trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				errmsg("snowflake_feed_guard() must be called by a row trigger before INSERT or UPDATE, with one argument"),
				errhint("Use snowflake_enable_feed() to create the trigger."));
}

/*
 * The number of the column that the trigger's argument names.  It is looked up for the first row of
 * a query.  PostgreSQL calls a trigger of a relation with the same FmgrInfo until the query ends,
 * and the number is kept until then.
 */
static int
find_id_column(FunctionCallInfo fcinfo)
{
	const TriggerData *trigger = (const TriggerData *) fcinfo->context;
	const char *name = trigger->tg_trigger->tgargs[0];
	int		   *kept = fcinfo->flinfo->fn_extra;
	int			column;

	if (kept)
		return *kept;
	column = SPI_fnumber(trigger->tg_relation->rd_att, name);
	if (column <= 0)
		ereport(ERROR,
				errcode(ERRCODE_UNDEFINED_COLUMN),
				errmsg("column \"%s\" of relation \"%s\" does not exist",
					   name, RelationGetRelationName(trigger->tg_relation)));
	if (getBaseType(SPI_gettypeid(trigger->tg_relation->rd_att, column)) != INT8OID)
		ereport(ERROR,
				errcode(ERRCODE_DATATYPE_MISMATCH),
				errmsg("column \"%s\" of relation \"%s\" is not of type bigint",
					   name, RelationGetRelationName(trigger->tg_relation)));
	kept = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(int));
	*kept = column;
	fcinfo->flinfo->fn_extra = kept;
	return column;
}

static void
admit_id(int64 id)
{
	SfShared   *shared = sf_shared_required();
	int64		horizon;

	if (!sf_generator_is_open(&shared->generators[SF_GENERATOR_BIGINT]))
		(void) sf_await_open(shared);
	if (sf_horizon_admit(id, &horizon))
		return;
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the ID of the row is below the horizon"),
			errdetail("The ID is %lld.  Readers might have read up to %lld, and would miss the row.",
					  (long long) id, (long long) horizon),
			errhint("Insert the row with an ID that snowflake_id() returns in the same transaction."));
}

/* The ID in a row; false if it is null. */
static bool
id_of_row(HeapTuple row, int column, TupleDesc descriptor, int64 *id)
{
	bool		null;
	Datum		value = heap_getattr(row, column, descriptor, &null);

	*id = null ? 0 : DatumGetInt64(value);
	return !null;
}

Datum
snowflake_feed_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	bool		is_update;
	TupleDesc	descriptor;
	HeapTuple	row;
	int			column;
	int64		id;
	int64		id_before;

	check_trigger_call(fcinfo);
	is_update = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
	descriptor = trigger->tg_relation->rd_att;
	column = find_id_column(fcinfo);
	row = is_update ? trigger->tg_newtuple : trigger->tg_trigtuple;
	if (id_of_row(row, column, descriptor, &id) &&
		!(is_update && id_of_row(trigger->tg_trigtuple, column, descriptor, &id_before) &&
		  id == id_before))
		admit_id(id);
	return PointerGetDatum(row);
}
