/*
 * lease_error.c
 *	  Errors of calls that need an ID when this server has no lease.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "issue/lease_error.h"

/* The lease, as the detail of an error. */
static int
detail_lease(const SfLeaseState *registry)
{
	const SfLease *lease = &registry->last.lease;

	if (lease->number == 0)
		return errdetail("No machine ID has been leased to this server yet.");
	return errdetail("Machine ID %u is leased to this server for IDs with times before %s.",
					 lease->machine_id, timestamptz_to_str(lease->until));
}

static int
detail_claiming(const SfLeaseState *registry)
{
	return registry->worker ? detail_lease(registry) :
		errdetail("The registry worker of this server is not running.");
}

/* timestamptz_to_str has one buffer. */
static int
detail_unreachable(const SfLeaseState *registry)
{
	char	   *since = pstrdup(timestamptz_to_str(registry->since));
	const SfLease *lease = &registry->last.lease;

	if (lease->number == 0)
		return errdetail("The registry has been unreachable since %s.  No machine ID has been leased to this server yet.  The server retries automatically.",
						 since);
	return errdetail("The registry has been unreachable since %s.  Machine ID %u is leased to this server for IDs with times before %s.  The server retries automatically.",
					 since, lease->machine_id, timestamptz_to_str(lease->until));
}

/*
 * The reason for a refusal.  Only roles that can read the view see the names of other servers.
 */
static int
detail_refusal(const SfAnswer *answer)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		return errdetail("The server retries automatically.  The last request failed: %s",
						 answer->error);
	if (answer->free_at < DT_NOEND)
		return errdetail("The server retries automatically.  A machine ID might be available after %s.",
						 timestamptz_to_str(answer->free_at));
	return errdetail("The server retries automatically.");
}

static int
detail_expired(const SfLeaseState *registry)
{
	const SfLease *lease = &registry->last.lease;
	const char *until = timestamptz_to_str(lease->until);

	return registry->worker ?
		errdetail("The lease of machine ID %u ended at %s and was not renewed.  The server retries automatically.",
				  lease->machine_id, until) :
		errdetail("The lease of machine ID %u ended at %s and was not renewed.  The registry worker of this server is not running.",
				  lease->machine_id, until);
}

static int
hint_no_worker(void)
{
	return errhint("Check the server log, \"max_worker_processes\" and \"dynamic_library_path\".");
}

void
sf_lease_report_none(SfLeaseState *registry, const char *name)
{
	SfLeaseStatus status = sf_lease_state(registry).last.state;

	if (status == SF_LEASE_REFUSED || status == SF_LEASE_UNREACHABLE)
		sf_lease_request(registry, SF_REQUEST_SOON);
	sf_lease_refuse(registry, name);
}

void
sf_lease_refuse(SfLeaseState *registry, const char *name)
{
	SfLeaseState state = sf_lease_state(registry);
	const SfAnswer *last = &state.last;
	SfLeaseStatus status = last->state;

	switch (status)
	{
		case SF_LEASE_CLAIMING:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID before the first answer of the registry", name),
					detail_claiming(&state),
					state.worker ?
					errhint("Try again later.  To wait longer, increase \"snowflake.max_wait\".") :
					hint_no_worker());
			break;
		case SF_LEASE_HELD:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID within the lease of the machine ID",
						   name),
					detail_lease(&state),
					errhint("Wait for the next renewal of the lease, or increase \"snowflake.registry_lease\" or decrease \"snowflake.max_ahead\".  To wait longer, increase \"snowflake.max_wait\"."));
			break;
		case SF_LEASE_REFUSED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID without a lease of a machine ID",
						   name),
					detail_refusal(last),
					last->other_identity != 0 ?
					errhint("Set \"snowflake.registry\" to the previous registry, and restart the server.  If the previous registry no longer grants leases, use snowflake_accept_registry() instead.  If it still grants leases, IDs can then be issued twice.") :
					errhint("See last_error in the view pg_stat_snowflake, and the view snowflake_registry.machines on the registry."));
			break;
		case SF_LEASE_UNREACHABLE:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID while the registry is unreachable", name),
					detail_unreachable(&state),
					errhint("See last_error in the view pg_stat_snowflake, and check \"snowflake.registry\"."));
			break;
		case SF_LEASE_RELEASED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID after the release of the machine ID", name),
					errdetail("The registry worker claims another lease, unless the server is shutting down."),
					errhint("Try again later."));
			break;
		case SF_LEASE_EXPIRED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("could not generate a %s ID after the end of the lease", name),
					detail_expired(&state),
					state.worker ?
					errhint("Check \"snowflake.registry\", and the network and the name service of this server.") :
					hint_no_worker());
	}
	elog(ERROR, "unexpected state of the registry: %d", (int) status);
}
