/*
 * feed.c
 *	  The procedure snowflake_horizon(), and the trigger function snowflake_feed_guard() for tables
 *	  that are read up to the horizon.
 *
 * A reader gets the horizon first and reads in a later statement, whose snapshot is taken after
 * that.  In the statement that reads, the horizon would be newer than the snapshot, and rows
 * that were committed in between would be missed.  So it is a procedure, which cannot be
 * part of a query, and which PostgreSQL refuses to call in functions that are not VOLATILE.
 * A transaction that keeps one snapshot is refused here.
 *
 * The horizon holds for rows whose ID was issued in the transaction that writes them.  Other rows
 * could appear below it: with IDs that were fetched in an earlier transaction, or that a user has
 * chosen.  The trigger publishes the ID of each such row, so that the horizon waits for it as well,
 * and raises an error if a horizon above it was returned already.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "functions/arguments.h"
#include "issue/generator.h"
#include "issue/error.h"
#include "horizon/horizon.h"
#include "issue/shared.h"

PG_FUNCTION_INFO_V1(snowflake_horizon);
PG_FUNCTION_INFO_V1(snowflake_feed_guard);

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

static void
check_call(FunctionCallInfo fcinfo)
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

/* The number of the column that the trigger's argument names. */
static int
find_column(const TriggerData * trigger)
{
	const char *name = trigger->tg_trigger->tgargs[0];
	int			column = SPI_fnumber(trigger->tg_relation->rd_att, name);

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
	return column;
}

static void
admit(int64 id)
{
	int64		horizon;

	if (sf_admit_id(sf_shared_required(), id, &horizon))
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
get_id(HeapTuple row, int column, TupleDesc descriptor, int64 *id)
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

	check_call(fcinfo);
	is_update = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
	descriptor = trigger->tg_relation->rd_att;
	column = find_column(trigger);
	row = is_update ? trigger->tg_newtuple : trigger->tg_trigtuple;
	if (get_id(row, column, descriptor, &id) &&
		!(is_update && get_id(trigger->tg_trigtuple, column, descriptor, &id_before) &&
		  id == id_before))
		admit(id);
	return PointerGetDatum(row);
}
