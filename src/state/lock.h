/*
 * lock.h
 *	  An exclusive lock that a process may hold while it writes to disk.
 *
 * A process that waits for an LWLock cannot be interrupted.  So nothing must wait for an LWLock
 * whose holder waits for a slow disk, or is stopped by a signal: no timeout and no cancellation
 * would reach it.  Here an LWLock is only taken if it is free, and a process that finds it taken
 * waits on a condition variable, with interrupts.
 *
 * The holder serves no interrupts.  PostgreSQL releases the LWLock when a transaction or
 * subtransaction is aborted and when the process exits.  A process holds one of these locks at a
 * time, so no order of locks exists.
 */
#ifndef SF_LOCK_H
#define SF_LOCK_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "wait_event.h"

/* The LWLocks of the extension. */
typedef enum SfLockNumber
{
	SF_LOCK_BIGINT,
	SF_LOCK_SNO,
	SF_LOCK_HORIZON,
	SF_LOCK_LEASE,
} SfLockNumber;

#define SF_LOCK_COUNT	(SF_LOCK_LEASE + 1)

typedef struct SfLock
{
	LWLock	   *lock;
	ConditionVariable released;
	pg_atomic_uint32 holder;	/* PID; 0 for none.  An abort leaves it */
	SfWaitEvent event;			/* of processes that wait for it */
} SfLock;

/* Request the LWLocks, when shared memory is requested. */
extern void sf_lock_request(void);

/* Make a lock, in new memory. */
extern void sf_lock_init(SfLock *lock, SfLockNumber number, SfWaitEvent event);

/* Take the lock if it is free. */
extern bool sf_lock_try(SfLock *lock);

/* Take the lock, after a wait if it is not free.  Interrupts are served during the wait. */
extern void sf_lock_acquire(SfLock *lock);

extern void sf_lock_release(SfLock *lock);

/*
 * Wait until the lock is released, or for a number of microseconds, at most 100 ms, or less: the
 * caller tries again.  Returns at once if no holder is recorded.  After an abort, which leaves the
 * holder recorded, it waits although the lock is free.  Interrupts are served.
 */
extern void sf_lock_await(SfLock *lock, int64 time);

/* The PID of the holder; 0 if there is none. */
static inline int
sf_lock_holder(SfLock *lock)
{
	return (int) pg_atomic_read_u32(&lock->holder);
}

/* For assertions. */
static inline bool
sf_lock_is_mine(SfLock *lock)
{
	return LWLockHeldByMe(lock->lock);
}

#endif							/* SF_LOCK_H */
