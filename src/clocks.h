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

#endif							/* SF_CLOCKS_H */
