/*
 * registrar.c
 *	  The background worker that leases a machine ID for this server from a registry.
 *
 * It claims a span (span.h) when the server accepts writes, at its start or promotion,
 * and has it renewed when half of it is over; so the registry may be away for half a
 * lease and nobody notices.  Where it is away for longer, the server goes on to the end of
 * its span, and then calls fail.  The registrar tries again and again, less and less
 * often.  When the server is stopped, it closes the lines and gives the rest back.
 *
 * It is one loop around one question: when is the next attempt due?  All else is in
 * the calls (registry_client.c) and in what they change (span.c).  Sessions never
 * speak to the registry: one that finds the span at its end wakes the registrar up.
 *
 * The token (kept.c) is of this run of the postmaster, and of this span.  A claim by a token that holds
 * a span gives that span again: so an answer that was lost is asked for again, and after
 * a crash of a process the registrar need not know what the one before it did.
 * Another run, of this data directory or of a copy of it, is another holder.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "compat.h"
#include "kept.h"
#include "machine.h"
#include "registrar.h"
#include "registry_client.h"
#include "settings.h"
#include "shared.h"
#include "stopwatch.h"
#include "wait_event.h"

#define FIRST_RETRY		250		/* ms; doubled with each failure */
#define LAST_RETRY		60000	/* ms; but no more than an eighth of a lease */
#define LONGEST_SLEEP	10000	/* ms; a clock that is set forth, or a machine
								 * that slept, is noticed by then */

#define DEFAULT_LEASE		3600	/* s */
#define DEFAULT_LEASE_FIXED	60	/* s, with snowflake.machine_id */

static char *registry;
static int	registry_lease;

/* Of the registrar's own loop. */
static int	last_delay;			/* ms between the last attempt and the next
								 * one; 0: none failed */
static instr_time last_attempt;
static bool reached;			/* the last one was connected */
static bool hurry = true;		/* the next one is due now */
static char holder[256];

bool
sf_registrar_wanted(void)
{
	return registry[0] != '\0';
}

static bool
check_registry(char **newval, void **extra, GucSource source)
{
	char	   *error = NULL;

	if (sf_registry_conninfo_is_valid(*newval, &error))
		return true;
	GUC_check_errdetail("%s", error ? error : "out of memory");
	free(error);
	return false;
}

/*
 * guc.c would warn of a malformed string, and go on without a registry.  What is wrong, which
 * may be a part of a password, is for the server's log, and not for sessions.
 */
void
sf_registrar_check(void)
{
	const char *value = GetConfigOption("snowflake.registry", true, false);
	char	   *error = NULL;

	if (value == NULL || sf_registry_conninfo_is_valid(value, &error))
		return;
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("invalid value for parameter \"%s\"", "snowflake.registry"),
			process_shared_preload_libraries_in_progress ? errdetail("%s", error ? error : "out of memory") : 0,
			errhint("Give a connection string of libpq, as in \"host=registry.example.com dbname=registry user=snowflake_server\"."));
}

static void
start_registrar(void)
{
	BackgroundWorker worker = {
		.bgw_name = "snowflake registrar",
		.bgw_type = "snowflake registrar",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = 1,
		.bgw_library_name = "snowflake",
		.bgw_function_name = "snowflake_registrar_main",
	};

	RegisterBackgroundWorker(&worker);
}

