/*
 * clock.c
 *	  Checks the wall clock for jumps forward and steps back.
 *
 * A clock that is set to a wrong year for a moment would move the generators to that year, and
 * callers would wait for years after the clock is corrected.  So the wall clock is compared with
 * the clock that counts from the boot of the machine, and that is never set: their difference is
 * constant, except for corrections of the wall clock.  Shared memory keeps the greatest difference
 * that was accepted, at first that of the start of the server.  A difference that exceeds it by
 * more than snowflake.max_clock_step is refused until an administrator accepts it; a smaller excess
 * makes the difference the new greatest one.  Steps back do not change the greatest difference, so
 * that a clock may return to its previous time.
 *
 * A jump that moves the generator no further than max_clock_step is harmless, however
 * far the clock jumped.  If the clock, without the jump, would be behind the generator by more
 * than max_clock_step, it was wrong before the jump: so a clock that was behind when the server
 * started may be corrected.
 *
 * The boot clock counts while the machine sleeps, but not while a hypervisor
 * has paused it: if a virtual machine was paused for longer than max_clock_step, its clock has to
 * be accepted.
 *
 * Steps back are harmless, since batches start at the cursor, but callers may
 * have to wait, so steps are counted and logged.  Shared memory keeps the latest
 * reading, within LATEST_GRAIN.  A reading below it need not be a step back: the session may have
 * taken its reading before the latest one, and not have run since.  So a session reads the clock
 * again after it has read the latest reading, and replaces the latest reading by a swap.  If the
 * second reading is below the latest one too, the clock has stepped back in between, and of all
 * sessions that notice this, only one succeeds with the swap.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "clocks.h"
#include "core/hot.h"
#include "core/instant.h"
#include "generator/generator.h"
#include "state/shared.h"

/* The least increase of the difference that is written to shared memory. */
#define WORTH_KEEPING	10000	/* us */

/* The least increase of the latest reading that is written to shared memory. */
#define LATEST_GRAIN	1000	/* us */

/* In ms; 0: no check.  The server's value, not that of the session. */
static int64
max_clock_step(void)
{
	return pg_atomic_read_u32(&sf_shared_required()->max_clock_step);
}

static bool
is_too_far(int64 distance)
{
	return distance > max_clock_step() * 1000;
}

/* The time up to which the server has issued IDs, in either phase. */
static TimestampTz
generator_end(SfGenerator *generator)
{
	TimestampTz safe = sf_layout_tick_start(&generator->layout,
											pg_atomic_read_u64(&generator->wall_safe));
	TimestampTz next = sf_generator_time(generator, sf_generator_position(generator));

	return Max(next, safe);
}

static void
report_jump(int64 jump)
{
	char		jump_text[SF_INSTANT_TEXT_SIZE];
	char		step_text[SF_INSTANT_TEXT_SIZE];
	char		excess_text[SF_INSTANT_TEXT_SIZE];
	int64		step = max_clock_step() * 1000;

	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the clock of this server has jumped forward by %s",
				   sf_duration_describe(jump, jump_text)),
			errdetail("The jump is %s longer than \"snowflake.max_clock_step\", which is %s.  The times of new IDs would jump by more than this limit.",
					  sf_duration_describe(jump - step, excess_text),
					  sf_duration_describe(step, step_text)),
			errhint("Correct the clock.  If it is correct, for example after a pause of a virtual machine, use snowflake_accept_clock().  If a wrong clock is accepted, all later IDs have times after its time."));
}

static void
report_regression(SfGenerator *generator, int64 step)
{
	TimestampTz next = sf_generator_time(generator, sf_generator_position(generator));
	char		step_text[SF_INSTANT_TEXT_SIZE];
	char		ahead[SF_INSTANT_TEXT_SIZE];

	ereport(LOG,
			errmsg("the clock of this server has stepped back by %s",
				   sf_duration_describe(step, step_text)),
			sf_generator_has_phases(generator) ?
			errdetail("No ID is issued twice.  IDs of type sno continue in the other phase, or wait if both phases have been used.  This message is logged at most once a minute.") :
			errdetail("No ID is issued twice.  The next Snowflake ID has the time %s, and is issued when the clock is at most %s before that time.  This message is logged at most once a minute.",
					  timestamptz_to_str(next),
					  sf_duration_describe(sf_generator_max_ahead(generator), ahead)),
			errhint("Configure the time service to slew the clock.  The view pg_stat_snowflake counts steps."),
			errhidestmt(true), errhidecontext(true));
}

static void
note_reading(SfGenerator *generator, TimestampTz now)
{
	uint64		latest = pg_atomic_read_u64(&generator->latest_clock);
	bool		first = latest == SF_CLOCK_NOT_SEEN;
	int64		step;

	if (!first && now >= (TimestampTz) latest && now < (TimestampTz) latest + LATEST_GRAIN)
		return;
	pg_read_barrier();
	now = GetCurrentTimestamp();
	if (!pg_atomic_compare_exchange_u64(&generator->latest_clock, &latest, (uint64) now) ||
		first || now >= (TimestampTz) latest)
		return;
	step = (TimestampTz) latest - now;
	sf_counter_add(&generator->stats, SF_COUNTER_CLOCK_REGRESSIONS, 1);
	sf_counter_raise(&generator->stats, SF_COUNTER_MAX_REGRESSION, (uint64) step);
	if (sf_log_allowed(&generator->regression_logged))
		report_regression(generator, step);
}

static void
check_jump(SfGenerator *generator, TimestampTz now)
{
	int64		current = sf_clock_difference(now);
	pg_atomic_uint64 *believed = &sf_shared_required()->clock_difference;
	uint64		seen = pg_atomic_read_u64(believed);

	for (;;)
	{
		int64		jump = current - (int64) seen;

		if (jump <= WORTH_KEEPING)
			return;
		if (max_clock_step() > 0 && is_too_far(jump))
		{
			TimestampTz end = generator_end(generator);

			if (is_too_far(now - end) && !is_too_far(end - (now - jump)))
				report_jump(jump);
		}
		if (pg_atomic_compare_exchange_u64(believed, &seen, (uint64) current))
			return;
	}
}

SF_HOT void
sf_clock_check(SfGenerator *generator, TimestampTz now)
{
	check_jump(generator, now);
	note_reading(generator, now);
}

int64
sf_clock_accept(SfShared *shared)
{
	int64		current = sf_clock_difference(GetCurrentTimestamp());

	return current - (int64) pg_atomic_exchange_u64(&shared->clock_difference, (uint64) current);
}
