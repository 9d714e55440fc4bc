/*
 * lock.h
 *	  An exclusive lock that a process may hold while it writes to disk.
 *
 * A process that waits for an LWLock cannot be interrupted.  So an LWLock must not be held for
 * long: if its holder waits for a slow disk, or is stopped by a signal, no timeout and no
 * cancellation reaches the others.  Here the others wait on a condition variable, with interrupts.
 *
 * The holder is the process whose PID is in the lock.  It serves no interrupts while it holds the
 * lock, also if it waits for a second one: nothing is written to disk under that.  As with an
 * LWLock, the end of its transaction or subtransaction by an error, or its exit, releases the lock:
 * code that can raise an error runs within a transaction, or while the process exits.  The crash of
 * a process is followed by new shared memory.
 */
#ifndef SF_LOCK_H
#define SF_LOCK_H

#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"

#include "wait_event.h"

typedef struct SfLock
{
	pg_atomic_uint32 holder;	/* PID; 0 for none */
	ConditionVariable released;
	SfWaitEvent event;			/* of processes that wait for it */
} SfLock;

/* Make a lock, in new memory. */
extern void sf_lock_init(SfLock *lock, SfWaitEvent event);

/*
 * Register the release of locks at an error and at the exit of the process.  A callback for the
 * exit that takes a lock itself is registered after this.
 */
extern void sf_lock_register_callbacks(void);

/* Take the lock if it is free.  A process can hold two locks at a time. */
extern bool sf_lock_try(SfLock *lock);

/* Take the lock, after a wait if it is not free.  Interrupts are served during the wait. */
extern void sf_lock_acquire(SfLock *lock);

/* Release the lock that was taken last. */
extern void sf_lock_release(SfLock *lock);

/*
 * Wait until the lock is released, or for a number of microseconds, or less: the caller tries
 * again.  Returns at once if the lock is free.  Interrupts are served.
 */
extern void sf_lock_await(SfLock *lock, int64 time);

/* The PID of the holder; 0 if the lock is free. */
static inline int
sf_lock_holder(SfLock *lock)
{
	return (int) pg_atomic_read_u32(&lock->holder);
}

/* For assertions. */
static inline bool
sf_lock_is_mine(SfLock *lock)
{
	return sf_lock_holder(lock) == MyProcPid;
}

#endif							/* SF_LOCK_H */
