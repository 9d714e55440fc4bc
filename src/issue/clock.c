/*
 * clock.c
 *	  Checks the wall clock for jumps forward and steps back.
 *
 * A clock that is set to a wrong year for a moment would move the generators to that year, and
 * callers would wait for years after the clock is corrected.  So the wall clock is compared with
 * the clock that counts from the boot of the machine, and that is never set: their difference is
 * constant, except for corrections of the wall clock.  Shared memory keeps the greatest difference
 * that was accepted, at first the difference when the server started.  A difference that exceeds
 * it is a jump of the clock.  Steps back do not change the greatest difference, so that a clock
 * may return to its previous time.
 *
 * A jump that is not longer than snowflake.max_clock_step is accepted.  So is one from a time
 * before 2010: such a clock is wrong for certain, as one is that has lost its time while the
 * machine was off.  A longer jump is refused until an administrator accepts it, unless it moves the
 * generator by no more than max_clock_step.  It is harmless for this generator then, which was
 * ahead of the clock, and it is accepted for this generator alone.  The correction of a clock that
 * was behind is usually such a jump: it moves the generator only by the time for which that was not
 * used.
 *
 * The boot clock counts while the machine sleeps, but not while a hypervisor
 * has paused it: if a virtual machine was paused for longer than max_clock_step, its clock has to
 * be accepted.
 *
 * Steps back are harmless, since batches start at the cursor, but callers may have to wait, or use
 * the other line of type sno (core/line.h).  Steps are counted and logged.  Shared memory keeps
 * the latest reading, within LATEST_GRAIN.  A reading below it need not be a step back: the
 * session may have taken its reading before the latest one, and not have run since.  So a session
 * reads the clock again after it has read the latest reading, and replaces the latest reading by a
 * swap.  If the second reading is below the latest one too, the clock has stepped back in between,
 * and of all sessions that notice this, only one succeeds with the swap.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "atomic.h"
#include "clocks.h"
#include "core/hot.h"
#include "core/sno.h"
#include "duration.h"
#include "issue/clock.h"
#include "issue/opening_error.h"
#include "issue/reservation.h"
#include "issue/shared.h"
#include "log_limit.h"

/* The least increase of the difference that is written to shared memory. */
#define WORTH_KEEPING	10000	/* us */

/* The least increase of the latest reading that is written to shared memory. */
#define LATEST_GRAIN	1000	/* us */

static void
report_jump(int64 jump, int64 step)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the clock of this server has jumped forward by %s",
				   sf_duration_text(jump)),
			errdetail("The jump is %s longer than \"snowflake.max_clock_step\", which is %s.  The times of new IDs would jump by more than this limit.",
					  sf_duration_text(jump - step), sf_duration_text(step)),
			errhint("Correct the clock.  If it is correct, for example after a pause of a virtual machine, use snowflake_accept_clock(), or, if no database has the extension yet, restart the server.  If a wrong clock is accepted, all later IDs have times after its time."));
}

