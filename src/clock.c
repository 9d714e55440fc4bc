/*
 * clock.c
 *	  What the wall clock is up to: jumps forward, steps back.
 *
 * A clock that is set to a wrong year for a moment would take the line of IDs
 * there, and when it is right again callers would wait for years.  So the wall
 * clock is compared with the clock that counts from the boot of the machine,
 * and that nobody sets: their difference is constant but for corrections of the
 * wall clock.  Shared memory keeps the greatest difference that was believed, at
 * first that of the start of the server.  One that exceeds it by more than
 * snowflake.max_clock_step is not believed, until an administrator accepts it; any
 * other that exceeds it is the new greatest.  Steps back leave it as it is, so that
 * a clock may come back to where it was.
 *
 * A jump that takes the line no further than max_clock_step is harmless, however
 * far it is.  And a clock that would be behind the end of the line by more than that,
 * had it not jumped, was wrong before and tells nothing: so one that was behind when
 * the server started may come to be right.
 *
 * The boot clock counts while the machine sleeps, but not while a hypervisor
 * has paused it: a virtual machine that was paused for longer has to be
 * accepted.
 *
 * Steps back are harmless, since leases start at the cursor, but callers may
 * have to wait, so they are counted and logged.  Shared memory keeps the latest
 * reading, give or take LATEST_GRAIN.  A reading below it may be no step back
 * but one that was taken before it, by a backend that has not run since; so a
 * backend reads the clock again after it has read the latest reading, and
 * replaces that by a swap.  If the second reading is below it too, then the
 * clock has gone back in between, and of all who notice one has the swap.
 */
#include "postgres.h"

#include <time.h>

#include "utils/timestamp.h"

#include "clock.h"
#include "log_limit.h"
#include "settings.h"
#include "shared.h"

#ifdef CLOCK_BOOTTIME
#define BOOT_CLOCK CLOCK_BOOTTIME
#else
#define BOOT_CLOCK CLOCK_MONOTONIC
#endif

/* A difference that is greater by less is not worth a write to shared memory. */
#define WORTH_KEEPING	10000	/* us */

/* A reading that is later by less is not worth one either. */
#define LATEST_GRAIN	1000	/* us */

static int64
difference(TimestampTz now)
{
	struct timespec boot;

	clock_gettime(BOOT_CLOCK, &boot);
	return now - ((int64) boot.tv_sec * USECS_PER_SEC + boot.tv_nsec / 1000);
}

int64
sf_clock_difference(void)
{
	return difference(GetCurrentTimestamp());
}

static bool
is_too_far(int64 distance)
{
	return distance > (int64) sf_max_clock_step * 1000;
}

/* The time up to which the line is, or was, reserved. */
static TimestampTz
line_end(SfLine *line)
{
	TimestampTz safe = sf_layout_tick_start(&line->layout, pg_atomic_read_u64(&line->wall_safe));

	return Max(sf_line_time(line, pg_atomic_read_u64(&line->ceiling)), safe);
}

static void
report_jump(int64 jump)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the clock of this server has jumped forward by %lld.%03d s",
				   (long long) (jump / USECS_PER_SEC), (int) (jump % USECS_PER_SEC / 1000)),
			errdetail("No Snowflake ID is issued after a jump of more than snowflake.max_clock_step, %d ms.",
					  sf_max_clock_step),
			errhint("Set the clock right. If it is right, as after a pause of a virtual machine, accept it by \"SELECT snowflake_accept_clock()\"."));
}

static void
report_regression(SfLine *line, int64 step)
{
	TimestampTz next = sf_line_time(line, sf_line_position(line));

	ereport(LOG,
			errmsg("the clock of this server has stepped back by %lld.%03d s",
				   (long long) (step / USECS_PER_SEC), (int) (step % USECS_PER_SEC / 1000)),
			sf_line_has_timelines(line) ?
			errdetail("No sno is repeated: they go on in the other timeline, or wait where both have been used.") :
			errdetail("No Snowflake ID is repeated: the next one has the time %s, and is issued when the clock is %d ms before it.",
					  timestamptz_to_str(next), (int) (sf_line_max_ahead(line) / 1000)),
			errhint("The view pg_stat_snowflake counts such steps; this message comes once a minute at most."),
			errhidestmt(true), errhidecontext(true));
}

static void
note_reading(SfLine *line, TimestampTz now)
{
	uint64		latest = pg_atomic_read_u64(&line->latest_clock);
	bool		first = latest == SF_CLOCK_NOT_SEEN;
	int64		step;

	if (!first && now >= (TimestampTz) latest && now < (TimestampTz) latest + LATEST_GRAIN)
		return;
	pg_read_barrier();
	now = GetCurrentTimestamp();
	if (!pg_atomic_compare_exchange_u64(&line->latest_clock, &latest, (uint64) now) ||
		first || now >= (TimestampTz) latest)
		return;
	step = (TimestampTz) latest - now;
	sf_stats_add(&line->stats, SF_STAT_CLOCK_REGRESSIONS, 1);
	sf_stats_raise(&line->stats, SF_STAT_MAX_REGRESSION, (uint64) step);
	if (sf_log_allowed(&line->regression_logged))
		report_regression(line, step);
}

static void
check_jump(SfLine *line, TimestampTz now)
{
	int64		current = difference(now);
	pg_atomic_uint64 *believed = &sf_shared_required()->clock_difference;
	uint64		seen = pg_atomic_read_u64(believed);

	for (;;)
	{
		int64		jump = current - (int64) seen;

		if (jump <= WORTH_KEEPING)
			return;
		if (sf_max_clock_step > 0 && is_too_far(jump) &&
			is_too_far(now - line_end(line)) && !is_too_far(line_end(line) - (now - jump)))
			report_jump(jump);
		if (pg_atomic_compare_exchange_u64(believed, &seen, (uint64) current))
			return;
	}
}

void
sf_clock_check(SfLine *line, TimestampTz now)
{
	check_jump(line, now);
	note_reading(line, now);
}

int64
sf_clock_accept(SfShared *shared)
{
	int64		current = sf_clock_difference();

	return current - (int64) pg_atomic_exchange_u64(&shared->clock_difference, (uint64) current);
}
