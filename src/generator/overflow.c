/*
 * overflow.c
 *	  Ticks whose sequence is used up.
 *
 * max_ahead is meant for ticks that are used up occasionally.  If nine of ten ticks of a second are
 * used up, callers request more IDs than the layout provides, and the administrator should be told.
 *
 * Seconds are examined one after the other.  The session that first uses up a tick that lies a
 * second or more after the beginning of the current second evaluates this second and begins the
 * next one.  So an overflow is noticed after two seconds at the latest.  Ticks that other sessions
 * count at the same moment may be added to the wrong second, which does not matter for the message.
 */
#include "postgres.h"

#include "core/instant.h"
#include "generator/overflow.h"

static void
report_overflow(SfGenerator *generator)
{
	SfSequenceRange range = sf_sequence_range_within(&generator->layout, generator->range);
	char		tick[SF_INSTANT_TEXT_SIZE];

	ereport(LOG,
			sf_generator_has_phases(generator) ?
			errmsg("type sno has been at its limit for a second") :
			errmsg("the Snowflake layout \"%s\" has been at its limit for a second",
				   generator->layout_text),
			errdetail("This server can issue %u IDs in each tick of %s; further calls wait.  This message is logged at most once a minute.",
					  range.max - range.min + 1,
					  sf_duration_describe(generator->layout.tick_length, tick)),
			sf_generator_has_phases(generator) ?
			errhint("See in the view pg_stat_snowflake how long calls have waited.  To issue more IDs, distribute the calls over more servers.") :
			errhint("See in the view pg_stat_snowflake how long calls have waited.  To issue more IDs, distribute the calls over more servers, or plan for a layout with more sequence bits."),
			errhidestmt(true), errhidecontext(true));
}

void
sf_overflow_count(SfGenerator *generator, uint64 tick)
{
	uint64		second = USECS_PER_SEC / generator->layout.tick_length;
	uint64		begin = pg_atomic_read_u64(&generator->overflow_begin);
	uint64		used;

	sf_counter_add(&generator->stats, SF_COUNTER_OVERFLOW_TICKS, 1);
	pg_atomic_fetch_add_u64(&generator->overflow_ticks, 1);

	/* The tick is before the beginning if the generator was moved backward. */
	if (tick >= begin && tick < begin + second)
		return;
	if (!pg_atomic_compare_exchange_u64(&generator->overflow_begin, &begin, tick))
		return;
	used = pg_atomic_exchange_u64(&generator->overflow_ticks, 0);
	if (tick > begin && used * 10 >= (tick - begin) * 9 &&
		sf_log_allowed(&generator->overflow_logged))
		report_overflow(generator);
}
