/*
 * span.c
 *	  What a registry leases to this server: a machine ID, and a span of time.
 *
 * The ceiling is a lease that WAL gives to the server; this is one that the registry
 * gives, one scale up.  IDs are issued with the machine ID of the span, and with times
 * in it.  Spans of one machine ID do not overlap, and so no other server issues the
 * same ID, whatever its clock or ours says, and whether or not it is a copy of this one.
 *
 * The registrar (registrar.c) asks the registry, and writes here what it answered; only
 * then it changes the lines.  Backends read it to say why there is no ID, and the view
 * shows it.  What backends need for an ID is in the lines: machine ID and bounds.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

#include "core/instant.h"
#include "kept.h"
#include "line_span.h"
#include "shared.h"
#include "span.h"

void
sf_span_init(SfShared *shared)
{
	SfRegistry *registry = &shared->registry;

	registry->state = SF_REGISTRY_CLAIMING;
	registry->since = GetCurrentTimestamp();
	registry->span = sf_kept_span();
	if (registry->span.grant == 0)
		return;
	for (int i = 0; i < SF_LINE_COUNT; i++)
		sf_line_set_span(&shared->lines[i], registry->span.machine_id, registry->span.from, registry->span.until);
}

SfRegistry
sf_span_state(SfShared *shared)
{
	SfRegistry	copy;

	LWLockAcquire(&shared->registry.lock, LW_SHARED);
	copy = shared->registry;
	LWLockRelease(&shared->registry.lock);
	return copy;
}

const char *
sf_span_state_name(SfRegistryState state)
{
	static const char *const names[] = {
		[SF_REGISTRY_CLAIMING] = "claiming",
		[SF_REGISTRY_HELD] = "held",
		[SF_REGISTRY_REFUSED] = "refused",
		[SF_REGISTRY_UNREACHABLE] = "unreachable",
		[SF_REGISTRY_RELEASED] = "released",
	};

	return names[state];
}

/* The lock is taken.  Returns the state of before. */
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
is_same(const SfSpan *a, const SfSpan *b)
{
	return a->grant != 0 && b->grant != 0 && a->machine_id == b->machine_id && a->from == b->from;
}

/*
 * The span is kept before it is in force: if all processes are restarted in between, it
 * is in force then.
 */
SfRegistryState
sf_span_granted(SfShared *shared, const SfSpan *span, int64 skew)
{
	SfRegistry *registry = &shared->registry;
	SfRegistryState before;
	bool		same;

	sf_kept_put_span(span);
	LWLockAcquire(&registry->lock, LW_EXCLUSIVE);
	same = is_same(&registry->span, span);
	registry->span = *span;
	registry->skew_known = true;
	registry->skew = skew;
	before = set_state(registry, SF_REGISTRY_HELD, "");
	LWLockRelease(&registry->lock);

	for (int i = 0; i < SF_LINE_COUNT; i++)
	{
		if (same)
			sf_line_extend_span(&shared->lines[i], span->until);
		else
			sf_line_begin_span(&shared->lines[i], span->machine_id, span->from, span->until);
	}
	return before;
}

SfRegistryState
sf_span_not_granted(SfShared *shared, SfRegistryState state, const char *error, TimestampTz free_at)
{
	SfRegistryState before;

	LWLockAcquire(&shared->registry.lock, LW_EXCLUSIVE);
	shared->registry.free_at = free_at;
	before = set_state(&shared->registry, state, error);
	LWLockRelease(&shared->registry.lock);
	return before;
}

TimestampTz
sf_span_close(SfShared *shared)
{
	static const SfSpan none = {0};
	TimestampTz end = SF_UNIX_EPOCH;

	sf_kept_forget();
	LWLockAcquire(&shared->registry.lock, LW_EXCLUSIVE);
	shared->registry.span = none;
	set_state(&shared->registry, SF_REGISTRY_RELEASED, "");
	LWLockRelease(&shared->registry.lock);
	for (int i = 0; i < SF_LINE_COUNT; i++)
	{
		TimestampTz its_end = sf_line_close(&shared->lines[i]);

		end = Max(end, its_end);
	}
	return end;
}

/* What was leased, as the detail of an error. */
static int
detail_span(const SfSpan *span)
{
	if (span->grant == 0)
		return errdetail("No machine ID has been leased to this server yet.");
	return errdetail("Machine ID %u is leased to this server for IDs with times before %s.",
					 span->machine_id, timestamptz_to_str(span->until));
}

/* Why the registry refuses: others' names are for those who may see the view. */
static int
detail_refusal(const SfRegistry *registry)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		return errdetail("%s", registry->error);
	if (registry->free_at < DT_NOEND)
		return errdetail("There may be one after %s.", timestamptz_to_str(registry->free_at));
	return 0;
}

void
sf_span_report_none(SfShared *shared, const SfLine *line)
{
	SfRegistry	registry = sf_span_state(shared);
	const char *name = sf_line_name(line);

	switch (registry.state)
	{
		case SF_REGISTRY_CLAIMING:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("no %s ID can be issued: the registry has not answered yet", name),
					detail_span(&registry.span),
					registry.registrar ?
					errhint("Try again later, or raise snowflake.max_wait.") :
					errhint("The registrar of this server does not run. See the server's log, max_worker_processes and dynamic_library_path."));
			break;
		case SF_REGISTRY_HELD:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("no %s ID can be issued: its time would be after the lease of the machine ID", name),
					detail_span(&registry.span),
					errhint("The lease is renewed as the clock goes on. Raise snowflake.max_wait or snowflake.registry_lease, or lower snowflake.max_ahead."));
			break;
		case SF_REGISTRY_REFUSED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("no %s ID can be issued: the registry leases no machine ID to this server", name),
					detail_refusal(&registry),
					errhint("This server goes on asking. See last_error in pg_stat_snowflake, and snowflake_registry.machines on the registry."));
			break;
		case SF_REGISTRY_UNREACHABLE:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("no %s ID can be issued: the registry has been out of reach since %s",
						   name, timestamptz_to_str(registry.since)),
					detail_span(&registry.span),
					errhint("See last_error in pg_stat_snowflake, and snowflake.registry."));
			break;
		case SF_REGISTRY_RELEASED:
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("no %s ID can be issued: this server has given its machine ID back", name),
					errhint("It claims another one, unless it is shutting down."));
	}
	elog(ERROR, "unexpected state of the registry: %d", (int) registry.state);
}

void
sf_span_hurry(SfShared *shared, const SfLine *line)
{
	SfRegistry	registry = sf_span_state(shared);

	if (registry.state != SF_REGISTRY_CLAIMING && registry.state != SF_REGISTRY_HELD)
		sf_span_report_none(shared, line);
	if (registry.registrar)
		SetLatch(registry.registrar);
}
