/*
 * slots.c
 *	  The slots for replication origins that the durable state takes at CREATE EXTENSION: all or
 *	  none of them.
 *
 * PostgreSQL has a limited number of slots, takes one when the progress of an origin is written
 * first, and gives it back when the origin is dropped by its name.  The durable numbers have no
 * name (state/durable.c), so no SQL function of PostgreSQL can give back a slot that a refused
 * CREATE EXTENSION leaves.
 *
 * The slots are counted before any is taken.  A session can take one in between: PostgreSQL raises
 * an error then, and the script of the extension gives back the slots of numbers that are 0, which
 * an absent number is, too.  It also gives back slots that an earlier call has taken before a
 * crash.  It does so only if the server has never had a state.  The script has locked the catalog
 * of the mark in this case, so no process writes a number at the same time, except for the
 * registry worker, which writes the last one.  That one is taken last, and is never given back.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_replication_origin.h"
#include "fmgr.h"
#include "replication/origin.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "compat.h"
#include "functions/slots.h"
#include "issue/shared.h"

PG_FUNCTION_INFO_V1(snowflake_check_slots);
PG_FUNCTION_INFO_V1(snowflake_give_slot_back);

static void
check_numbers(void)
{
	char	   *name;

	for (int number = SF_DURABLE_FIRST; number <= SF_DURABLE_REGISTRY; number++)
		if (replorigin_by_oid((ReplOriginId) number, true, &name))
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_IN_USE),
					errmsg("the number of replication origin \"%s\" is reserved for Snowflake IDs", name),
					errdetail("The number is %d.  The durable state of Snowflake IDs has the numbers from %d to %d.",
							  number, SF_DURABLE_FIRST, SF_DURABLE_REGISTRY),
					errhint("If this server has issued no Snowflake IDs, drop the replication origin.  Otherwise, that would lose durable state: delete the row of the origin from pg_replication_origin instead, with \"allow_system_table_mods\"."));
}

/* The arguments are the numbers of slots that are taken: in total, and by the durable state. */
Datum
snowflake_check_slots(PG_FUNCTION_ARGS)
{
	int			taken = PG_GETARG_INT32(0);
	int			wanted = SF_DURABLE_COUNT - PG_GETARG_INT32(1);
	int			available = sf_max_origins() - taken;

	(void) sf_shared_required();
	check_numbers();
	if (available < wanted)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("could not create the durable state of Snowflake IDs"),
				errdetail("The state needs %d slots for replication origins, but only %d of the %d slots of \"%s\" are free.",
						  wanted, Max(available, 0), sf_max_origins(), SF_MAX_ORIGINS_NAME),
				errhint("Drop replication origins that are no longer used, or increase \"%s\" to at least %d, on standbys first, and restart the server.",
						SF_MAX_ORIGINS_NAME, taken + wanted));
	PG_RETURN_VOID();
}

/*
 * PostgreSQL drops an origin by its name.  The row of the catalog exists in this transaction only,
 * unless an administrator has inserted one.  No user can have an origin with this name.
 */
void
sf_slot_give_back(SfDurable number)
{
	Relation	origins = table_open(ReplicationOriginRelationId, RowExclusiveLock);
	Datum		values[Natts_pg_replication_origin];
	bool		nulls[Natts_pg_replication_origin] = {false};
	char	   *name;

	if (!replorigin_by_oid((ReplOriginId) number, true, &name))
	{
		name = psprintf("pg_snowflake_%d", (int) number);
		values[Anum_pg_replication_origin_roident - 1] = ObjectIdGetDatum((Oid) number);
		values[Anum_pg_replication_origin_roname - 1] = CStringGetTextDatum(name);
		CatalogTupleInsert(origins, heap_form_tuple(RelationGetDescr(origins), values, nulls));
		CommandCounterIncrement();
	}
	table_close(origins, RowExclusiveLock);
	replorigin_drop_by_name(name, false, true);
}

/* The caller's transaction is rolled back. */
Datum
snowflake_give_slot_back(PG_FUNCTION_ARGS)
{
	int			number = PG_GETARG_INT32(0);

	Assert(number >= SF_DURABLE_FIRST && number < SF_DURABLE_REGISTRY);
	sf_slot_give_back((SfDurable) number);
	PG_RETURN_VOID();
}
