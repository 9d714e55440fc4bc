/*
 * wait.c
 *	  Waits for the clock, for a reservation, and for the registry.
 *
 * The length of a wait is measured by the boot clock (clocks.h).  The wait ends at an instant of
 * the wall clock, which may be set meanwhile.  So a wait is divided into slices, and the caller
 * reads the clock between them.
 *
 * A session waits on its latch from 1 ms, which ends at once when the session is interrupted.  It
 * sleeps below that, since latches count in milliseconds, and the kernel's timer is late by about
 * TIMER_SLACK.  It spins below TIMER_SLACK, and reads the clock in each round.
 *
 * Callers that may run ahead of the clock (snowflake.max_ahead) do not wake as soon as they may
 * continue, but when a quarter of their leeway is free again, at most MAX_SLACK later.  So a server
 * at its limit wakes its backends once every few ticks and not once a tick.  No ID is lost by this,
 * because the ticks through which they slept are still ahead of the clock.
 *
 * A session that sleeps must not be starved by sessions that do not sleep: callers that retry
 * continually, for example with a max_wait of 0, would find each tick as soon as it is free.  So a
 * session that waits publishes the end of its wait (yield_until), and until then other sessions may
 * be ahead of the clock by only half of max_ahead.  The other half is for sessions that have
 * waited; among these, a session that has lost once wakes in time.  No ID is lost by this, since
 * that half is still ahead of the clock.  If a session ends with an error, its yield_until expires.
 * With a max_ahead of 0 there are no halves.
 *
 * A session that waits for another one to write the reservation waits for at least SHORT_WRITE,
 * even with a max_wait of 0: on most disks a write takes less, and without this many sessions that
 * begin at once would fail.
 *
 * A session whose swap has failed spins for a random time before it tries again (core/backoff.h).
 *
 * max_ahead is meant for ticks that are used up occasionally.  If nine of ten ticks of a second are
 * used up, callers request more IDs than the layout provides, and the administrator should be told.
 * Seconds are examined one after the other.  The session that first uses up a tick that lies a
 * second or more after the beginning of the current second evaluates this second and begins the
 * next one.  So an overflow is noticed after two seconds at the latest.  Ticks that other sessions
 * count at the same moment may be added to the wrong second, which does not matter for the message.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/spin.h"
#include "utils/wait_event.h"

#include "clocks.h"
#include "core/backoff.h"
#include "core/batch.h"
#include "core/hot.h"
#include "duration.h"
#include "issue/lease_error.h"
#include "issue/opening_error.h"
#include "issue/wait.h"
#include "log_limit.h"
#include "settings.h"
#include "wait_event.h"

#define TIMER_SLACK		50		/* us */
#define MAX_SLACK		5000	/* us */
#define TIME_TO_WAKE	5000	/* us */
#define MAX_SLICE		100000	/* us */
#define OTHERS_SLICE	10000	/* us */
#define SHORT_WRITE		10000	/* us */
#define LONGEST_YIELD	(MAX_SLICE + TIME_TO_WAKE)	/* us */

/* If the clock is at least this far behind, the cause is not that too many IDs were requested. */
#define FAR_BEHIND		60000000	/* us */

static const char *
max_wait_text(void)
{
	return sf_duration_text((int64) sf_settings_max_wait * 1000);
}

/* The floor that an administrator has set, if callers wait for it; otherwise 0. */
static TimestampTz
future_floor(SfGenerator *generator)
{
	TimestampTz floor = (TimestampTz) pg_atomic_read_u64(&generator->floor);

	return floor > GetCurrentTimestamp() + sf_generator_max_ahead(generator) ? floor : 0;
}

/* A floor is the cause if there is one.  Otherwise there can be several causes. */
static int
detail_too_long(SfGenerator *generator, int64 missing)
{
	const char *wait = sf_duration_text(missing);
	const char *ahead = sf_duration_text(sf_generator_max_ahead(generator));
	TimestampTz floor = future_floor(generator);

	if (floor != 0)
		return errdetail("The next ID can be issued in %s.  The floor was set to %s by %s(), and the time of an ID can be at most %s ahead of the system clock.",
						 wait, timestamptz_to_str(floor), sf_floor_function(generator->kind),
						 ahead);
	if (missing > FAR_BEHIND)
		return errdetail("The next ID can be issued in %s.  The time of an ID can be at most %s ahead of the system clock.  The clock is behind, was ahead when earlier IDs were issued, or a floor in the future was set before the last start.",
						 wait, ahead);
	return errdetail("The next ID can be issued in %s.  The time of an ID can be at most %s ahead of the system clock.  Sessions request more IDs than the layout has in a tick, or the clock was set back.",
					 wait, ahead);
}