void
sf_registrar_init(void)
{
	bool		preloaded = process_shared_preload_libraries_in_progress;

	DefineCustomStringVariable("snowflake.registry",
							   "Connection string of the registry that leases machine IDs.",
							   "Empty for none: then snowflake.machine_id is this server's.",
							   &registry,
							   "",
							   preloaded ? PGC_POSTMASTER : PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   check_registry, NULL, NULL);
	DefineCustomIntVariable("snowflake.registry_lease",
							"How long this server may issue IDs when the registry is out of reach.",
							"0 for an hour; if snowflake.machine_id is set, for a minute, or four times snowflake.max_ahead.",
							&registry_lease,
							0, 0, 24 * 3600,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	if (preloaded && sf_registrar_wanted())
		start_registrar();
}

static int
wanted_machine_id(SfShared *shared)
{
	if (sf_layout_in_force()->machine_bits == 0)
		return SF_MACHINE_ID_UNSET;
	return sf_configured_machine_id(shared);
}

/* Seconds. */
static int
wanted_lease(SfShared *shared)
{
	if (registry_lease > 0)
		return registry_lease;
	if (wanted_machine_id(shared) == SF_MACHINE_ID_UNSET)
		return DEFAULT_LEASE;
	return Max(DEFAULT_LEASE_FIXED, 4 * sf_max_ahead / 1000);
}

/*
 * Milliseconds until the next attempt is due: when half of the lease is over, by the
 * monotonic clock or by the wall clock, which can have been set.  IDs may be max_ahead
 * ahead of that.
 */
static int64
time_to_attempt(SfShared *shared)
{
	int64		half = wanted_lease(shared) * INT64CONST(1000) / 2;
	int64		ahead = Min(sf_max_ahead, half / 2);
	int64		elapsed = sf_stopwatch(last_attempt) / 1000;
	int64		by_clock;

	if (hurry)
		return 0;
	if (last_delay > 0)
		return last_delay - elapsed;
	by_clock = (sf_span_state(shared).span.until - GetCurrentTimestamp()) / 1000 - half - ahead;
	return Min(half - elapsed, by_clock);
}

/* Milliseconds to wait after a failure. */
static int
next_delay(SfShared *shared, const SfAnswer *answer)
{
	int			longest = Max(Min(wanted_lease(shared) * 1000 / 8, LAST_RETRY), 2 * FIRST_RETRY);
	int			delay = last_delay == 0 ? FIRST_RETRY : Min(2 * last_delay, longest);
	TimestampTz now = GetCurrentTimestamp();

	if (answer->free_at < now + delay * INT64CONST(1000))
		delay = (int) Max((answer->free_at - now) / 1000, FIRST_RETRY);
	return delay;
}

static void
log_granted(const SfSpan *before, const SfSpan *span, SfRegistryState state)
{
	if (before->grant == 0 || before->machine_id != span->machine_id || before->from != span->from)
		ereport(LOG,
				errmsg("machine ID %u was leased to this server for IDs with times from %s on",
					   span->machine_id, timestamptz_to_str(span->from)),
				errdetail("The lease is renewed until the server stops; now it ends at %s.", timestamptz_to_str(span->until)));
	else if (state != SF_REGISTRY_HELD)
		ereport(LOG,
				errmsg("the registry has renewed the lease of machine ID %u", span->machine_id));
}

static void
log_not_granted(const SfSpan *span, const SfAnswer *answer)
{
	ereport(LOG,
			answer->status == SF_ANSWER_REFUSED ?
			errmsg("the registry leases no machine ID to this server") :
			errmsg("the registry of machine IDs is out of reach"),
			errdetail("%s", answer->error),
			span->grant == 0 ?
			errhint("No ID is issued until it has leased one. This server goes on trying.") :
			errhint("IDs are issued until their times reach %s. This server goes on trying.",
					timestamptz_to_str(span->until)));
}

static void
take_answer(SfShared *shared, const SfSpan *held, const SfAnswer *answer)
{
	SfRegistryState state;
	SfRegistryState before;

	if (answer->status == SF_ANSWER_GRANTED)
	{
		before = sf_span_granted(shared, &answer->span, answer->skew);
		log_granted(held, &answer->span, before);
		last_delay = 0;
		return;
	}
	state = answer->status == SF_ANSWER_REFUSED ? SF_REGISTRY_REFUSED : SF_REGISTRY_UNREACHABLE;
	if (sf_span_not_granted(shared, state, answer->error, answer->free_at) != state)
		log_not_granted(held, answer);
	last_delay = next_delay(shared, answer);
}

/*
 * Have the span renewed, or claim one.  What refuses a renewal may well grant a claim: one
 * that ran out may be another server's by now.
 */
static void
attempt(SfShared *shared)
{
	SfLine	   *line = &shared->lines[SF_LINE_BIGINT];
	char		layout[SF_LAYOUT_TEXT_SIZE];
	SfSpan		held = sf_span_state(shared).span;
	SfAnswer	answer = {.status = SF_ANSWER_REFUSED,.free_at = DT_NOEND};
	pg_uuid_t	token = sf_kept_token();
	SfClaim		claim = {
		.token = &token,
		.layout = layout,
		.machine_bits = sf_layout_in_force()->machine_bits,
		.wanted = wanted_machine_id(shared),
		.lease = wanted_lease(shared),
		.holder = holder,
	};

	hurry = false;
	sf_layout_format(sf_layout_in_force(), layout);
	if (!sf_settings_fit(&line->layout, line->layout_text, line->range, claim.wanted, DEBUG1))
		strlcpy(answer.error, "the settings of this server do not fit each other", sizeof(answer.error));
	else
	{
		if (held.grant != 0)
			sf_registry_renew(registry, &claim, &held, &answer);
		if (answer.status == SF_ANSWER_REFUSED && !ShutdownRequestPending)
			sf_registry_claim(registry, &claim, &held, &answer);
	}
	last_attempt = sf_start_stopwatch();
	reached = answer.connected;
	if (!ShutdownRequestPending)
		take_answer(shared, &held, &answer);
}

/*
 * No ID is issued any more, and others may have what is left of the span.  A registry that
 * was out of reach just now does not keep the server from stopping.
 */
static void
release(SfShared *shared)
{
	SfSpan		held = sf_span_state(shared).span;
	pg_uuid_t	token = sf_kept_token();
	TimestampTz used_until = sf_span_close(shared);
	SfAnswer	answer;

	if (!reached || used_until == DT_NOEND)
		return;
	if (!sf_registry_release(registry, &token, used_until, &held, &answer))
		ereport(LOG,
				errmsg("the lease of this server's machine ID could not be given back to the registry"),
				errdetail("%s", answer.error),
				errhint("It ends by itself."));
}

static void
set_registrar(SfShared *shared, Latch *latch)
{
	LWLockAcquire(&shared->registry.lock, LW_EXCLUSIVE);
	shared->registry.registrar = latch;
	LWLockRelease(&shared->registry.lock);
}

static void
unset_registrar(int code, Datum argument)
{
	set_registrar(sf_shared_required(), NULL);
}

/* How people find this server in the registry. */
static void
describe_holder(void)
{
	char		host[128] = "";

	gethostname(host, sizeof(host) - 1);
	if (cluster_name[0])
		snprintf(holder, sizeof(holder), "%s (%s:%d)", cluster_name, host, PostPortNumber);
	else
		snprintf(holder, sizeof(holder), "%s:%d", host, PostPortNumber);
}

static void
sleep_until_due(SfShared *shared)
{
	int64		time = time_to_attempt(shared);

	if (time > 0)
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min(time, LONGEST_SLEEP), sf_wait_event(SF_WAIT_REGISTRAR));
	ResetLatch(MyLatch);
}

void
snowflake_registrar_main(Datum argument)
{
	SfShared   *shared = sf_shared_required();

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	describe_holder();
	before_shmem_exit(unset_registrar, (Datum) 0);
	set_registrar(shared, MyLatch);
	while (!ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			hurry = true;
		}
		if (time_to_attempt(shared) <= 0)
			attempt(shared);
		sleep_until_due(shared);
	}
	release(shared);

	/*
	 * Were it 0, a registrar that was told to end by itself would not be
	 * started again.
	 */
	proc_exit(1);
}
