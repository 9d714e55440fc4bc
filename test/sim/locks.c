/*
 * locks.c
 *	  LWLocks, condition variables, latches, interrupts and clocks.
 */
#include "world.h"

#include <time.h>

#include "oracles.h"
#include "state/lock.h"

static LWLockPadded main_locks[64];
static LWLockPadded tranche[SF_LOCK_COUNT];

LWLockPadded *MainLWLockArray = main_locks;

/* The holder of each lock of the tranche, and whether an abort has released it last. */
static Process *holders[SF_LOCK_COUNT];
static bool aborted[SF_LOCK_COUNT];

/*
 * LWLocks
 */

/* lwlock.c: the locks that RequestNamedLWLockTranche has requested, in a row. */
RETURNS(LWLockPadded *, tranche, GetNamedLWLockTranche, const char *name);

/* lwlock.c */
void
RequestNamedLWLockTranche(const char *name, int count)
{
	Assert(count == SF_LOCK_COUNT);
}

/* The number of a lock of the tranche; -1 for AddinShmemInitLock, which no two processes take. */
static int
number_of(LWLock *lock)
{
	long		number = (LWLockPadded *) lock - tranche;

	return number >= 0 && number < SF_LOCK_COUNT ? (int) number : -1;
}

/* lwlock.c: takes a lock that is free, with a full barrier.  Holds off interrupts. */
bool
LWLockConditionalAcquire(LWLock *lock, LWLockMode mode)
{
	int			n = number_of(lock);

	point();
	if (holders[n] != NULL)
	{
		trace("LWLockConditionalAcquire     lock %d is taken", n);
		return false;
	}
	trace("LWLockConditionalAcquire     lock %d", n);
	holders[n] = current;
	current->lwlocks++;
	if (weak)
		full_barrier();
	return true;
}

/* lwlock.c: waits without interrupts. */
bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	int			n = number_of(lock);

	if (n < 0 || current == NULL)
		return true;
	while (!LWLockConditionalAcquire(lock, mode))
	{
		oracle_lwlock_wait(holders[n]);
		current->lwlock = lock;
		wait_for(LWLOCK, PG_INT64_MAX);
	}
	return true;
}

/* lwlock.c: releases with a full barrier, and wakes processes that wait in LWLockAcquire. */
void
LWLockRelease(LWLock *lock)
{
	int			n = number_of(lock);

	if (n < 0 || current == NULL)
		return;
	point();
	if (weak)
		full_barrier();
	if (holders[n] != current)
		fail("a process releases lock %d, which it does not hold", n);
	trace("LWLockRelease                lock %d", n);
	holders[n] = NULL;
	aborted[n] = false;
	current->lwlocks--;
}

/* lwlock.c */
RETURNS(bool, holders[number_of(lock)] == current, LWLockHeldByMe, LWLock *lock);

/*
 * lwlock.c (LWLockReleaseAll) and condition_variable.c (ConditionVariableCancelSleep): an abort
 * begins with both, and so does the exit of a process.
 */
void
release_lwlocks(void)
{
	for (int i = 0; i < SF_LOCK_COUNT; i++)
		if (holders[i] == current)
		{
			trace("LWLockReleaseAll             lock %d", i);
			holders[i] = NULL;
			aborted[i] = true;
		}
	current->lwlocks = 0;
	current->variable = NULL;
	current->wakes_others = false;
}

void
forget_lwlocks(void)
{
	memset(holders, 0, sizeof(holders));
	memset(aborted, 0, sizeof(aborted));
}

/*
 * Condition variables
 */

/* condition_variable.c */
void
ConditionVariableInit(ConditionVariable * variable)
{
}

static int64 places;			/* in queues */

/* condition_variable.c: puts the process at the end of the queue, with a full barrier (a spinlock). */
void
ConditionVariablePrepareToSleep(ConditionVariable * variable)
{
	point();
	if (weak)
		full_barrier();
	current->variable = variable;
	current->queued = ++places;
	current->signaled = current->wakes_others = false;
}

/* The number of the lock to which a condition variable belongs; -1 if it belongs to waiters. */
static int
number_of_variable(ConditionVariable * variable)
{
	SfLock	   *lock = (SfLock *) ((char *) variable - offsetof(SfLock, released));

	return number_of(lock->lock);
}

/*
 * condition_variable.c: returns true at the end of the time, and false after a signal, or at once if
 * the process was not in the queue.  Serves interrupts.
 */
bool
ConditionVariableTimedSleep(ConditionVariable * variable, long ms, uint32 event)
{
	int64		end = now + ms * 1000;
	int64		waited = current->waited;
	int			n = number_of_variable(variable);

	if (current->variable != variable)
	{
		ConditionVariablePrepareToSleep(variable);
		return false;
	}
	trace("ConditionVariableTimedSleep  %ld ms", ms);
	while (!current->signaled && now < end)
	{
		wait_for(VARIABLE, end);
		if (n < 0 || n >= SF_LOCK_HORIZON)
			current->waited = waited;	/* max_wait is for generators */
		CHECK_FOR_INTERRUPTS();
	}
	if (n < 0)
		oracle_slept(current->signaled);
	return !current->signaled;
}

/*
 * condition_variable.c: before 17 it returns nothing.  It locks the spinlock that a signal has locked
 * before, so later reads find all that was written before the signal.
 */
