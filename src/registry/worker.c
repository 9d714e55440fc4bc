/*
 * worker.c
 *	  The background worker that leases a machine ID for this server from a registry.
 *
 * The worker claims a lease (state/lease.c) when the server begins to accept writes, at its
 * start or promotion.  It renews the lease before half of it is over, so the registry can be
 * unreachable for half the length of a lease without any effect.  If the registry is
 * unreachable for longer, the server issues IDs up to the end of its lease, and then calls
 * fail.  The worker tries again at growing intervals, and at least once a second while calls
 * fail.  When the server is stopped, the worker closes the generators and releases the rest of
 * the lease.
 *
 * The worker is one loop that waits until the next attempt is due.  The calls to the registry are
 * in client.c and connect.c, and the state that they change is in state/lease.c.  Sessions never
 * connect to the registry: a session that reaches the end of the lease, or fails, wakes the
 * worker.  The times of attempts are random, so that servers do not ask in lock-step
 * (core/attempt.h).
 *
 * With snowflake.registry_standby, the worker also runs on a standby, and holds a lease there
 * before the server is promoted.  The lease is in memory alone, like on any server, and the
 * machine ID differs from the machine ID of the primary.  No ID is issued before the promotion,
 * and so the whole lease is released if the standby is stopped.  A standby does not claim the
 * machine ID of snowflake.machine_id, which its primary is likely to hold, and cannot record the
 * identity of the registry: in these cases it claims when it is promoted.
 *
 * A lease is held under a token (state/postmaster_memory.c).  The token belongs to one run of
 * the postmaster and to one lease.  A claim under a token that holds a lease returns that
 * lease again.  So the worker repeats a claim whose answer was lost, and a worker that starts after
 * a crash does not need the state of the previous one.  Another run, of this data directory or of a
 * copy of it, has another token and so is another holder.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "clocks.h"
#include "core/attempt.h"
#include "issue/change.h"
#include "issue/machine_id.h"
#include "issue/shared.h"
#include "registry/client.h"
#include "registry/worker.h"
#include "settings.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"
#include "wait_event.h"

#define LONGEST_SLEEP	10000	/* ms; limits how late the worker notices that
								 * the clock was set forward or the machine
								 * was suspended */

#define PROMOTION_SLEEP	200		/* ms; limits how late the worker of a standby
								 * notices a promotion */

#define DEFAULT_LEASE		3600	/* s */
#define DEFAULT_LEASE_FIXED	60	/* s, with snowflake.machine_id */

/* State of the worker's loop. */
static int64 last_delay;		/* ms from the last attempt to the next one,
								 * without the draw; 0 if the last attempt did
								 * not fail */
static int64 last_wait;			/* the same, with the draw */
static uint32 draw;				/* random number of the last attempt */
static int64 last_attempt;
static bool reached;			/* the last attempt had a connection */
static char holder[256];
static bool in_recovery;		/* as far as this process has noticed */

void
sf_registry_worker_init(void)
{
	BackgroundWorker worker = {
		.bgw_name = "snowflake registry worker",
		.bgw_type = "snowflake registry worker",
		.bgw_flags = BGWORKER_SHMEM_ACCESS,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = 1,
		.bgw_library_name = "snowflake",
		.bgw_function_name = "snowflake_registry_worker_main",
	};

	if (sf_settings_registry_standby)
		worker.bgw_start_time = BgWorkerStart_ConsistentState;
	if (!sf_settings_has_registry())
		return;
	RegisterBackgroundWorker(&worker);
}

static int
wanted_machine_id(SfShared *shared)
{
	if (sf_layout_in_force()->machine_bits == 0)
		return SF_MACHINE_ID_UNSET;
	return sf_configured_machine_id(shared);
}

/* The length of the lease to request, in seconds. */
static int
wanted_seconds(SfShared *shared)
{
	if (sf_settings_registry_lease > 0)
		return sf_settings_registry_lease;
	if (wanted_machine_id(shared) == SF_MACHINE_ID_UNSET)
		return DEFAULT_LEASE;
	return Max(DEFAULT_LEASE_FIXED, 4 * sf_settings_max_ahead / 1000);
}

/*
 * Whether a standby claims no lease before it is promoted.  From its promotion on, an attempt is
 * due, unless there is a lease.
 */
