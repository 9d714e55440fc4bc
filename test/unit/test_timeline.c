/*
 * test_timeline.c
 *	  Two timelines: the scripted clocks that the Go library went through, random
 *	  clocks, and the state that is kept.
 */
#include <stdlib.h>

#include "csv.h"
#include "sno.h"
#include "timeline.h"

/* A generator that takes leases of one position. */
typedef struct Generator
{
	uint64_t	cursor;
	uint64_t	wall_safe;
	uint32_t	drifts;
	uint64_t	tolerated;
	SfSequenceRange range;
}			Generator;

static uint64_t
wall_hi(const Generator * generator)
{
	return sf_position_tick(&sf_sno_layout, sf_cursor_position(generator->cursor) - 1);
}

static void
change_over(Generator * generator, uint64_t now)
{
	bool		timeline = !sf_cursor_timeline(generator->cursor);

	generator->wall_safe = wall_hi(generator);
	generator->drifts++;
	generator->cursor = sf_cursor(timeline, sf_position(&sf_sno_layout, now, 0));
}

/* The next position, with its timeline, if the clock allows one. */
static bool
next(Generator * generator, int64_t now, uint64_t *taken)
{
	SfLeaseTerms terms = {.layout = &sf_sno_layout,.range = generator->range,.ceiling = UINT64_MAX,.size = 1,
	.last_tick = SF_TIMELINE_TICKS - 1};
	SfLease		lease;

	terms.now_tick = now;
	terms.last_allowed_tick = now + (int64_t) generator->tolerated;
	if (sf_lease_next(&terms, sf_cursor_position(generator->cursor), &lease) != SF_LEASE_OK)
	{
		if (sf_timeline_judge(wall_hi(generator), generator->wall_safe, now,
							  now + (int64_t) generator->tolerated) != SF_STEP_BACK_CHANGE)
			return false;
		change_over(generator, (uint64_t) now);
		if (sf_lease_next(&terms, sf_cursor_position(generator->cursor), &lease) != SF_LEASE_OK)
			return false;
	}
	*taken = sf_cursor(sf_cursor_timeline(generator->cursor), lease.start);
	generator->cursor = sf_cursor(sf_cursor_timeline(generator->cursor), lease.end);
	return true;
}

/* The snapshot that the scenario restore_in_past restores: issued up to this unit. */
#define RESTORED	UINT64_C(100000000000)

/*
 * scenario,step,op,clock_reads_units,bin_hex,unix_ms,tick,sequence,wall_hi_after,
 * wall_safe_after,drifts_after,seq_after
 */
static void
check_step(char *columns[MAX_COLUMNS])
{
	static Generator generator;
	char	   *reading = columns[3];
	uint64_t	taken = 0;
	bool		done = false;

	if (atoi(columns[1]) == 0)
	{
		generator = (Generator)
		{
			.range =
			{
				0, 65535
			}
		};
		if (strcmp(columns[0], "restore_in_past") == 0)
			generator.cursor = sf_position(&sf_sno_layout, RESTORED, 1);
	}
	while (!done && reading != NULL && *reading != '\0')
	{
		done = next(&generator, strtoll(reading, NULL, 10), &taken);
		reading = strchr(reading, ';');
		if (reading != NULL)
			reading++;
	}
	ok(done && reading == NULL, "%s %s: an ID, at the last reading of the clock", columns[0], columns[1]);
	is_int((sf_layout_tick_start(&sf_sno_layout, sf_position_tick(&sf_sno_layout, sf_cursor_position(taken))) -
			SF_UNIX_EPOCH) / 1000, strtoll(columns[5], NULL, 10), "time");
	is_int(sf_cursor_timeline(taken), atoi(columns[6]), "timeline");
	is_int(sf_position_sequence(&sf_sno_layout, taken), atoi(columns[7]), "sequence");
	is_int((int64_t) wall_hi(&generator), strtoll(columns[8], NULL, 10), "wall_hi");
	is_int((int64_t) generator.wall_safe, strtoll(columns[9], NULL, 10), "wall_safe");
	is_int(generator.drifts, atoi(columns[10]), "drifts");
	is_int(sf_position_sequence(&sf_sno_layout, sf_cursor_position(generator.cursor) - 1), atoi(columns[11]), "sequence of the state");
}

