/*
 * clocks.c
 *	  "P2: When an ID is issued, its time is ahead of the server's clock by at most snowflake.max_ahead,
 *	  or behind it by less than one tick plus the duration of the call."  A jump of the clock forward by
 *	  more than snowflake.max_clock_step is refused while the server runs, if it moves the generator
 *	  by more than that.  What one generator accepts for itself alone is refused by the other one.
 */
#include "record.h"

/* Of each kind. */
static TimestampTz greatest_time[2];	/* of an ID, a floor or a lease */
static int64 accepted[2];		/* the greatest difference of the clocks */
static int64 accepted_by_all;
static int	accepting;			/* calls */
int			steps_back;
int64		behind_until;

/*
 * A session can have read the wall clock this long before it compares it with the boot clock, and
 * so take a jump for a shorter one.
 */
#define LATE_READING	2000000

/*
 * Whether the clock is accepted: by all generators, if a jump is not longer than max_clock_step, or by
 * one that it moves by no more than that.
 */
static void
may_accept_clock(SfGeneratorKind kind)
{
	int64		step = microseconds(config.max_clock_step) + LATE_READING;

	if (config.max_clock_step == 0 || wall_offset - accepted_by_all <= step)
		accepted_by_all = Max(accepted_by_all, wall_offset);
	else if (wall_offset - accepted[kind] <= step ||
			 greatest_time[kind] + microseconds(config.max_clock_step) >= wall())
		accepted[kind] = Max(accepted[kind], wall_offset);
}

/* The greatest difference of the clocks that a generator has accepted. */
int64
accepted_difference(SfGeneratorKind kind)
{
	int64		of_all = (int64) ((SfShared *) shmem)->clock_difference.value;
	int64		of_one = (int64) generator_of(kind)->clock_difference.value;

	return Max(of_all, of_one);
}

/* The time of the later cursor of a generator; before it is opened, the epoch of its layout. */
TimestampTz
reached_time(SfGeneratorKind kind)
{
	const SfGenerator *generator = generator_of(kind);

	return sf_generator_time(generator, Max(generator->cursor[0].value, generator->cursor[1].value));
}

/* Times up to this one were issued, or can be. */
void
oracle_time(SfGeneratorKind kind, TimestampTz time)
{
	greatest_time[kind] = Max(greatest_time[kind], time);
	greatest_time[kind] = Max(greatest_time[kind], reached_time(kind));
	may_accept_clock(kind);
}

/* A lease begins or ends: the cursors leave their ticks. */
void
oracle_lease_changes(void)
{
	for (SfGeneratorKind kind = 0; kind < SF_GENERATOR_COUNT; kind++)
	{
		SfGenerator *generator = generator_of(kind);
		uint64		end = Max(generator->cursor[0].value, generator->cursor[1].value);

		if (end > 0)
			oracle_time(kind, sf_generator_time(generator, end) + generator->layout.tick_length);
	}
}

void
check_time(SfGeneratorKind kind, TimestampTz time, int64 tick)
{
	int64		ahead = microseconds(config.max_ahead);
	int64		step = microseconds(config.max_clock_step);
	int64		difference = Max(accepted[kind], accepted_by_all);

	if (time > current->greatest_clock + ahead)
		fail("P2: an ID is %lld us ahead of the clock", (long long) (time - current->greatest_clock));
	if (time <= current->least_clock - tick)
		fail("P2: an ID is %lld us behind the clock", (long long) (current->least_clock - time));
	if (step > 0 && time > Max(now + difference, greatest_time[kind]) + step + ahead + tick)
		fail("P2: an ID after a jump of the clock by %lld us", (long long) (wall_offset - difference));
}

/* The clock has jumped by more than max_clock_step, and moves the generator by more than that. */
bool
jump_is_right(void)
{
	int64		step = microseconds(config.max_clock_step);
	int64		difference = accepted_difference(call.kind);

	/* Another session can accept a clock meanwhile. */
	difference = Min(difference, call.difference);
	return step > 0 && current->greatest_clock - call.began - difference > step &&
		current->greatest_clock - call.reached > step;
}

static void
accept_clock(void)
{
	accepted_by_all = Max(accepted_by_all, wall_offset);
}

/* The call accepts the clock at some moment before it ends, of one generator before the other. */
void
oracle_acceptance_begins(void)
{
	call.accepts = true;
	accepting++;
	accept_clock();
}

void
oracle_acceptance_ends(void)
{
	call.accepts = false;
	accepting--;
	accept_clock();
}

/* An administrator or a time service sets the clock. */
void
oracle_clock_set(int64 by)
{
	wall_offset += by;
	if (accepting > 0)
		accept_clock();
	if (by < 0)
	{
		steps_back++;
		behind_until = Max(behind_until, now) - by + microseconds(config.max_ahead + 1000);
	}
	for (int i = NUMBER(TOCK); i <= NUMBER(BIGINT); i++)
		if (i == NUMBER(TOCK) || i == NUMBER(TICK) || i == NUMBER(BIGINT))
			oracle_time(i == NUMBER(BIGINT) ? SF_GENERATOR_BIGINT : SF_GENERATOR_SNO, end_of(i));
}

/* CREATE EXTENSION in another database checks the clock for the generator of bigint. */
void
oracle_creation_begins(void)
{
	call.reached = reached_time(SF_GENERATOR_BIGINT);
	call.difference = accepted_difference(SF_GENERATOR_BIGINT);
}

TimestampTz
oracle_greatest_time(void)
{
	return Max(greatest_time[0], greatest_time[1]);
}

void
clocks_begin(void)
{
	steps_back = 0;
	behind_until = 0;
	for (int kind = 0; kind < SF_GENERATOR_COUNT; kind++)
		greatest_time[kind] = Max(START, config.layouts[0].epoch);
}

void
clocks_start(void)
{
	accepted[0] = accepted[1] = accepted_by_all = wall_offset;
	accepting = 0;
}