static void
report_regression(SfGenerator *generator, int64 step)
{
	TimestampTz next = sf_generator_time(generator, sf_generator_position(generator));

	ereport(LOG,
			errmsg("the clock of this server has stepped back by %s",
				   sf_duration_text(step)),
			generator->kind == SF_GENERATOR_SNO ?
			errdetail("No ID is issued twice.  IDs of type sno continue in the other line, or wait if both lines have been used.  This message is logged at most once a minute.") :
			errdetail("No ID is issued twice.  The next Snowflake ID has the time %s, and is issued when the clock is at most %s before that time.  This message is logged at most once a minute.",
					  timestamptz_to_str(next),
					  sf_duration_text(sf_generator_max_ahead(generator))),
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
	sf_atomic_raise(&generator->stats.numbers[SF_COUNTER_MAX_REGRESSION], (uint64) step);
	if (sf_log_allowed(&generator->regression_logged))
		report_regression(generator, step);
}

/* snowflake.max_clock_step, in us; no limit if it is 0. */
static int64
longest_jump(void)
{
	int64		step = pg_atomic_read_u32(&sf_shared_required()->max_clock_step) * INT64CONST(1000);

	return step == 0 ? PG_INT64_MAX : step;
}

/* A jump that is accepted: where its difference is kept, for all generators or for one. */
typedef struct Jump
{
	pg_atomic_uint64 *kept;
	uint64		seen;			/* the stored difference */
} Jump;

/*
 * Judge a jump to a reading of the clock, for a generator that is at a position.  Raises the error
 * if it is refused.
 */
static Jump
judge_jump(SfGenerator *generator, uint64 position, TimestampTz now)
{
	pg_atomic_uint64 *of_all = &sf_shared_required()->clock_difference;
	Jump		all = {of_all, pg_atomic_read_u64(of_all)};
	Jump		one = {&generator->clock_difference,
	pg_atomic_read_u64(&generator->clock_difference)};
	int64		current = sf_clock_difference(now);
	int64		jump = current - (int64) all.seen;
	int64		jump_of_one = current - (int64) one.seen;
	int64		longest = longest_jump();

	if (jump <= longest || now - jump < sf_sno_layout.epoch)
		return all;
	if (jump_of_one > longest && now - sf_generator_time(generator, position) > longest)
		report_jump(Min(jump, jump_of_one), longest);
	return one;
}

/* The position that the generator has reached, or at which it will be opened. */
static uint64
reached_position(SfGenerator *generator)
{
	uint64		position = sf_generator_end(generator);

	return position != 0 ? position : sf_opening_position(generator, 0);
}

static void
check_jump(SfGenerator *generator, TimestampTz now)
{
	int64		current = sf_clock_difference(now);
	int64		of_all = (int64) pg_atomic_read_u64(&sf_shared_required()->clock_difference);
	int64		of_one = (int64) pg_atomic_read_u64(&generator->clock_difference);
	Jump		jump;

	if (current - of_all <= WORTH_KEEPING || current - of_one <= WORTH_KEEPING)
		return;
	do
		jump = judge_jump(generator, reached_position(generator), now);
	while ((int64) jump.seen < current &&
		   !pg_atomic_compare_exchange_u64(jump.kept, &jump.seen, (uint64) current));
}

SF_HOT void
sf_clock_check(SfGenerator *generator, TimestampTz now)
{
	check_jump(generator, now);
	note_reading(generator, now);
}

void
sf_clock_refuse(SfGenerator *generator, uint64 position, TimestampTz now)
{
	(void) judge_jump(generator, position, now);
}

/*
 * The clock is read here, after the cursor: a reading from before other sessions moved the cursor
 * would look like a step back.  If nothing above the cursor is reserved, the line was not used
 * since it was opened or raised, and can be ahead by the reservation from before a crash.
 */
SfLineChoice
sf_clock_choose_line(SfGenerator *generator, uint64 cursor, uint64 reserved_until,
					 uint64 other_cursor, TimestampTz *other)
{
	const SfLayout *layout = &generator->layout;
	TimestampTz now = GetCurrentTimestamp();
	int64		tolerated = sf_generator_max_ahead(generator);

	if (sf_generator_lines(generator) == 1)
		return SF_LINE_KEEP;
	if (reserved_until <= cursor)
		tolerated = sf_reservation_tolerated(generator);
	*other = sf_layout_tick_start(layout, sf_line_last_tick(layout, other_cursor) + 1);
	return sf_line_choose(layout, cursor, other_cursor, sf_layout_tick_floor(layout, now),
						  sf_layout_tick_floor(layout, now + tolerated));
}

/* The differences become less if the clock has stepped back. */
int64
sf_clock_accept(SfShared *shared)
{
	uint64		current = (uint64) sf_clock_difference(GetCurrentTimestamp());
	uint64		before = pg_atomic_exchange_u64(&shared->clock_difference, current);

	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		pg_atomic_write_u64(&shared->generators[i].clock_difference, current);
	return (int64) current - (int64) before;
}
