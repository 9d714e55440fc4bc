/*
 * waiters.c
 *	  Sessions that sleep until the horizon has passed an ID.
 *
 * No wake-up is lost.  A session withdraws the announcement before it counts the wake-up, and it
 * counts before it signals.  If it withdraws an announcement after the waiter has made it, the
 * waiter has read a lower count before.  The waiter compares the count when it is in the queue of
 * the condition variable.  So it finds another count, or is in the queue when the session signals.
 * If the session has withdrawn a signal before, the signal of the waiter remains.
 *
 * To wake a thousand processes takes long, and a session that commits still holds its locks.  So it
 * wakes only the first waiter of the queue, and each waiter that finds another count wakes the next
 * two, however its sleep ends.  A waiter that sleeps again is at the end of the queue, behind the
 * waiters that were not woken yet, and wakes none if it finds no other count.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"

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

typedef struct Sleep
{
	SfWaiters  *waiters;
	uint64		wakes;			/* before it */
} Sleep;

static void
wake_next(int code, Datum argument)
{
	const Sleep *ended = (const Sleep *) DatumGetPointer(argument);
	SfWaiters  *waiters = ended->waiters;

	if (sf_waiters_wakes(waiters) == ended->wakes)
		return;
	ConditionVariableSignal(&waiters->woken);
	ConditionVariableSignal(&waiters->woken);
}

void
sf_waiters_sleep(SfWaiters *waiters, uint64 wakes, long ms)
{
	Sleep		sleep = {waiters, wakes};

	PG_ENSURE_ERROR_CLEANUP(wake_next, PointerGetDatum(&sleep));
	{
		ConditionVariablePrepareToSleep(&waiters->woken);
		if (sf_waiters_wakes(waiters) == wakes)
			(void) ConditionVariableTimedSleep(&waiters->woken, ms,
											   sf_wait_event(SF_WAIT_NEW_ROWS));
		ConditionVariableCancelSleep();
		CHECK_FOR_INTERRUPTS();
	}
	PG_END_ENSURE_ERROR_CLEANUP(wake_next, PointerGetDatum(&sleep));
	wake_next(0, PointerGetDatum(&sleep));
}

void
sf_waiters_wake_all(SfWaiters *waiters)
{
	(void) pg_atomic_exchange_u64(&waiters->awaited, (uint64) NONE_AWAITED);
	(void) pg_atomic_fetch_add_u64(&waiters->wakes, 1);
	ConditionVariableSignal(&waiters->woken);
}
