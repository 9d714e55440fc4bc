/*
 * lease.c
 *	  The lease of this server, and the state of its communication with the registry.
 *
 * A registry grants a lease: a machine ID and a span of ID time.  IDs are issued with the
 * machine ID of the lease, and with times in it.  Leases of one machine ID do not overlap, and so
 * no other server issues the same ID, whatever the clocks of the two servers show, and even if one
 * server is a copy of the other.
 *
 * The registry worker (registry/worker.c) asks the registry and writes the answer here, before it
 * changes the generators.  Sessions read the state to explain why no ID can be issued, and the view
 * shows it.  For an ID, sessions need only the machine ID and the bounds, which the generators
 * contain.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "core/instant.h"
#include "log_limit.h"
#include "state/postmaster_memory.h"
#include "state/lease.h"

static emit_log_hook_type prev_emit_log_hook;
static SfRegistry *reported;	/* by sf_lease_report_none in this process;
								 * NULL if only a parallel worker has called
								 * it */

void
sf_lease_init(SfRegistry *registry)
{
	registry->state = SF_REGISTRY_CLAIMING;
	registry->since = GetCurrentTimestamp();
	registry->lease = sf_postmaster_lease();
	pg_atomic_init_u64(&registry->failures_logged, 0);
}

static bool
is_about_lease(const ErrorData * error)
{
	return error->elevel == ERROR && error->funcname &&
		strcmp(error->funcname, "sf_lease_report_none") == 0;
}

static void
limit_log(ErrorData * error)
{
	if (is_about_lease(error) && reported && !sf_log_allowed(&reported->failures_logged))
		error->output_to_server = false;
	if (error->output_to_server && prev_emit_log_hook)
		prev_emit_log_hook(error);
}

void
sf_lease_limit_log(void)
{
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = limit_log;
}

/*
 * The worker does not note that the lease has ended: an attempt that hangs, as in the resolver, can
 * last longer than the lease.
 */
SfRegistry
sf_registry_state(SfRegistry *registry)
{
	SfRegistry	copy;

	LWLockAcquire(&registry->lock, LW_SHARED);
	copy = *registry;
	LWLockRelease(&registry->lock);
	if (copy.state == SF_REGISTRY_HELD && copy.lease.until <= GetCurrentTimestamp())
		copy.state = SF_REGISTRY_EXPIRED;
	return copy;
}

const char *
sf_registry_state_name(SfRegistryState state)
{
	static const char *const names[] = {
		[SF_REGISTRY_CLAIMING] = "claiming",
		[SF_REGISTRY_HELD] = "held",
		[SF_REGISTRY_REFUSED] = "refused",
		[SF_REGISTRY_UNREACHABLE] = "unreachable",
		[SF_REGISTRY_RELEASED] = "released",
		[SF_REGISTRY_EXPIRED] = "expired",
	};

	return names[state];
}

/* The lock is held.  Returns the previous state. */
static SfRegistryState
set_state(SfRegistry *registry, SfRegistryState state, const char *error)
{
	SfRegistryState before = registry->state;

	if (before != state)
		registry->since = GetCurrentTimestamp();
	registry->state = state;
	strlcpy(registry->error, error, sizeof(registry->error));
	return before;
}

static bool
is_same(const SfLease *a, const SfLease *b)
{
	return a->number != 0 && b->number != 0 && a->machine_id == b->machine_id && a->from == b->from;
}

/*
 * The lease is kept in the postmaster's memory before it applies: if all processes are restarted in
 * between, it applies after the restart.
 */
SfRegistryState
sf_lease_granted(SfRegistry *registry, const SfLease *lease, int64 skew, bool *same)
{
	SfRegistryState before;

	sf_postmaster_keep_lease(lease);
	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	*same = is_same(&registry->lease, lease);
	registry->lease = *lease;
	registry->skew_known = true;
	registry->skew = skew;
	registry->is_other = false;
	before = set_state(registry, SF_REGISTRY_HELD, "");
	LWLockRelease(&registry->lock);
	return before;
}

SfRegistryState
sf_lease_not_granted(SfRegistry *registry, SfRegistryState state,
					 const char *error, TimestampTz free_at, const int64 *other)
{
	SfRegistryState before;

	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	registry->free_at = free_at;
	registry->is_other = other != NULL;
	registry->other_identity = other ? *other : 0;
	before = set_state(registry, state, error);
	LWLockRelease(&registry->lock);
	return before;
}

void
sf_lease_forget(SfRegistry *registry)
{
	static const SfLease none = {0};

	sf_postmaster_forget_lease();
	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	registry->lease = none;
	set_state(registry, SF_REGISTRY_RELEASED, "");
	LWLockRelease(&registry->lock);
}

/* Sessions that fail repeatedly wake the worker only once. */
void
sf_lease_request(SfRegistry *registry, SfLeaseRequest request)
{
	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	if (registry->request < request)
	{
		registry->request = request;
		if (registry->worker)
			SetLatch(registry->worker);
	}
	LWLockRelease(&registry->lock);
}

SfLeaseRequest
sf_lease_requested(SfRegistry *registry)
{
	return sf_registry_state(registry).request;
}

void
sf_lease_attempt(SfRegistry *registry)
{
	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	registry->request = SF_REQUEST_NONE;
	LWLockRelease(&registry->lock);
}

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
	SfRegistry	state = sf_registry_state(registry);

	reported = registry;
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
					state.is_other ?
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

void
sf_lease_hurry(SfRegistry *registry, const char *name)
{
	SfRegistry	state = sf_registry_state(registry);

	if (state.state != SF_REGISTRY_CLAIMING && state.state != SF_REGISTRY_HELD &&
		state.state != SF_REGISTRY_EXPIRED)
		sf_lease_report_none(registry, name);
	if (state.worker)
		SetLatch(state.worker);
}
