/*
 * waits.c
 *	  "P5: A single session can use the whole rate of the layout, and so can five hundred sessions
 *	  together.  Beyond that rate, calls wait."  And of P6: a call waits no longer than
 *	  snowflake.max_wait, and nothing sleeps while what it waits for is free.  And of P8: a session
 *	  that waits for the horizon is woken when a row can be read.
 */
#include "record.h"

#include "core/line.h"

static int64 rate_began,
			rate_ended,
			rate_ids;

void
waits_begin(void)
{
	rate_ids = 0;
}

static void
count_rate(void)
{
	if (rate_ids++ == 0)
		rate_began = now;
	rate_ended = now;
}

/* Sessions that never pause use nine of ten sequence numbers. */
void
oracle_phase_ends(void)
{
	const SfGenerator *generator = generator_of(SF_GENERATOR_BIGINT);
	int64		ticks = (rate_ended - rate_began) / generator->layout.tick_length;
	int64		possible = ticks * (generator->range.max - generator->range.min + 1);

	if (config.rate && !config.spin && ticks > 20 && rate_ids < possible * 9 / 10)
		fail("P5: %lld IDs in %lld ticks, of %lld", (long long) rate_ids, (long long) ticks,
			 (long long) possible);
}

/* IDs of a session that waits, while others never do. */
void
check_starvation(int64 duration)
{
	if (config.rate)
		count_rate();
	if (config.spin && current->number == 0 && duration > 1000000)
		fail("P5: a session that waits has no ID for %lld ms", (long long) duration / 1000);
}

/* Whether the line of sno that is not active was not used at the time that the clock shows. */
bool
other_line_is_free(void)
{
	SfGenerator *generator = generator_of(SF_GENERATOR_SNO);
	uint64		cursor = generator->cursor[~generator->switches.value & 1].value;

	return cursor > 0 && sf_layout_tick_floor(&sf_sno_layout, wall()) >
		(int64) sf_line_last_tick(&sf_sno_layout, cursor);
}

/* Whether nothing but crashes lets the lines of sno be ahead of the clock. */
bool
is_undisturbed(void)
{
	return !config.floor && !config.upgrade && !config.leased && !config.jump && !config.slow_disk &&
		!config.stall;
}

/* A clock that steps back lets a call wait only if both lines were used. */
void
check_other_line(void)
{
	if (call.other_line_is_free && call.steps_back == steps_back && is_undisturbed() &&
		current->waited > microseconds(config.max_ahead) + 1800000)
		fail("P5: a call waited for %lld ms although the other line of sno is free",
			 (long long) current->waited / 1000);
}

/* snowflake.max_wait: sums the sleeps of the call; a write is waited for for 10 ms at least. */
void
check_wait(void)
{
	int64		longest = sf_settings_max_wait < 0 ? 600000 : Max(sf_settings_max_wait, 10);

	if (call.counts && current->waited > microseconds(longest + 5))
		fail("P6: a call waited for %lld ms, with max_wait %d", (long long) current->waited / 1000,
			 sf_settings_max_wait);
	call.counts = false;
}

/*
 * Whether the next row can be read only because a prepared transaction has ended, the generator was
 * changed, or the cursor has passed an ID that the guard has admitted; or a session is about to wake
 * the waiter.
 */
static bool
may_oversleep(void)
{
	for (int i = 0; i < SESSIONS; i++)
		if (processes[i].releasing || processes[i].wakes_others)
			return true;
	return config.floor || config.move_back || config.leased || config.relayout || config.upgrade ||
		config.reload || config.promise || config.guard || finished_at >= call.began || call.run != run;
}

/* The transactions that had ended when the last sleep ended without a signal; 0 if it had one. */
static OF_PROCESS int64 overslept = 0;
static OF_PROCESS int64 slept_until = 0;

/* A sleep of a waiter for the horizon has ended. */
void
oracle_slept(bool signaled)
{
	overslept = signaled || may_oversleep() ? 0 : ends;
	slept_until = now;
}

/* A wait for the horizon has ended.  What held the horizon may have ended after the sleep. */
void
oracle_waited(int64 next_id, int64 horizon)
{
	if (may_oversleep() || released_at >= slept_until)
		return;
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		for (int i = 0; t->state == VISIBLE && t->ended <= overslept && t->prepare == 0 && i < t->rows; i++)
			if (t->database == (int) MyDatabaseId && t->ids[i] >= next_id && t->ids[i] < horizon)
				fail("P8: a session that waits for row %lld was not woken", (long long) t->ids[i]);
}

void
oracle_lwlock_wait(const Process *holder)
{
	if (holder->flushing)
		fail("P6: a process waits without interrupts for one that waits for the disk");
}

void
oracle_lost_wake_up(int process, int lock)
{
	fail("P6: process %d sleeps for lock %d, which is free", process, lock);
}
