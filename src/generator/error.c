/*
 * error.c
 *	  Errors of calls that need an ID from a generator that cannot be opened, or that has no lease.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "generator/error.h"
#include "state/durable.h"
#include "state/shared.h"

/*
 * The durable state
 */

/*
 * Without slots, PostgreSQL does not load the progress of origins.  It is there again when there
 * are slots.
 */
static void
report_no_slots(SfGeneratorKind kind)
{
	ereport(ERROR,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg("could not read the durable state of %s IDs", sf_generator_kind_name(kind)),
			errdetail("It is kept as the progress of replication origins, which is not loaded, because \"%s\" is 0.",
					  SF_MAX_ORIGINS_NAME),
			errhint("Set \"%s\" to at least %d, and restart the server.",
					SF_MAX_ORIGINS_NAME, SF_DURABLE_COUNT));
}

const char *
sf_floor_function(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno_set_floor" : "snowflake_set_floor";
}

const char *
sf_back_function(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno_move_back" : "snowflake_move_back";
}

static void
report_lost(SfGeneratorKind kind)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the durable state of %s IDs is missing", sf_generator_kind_name(kind)),
			errdetail("The server cannot determine which IDs it has issued.  pg_upgrade and pg_dumpall do not preserve this state."),
			errhint("Use %s() with a time after the newest existing ID, or with now() if the clock is after that ID.  With an earlier time, IDs are issued twice.",
					sf_floor_function(kind)));
}

static void
report_invalid(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the recorded layout of Snowflake IDs is invalid"),
			errdetail("The numbers in which the server records the layout are not those of a layout."),
			errhint("Set \"snowflake.layout\" to the layout of the existing IDs, and use snowflake_accept_layout()."));
}

static void
report_moved_back(SfGeneratorKind kind)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the generator of %s IDs was moved back", sf_generator_kind_name(kind)),
			errdetail("It issues no IDs until the server is restarted."),
			errhint("Restart the server."));
}

static void
report_other_layout(const SfLayout *layout)
{
	SfLayout	recorded;
	char		recorded_text[SF_LAYOUT_TEXT_SIZE] = "";
	char		text[SF_LAYOUT_TEXT_SIZE];

	if (sf_durable_layout_read(&recorded) == SF_OPENING_DONE)
		sf_layout_format(&recorded, recorded_text);
	sf_layout_format(layout, text);
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("\"snowflake.layout\" does not match the layout of this cluster"),
			errdetail("Snowflake IDs are issued in the layout \"%s\", but the setting is \"%s\".",
					  recorded_text, text),
			errhint("Change \"snowflake.layout\" back, or use snowflake_accept_layout().  IDs of the two layouts can be equal, and do not sort by time."));
}

void
sf_report_not_opened(SfGeneratorKind kind, const SfLayout *layout, SfOpening reason)
{
	if (sf_max_origins() == 0)
		report_no_slots(kind);
	switch (reason)
	{
		case SF_OPENING_LOST:
			report_lost(kind);
			break;
		case SF_OPENING_INVALID:
			report_invalid();
			break;
		case SF_OPENING_OTHER_LAYOUT:
			report_other_layout(layout);
			break;
		case SF_OPENING_MOVED_BACK:
			report_moved_back(kind);
			break;
		case SF_OPENING_DONE:
		case SF_OPENING_BUSY:
			break;
	}
	elog(ERROR, "unexpected result of opening a generator: %d", (int) reason);
}

/*
 * The lease
 */

/* The lease, as the detail of an error. */
static int
detail_lease(const SfLease *lease)
{
	if (lease->number == 0)
		return errdetail("No machine ID has been leased to this server yet.");
	return errdetail("Machine ID %u is leased to this server for IDs with times before %s.",
					 lease->machine_id, timestamptz_to_str(lease->until));
}

/* timestamptz_to_str has one buffer. */
static int
detail_unreachable(const SfRegistry *registry)
{
	char	   *since = pstrdup(timestamptz_to_str(registry->since));
	const SfLease *lease = &registry->lease;

	if (lease->number == 0)
		return errdetail("The registry has been unreachable since %s.  No machine ID has been leased to this server yet.",
						 since);
	return errdetail("The registry has been unreachable since %s.  Machine ID %u is leased to this server for IDs with times before %s.",
					 since, lease->machine_id, timestamptz_to_str(lease->until));
}

/* The reason of a refusal.  Only roles that may read the view see the names of other servers. */
static int
detail_refusal(const SfRegistry *registry)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		return errdetail("The reason is: %s", registry->error);
	if (registry->free_at < DT_NOEND)
		return errdetail("A machine ID might be available after %s.", timestamptz_to_str(registry->free_at));
	return 0;
}

static int
hint_no_worker(void)
{
	return errhint("The registry worker of this server does not run.  Check the server log, \"max_worker_processes\" and \"dynamic_library_path\".");
}

void
sf_lease_report_none(SfRegistry *registry, const char *name)
{
	SfRegistry	state = sf_lease_state(registry);

	switch (state.state)
	{
		case SF_REGISTRY_CLAIMING:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID before the first answer of the registry", name),
					detail_lease(&state.lease),
					state.worker ?
					errhint("Try again later.  To wait longer, increase \"snowflake.max_wait\".") :
					hint_no_worker());
			break;
		case SF_REGISTRY_HELD:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID within the lease of the machine ID",
						   name),
					detail_lease(&state.lease),
					errhint("Wait for the next renewal of the lease, or increase \"snowflake.registry_lease\" or decrease \"snowflake.max_ahead\".  To wait longer, increase \"snowflake.max_wait\"."));
			break;
		case SF_REGISTRY_REFUSED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID without a lease of a machine ID",
						   name),
					detail_refusal(&state),
					state.other_identity != 0 ?
					errhint("Set \"snowflake.registry\" to the former registry, and restart the server.  If the former registry grants no more leases, use snowflake_accept_registry() instead.  If it still grants leases, IDs can then be issued twice.") :
					errhint("See last_error in the view pg_stat_snowflake, and the view snowflake_registry.machines on the registry.  This server keeps asking."));
			break;
		case SF_REGISTRY_UNREACHABLE:
			if (state.request == SF_REQUEST_NONE)
				sf_lease_request(registry, SF_REQUEST_SOON);
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID while the registry is unreachable", name),
					detail_unreachable(&state),
					errhint("See last_error in the view pg_stat_snowflake, and check \"snowflake.registry\".  This server keeps asking."));
			break;
		case SF_REGISTRY_RELEASED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID after the release of the machine ID", name),
					errhint("Try again later, unless the server is shutting down.  The registry worker claims another lease."));
			break;
		case SF_REGISTRY_EXPIRED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID after the end of the lease", name),
					errdetail("The lease of machine ID %u ended at %s and was not renewed.",
							  state.lease.machine_id, timestamptz_to_str(state.lease.until)),
					state.worker ?
					errhint("Check \"snowflake.registry\", and the network and the name service of this server.  This server keeps asking.") :
					hint_no_worker());
	}
	elog(ERROR, "unexpected state of the registry: %d", (int) state.state);
}