static int
hint_too_long(SfGenerator *generator, int64 missing)
{
	const char *function = sf_back_function(generator->kind);

	if (future_floor(generator) != 0)
		return errhint("Wait, or use %s() with an earlier time and restart the server.  If IDs with later times than that exist, the same IDs are issued again.",
					   function);
	if (missing > FAR_BEHIND)
		return errhint("Correct the clock if it is behind.  Otherwise wait, or use %s() with an earlier time and restart the server.  If IDs with later times than that exist, the same IDs are issued again.",
					   function);
	return errhint("To wait longer, increase \"snowflake.max_wait\".");
}

static void
report_too_long(SfGenerator *generator, int64 missing)
{
	ereport(ERROR,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg("could not generate a %s ID within %s", sf_generator_name(generator),
				   max_wait_text()),
			detail_too_long(generator, missing),
			hint_too_long(generator, missing));
}

void
sf_wait_begin(SfWait *wait)
{
	if (wait->since == 0)
		wait->since = sf_time_since_boot();
}

static void
begin_and_count(SfGenerator *generator, SfWait *wait)
{
	sf_wait_begin(wait);
	if (!wait->counted)
		sf_counter_add(&generator->stats, SF_COUNTER_WAITS, 1);
	wait->counted = true;
}

/* The microseconds for which this ID may still wait. */
static int64
time_left(const SfWait *wait)
{
	if (sf_settings_max_wait < 0)
		return PG_INT64_MAX;
	return (int64) sf_settings_max_wait * 1000 - sf_time_since(wait->since);
}

static void
sleep_and_count(SfGenerator *generator, int64 remaining, SfWaitEvent event)
{
	int64		before = sf_time_since_boot();

	if (remaining >= 1000)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (remaining / 1000), sf_wait_event(event));
		ResetLatch(MyLatch);
	}
	else
	{
		pgstat_report_wait_start(sf_wait_event(event));
		pg_usleep((long) remaining);
		pgstat_report_wait_end();
	}
	sf_counter_add(&generator->stats, SF_COUNTER_WAIT_TIME, sf_time_since(before));
}

/*
 * Whether other sessions have to yield; a request from before the clock was set back does not
 * count.
 */
static bool
is_asked(uint64 until, TimestampTz now)
{
	return (TimestampTz) until > now && (TimestampTz) until <= now + LONGEST_YIELD;
}

SF_HOT int64
sf_wait_allowance(SfGenerator *generator, const SfWait *wait, TimestampTz now)
{
	int64		ahead = sf_generator_max_ahead(generator);

	if (!wait->slept && is_asked(pg_atomic_read_u64(&generator->yield_until), now))
		ahead /= 2;
	return ahead;
}

/* Ask other sessions to leave free positions to sessions that have waited, for this many us. */
static void
ask_to_yield(SfGenerator *generator, SfWait *wait, TimestampTz now, int64 time)
{
	uint64		current = pg_atomic_read_u64(&generator->yield_until);
	TimestampTz until = now + time;

	while (!is_asked(current, now) || (TimestampTz) current < until)
	{
		if (pg_atomic_compare_exchange_u64(&generator->yield_until, &current, (uint64) until))
		{
			wait->yield_until = until;
			break;
		}
	}
}

void
sf_wait_for_clock(SfGenerator *generator, SfWait *wait, TimestampTz instant)
{
	TimestampTz now = GetCurrentTimestamp();
	int64		missing = instant - now;
	int64		quarter = sf_generator_max_ahead(generator) / 4;
	int64		slack = wait->slept ? 0 : Min(quarter, MAX_SLACK);
	int64		remaining;

	if (missing <= 0)
		return;
	begin_and_count(generator, wait);
	if (time_left(wait) <= 0)
		report_too_long(generator, missing);
	remaining = Min(Min(missing + slack, time_left(wait)), MAX_SLICE);
	if (remaining >= TIMER_SLACK)
	{
		ask_to_yield(generator, wait, now, remaining + TIME_TO_WAKE);
		sleep_and_count(generator, remaining, SF_WAIT_CLOCK);
		wait->slept = true;
	}
	CHECK_FOR_INTERRUPTS();
}

