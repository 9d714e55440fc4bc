/*
 * backoff.h
 *	  How long a session waits after another one was faster.
 */
#ifndef SF_BACKOFF_H
#define SF_BACKOFF_H

#include <stdint.h>

/*
 * The longest time, in microseconds, for which a session waits after a swap that failed because
 * another session was faster.  failed is the number of its failed swaps in a row, at least 1.  The
 * session waits for a random part of this time: if many sessions retried at once, the cache line of
 * the cursor would pass from one to the next between a session's reading of the cursor and its
 * swap, and almost all swaps would fail.
 */
static inline uint32_t
sf_longest_backoff(uint32_t failed)
{
	return failed <= 7 ? UINT32_C(1) << (failed - 1) : 128;
}

#endif							/* SF_BACKOFF_H */
