/*
 * clocks.c
 *	  "P2: When an ID is issued, its time is at most snowflake.max_ahead ahead of the server's clock,
 *	  and less than a tick plus the duration of the call behind it."  A jump of the clock forward by
 *	  more than snowflake.max_clock_step is refused while the server runs, if it moves the generator
 *	  by more than that.
 */
#include "record.h"

static TimestampTz greatest_time;	/* of an ID, a floor or a lease */
static int64 accepted;			/* the greatest difference of the clocks */
TimestampTz reached[2];
int			steps_back;
int64		behind_until;

/*
 * Times up to this one were issued, or can be.  A jump of the clock is accepted if it lands at most
 * max_clock_step after the generator, and, as documented, if the clock was more than that behind.
 */
#define SHORT_STEP	3000000		/* leases, ticks and max_ahead move a
								 * generator as far */

void
oracle_time(TimestampTz time)
{
	int64		step = microseconds(config.max_clock_step);
	int64		difference = (int64) ((SfShared *) shmem)->clock_difference.value;
	bool		behind_is_enough = left_out[step <= SHORT_STEP ? ANY_JUMP_AFTER_CRASH : ANY_JUMP];

	greatest_time = Max(greatest_time, time);
	if (greatest_time + step >= wall() ||
		(behind_is_enough && (step <= SHORT_STEP || greatest_time - (now + difference) > step)))
		accepted = Max(accepted, wall_offset);
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
			oracle_time(sf_generator_time(generator, end) + generator->layout.tick_length);
	}
}

void
check_time(TimestampTz time, int64 tick)
{
	int64		ahead = microseconds(config.max_ahead);
	int64		step = microseconds(config.max_clock_step);

	if (time > current->greatest_clock + ahead)
		fail("P2: an ID is %lld us ahead of the clock", (long long) (time - current->greatest_clock));
	if (time <= current->least_clock - tick)
		fail("P2: an ID is %lld us behind the clock", (long long) (current->least_clock - time));
	if (step > 0 && time > Max(now + accepted, greatest_time) + step + ahead + tick)
		fail("P2: an ID after a jump of the clock by %lld us", (long long) (wall_offset - accepted));
}

/* It moves the generator by more than max_clock_step, which was not more than that ahead. */
bool
jump_is_right(void)
{
	int64		step = microseconds(config.max_clock_step);
	int64		difference = (int64) ((SfShared *) shmem)->clock_difference.value;

	return step > 0 && current->greatest_clock - call.reached > step &&
		call.reached - (now + difference) <= step;
}

void
oracle_clock_accepted(void)
{
	accepted = Max(accepted, wall_offset);
}

/*
 * A session can have read the wall clock this long before it compares it with the boot clock, and
 * so take a jump for a shorter one.
 */
#define LATE_READING	2000000

/* An administrator or a time service sets the clock. */
void
oracle_clock_set(int64 by)
{
	int64		step = microseconds(config.max_clock_step);

	wall_offset += by;
	if (by < 0)
	{
		steps_back++;
		behind_until = Max(behind_until, now) - by + microseconds(config.max_ahead + 1000);
	}
	for (int i = NUMBER(TOCK); i <= NUMBER(BIGINT); i++)
		if (i == NUMBER(TOCK) || i == NUMBER(TICK) || i == NUMBER(BIGINT))
			oracle_time((TimestampTz) (in_memory[i] + (uint64) SF_UNIX_EPOCH));
	if (step == 0 || wall_offset - accepted <= step + LATE_READING)
		accepted = Max(accepted, wall_offset);
}

/*
 * CREATE EXTENSION in another database checks the clock, also if the generator of bigint is not open:
 * such a generator has reached the beginning of its layout, and so each long jump moves it.
 */
void
oracle_creation_begins(void)
{
	const SfGenerator *generator = generator_of(SF_GENERATOR_BIGINT);

	call.reached = generator->cursor[0].value == 0 ? generator->layout.epoch :
		reached[SF_GENERATOR_BIGINT];
}

TimestampTz
oracle_greatest_time(void)
{
	return greatest_time;
}

void
clocks_begin(void)
{
	steps_back = 0;
	behind_until = 0;
	greatest_time = Max(START, config.layouts[0].epoch);
}

void
clocks_start(void)
{
	accepted = wall_offset;
	reached[SF_GENERATOR_BIGINT] = end_of(NUMBER(BIGINT));
	reached[SF_GENERATOR_SNO] = Max(end_of(NUMBER(TICK)), end_of(NUMBER(TOCK)));
}
