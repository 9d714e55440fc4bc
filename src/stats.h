/*
 * stats.h
 *	  What the generator has done, counted for the view pg_stat_snowflake.
 */
#ifndef SF_STATS_H
#define SF_STATS_H

#include "postgres.h"

#include "port/atomics.h"
#include "utils/timestamp.h"

/* What is counted; times are in microseconds. */
typedef enum SfStat
{
	SF_STAT_LEASES,
	SF_STAT_IDS_LEASED,
	SF_STAT_OVERFLOW_TICKS,
	SF_STAT_WAITS,
	SF_STAT_WAIT_TIME,
	SF_STAT_CLOCK_REGRESSIONS,
	SF_STAT_MAX_REGRESSION,		/* the greatest, not a sum */
	SF_STAT_REGISTER_WRITES,
	SF_STAT_REGISTER_WRITE_TIME,
} SfStat;

#define SF_STAT_COUNT (SF_STAT_REGISTER_WRITE_TIME + 1)

/*
 * Numbers in shared memory, since the start of the server or the last reset.
 * Changed by atomic operations; nothing but the view reads them, so they need
 * no order among each other.
 */
typedef struct SfStats
{
	pg_atomic_uint64 numbers[SF_STAT_COUNT];
	pg_atomic_uint64 since;		/* TimestampTz */
} SfStats;

/* Make all numbers 0, in new memory. */
static inline void
sf_stats_init(SfStats *stats)
{
	for (int i = 0; i < SF_STAT_COUNT; i++)
		pg_atomic_init_u64(&stats->numbers[i], 0);
	pg_atomic_init_u64(&stats->since, (uint64) GetCurrentTimestamp());
}

static inline void
sf_stats_add(SfStats *stats, SfStat stat, int64 amount)
{
	(void) pg_atomic_fetch_add_u64(&stats->numbers[stat], amount);
}

/* Make a number as great as a value. */
static inline void
sf_stats_raise(SfStats *stats, SfStat stat, uint64 value)
{
	uint64		before = pg_atomic_read_u64(&stats->numbers[stat]);

	while (value > before &&
		   !pg_atomic_compare_exchange_u64(&stats->numbers[stat], &before, value))
		;
}

#endif							/* SF_STATS_H */