static bool
waits_for_promotion(SfShared *shared)
{
	bool		promoted;

	if (!in_recovery)
		return false;
	promoted = !RecoveryInProgress();
	if (promoted && sf_lease_state(&shared->lease).last.lease.number == 0)
		sf_lease_request(&shared->lease, SF_REQUEST_NOW);
	in_recovery = !promoted;
	return in_recovery && wanted_machine_id(shared) != SF_MACHINE_ID_UNSET;
}

/*
 * Milliseconds until the next attempt is due.  It is due when half of the lease is over, by the
 * boot clock or by the wall clock, which can have been set; or earlier, by a time that is drawn.
 * By the wall clock it is due earlier by max_ahead, because IDs can be ahead of that clock.
 * Attempts follow each other at SF_LEAST_INTERVAL at least.
 */
static int64
time_to_attempt(SfShared *shared)
{
	SfLeaseState registry = sf_lease_state(&shared->lease);
	int64		half = wanted_seconds(shared) * INT64CONST(1000) / 2;
	int64		ahead = Min(sf_settings_max_ahead, half / 2);
	int64		elapsed = sf_time_since(last_attempt) / 1000;
	int64		left = (registry.last.lease.until - GetCurrentTimestamp()) / 1000;
	int64		wait;			/* from the last attempt on */

	if (registry.request == SF_REQUEST_NOW)
		wait = 0;
	else if (last_delay > SF_REQUESTED_RETRY && registry.request == SF_REQUEST_SOON)
		wait = sf_retry_wait(SF_REQUESTED_RETRY, draw);
	else if (last_delay > 0)
		wait = last_wait;
	else
		wait = Min(half, elapsed + left - half - ahead) - sf_renewal_advance(half, draw);
	return Max(wait, SF_LEAST_INTERVAL) - elapsed;
}

/* Plan the next attempt after one that has failed. */
static void
plan_retry(SfShared *shared, const SfAnswer *answer)
{
	int64		delay = sf_retry_delay(last_delay, wanted_seconds(shared) * INT64CONST(1000));
	TimestampTz now = GetCurrentTimestamp();

	last_delay = delay;
	last_wait = sf_retry_wait(delay, draw);
	if (answer->free_at < now + delay * INT64CONST(1000))
	{
		last_delay = Max((answer->free_at - now) / 1000, SF_FIRST_RETRY);
		last_wait = sf_retry_when_free(last_delay, delay, draw);
	}
}

static void
log_not_granted(const SfAnswer *answer)
{
	ereport(LOG,
			answer->state == SF_LEASE_REFUSED ?
			errmsg("could not lease a machine ID from the registry: %s", answer->error) :
			errmsg("could not reach the registry of machine IDs: %s", answer->error),
			answer->lease.number == 0 ?
			errdetail("No ID is issued until the registry grants a lease.  The server retries automatically.") :
			errdetail("IDs are issued until their times reach %s.  The server retries automatically.",
					  timestamptz_to_str(answer->lease.until)));
}

/*
 * Pass a lease that was granted to the generators.  before is the previous state.
 */
static void
take_lease(SfShared *shared, const SfLease *held, const SfLease *lease, SfLeaseStatus before)
{
	bool		renewed = held->number != 0 && held->machine_id == lease->machine_id &&
	held->from == lease->from;

	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		sf_change_lease(&shared->generators[i], lease->machine_id, lease->from, lease->until);
	if (!renewed)
		ereport(LOG,
				errmsg("machine ID %u was leased to this server for IDs with times from %s",
					   lease->machine_id, timestamptz_to_str(lease->from)),
				errdetail("The lease ends at %s, and is renewed until the server stops.",
						  timestamptz_to_str(lease->until)));
	else if (before != SF_LEASE_HELD)
		ereport(LOG,
				errmsg("the registry has renewed the lease of machine ID %u", lease->machine_id));
}

/*
 * Give up the lease and close the generators.  The times of all IDs issued in the lease are before
 * the result, which is infinity if no such instant is known.
 */
