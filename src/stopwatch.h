/*
 * stopwatch.h
 *	  How long something has taken, on the monotonic clock.
 */
#ifndef SF_STOPWATCH_H
#define SF_STOPWATCH_H

#include "postgres.h"

#include "portability/instr_time.h"

static inline instr_time
sf_start_stopwatch(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

/* Microseconds since it was started. */
static inline int64
sf_stopwatch(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

#endif							/* SF_STOPWATCH_H */