#define TICKS	200

/*
 * A clock that goes anywhere, with little room in a tick: no position of a timeline comes
 * twice, whatever may be ahead of the clock, and whatever a restart forgets.
 */
static void
check_random_clock(uint64_t tolerated)
{
	static unsigned char seen[2][TICKS * 2][4];
	Generator	generator = {.range = {0, 3},.tolerated = tolerated};
	int			again = 0;
	int			issued = 0;
	int			changes = 0;

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 20000; i++)
	{
		int64_t		now = i / 100 - (int64_t) (random_number() % 8 == 0 ? random_number() % 40 : 0);
		uint64_t	taken;
		uint64_t	position;

		if (random_number() % 300 == 0) /* a restart, with a tick of reserve */
		{
			uint64_t	tick = wall_hi(&generator) + 2;

			if (generator.cursor != 0)
				generator.cursor = sf_cursor(generator.drifts & 1, sf_position(&sf_sno_layout, tick, 0));
		}
		if (now >= 0 && next(&generator, now, &taken))
		{
			position = sf_cursor_position(taken);
			again += seen[sf_cursor_timeline(taken)][sf_position_tick(&sf_sno_layout, position)][position & 3]++ > 0;
			issued++;
		}
		changes = (int) generator.drifts;
	}
	is_int(again, 0, "positions that come twice under a random clock");
	ok(issued > 200 && changes > 3, "of %d, with %d changes over", issued, changes);
}

static void
test_judge(void)
{
	is_int(sf_timeline_judge(100, 50, 100, 100), SF_STEP_BACK_NONE, "the same tick");
	is_int(sf_timeline_judge(100, 50, 99, 99), SF_STEP_BACK_CHANGE, "a tick behind");
	is_int(sf_timeline_judge(100, 50, 98, 100), SF_STEP_BACK_NONE, "as far behind as is tolerated");
	is_int(sf_timeline_judge(100, 50, 97, 99), SF_STEP_BACK_CHANGE, "and further");
	is_int(sf_timeline_judge(100, 50, 51, 51), SF_STEP_BACK_CHANGE, "just past wall_safe");
	is_int(sf_timeline_judge(100, 50, 50, 50), SF_STEP_BACK_WAIT, "at wall_safe");
	is_int(sf_timeline_judge(100, 0, -1, 200), SF_STEP_BACK_WAIT, "before the epoch");
}

static void
test_pack(void)
{
	int			wrong = 0;
	SfTimelineState last = {SF_TIMELINE_TICKS, SF_TIMELINE_TICKS, 3};
	SfTimelineState zero = sf_timeline_unpack(0);

	ok(zero.ceiling_tick == 0 && zero.wall_safe == 0 && zero.drifts == 0, "never written");
	is_int((int64_t) sf_timeline_unpack(sf_timeline_pack(last)).ceiling_tick, (int64_t) SF_TIMELINE_TICKS, "the last ceiling");
	is_int((int64_t) sf_timeline_unpack(sf_timeline_pack(last)).wall_safe, (int64_t) SF_TIMELINE_TICKS, "the last wall_safe");
	for (int i = 0; i < 100000; i++)
	{
		SfTimelineState state = {random_number() % (SF_TIMELINE_TICKS + 1), random_number() % (SF_TIMELINE_TICKS + 1),
		(uint32_t) random_number()};
		SfTimelineState kept = sf_timeline_unpack(sf_timeline_pack(state));

		wrong += kept.ceiling_tick < state.ceiling_tick || kept.ceiling_tick - state.ceiling_tick >= SF_TIMELINE_CEILING_TICKS ||
			kept.wall_safe < state.wall_safe || kept.wall_safe - state.wall_safe >= SF_TIMELINE_SAFE_TICKS ||
			(kept.drifts ^ state.drifts) & 1;
	}
	is_int(wrong, 0, "random states that are not kept, rounded up");
}

int
main(void)
{
	is_int(for_each_row("test/vectors/sno_ticktock.csv", 12, check_step), 41, "steps of scripted clocks");
	check_random_clock(0);
	check_random_clock(3);
	test_judge();
	test_pack();
	return done_testing();
}
