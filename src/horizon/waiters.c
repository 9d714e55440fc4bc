/*
 * waiters.c
 *	  Sessions that sleep until the horizon has passed an ID.
 *
 * No wake-up is lost.  A session withdraws the announcement before it counts the wake-up, and it
 * counts before it broadcasts.  If it withdraws an announcement after the waiter has made it, the
 * waiter has read a lower count before.  The waiter compares the count when it is in the queue of
 * the condition variable.  So it finds another count, or is in the queue when the session
 * broadcasts.  If the session has withdrawn one before, that of the waiter remains.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "horizon/waiters.h"
#include "wait_event.h"

#define NONE_AWAITED	PG_INT64_MIN

void
sf_waiters_init(SfWaiters *waiters)
{
	pg_atomic_init_u64(&waiters->awaited, (uint64) NONE_AWAITED);
	pg_atomic_init_u64(&waiters->wakes, 0);
	ConditionVariableInit(&waiters->woken);
}

void
sf_waiters_announce(SfWaiters *waiters, int64 first)
{
	uint64		awaited = pg_atomic_read_u64(&waiters->awaited);

	while ((int64) awaited < first &&
		   !pg_atomic_compare_exchange_u64(&waiters->awaited, &awaited, (uint64) first))
		;
}

void
sf_waiters_sleep(SfWaiters *waiters, uint64 wakes, long ms)
{
	ConditionVariablePrepareToSleep(&waiters->woken);
	if (sf_waiters_wakes(waiters) == wakes)
		(void) ConditionVariableTimedSleep(&waiters->woken, ms, sf_wait_event(SF_WAIT_NEW_ROWS));
	ConditionVariableCancelSleep();
	CHECK_FOR_INTERRUPTS();
}

void
sf_waiters_wake_all(SfWaiters *waiters)
{
	(void) pg_atomic_exchange_u64(&waiters->awaited, (uint64) NONE_AWAITED);
	(void) pg_atomic_fetch_add_u64(&waiters->wakes, 1);
	ConditionVariableBroadcast(&waiters->woken);
}
