/*
 * clocks.h
 *	  Clocks that are never set: a stopwatch, and the time since the machine booted.
 */
#ifndef SF_CLOCKS_H
#define SF_CLOCKS_H

#include "postgres.h"

#include <time.h>

#include "portability/instr_time.h"
#include "utils/timestamp.h"

#ifdef CLOCK_BOOTTIME
#define SF_BOOT_CLOCK CLOCK_BOOTTIME
#else
#define SF_BOOT_CLOCK CLOCK_MONOTONIC
#endif

/*
 * The difference, in microseconds, of a reading of the wall clock and the time since the
 * machine booted.  It changes only if the wall clock is corrected.
 */
static inline int64
sf_clock_difference(TimestampTz now)
{
	struct timespec boot;

	clock_gettime(SF_BOOT_CLOCK, &boot);
	return now - ((int64) boot.tv_sec * USECS_PER_SEC + boot.tv_nsec / 1000);
}

static inline instr_time
sf_start_stopwatch(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

/* Microseconds since the stopwatch was started. */
static inline int64
sf_stopwatch(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

#endif							/* SF_CLOCKS_H */
