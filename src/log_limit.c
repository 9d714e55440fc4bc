/*
 * log_limit.c
 *	  A limit on log messages that could otherwise flood the server's log.
 *
 * Times are those of the monotonic clock, because some of the messages are about
 * the wall clock.
 */
#include "postgres.h"

#include "portability/instr_time.h"

#include "log_limit.h"

#define LOG_INTERVAL	(60 * INT64CONST(1000000))	/* us */

bool
sf_log_allowed(SfLogLimit *limit)
{
	uint64		last = pg_atomic_read_u64(limit);
	instr_time	time;
	uint64		now;

	INSTR_TIME_SET_CURRENT(time);
	now = INSTR_TIME_GET_MICROSEC(time);
	if (last != 0 && now < last + LOG_INTERVAL)
		return false;
	return pg_atomic_compare_exchange_u64(limit, &last, now);
}