static TimestampTz
give_up_lease(SfShared *shared)
{
	TimestampTz end = SF_UNIX_EPOCH;

	sf_lease_forget(&shared->lease);
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		TimestampTz used_until = sf_change_close(&shared->generators[i]);

		end = Max(end, used_until);
	}
	return end;
}

static void
apply_answer(SfShared *shared, const SfLease *held, const SfAnswer *answer)
{
	SfLeaseStatus before = sf_lease_record(&shared->lease, answer);

	if (answer->state == SF_LEASE_HELD)
	{
		take_lease(shared, held, &answer->lease, before);
		last_delay = 0;
		return;
	}
	if (before != answer->state)
		log_not_granted(answer);
	plan_retry(shared, answer);
}

/* Keep the message of the current error, and recover from the error, outside of a transaction. */
static void
recover_from_error(MemoryContext context, SfAnswer *answer)
{
	ErrorData  *data;

	HOLD_INTERRUPTS();
	LWLockReleaseAll();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(context);
	data = CopyErrorData();
	FlushErrorState();
	sf_answer_fail(answer, SF_LEASE_REFUSED, "%s", data->message);
	FreeErrorData(data);
}

/*
 * Record the first registry of this server, and return when that is on disk.  The lock is for
 * snowflake_drop_state().
 */
static bool
record_registry(int64 identity, SfAnswer *answer)
{
	SfLock	   *lock = &sf_shared_required()->lease.lock;
	MemoryContext context = CurrentMemoryContext;
	volatile bool written = false;

	PG_TRY();
	{
		sf_lock_acquire(lock);
		sf_durable_set(SF_DURABLE_REGISTRY, (uint64) identity);
		sf_lock_release(lock);
		written = true;
	}
	PG_CATCH();
	{
		recover_from_error(context, answer);
	}
	PG_END_TRY();
	return written;
}

/*
 * Whether the registry is the one from which the leases of this server come.
 *
 * Leases of one registry do not overlap, but leases of two registries can: if some servers lease
 * from one registry and some from another, two servers can be granted the same machine ID.  So a
 * server records the identity of its registry before its first claim there, and claims from no
 * other registry until an administrator calls snowflake_accept_registry().  Nothing at all is
 * requested from another registry, since the lease number of this server would start a grace
 * period there.
 *
 * The identity must be present wherever the data is: on standbys, after a crash, and in a restored
 * backup.  So it is one of the numbers that a server must not forget (durable.h).  It is 0 if none
 * is recorded.
 */
static bool
is_own_registry(SfConnection *connection, SfAnswer *answer)
{
	int64		recorded = (int64) sf_durable_read(SF_DURABLE_REGISTRY);
	int64		identity;

	if (!sf_registry_identity(connection, &identity))
		return false;
	if (identity == recorded)
		return true;
	if (recorded == 0 && !in_recovery)
		return record_registry(identity, answer);
	if (recorded == 0)
	{
		sf_answer_fail(answer, SF_LEASE_REFUSED,
					   "the primary of this standby has not recorded its registry yet");
		return false;
	}
	answer->other_identity = identity;
	sf_answer_fail(answer, SF_LEASE_REFUSED,
				   "the registry has identity %lld, but this server leases from the registry with identity %lld",
				   (long long) identity, (long long) recorded);
	return false;
}

/*
 * Renew the lease, or claim one.  If the renewal is refused, a claim can still be granted: the
 * lease may have expired and its machine ID may now be leased to another server.
 */
static void
ask_registry(const SfClaim *claim, SfAnswer *answer)
{
	SfConnection connection;
	bool		connected = sf_connect(&connection, answer);

	/* an attempt that was cut short by the stop of the server has no result */
	if (connected || !ShutdownRequestPending)
		reached = connected;
	if (!connected)
		return;
	if (is_own_registry(&connection, answer))
	{
		if (claim->held.number != 0)
			sf_registry_ask(&connection, claim, true);
		if ((claim->held.number == 0 || answer->state == SF_LEASE_REFUSED) &&
			!ShutdownRequestPending)
			sf_registry_ask(&connection, claim, false);
	}
	sf_disconnect(&connection);
}

