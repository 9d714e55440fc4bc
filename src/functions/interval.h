/*
 * interval.h
 *	  An interval of a number of microseconds, as a datum.
 */
#ifndef SF_INTERVAL_H
#define SF_INTERVAL_H

#include "postgres.h"

#include "utils/timestamp.h"

static inline Datum
sf_interval(int64 microseconds)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = microseconds;
	return IntervalPGetDatum(interval);
}

#endif							/* SF_INTERVAL_H */
