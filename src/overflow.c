/*
 * overflow.c
 *	  Ticks whose sequence is used up.
 *
 * A tick that is used up now and then is what max_ahead is for.  When it is so
 * with nine of ten ticks for a second, callers are asking for more than the
 * layout has, and the administrator should know.
 *
 * Seconds are looked at one after the other.  The one who first uses up a tick
 * that lies a second or more after the beginning of the one looked at, judges it
 * and begins the next.  So an overflow is noticed after two seconds at the latest.
 * What others count in the moment between may go to the wrong second, which the
 * message can bear.
 */
#include "postgres.h"

#include "overflow.h"

static void
report_overflow(SfLine *line)
{
	SfSequenceRange range = sf_sequence_range_within(&line->layout, line->range);

	ereport(LOG,
			sf_line_has_timelines(line) ?
			errmsg("type sno has been at its limit for a second") :
			errmsg("the Snowflake layout \"%s\" has been at its limit for a second",
				   line->layout_text),
			errdetail("This server has %u IDs in each tick of %lld us. Callers who ask for more wait.",
					  range.max - range.min + 1, (long long) line->layout.tick_length),
			sf_line_has_timelines(line) ?
			errhint("The view pg_stat_snowflake tells how long callers have waited; this message comes once a minute at most.") :
			errhint("A layout with more sequence bits has more IDs. The view pg_stat_snowflake tells how long callers have waited; this message comes once a minute at most."),
			errhidestmt(true), errhidecontext(true));
}

void
sf_overflow_count(SfLine *line, uint64 tick)
{
	uint64		second = USECS_PER_SEC / line->layout.tick_length;
	uint64		begin = pg_atomic_read_u64(&line->overflow_begin);
	uint64		used;

	sf_stats_add(&line->stats, SF_STAT_OVERFLOW_TICKS, 1);
	pg_atomic_fetch_add_u64(&line->overflow_ticks, 1);

	/* It is before the beginning if the line was moved back. */
	if (tick >= begin && tick < begin + second)
		return;
	if (!pg_atomic_compare_exchange_u64(&line->overflow_begin, &begin, tick))
		return;
	used = pg_atomic_exchange_u64(&line->overflow_ticks, 0);
	if (tick > begin && used * 10 >= (tick - begin) * 9 &&
		sf_log_allowed(&line->overflow_logged))
		report_overflow(line);
}
