/*
 * counters.h
 *	  Counters of a generator, for the view pg_stat_snowflake.
 */
#ifndef SF_COUNTERS_H
#define SF_COUNTERS_H

#include "postgres.h"

#include "port/atomics.h"
#include "utils/timestamp.h"

/* The counters; times are in microseconds. */
typedef enum SfCounter
{
	SF_COUNTER_BATCHES,
	SF_COUNTER_IDS_ALLOCATED,
	SF_COUNTER_OVERFLOW_TICKS,
	SF_COUNTER_WAITS,
	SF_COUNTER_WAIT_TIME,
	SF_COUNTER_CLOCK_REGRESSIONS,
	SF_COUNTER_MAX_REGRESSION,	/* the greatest, not a sum */
	SF_COUNTER_RESERVATION_WRITES,
	SF_COUNTER_RESERVATION_WRITE_TIME,
} SfCounter;

#define SF_COUNTER_COUNT (SF_COUNTER_RESERVATION_WRITE_TIME + 1)

/*
 * Numbers in shared memory, since the start of the server or the last reset.
 * Changed by atomic operations; only the view reads them, so they need no order
 * among each other.
 */
typedef struct SfCounters
{
	pg_atomic_uint64 numbers[SF_COUNTER_COUNT];
	pg_atomic_uint64 since;		/* TimestampTz */
} SfCounters;

/* Make all numbers 0, in new memory. */
static inline void
sf_counters_init(SfCounters *counters)
{
	for (int i = 0; i < SF_COUNTER_COUNT; i++)
		pg_atomic_init_u64(&counters->numbers[i], 0);
	pg_atomic_init_u64(&counters->since, (uint64) GetCurrentTimestamp());
}

static inline void
sf_counter_add(SfCounters *counters, SfCounter counter, int64 amount)
{
	(void) pg_atomic_fetch_add_u64(&counters->numbers[counter], amount);
}

/* Set a number to a value if the value is greater. */
static inline void
sf_counter_raise(SfCounters *counters, SfCounter counter, uint64 value)
{
	uint64		before = pg_atomic_read_u64(&counters->numbers[counter]);

	while (value > before &&
		   !pg_atomic_compare_exchange_u64(&counters->numbers[counter], &before, value))
		;
}

#endif							/* SF_COUNTERS_H */
