/*
 * test_phase.c
 *	  Phases: the scripted clocks that the Go library was run with, random clocks,
 *	  and the durable state.
 */
#include <stdlib.h>

#include "csv.h"
#include "sno.h"
#include "phase.h"

/* A generator that takes batches of one position. */
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
change_phase(Generator * generator, uint64_t now)
{
	bool		phase = !sf_cursor_phase(generator->cursor);

	generator->wall_safe = wall_hi(generator);
	generator->drifts++;
	generator->cursor = sf_cursor(phase, sf_position(&sf_sno_layout, now, 0));
}

/* Takes the next position, as a cursor with its phase, if the clock allows one. */
static bool
next(Generator * generator, int64_t now, uint64_t *taken)
{
	SfBatchTerms terms = {.layout = &sf_sno_layout,.range = generator->range,
	.reserved_until = UINT64_MAX,.size = 1,.last_tick = SF_PHASE_TICKS - 1};
	SfBatch		batch;

	terms.now_tick = now;
	terms.last_allowed_tick = now + (int64_t) generator->tolerated;
	if (sf_batch_next(&terms, sf_cursor_position(generator->cursor), &batch) != SF_BATCH_OK)
	{
		if (sf_phase_judge(wall_hi(generator), generator->wall_safe, now,
						   now + (int64_t) generator->tolerated) != SF_STEP_BACK_CHANGE)
			return false;
		change_phase(generator, (uint64_t) now);
		if (sf_batch_next(&terms, sf_cursor_position(generator->cursor), &batch) != SF_BATCH_OK)
			return false;
	}
	*taken = sf_cursor(sf_cursor_phase(generator->cursor), batch.start);
	generator->cursor = sf_cursor(sf_cursor_phase(generator->cursor), batch.end);
	return true;
}

/* The scenario restore_in_past restores a generator that has issued up to this unit. */
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
	uint64_t	tick;
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
	ok(done && reading == NULL, "%s %s: an ID, at the last reading of the clock",
	   columns[0], columns[1]);
	tick = sf_position_tick(&sf_sno_layout, sf_cursor_position(taken));
	is_int((sf_layout_tick_start(&sf_sno_layout, tick) - SF_UNIX_EPOCH) / 1000,
		   strtoll(columns[5], NULL, 10), "time");
	is_int(sf_cursor_phase(taken), atoi(columns[6]), "phase");
	is_int(sf_position_sequence(&sf_sno_layout, taken), atoi(columns[7]), "sequence");
	is_int((int64_t) wall_hi(&generator), strtoll(columns[8], NULL, 10), "wall_hi");
	is_int((int64_t) generator.wall_safe, strtoll(columns[9], NULL, 10), "wall_safe");
	is_int(generator.drifts, atoi(columns[10]), "drifts");
	is_int(sf_position_sequence(&sf_sno_layout, sf_cursor_position(generator.cursor) - 1),
		   atoi(columns[11]), "sequence of the state");
}

#define TICKS	200

/*
 * A clock that moves at random, and few positions in a tick.  No position of a phase is
 * issued twice, whatever distance ahead of the clock is tolerated, and in spite of restarts.
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

		if (random_number() % 300 == 0) /* a restart; one tick was reserved */
		{
			uint64_t	tick = wall_hi(&generator) + 2;

			if (generator.cursor != 0)
				generator.cursor = sf_cursor(generator.drifts & 1,
											 sf_position(&sf_sno_layout, tick, 0));
		}
		if (now >= 0 && next(&generator, now, &taken))
		{
			uint64_t	position = sf_cursor_position(taken);
			uint64_t	tick = sf_position_tick(&sf_sno_layout, position);

			again += seen[sf_cursor_phase(taken)][tick][position & 3]++ > 0;
			issued++;
		}
		changes = (int) generator.drifts;
	}
	is_int(again, 0, "positions that are issued twice under a random clock");
	ok(issued > 200 && changes > 3, "of %d, with %d changes of phase", issued, changes);
}

static void
test_judge(void)
{
	is_int(sf_phase_judge(100, 50, 100, 100), SF_STEP_BACK_NONE, "the same tick");
	is_int(sf_phase_judge(100, 50, 99, 99), SF_STEP_BACK_CHANGE, "a tick behind");
	is_int(sf_phase_judge(100, 50, 98, 100), SF_STEP_BACK_NONE, "as far behind as is tolerated");
	is_int(sf_phase_judge(100, 50, 97, 99), SF_STEP_BACK_CHANGE, "and further");
	is_int(sf_phase_judge(100, 50, 51, 51), SF_STEP_BACK_CHANGE, "just past wall_safe");
	is_int(sf_phase_judge(100, 50, 50, 50), SF_STEP_BACK_WAIT, "at wall_safe");
	is_int(sf_phase_judge(100, 0, -1, 200), SF_STEP_BACK_WAIT, "before the epoch");
}

static void
test_pack(void)
{
	int			wrong = 0;
	SfDurableState last = {SF_PHASE_TICKS, SF_PHASE_TICKS, 3};
	SfDurableState zero = sf_phase_unpack(0);

	ok(zero.reserved_tick == 0 && zero.wall_safe == 0 && zero.drifts == 0, "never written");
	last = sf_phase_unpack(sf_phase_pack(last));
	is_int((int64_t) last.reserved_tick, (int64_t) SF_PHASE_TICKS, "the last reservation");
	is_int((int64_t) last.wall_safe, (int64_t) SF_PHASE_TICKS, "the last wall_safe");
	for (int i = 0; i < 100000; i++)
	{
		SfDurableState state = {random_number() % (SF_PHASE_TICKS + 1),
		random_number() % (SF_PHASE_TICKS + 1), (uint32_t) random_number()};
		SfDurableState kept = sf_phase_unpack(sf_phase_pack(state));

		wrong += kept.reserved_tick < state.reserved_tick ||
			kept.reserved_tick - state.reserved_tick >= SF_PHASE_RESERVED_TICKS ||
			kept.wall_safe < state.wall_safe ||
			kept.wall_safe - state.wall_safe >= SF_PHASE_SAFE_TICKS ||
			(kept.drifts ^ state.drifts) & 1;
	}
	is_int(wrong, 0, "random states that are not kept, rounded up");
}

int
main(void)
{
	is_int(for_each_row("test/vectors/sno_ticktock.csv", 12, check_step), 41,
		   "steps of scripted clocks");
	check_random_clock(0);
	check_random_clock(3);
	test_judge();
	test_pack();
	return done_testing();
}
