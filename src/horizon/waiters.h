/*
 * waiters.h
 *	  Sessions that sleep until the horizon has passed an ID.
 *
 * A waiter announces the end of which transactions it awaits, looks at the horizon, and sleeps if
 * the horizon has not passed its ID.  A session that has cleared its slot looks whether its end is
 * awaited.  There is a full barrier between the two steps of each.  So the waiter finds the slot
 * cleared, or the session finds the announcement.
 *
 * All waiters have one announcement.  The session that finds it withdraws it and wakes all of them;
 * they look, and announce again.  So a session that ends many transactions wakes waiters no more
 * often than they look, and the end of a transaction that no waiter awaits wakes none.  A waiter
 * that leaves need not withdraw anything: at worst, one end of a transaction wakes others in vain.
 */
#ifndef SF_WAITERS_H
#define SF_WAITERS_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"

typedef struct SfWaiters
{
	pg_atomic_uint64 awaited;	/* an int64: the ends of transactions are
								 * awaited whose first ID is not above it */
	pg_atomic_uint64 wakes;		/* how often waiters were woken */
	ConditionVariable woken;
} SfWaiters;

extern void sf_waiters_init(SfWaiters *waiters);

/*
 * Waiters
 */

static inline uint64
sf_waiters_wakes(SfWaiters *waiters)
{
	return pg_atomic_read_u64(&waiters->wakes);
}

/* Announce that the ends of transactions are awaited whose first ID is not above an ID. */
extern void sf_waiters_announce(SfWaiters *waiters, int64 first);

/*
 * Sleep until waiters are woken, or for some milliseconds.  Does not sleep if they were woken
 * since a call to sf_waiters_wakes(), before the announcement, that returned wakes.  Serves
 * interrupts.
 */
extern void sf_waiters_sleep(SfWaiters *waiters, uint64 wakes, long ms);

/*
 * Others
 */

/* Wake all waiters.  Raises nothing. */
extern void sf_waiters_wake_all(SfWaiters *waiters);

/* The slot of a session no longer has a first ID. */
static inline void
sf_waiters_wake(SfWaiters *waiters, int64 first)
{
	pg_memory_barrier();
	if (unlikely(first <= (int64) pg_atomic_read_u64(&waiters->awaited)))
		sf_waiters_wake_all(waiters);
}

#endif							/* SF_WAITERS_H */