static void
attempt_lease(SfShared *shared)
{
	char		layout[SF_LAYOUT_TEXT_SIZE];
	SfAnswer	answer = {.free_at = DT_NOEND};
	pg_uuid_t	token = sf_postmaster_token();
	SfClaim		claim = {
		.token = &token,
		.layout = layout,
		.machine_bits = sf_layout_in_force()->machine_bits,
		.wanted = wanted_machine_id(shared),
		.seconds = wanted_seconds(shared),
		.holder = holder,
		.held = sf_lease_state(&shared->lease).last.lease,
	};

	answer.lease = claim.held;
	sf_lease_request_taken(&shared->lease);
	sf_layout_format(sf_layout_in_force(), layout);
	if (!sf_settings_fit(claim.wanted, DEBUG1))
		sf_answer_fail(&answer, SF_LEASE_REFUSED,
					   "\"snowflake.machine_id\" or \"snowflake.sequence_range\" of this server does not fit its layout");
	else
		ask_registry(&claim, &answer);
	last_attempt = sf_time_since_boot();
	draw = pg_prng_uint32(&pg_global_prng_state);
	if (!ShutdownRequestPending)
		apply_answer(shared, &claim.held, &answer);
	elog(DEBUG1, "the next request of a lease is due in %lld ms",
		 (long long) time_to_attempt(shared));
}

/* At a registry other than the recorded one, nothing is released. */
static bool
release_at_registry(const pg_uuid_t *token, TimestampTz used_until, int64 number, SfAnswer *answer)
{
	SfConnection connection;
	int64		identity;
	bool		done;

	if (!sf_connect(&connection, answer))
		return false;
	done = sf_registry_identity(&connection, &identity) &&
		((uint64) identity != sf_durable_read(SF_DURABLE_REGISTRY) ||
		 sf_registry_release(&connection, token, used_until, number));
	sf_disconnect(&connection);
	return done;
}

/*
 * Stop issuing, and release the rest of the lease for other servers.  If the last attempt did
 * not reach the registry, this does not try, and it takes a second at most: the server should stop
 * without delay, since a standby may be waiting to be promoted.
 */
static void
release_lease(SfShared *shared)
{
	int64		number = sf_lease_state(&shared->lease).last.lease.number;
	pg_uuid_t	token = sf_postmaster_token();
	TimestampTz used_until = give_up_lease(shared);
	SfAnswer	answer;

	if (!reached || used_until == DT_NOEND)
		return;
	if (!release_at_registry(&token, used_until, number, &answer))
		ereport(LOG,
				errmsg("could not release the lease of the machine ID: %s", answer.error),
				errdetail("Other servers can lease the machine ID when the lease has expired."));
}

static void
set_worker(SfShared *shared, Latch *latch)
{
	sf_lock_acquire(&shared->lease.lock);
	shared->lease.worker = latch;
	sf_lock_release(&shared->lease.lock);
}

static void
unset_worker(int code, Datum argument)
{
	set_worker(sf_shared_required(), NULL);
}

/* Describe this server, for the administrators of the registry. */
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

/* A signal that arrived during an attempt has ended a wait of the attempt, and not this sleep. */
static void
sleep_until_due(SfShared *shared)
{
	int64		time = waits_for_promotion(shared) ? LONGEST_SLEEP : time_to_attempt(shared);
	int64		longest = in_recovery ? PROMOTION_SLEEP : LONGEST_SLEEP;

	if (time > 0 && !ShutdownRequestPending && !ConfigReloadPending)
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min(time, longest), sf_wait_event(SF_WAIT_REGISTRY_WORKER));
	ResetLatch(MyLatch);
}

void
snowflake_registry_worker_main(Datum argument)
{
	SfShared   *shared = sf_shared_required();

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	in_recovery = RecoveryInProgress();
	describe_holder();
	before_shmem_exit(unset_worker, (Datum) 0);
	set_worker(shared, MyLatch);
	sf_lease_request(&shared->lease, SF_REQUEST_NOW);
	while (!ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			sf_lease_request(&shared->lease, SF_REQUEST_NOW);
		}
		if (!waits_for_promotion(shared) && time_to_attempt(shared) <= 0)
			attempt_lease(shared);
		sleep_until_due(shared);
	}
	release_lease(shared);

	/*
	 * A worker that exits with 0 is not started again.  This worker must be
	 * started again if it was terminated while the server continues.
	 */
	proc_exit(1);
}
