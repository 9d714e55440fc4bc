/*
 * log_limit.c
 *	  A limit on log messages that could otherwise flood the server's log.
 *
 * Times are those since the machine booted, because some of the messages are about
 * the wall clock.
 */
#include "postgres.h"

#include "clocks.h"
#include "log_limit.h"

#define LOG_INTERVAL	(60 * INT64CONST(1000000))	/* us */

bool
sf_log_allowed(SfLogLimit *limit)
{
	uint64		last = pg_atomic_read_u64(limit);
	uint64		now = (uint64) sf_time_since_boot();

	if (last != 0 && now < last + LOG_INTERVAL)
		return false;
	return pg_atomic_compare_exchange_u64(limit, &last, now);
}
