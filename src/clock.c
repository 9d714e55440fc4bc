/*
 * clock.c
 *	  A guard against wall clocks that jump far forward.
 *
 * A clock that is set to a wrong year for a moment would take the line of IDs
 * there, and when it is right again callers would wait for years.  So the wall
 * clock is compared with the clock that counts from the boot of the machine,
 * and that nobody sets: their difference is constant but for corrections of the
 * wall clock.  Shared memory keeps the greatest difference that was believed.
 * One that exceeds it by more than snowflake.max_clock_step is not believed,
 * until an administrator accepts it; any other that exceeds it is the new
 * greatest.  Steps back leave it as it is, so that a clock may come back to
 * where it was.
 *
 * A jump that takes the line no further than max_clock_step is harmless, however
 * far it is: so is one by which a clock that was behind when the server started
 * comes to be right.
 *
 * The boot clock counts while the machine sleeps, but not while a hypervisor
 * has paused it: a virtual machine that was paused for longer has to be
 * accepted.
 */
#include "postgres.h"

#include <time.h>

#include "utils/timestamp.h"

#include "clock.h"
#include "settings.h"

#ifdef CLOCK_BOOTTIME
#define BOOT_CLOCK CLOCK_BOOTTIME
#else
#define BOOT_CLOCK CLOCK_MONOTONIC
#endif

/* A difference that is greater by less is not worth a write to shared memory. */
#define WORTH_KEEPING	10000	/* us */

static int64
difference(TimestampTz now)
{
	struct timespec boot;

	clock_gettime(BOOT_CLOCK, &boot);
	return now - ((int64) boot.tv_sec * USECS_PER_SEC + boot.tv_nsec / 1000);
}

static bool
is_too_far(int64 distance)
{
	return distance > (int64) sf_max_clock_step * 1000;
}

/* The time up to which the line is reserved. */
static TimestampTz
line_end(SfShared *shared)
{
	return sf_layout_tick_start(&shared->layout,
								sf_position_tick(&shared->layout,
												 pg_atomic_read_u64(&shared->ceiling)));
}

static void
report_jump(int64 jump)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the clock of this server has jumped forward by %lld.%03d s",
				   (long long) (jump / USECS_PER_SEC), (int) (jump % USECS_PER_SEC / 1000)),
			errdetail("No Snowflake ID is issued after a jump of more than snowflake.max_clock_step, %d s.",
					  sf_max_clock_step / 1000),
			errhint("Set the clock right. If it is right, as after a pause of a virtual machine, accept it by \"SELECT snowflake_accept_clock()\"."));
}

void
sf_clock_check(SfShared *shared, TimestampTz now)
{
	int64		current = difference(now);
	uint64		seen = pg_atomic_read_u64(&shared->clock_difference);

	for (;;)
	{
		int64		jump = current - (int64) seen;

		if (seen != SF_CLOCK_NOT_SEEN)
		{
			if (jump <= WORTH_KEEPING)
				return;
			if (sf_max_clock_step > 0 && is_too_far(jump) &&
				is_too_far(now - line_end(shared)))
				report_jump(jump);
		}
		if (pg_atomic_compare_exchange_u64(&shared->clock_difference, &seen,
										   (uint64) current))
			return;
	}
}

int64
sf_clock_accept(SfShared *shared)
{
	int64		current = difference(GetCurrentTimestamp());
	uint64		before = pg_atomic_exchange_u64(&shared->clock_difference, (uint64) current);

	return before == SF_CLOCK_NOT_SEEN ? 0 : current - (int64) before;
}
