/*
 * attempt.h
 *	  When a server asks its registry for a lease.
 *
 * Without a random part, servers that start together, or that reach the registry again together
 * after a failover, would ask at the same moments from then on.  So each attempt has a draw, a
 * random number that makes the attempt earlier by a part of the time until then.  With a draw of 0
 * the attempt is not earlier.
 *
 * A draw never makes an attempt later: at least half of a lease is left while renewals succeed, and
 * a registry that is available again is asked no later than without draws.  The exception is a time
 * that the registry has stated, before which a request is of no use.
 *
 * Uniqueness does not depend on these times.  The model of the registry (test/model/registry.pml)
 * lets a server claim, renew and lose the answer at any moment, and the bounds of a lease come from
 * the registry's answers alone.
 */
#ifndef SF_CORE_ATTEMPT_H
#define SF_CORE_ATTEMPT_H

#include <stdint.h>

#define SF_LEAST_INTERVAL	100 /* ms between attempts, whatever the registry
								 * answers */
#define SF_FIRST_RETRY		250 /* ms; doubled with each failure */
#define SF_LAST_RETRY		60000	/* ms; but at most an eighth of a lease */
#define SF_REQUESTED_RETRY	1000	/* ms, at most, while calls fail */

/* A part of a length of time: from 0, for a draw of 0, to less than all of it. */
static inline int64_t
sf_drawn_part(int64_t length, uint32_t draw)
{
	return (int64_t) ((uint64_t) length * draw >> 32);
}

/*
 * How much earlier than at half of the lease a server renews it, in ms: up to a quarter of that
 * half, which is given in ms.  There are about a seventh more renewals than without draws.  The
 * first renewals of servers that have started together are spread over an eighth of a lease.
 */
static inline int64_t
sf_renewal_advance(int64_t half, uint32_t draw)
{
	return sf_drawn_part(half / 4, draw);
}

/*
 * The delay after a failed attempt, in ms, without the draw.  last is the delay before that
 * attempt; it is 0 if the attempt before it did not fail.
 */
static inline int64_t
sf_retry_delay(int64_t last, int64_t lease)
{
	int64_t		longest = lease / 8 < SF_LAST_RETRY ? lease / 8 : SF_LAST_RETRY;

	if (longest < 2 * SF_FIRST_RETRY)
		longest = 2 * SF_FIRST_RETRY;
	if (last == 0)
		return SF_FIRST_RETRY;
	return 2 * last < longest ? 2 * last : longest;
}

/* The time to wait, in ms: from half of the delay to all of it. */
static inline int64_t
sf_retry_wait(int64_t delay, uint32_t draw)
{
	return delay - sf_drawn_part(delay / 2, draw);
}

/*
 * The time to wait, in ms, if the registry has stated that it might grant a lease in left ms.  All
 * servers that it has refused were told this time.  A server asks within a second after it, and
 * within 250 ms if it was refused for the first time.
 */
static inline int64_t
sf_retry_when_free(int64_t left, int64_t delay, uint32_t draw)
{
	return left + sf_drawn_part(delay < SF_REQUESTED_RETRY ? delay : SF_REQUESTED_RETRY, draw);
}

#endif							/* SF_CORE_ATTEMPT_H */