SF_HOT void
sf_wait_end(SfGenerator *generator, const SfWait *wait)
{
	uint64		mine = (uint64) wait->yield_until;

	if (mine != 0)
		(void) pg_atomic_compare_exchange_u64(&generator->yield_until, &mine, 0);
}

void
sf_back_off(uint32 failed)
{
	int64		time = (int64) pg_prng_uint64_range(&pg_global_prng_state, 0,
													sf_longest_backoff(failed));
	int64		begin = sf_time_since_boot();

	while (sf_time_since(begin) < time)
		SPIN_DELAY();
}

/*
 * The process that holds the lock is likely to write a reservation.  The disk is slow, or the
 * process was stopped.
 */
static void
report_slow(SfGenerator *generator, int holder)
{
	ereport(ERROR,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg("could not write the reservation of %s IDs within %s",
				   sf_generator_name(generator), max_wait_text()),
			holder != 0 ?
			errdetail("The process with PID %d is writing the reservation to WAL.", holder) :
			errdetail("The reservation reached the disk after its time had passed."),
			errhint("Check the disk of \"pg_wal\".  To wait longer, increase \"snowflake.max_wait\"."));
}

void
sf_wait_limit(SfGenerator *generator, const SfWait *wait)
{
	if (time_left(wait) <= 0)
		report_slow(generator, 0);
}

void
sf_wait_for_writer(SfGenerator *generator, SfWait *wait)
{
	int64		before = sf_time_since_boot();
	int64		remaining;

	begin_and_count(generator, wait);
	remaining = Max(time_left(wait), SHORT_WRITE - sf_time_since(wait->since));
	if (remaining <= 0)
		report_slow(generator, sf_lock_holder(&generator->lock));
	sf_lock_await(&generator->lock, remaining);
	sf_counter_add(&generator->stats, SF_COUNTER_WAIT_TIME, sf_time_since(before));
}

void
sf_wait_and_lock(SfGenerator *generator)
{
	SfWait		wait = {0};

	while (!sf_lock_try(&generator->lock))
		sf_wait_for_writer(generator, &wait);
}

void
sf_wait_for_lease(SfShared *shared, SfGenerator *generator, SfWait *wait)
{
	sf_refuse_moved_back(generator);
	begin_and_count(generator, wait);
	if (!sf_lease_hurry(&shared->lease) || time_left(wait) <= 0)
		sf_lease_report_none(&shared->lease, sf_generator_name(generator));
	sleep_and_count(generator, Min(OTHERS_SLICE, time_left(wait)), SF_WAIT_LEASE);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Ticks that are used up
 */

static void
report_overflow(SfGenerator *generator)
{
	ereport(LOG,
			generator->kind == SF_GENERATOR_SNO ?
			errmsg("type sno has been at its limit for a second") :
			errmsg("the Snowflake layout \"%s\" has been at its limit for a second",
				   generator->layout_text),
			errdetail("This server can issue %u IDs in each tick of %s; further calls wait.  This message is logged at most once a minute.",
					  generator->range.max - generator->range.min + 1,
					  sf_duration_text(generator->layout.tick_length)),
			generator->kind == SF_GENERATOR_SNO ?
			errhint("To issue more IDs, distribute the calls over more servers.  The view pg_stat_snowflake shows how long calls have waited.") :
			errhint("To issue more IDs, distribute the calls over more servers, or plan for a layout with more sequence bits.  The view pg_stat_snowflake shows how long calls have waited."),
			errhidestmt(true), errhidecontext(true));
}

void
sf_wait_note_used_up(SfGenerator *generator, uint64 tick)
{
	uint64		second = USECS_PER_SEC / generator->layout.tick_length;
	uint64		begin = pg_atomic_read_u64(&generator->overflow_begin);
	uint64		used;

	sf_counter_add(&generator->stats, SF_COUNTER_OVERFLOW_TICKS, 1);
	pg_atomic_fetch_add_u64(&generator->overflow_ticks, 1);

	/* The tick is before the beginning in the line of sno that is behind. */
	if (tick >= begin && tick < begin + second)
		return;
	if (!pg_atomic_compare_exchange_u64(&generator->overflow_begin, &begin, tick))
		return;
	used = pg_atomic_exchange_u64(&generator->overflow_ticks, 0);
	if (tick > begin && used * 10 >= (tick - begin) * 9 &&
		sf_log_allowed(&generator->overflow_logged))
		report_overflow(generator);
}
