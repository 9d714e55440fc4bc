/*
 * log_limit.h
 *	  Messages that are logged at most once a minute.
 */
#ifndef SF_LOG_LIMIT_H
#define SF_LOG_LIMIT_H

#include "postgres.h"

#include "port/atomics.h"

#include "clocks.h"

/*
 * The time at which a message was last logged: microseconds since the machine
 * booted, or 0 for never, since some of the messages are about the wall clock.  It
 * is in shared memory, so the limit applies to the whole server.
 */
typedef pg_atomic_uint64 SfLogLimit;

/*
 * Whether to log now.  Returns true at most once a minute, in all backends
 * together.  The caller that gets true has to log.
 */
static inline bool
sf_log_allowed(SfLogLimit *limit)
{
	uint64		last = pg_atomic_read_u64(limit);
	uint64		now = (uint64) sf_time_since_boot();

	if (last != 0 && now < last + 60 * USECS_PER_SEC)
		return false;
	return pg_atomic_compare_exchange_u64(limit, &last, now);
}

#endif							/* SF_LOG_LIMIT_H */
