/*
 * clocks.h
 *	  A clock that is never set, the time since the machine booted, and a limit on log messages
 *	  that could otherwise flood the server's log.
 *
 * PostgreSQL's instr_time is not used: from 19 on it can be the processor's time stamp counter,
 * which can be set back by a hypervisor or differ between processors, and which sessions can
 * choose by a setting.
 */
#ifndef SF_CLOCKS_H
#define SF_CLOCKS_H

#include "postgres.h"

#include <time.h>

#include "port/atomics.h"
#include "utils/timestamp.h"

#ifdef CLOCK_BOOTTIME
#define SF_BOOT_CLOCK CLOCK_BOOTTIME
#else
#define SF_BOOT_CLOCK CLOCK_MONOTONIC
#endif

/* Microseconds since the machine booted. */
static inline int64
sf_time_since_boot(void)
{
	struct timespec boot;

	clock_gettime(SF_BOOT_CLOCK, &boot);
	return (int64) boot.tv_sec * USECS_PER_SEC + boot.tv_nsec / 1000;
}

/*
 * The difference, in microseconds, of a reading of the wall clock and the time since the
 * machine booted.  It changes only if the wall clock is corrected.
 */
static inline int64
sf_clock_difference(TimestampTz now)
{
	return now - sf_time_since_boot();
}

/* Microseconds since an earlier sf_time_since_boot(). */
static inline int64
sf_time_since(int64 start)
{
	return sf_time_since_boot() - start;
}

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

#endif							/* SF_CLOCKS_H */
