/*
 * create_state.c
 *	  The durable state of a server, as CREATE EXTENSION creates it.
 *
 * CREATE EXTENSION is run in each database, while the state belongs to the server.  The state is
 * new if the server has never had it.  Otherwise it is left alone, even if it was lost: a server
 * that does not know which IDs it has issued waits for an administrator to set the floor.  That
 * the server has had it before is shown by the mark that the script of the extension leaves in the
 * catalog of privileges of parameters, which all databases share and pg_upgrade preserves.
 *
 * A new state begins at the present time, so the first IDs are not before it if the clock steps
 * back.  The state is not transactional: a rollback of CREATE EXTENSION keeps it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "replication/origin.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "generator/generator.h"
#include "state/durable.h"
#include "state/shared.h"

PG_FUNCTION_INFO_V1(snowflake_create_state);

static void
check_slots(void)
{
	if (sf_max_origins() < SF_DURABLE_COUNT)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("could not create the durable state of Snowflake IDs"),
				errdetail("It needs %d slots for replication origins, but \"%s\" is %d.",
						  SF_DURABLE_COUNT, SF_MAX_ORIGINS_NAME, sf_max_origins()),
				errhint("Increase \"%s\", also on standbys, and restart the server.",
						SF_MAX_ORIGINS_NAME));
}

static void
check_numbers(void)
{
	char	   *name;

	for (int number = SF_DURABLE_LAYOUT; number <= SF_DURABLE_REGISTRY; number++)
		if (replorigin_by_oid((ReplOriginId) number, true, &name))
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_IN_USE),
					errmsg("the number of replication origin \"%s\" is reserved for Snowflake IDs", name),
					errdetail("The number is %d.  The durable state of Snowflake IDs has the numbers from %d to %d.",
							  number, SF_DURABLE_LAYOUT, SF_DURABLE_REGISTRY),
					errhint("Drop the replication origin.  If Snowflake IDs have been issued on this server, set the floor afterwards."));
}

/*
 * The argument is whether there is no mark.  The script of the extension has locked the catalog in
 * this case, so only one transaction creates the state.  It can continue what an earlier one has
 * begun before a crash.
 */
Datum
snowflake_create_state(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();
	SfShared   *shared = sf_shared();
	SfLayout	recorded;

	if (shared)
		sf_clock_check(&shared->generators[SF_GENERATOR_BIGINT], now);
	check_slots();
	check_numbers();
	sf_durable_take_slots();
	if (!PG_GETARG_BOOL(0))
		PG_RETURN_VOID();
	if (sf_durable_layout_read(&recorded) == SF_OPENING_LOST)
	{
		sf_durable_layout_write(sf_layout_in_force());
		ereport(LOG,
				errmsg("created the durable state of Snowflake IDs with the layout \"%s\"",
					   sf_layout_in_force_text()));
	}
	sf_durable_state_begin(SF_GENERATOR_SNO, now);
	sf_durable_state_begin(SF_GENERATOR_BIGINT, now);
	PG_RETURN_VOID();
}
