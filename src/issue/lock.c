/*
 * lock.c
 *	  An exclusive lock that a process may hold while it writes to disk.
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "utils/resowner.h"

#include "issue/lock.h"

/* The longest sleep without a look at the lock. */
#define LONGEST_SLEEP	INT64CONST(100000)	/* us */

/* The locks that this process holds. */
static SfLock *held[2];
static int	held_count = 0;

void
sf_lock_init(SfLock *lock, SfWaitEvent event)
{
	pg_atomic_init_u32(&lock->holder, 0);
	ConditionVariableInit(&lock->released);
	lock->event = event;
}

static void
let_go(SfLock *lock)
{
	Assert(sf_lock_is_mine(lock));
	pg_atomic_exchange_u32(&lock->holder, 0);
	ConditionVariableBroadcast(&lock->released);
}

static void
release_all(void)
{
	while (held_count > 0)
		let_go(held[--held_count]);
}

/*
 * The resources of a transaction, a subtransaction or a portal are released.  If a lock is still
 * held, that is because of an error, which has allowed interrupts again.
 */
static void
release_after_error(ResourceReleasePhase phase, bool commit, bool top_level, void *argument)
{
	release_all();
}

/* The process exits outside of a transaction, because of an error in a callback. */
static void
release_at_exit(int code, Datum argument)
{
	release_all();
}

void
sf_lock_register_callbacks(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterResourceReleaseCallback(release_after_error, NULL);
	before_shmem_exit(release_at_exit, (Datum) 0);
	registered = true;
}

bool
sf_lock_try(SfLock *lock)
{
	uint32		holder = 0;

	Assert(!sf_lock_is_mine(lock));
	Assert(held_count < (int) lengthof(held));
	sf_lock_register_callbacks();
	HOLD_INTERRUPTS();
	if (pg_atomic_compare_exchange_u32(&lock->holder, &holder, (uint32) MyProcPid))
	{
		held[held_count++] = lock;
		return true;
	}
	RESUME_INTERRUPTS();
	return false;
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
	Assert(held_count > 0 && held[held_count - 1] == lock);
	held_count--;
	let_go(lock);
	RESUME_INTERRUPTS();
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