#if PG_VERSION_NUM >= 170000
bool
#else
void
#endif
ConditionVariableCancelSleep(void)
{
	current->variable = NULL;
	pg_read_barrier();
#if PG_VERSION_NUM >= 170000
	return false;
#endif
}

static void
signal_process(Process *process)
{
	process->signaled = true;
	process->woken = now;
}

/* condition_variable.c: wakes the first process of the queue, which leaves it. */
void
ConditionVariableSignal(ConditionVariable * variable)
{
	Process    *first = NULL;

	point();
	if (weak)
		full_barrier();
	for (int i = 0; i < PROCESSES; i++)
		if (processes[i].alive && processes[i].variable == variable && !processes[i].signaled &&
			(first == NULL || processes[i].queued < first->queued))
			first = &processes[i];
	trace("ConditionVariableSignal      %d", first ? first->number : -1);
	if (first == NULL)
		return;
	signal_process(first);
	first->wakes_others = number_of_variable(variable) < 0;
}

/* condition_variable.c: wakes all processes of the queue. */
void
ConditionVariableBroadcast(ConditionVariable * variable)
{
	if (current == NULL)
		return;
	point();
	trace("ConditionVariableBroadcast");
	for (int i = 0; i < PROCESSES; i++)
		if (processes[i].alive && processes[i].variable == variable)
			signal_process(&processes[i]);
}

/* No process can run: none of them may sleep for a lock that another one has released. */
void
check_sleepers(void)
{
	for (int i = 0; i < PROCESSES; i++)
	{
		const Process *process = &processes[i];

		if (process->alive && process->waits_for == VARIABLE)
		{
			int			n = number_of_variable(process->variable);

			if (n >= 0 && holders[n] == NULL && !aborted[n])
				oracle_lost_wake_up(i, n);
		}
	}
}

/*
 * Latches and interrupts
 */

/* latch.c */
void
SetLatch(Latch *latch)
{
	point();
	trace("SetLatch");
	latch->is_set = true;
}

/* latch.c: with a full barrier. */
void
ResetLatch(Latch *latch)
{
	point();
	latch->is_set = false;
	if (weak)
		full_barrier();
}

/* latch.c (waiteventset.c since 18): the kernel wakes the process at most 100 us late here. */
int
WaitLatch(Latch *latch, int events, long ms, uint32 event)
{
	point();
	trace("WaitLatch                    %ld ms", ms);
	wait_for(LATCH, now + ms * 1000 + below(100));
	return 0;
}

/* port/pgsleep.c: an interrupt does not end it here; the kernel is at most 60 us late. */
void
pg_usleep(long us)
{
	point();
	trace("pg_usleep                    %ld us", us);
	sleep_until(now + us + below(60));
}

/* postgres.c: raises an error, unless an LWLock is held. */
void
ProcessInterrupts(void)
{
	int			level;

	point();
	if (current == NULL || current->interrupt == 0 || current->lwlocks > 0)
		return;
	level = current->interrupt;
	current->interrupt = 0;
	if (level == FATAL)
		ereport(FATAL, errmsg("terminated"));
	ereport(ERROR, errmsg("canceled"));
}

bool
is_ready(const Process *process)
{
	switch (process->waits_for)
	{
		case NOTHING:
			return true;
		case TIME:
			return process->wake <= now;
		case LATCH:
			return process->wake <= now || procs[process->number].procLatch.is_set ||
				process->interrupt != 0;
		case VARIABLE:
			return process->wake <= now || process->signaled || process->interrupt != 0;
		case LWLOCK:
			return holders[number_of(process->lwlock)] == NULL;
	}
	return false;
}

/* ipc.c: the newest callback is called first, after LWLocks were released. */
void
on_shmem_exit(pg_on_exit_callback function, Datum argument)
{
	Assert(current->at_exit_count < (int) lengthof(current->at_exit));
	current->at_exit[current->at_exit_count].function = function;
	current->at_exit[current->at_exit_count++].argument = argument;
}

/*
 * ipc.c: only for PG_ENSURE_ERROR_CLEANUP.  A FATAL error passes its handler here, as an ERROR does,
 * and in PostgreSQL the exit of the process calls the function.
 */
void
before_shmem_exit(pg_on_exit_callback function, Datum argument)
{
}

void
cancel_before_shmem_exit(pg_on_exit_callback function, Datum argument)
{
}

void
leave_process(void)
{
	trace("leaves");
	while (current->at_exit_count > 0)
	{
		current->at_exit_count--;
		current->at_exit[current->at_exit_count].function(0, current->at_exit[current->at_exit_count].argument);
	}
	if (weak)
		full_barrier();			/* the next process finds all of its writes */
}

/*
 * Clocks
 */

/* The kernel: CLOCK_BOOTTIME is never set, and counts while the machine sleeps. */
int
sim_clock_gettime(clockid_t id, struct timespec *time)
{
	point();
	now++;
	time->tv_sec = now / USECS_PER_SEC;
	time->tv_nsec = now % USECS_PER_SEC * 1000;
	return 0;
}

/* timestamp.c: the wall clock, which can be set. */
TimestampTz
GetCurrentTimestamp(void)
{
	point();
	now++;
	if (current != NULL)
	{
		trace("GetCurrentTimestamp          %lld", (long long) wall());
		current->least_clock = Min(current->least_clock, wall());
		current->greatest_clock = Max(current->greatest_clock, wall());
	}
	return wall();
}
