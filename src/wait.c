/*
 * wait.c
 *	  Waiting for the clock, for who has locked the register, and for the registry.
 *
 * How long a wait is, is measured on the monotonic clock; what it waits for is
 * an instant of the wall clock, which may be set meanwhile.  So a wait is cut
 * into slices, and the caller looks at the clock between them.
 *
 * A slice of a millisecond and more is a latch wait, which ends at once when
 * the backend is interrupted.  Latches count in milliseconds, so what remains
 * below one is slept through with the kernel's timer, which is off by about
 * TIMER_SLACK; and what remains below that is spun away, with a look at the
 * clock in each round.
 *
 * Callers that may run ahead of the clock (snowflake.max_ahead) do not wake as
 * soon as they may go on, but when half of their leeway is free again, at most
 * MAX_SLACK later: so a server at its limit wakes its backends once every few
 * ticks and not once a tick, and no ID is lost by it, because the ticks they
 * slept through are still ahead of the clock.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"

#include "compat.h"
#include "settings.h"
#include "stopwatch.h"
#include "wait.h"

#define TIMER_SLACK		50		/* us */
#define MAX_SLACK		5000	/* us */
#define MAX_SLICE		100		/* ms */
#define OTHERS_SLICE	10000	/* us */

static void
report_too_long(int64 missing)
{
	ereport(ERROR,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg("no Snowflake ID became free within %d ms", sf_max_wait),
			errdetail("The next free ID may be issued in %lld.%03d ms by the clock of this server, when its time is %d ms ahead of it.",
					  (long long) (missing / 1000), (int) (missing % 1000),
					  sf_max_ahead),
			errhint("Either more IDs are asked for than the layout has in a tick, or the clock was set back. Raise snowflake.max_wait to wait longer."));
}

static void
report_locked(void)
{
	ereport(ERROR,
			errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			errmsg("the register of Snowflake IDs has been locked for %d ms", sf_max_wait),
			errdetail("It is a replication origin, and somebody is dropping one."),
			errhint("Look in pg_locks for who has locked pg_replication_origin. Raise snowflake.max_wait to wait longer."));
}

static uint32
wait_event(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = sf_wait_event("SnowflakeClock");
	return event;
}

static void
sleep_slice(int64 remaining)
{
	if (remaining >= 1000)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min(remaining / 1000, MAX_SLICE), wait_event());
		ResetLatch(MyLatch);
	}
	else
	{
		pgstat_report_wait_start(wait_event());
		pg_usleep((long) remaining);
		pgstat_report_wait_end();
	}
}

static void
begin(SfLine *line, SfWait *wait)
{
	if (wait->begun)
		return;
	wait->begun = true;
	wait->since = sf_start_stopwatch();
	sf_stats_add(&line->stats, SF_STAT_WAITS, 1);
}

/* Microseconds that this ID may still wait for. */
static int64
left(const SfWait *wait)
{
	if (sf_max_wait < 0)
		return PG_INT64_MAX;
	return (int64) sf_max_wait * 1000 - sf_stopwatch(wait->since);
}

static void
sleep_and_count(SfLine *line, int64 remaining)
{
	instr_time	before = sf_start_stopwatch();

	sleep_slice(remaining);
	sf_stats_add(&line->stats, SF_STAT_WAIT_TIME, sf_stopwatch(before));
}

void
sf_wait_for_clock(SfLine *line, SfWait *wait, TimestampTz instant)
{
	int64		missing = instant - GetCurrentTimestamp();
	int64		slack = Min((int64) sf_max_ahead * 1000 / 2, MAX_SLACK);
	int64		remaining = missing + slack;

	if (missing <= 0)
		return;
	begin(line, wait);
	if (left(wait) <= 0)
		report_too_long(missing);
	remaining = Min(remaining, left(wait));
	if (remaining >= TIMER_SLACK)
		sleep_and_count(line, remaining);
	CHECK_FOR_INTERRUPTS();
}

void
sf_wait_for_register(SfLine *line, SfWait *wait)
{
	begin(line, wait);
	if (left(wait) <= 0)
		report_locked();
	sleep_and_count(line, OTHERS_SLICE);
	CHECK_FOR_INTERRUPTS();
}

void
sf_wait_for_span(SfShared *shared, SfLine *line, SfWait *wait)
{
	begin(line, wait);
	if (left(wait) <= 0)
		sf_span_report_none(shared, line);
	sf_span_hurry(shared, line);
	sleep_and_count(line, OTHERS_SLICE);
	CHECK_FOR_INTERRUPTS();
}
