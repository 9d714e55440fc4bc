/*
 * registry.c
 *	  The registry of machine IDs, and what the registry worker does with its answers.
 *
 * Leases of one machine ID do not overlap.  The worker is the worker of src/registry/worker.c
 * without its connection and its plan: it records an answer, and passes the lease to the
 * generators.
 */
#include "oracles.h"

#include "issue/change.h"

/* A lease of the server that runs now; a renewal makes it longer. */
typedef struct Span
{
	int			machine;
	TimestampTz from,
				until;
} Span;

#define SPANS	400

static Span spans[SPANS];
static int	span_count;
static TimestampTz free_from[8];	/* each machine ID */
static SfLease kept;			/* a crash of a process must not lose it */

void
registry_begins(void)
{
	span_count = 0;
	kept.number = 0;
	for (int i = 0; i < 8; i++)
		free_from[i] = START - 1000000;
}

/* The previous server may still run. */
void
registry_promoted(void)
{
	span_count = 0;
}

void
registry_forgets(void)
{
	kept.number = 0;
}

SfLease
registry_kept(void)
{
	return kept;
}

bool
registry_covers(int machine, TimestampTz time)
{
	for (int i = 0; i < span_count; i++)
		if (spans[i].machine == machine && time >= spans[i].from && time < spans[i].until)
			return true;
	return false;
}

static Span *
span_of(int machine, TimestampTz from)
{
	for (int i = 0; i < span_count; i++)
		if (spans[i].machine == machine && spans[i].from == from)
			return &spans[i];
	if (span_count == SPANS)
		fail("the simulation has no room for leases");
	return &spans[span_count++];
}

static void
grant(int machine, TimestampTz from, TimestampTz until, bool ours)
{
	trace("lease                        machine ID %d from %lld until %lld%s", machine,
		  (long long) from, (long long) until, ours ? "" : " to another server");
	free_from[machine] = until;
	if (!ours)
		return;
	*span_of(machine, from) = (Span)
	{
		machine, from, until
	};
	for (int kind = 0; kind < SF_GENERATOR_COUNT; kind++)
		oracle_time(kind, from);
	oracle_lease_changes();
}

/* The worker has released a lease, of which times up to an instant were used. */
static void
release(const SfLease *lease, TimestampTz end)
{
	int			machine = (int) lease->machine_id;

	trace("released                     until %lld", (long long) end);
	if (end == DT_NOEND || free_from[machine] != lease->until)
		return;
	for (int i = 0; i < span_count; i++)
		if (spans[i].machine == machine && spans[i].until > end)
			spans[i].until = Max(end, spans[i].from);
	free_from[machine] = Max(lease->from, Min(end, lease->until));
	oracle_released(machine, free_from[machine]);
	if (chance(2))
		grant(machine, free_from[machine], Max(free_from[machine], wall()) + below(300000), false);
}

/* worker.c, give_up_lease */
static void
give_up_lease(SfShared *shared, const SfLease *held)
{
	TimestampTz end = SF_UNIX_EPOCH;

	kept.number = 0;
	oracle_lease_changes();
	sf_lease_forget(&shared->lease);
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		TimestampTz used_until = sf_change_close(&shared->generators[i]);

		end = Max(end, used_until);
	}
	release(held, end);
	sleep_until(now + below(5000));
}

/* A renewal of the lease that is held, or another lease, which can end before that one. */
static SfAnswer
ask(const SfLease *held)
{
	SfAnswer	answer = {.state = SF_LEASE_HELD,.lease = *held};
	int			machine = held->number && chance(2) ? (int) held->machine_id : (int) below(config.machines);
	bool		renewal = held->number != 0 && machine == (int) held->machine_id &&
	free_from[machine] == held->until && (quiet || !chance(4));
	TimestampTz early = wall() - below(20000);
	TimestampTz from = renewal ? held->from : Max(early, free_from[machine]);
	TimestampTz until = Max(from, wall()) + (quiet ? 60000000 : 50000 + below(3000000));

	if (!quiet && chance(10))
		answer.state = chance(2) ? SF_LEASE_REFUSED : SF_LEASE_UNREACHABLE;
	else if (from > wall() + 1000000)
		answer.state = SF_LEASE_REFUSED;
	else
	{
		if (renewal || chance(2))
			until = Max(until, held->until);
		answer.lease = (SfLease)
		{
			(uint32) machine, from, until, held->number + 1
		};
		grant(machine, from, until, true);
	}
	return answer;
}

/* worker.c, apply_answer */
static void
apply(SfShared *shared, const SfAnswer *answer)
{
	if (answer->state == SF_LEASE_HELD)
		kept = answer->lease;
	(void) sf_lease_record(&shared->lease, answer);
	if (answer->state != SF_LEASE_HELD)
		return;
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		sf_change_lease(&shared->generators[i], answer->lease.machine_id, answer->lease.from,
						answer->lease.until);
}

void
worker_main(void)
{
	SfShared   *shared = sf_shared();
	sigjmp_buf	handler;

	if (sigsetjmp(handler, 0) != 0)
		release_lwlocks();
	PG_exception_stack = &handler;
	sf_lock_acquire(&shared->lease.lock);
	shared->lease.worker = MyLatch;
	sf_lock_release(&shared->lease.lock);
	for (;;)
	{
		SfLease		held = sf_lease_state(&shared->lease).last.lease;
		int			other = (int) below(config.machines);
		SfAnswer	answer;

		sf_lease_request_taken(&shared->lease);
		if (!quiet && chance(6) && free_from[other] < wall() &&
			!(held.number && other == (int) held.machine_id))
			grant(other, free_from[other], wall() + below(300000), false);
		if (held.number != 0 && !quiet && chance(8))
		{
			give_up_lease(shared, &held);
			continue;
		}
		answer = ask(&held);
		apply(shared, &answer);
		(void) WaitLatch(MyLatch, 0, quiet ? 200 : 1 + below(chance(3) ? 2000 : 40), 0);
		ResetLatch(MyLatch);
		point();
	}
}
