/*
 * lock.c
 *	  An exclusive lock that a process may hold while it writes to disk.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "state/lock.h"

/* The longest sleep without a look at the lock: an abort releases it without a signal to others. */
#define LONGEST_SLEEP	INT64CONST(100000)	/* us */

void
sf_lock_request(void)
{
	RequestNamedLWLockTranche("snowflake", SF_LOCK_COUNT);
}

void
sf_lock_init(SfLock *lock, SfLockNumber number, SfWaitEvent event)
{
	lock->lock = &GetNamedLWLockTranche("snowflake")[number].lock;
	ConditionVariableInit(&lock->released);
	pg_atomic_init_u32(&lock->holder, 0);
	lock->event = event;
}

bool
sf_lock_try(SfLock *lock)
{
#ifdef USE_ASSERT_CHECKING
	for (int i = 0; i < SF_LOCK_COUNT; i++)
		Assert(!LWLockHeldByMe(&GetNamedLWLockTranche("snowflake")[i].lock));
#endif
	if (!LWLockConditionalAcquire(lock->lock, LW_EXCLUSIVE))
		return false;
	pg_atomic_write_u32(&lock->holder, (uint32) MyProcPid);
	return true;
}

void
sf_lock_acquire(SfLock *lock)
{
	while (!sf_lock_try(lock))
		sf_lock_await(lock, LONGEST_SLEEP);
}

void
sf_lock_release(SfLock *lock)
{
	pg_atomic_write_u32(&lock->holder, 0);
	LWLockRelease(lock->lock);
	ConditionVariableBroadcast(&lock->released);
}

/*
 * The process is in the queue before it looks at the lock: a release that this look misses wakes
 * it.
 */
void
sf_lock_await(SfLock *lock, int64 time)
{
	long		ms = (long) Max(Min(time, LONGEST_SLEEP) / 1000, 1);

	ConditionVariablePrepareToSleep(&lock->released);
	if (sf_lock_holder(lock) != 0)
		(void) ConditionVariableTimedSleep(&lock->released, ms, sf_wait_event(lock->event));
	ConditionVariableCancelSleep();
	CHECK_FOR_INTERRUPTS();
}
