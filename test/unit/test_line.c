/*
 * test_line.c
 *	  Lines: the scripted clocks that the Go library was run with, random clocks, and the line that
 *	  is active after a start.
 */
#include <stdlib.h>

#include "csv.h"
#include "sno.h"
#include "line.h"

/* A generator that takes batches of one position. */
typedef struct Generator
{
	uint64_t	cursor[SF_LINES];
	uint32_t	switches;
	uint64_t	tolerated;
	SfSequenceRange range;
}			Generator;

static int
line_of(const Generator * generator)
{
	return (int) (generator->switches & 1);
}

static uint64_t
last_tick(const Generator * generator, int line)
{
	return sf_line_last_tick(&sf_sno_layout, generator->cursor[line]);
}

static SfBatchStatus
batch_of(const Generator * generator, int64_t now, SfBatch *batch)
{
	SfBatchTerms terms = {.layout = &sf_sno_layout,.range = generator->range,
	.reserved_until = UINT64_MAX,.size = 1,.last_tick = sf_layout_last_tick(&sf_sno_layout)};

	terms.now_tick = now;
	terms.last_allowed_tick = now + (int64_t) generator->tolerated;
	return sf_batch_next(&terms, generator->cursor[line_of(generator)], batch);
}

/* Takes the next position of the active line, or of the other one, if the clock allows one. */
static bool
next(Generator * generator, int64_t now, uint64_t *taken)
{
	int			line = line_of(generator);
	SfBatch		batch;

	if (batch_of(generator, now, &batch) != SF_BATCH_OK)
	{
		if (sf_line_choose(&sf_sno_layout, generator->cursor[line], generator->cursor[!line], now,
						   now + (int64_t) generator->tolerated) != SF_LINE_SWITCH)
			return false;
		generator->switches++;
		if (batch_of(generator, now, &batch) != SF_BATCH_OK)
			return false;
	}
	*taken = batch.start;
	generator->cursor[line_of(generator)] = batch.end;
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
			},
				.cursor =
			{
				1, 1
			}
		};
		if (strcmp(columns[0], "restore_in_past") == 0)
			generator.cursor[0] = sf_position(&sf_sno_layout, RESTORED, 1);
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
	tick = sf_position_tick(&sf_sno_layout, taken);
	is_int((sf_layout_tick_start(&sf_sno_layout, tick) - SF_UNIX_EPOCH) / 1000,
		   strtoll(columns[5], NULL, 10), "time");
	is_int(line_of(&generator), atoi(columns[6]), "line");
	is_int(sf_position_sequence(&sf_sno_layout, taken), atoi(columns[7]), "sequence");
	is_int((int64_t) last_tick(&generator, line_of(&generator)), strtoll(columns[8], NULL, 10), "wall_hi");
	is_int((int64_t) last_tick(&generator, !line_of(&generator)), strtoll(columns[9], NULL, 10), "wall_safe");
	is_int(generator.switches, atoi(columns[10]), "drifts");
	is_int(sf_position_sequence(&sf_sno_layout, generator.cursor[line_of(&generator)] - 1),
		   atoi(columns[11]), "sequence of the state");
}

#define TICKS	200

/*
 * A clock that moves at random, and few positions in a tick.  No position of a line is issued
 * twice, whatever distance ahead of the clock is tolerated, and in spite of restarts.
 */
static void
check_random_clock(uint64_t tolerated)
{
	static unsigned char seen[SF_LINES][TICKS * 2][4];
	Generator	generator = {.cursor = {1, 1},.range = {0, 3},.tolerated = tolerated};
	int			again = 0;
	int			issued = 0;
	int			switched = 0;

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 20000; i++)
	{
		uint32_t	before = generator.switches;
		int64_t		now = i / 100 - (int64_t) (random_number() % 8 == 0 ? random_number() % 40 : 0);
		uint64_t	taken;

		if (random_number() % 300 == 0) /* a restart; one tick was reserved */
		{
			int			line = line_of(&generator);

			generator.cursor[line] = sf_position(&sf_sno_layout, last_tick(&generator, line) + 2, 0);
			generator.switches = (uint32_t) sf_line_at_start(&sf_sno_layout, generator.cursor,
															 sf_layout_tick_start(&sf_sno_layout,
																				  (uint64_t) (now < 0 ? 0 : now)),
															 0);
		}
		if (now >= 0 && next(&generator, now, &taken))
		{
			uint64_t	tick = sf_position_tick(&sf_sno_layout, taken);

			again += seen[line_of(&generator)][tick][taken & 3]++ > 0;
			issued++;
		}
		switched += generator.switches != before;
	}
	is_int(again, 0, "positions that are issued twice under a random clock");
	ok(issued > 200 && switched > 3, "of %d, with %d switches", issued, switched);
}

static SfLineChoice
choose(uint64_t last, uint64_t other_last, int64_t now, int64_t allowed)
{
	return sf_line_choose(&sf_sno_layout, sf_position(&sf_sno_layout, last, 7) + 1,
						  sf_position(&sf_sno_layout, other_last, 7) + 1, now, allowed);
}

static void
test_choose(void)
{
	uint64_t	full = sf_position(&sf_sno_layout, 101, 0);

	is_int(choose(100, 50, 100, 100), SF_LINE_KEEP, "the same tick");
	is_int(choose(100, 50, 99, 99), SF_LINE_SWITCH, "a tick behind");
	is_int(choose(100, 50, 98, 100), SF_LINE_KEEP, "as far behind as is tolerated");
	is_int(choose(100, 50, 97, 99), SF_LINE_SWITCH, "and further");
	is_int(choose(100, 50, 51, 51), SF_LINE_SWITCH, "just past the last tick of the other line");
	is_int(choose(100, 50, 50, 50), SF_LINE_WAIT, "in the last tick of the other line");
	is_int(choose(100, 0, -1, 200), SF_LINE_WAIT, "before the epoch");
	is_int(choose(100, 50, 60, -5), SF_LINE_SWITCH, "nothing is allowed");
	is_int(sf_line_choose(&sf_sno_layout, full, full, 100, 100), SF_LINE_KEEP, "a tick that is used up");
}

static void
test_start(void)
{
	uint64_t	cursors[SF_LINES] = {0};
	SfInstant	at = sf_layout_tick_start(&sf_sno_layout, 100);

	cursors[0] = sf_position(&sf_sno_layout, 100, 0);
	cursors[1] = sf_position(&sf_sno_layout, 50, 0);
	is_int(sf_line_at_start(&sf_sno_layout, cursors, at, 0), 0, "the line that was used last");
	is_int(sf_line_at_start(&sf_sno_layout, cursors, at - 1, 0), 1, "the other one, if the clock is behind");
	is_int(sf_line_at_start(&sf_sno_layout, cursors, at - 1000, 1000), 0, "but not by what is tolerated");
	cursors[1] = sf_position(&sf_sno_layout, 101, 0);
	is_int(sf_line_at_start(&sf_sno_layout, cursors, at + 4000, 0), 1, "the second line, if it was used last");
	cursors[1] = cursors[0];
	is_int(sf_line_at_start(&sf_sno_layout, cursors, at, 0), 0, "the first line of two that are equal");
}

int
main(void)
{
	is_int(for_each_row("test/vectors/sno_ticktock.csv", 12, check_step), 41,
		   "steps of scripted clocks");
	check_random_clock(0);
	check_random_clock(3);
	test_choose();
	test_start();
	return done_testing();
}
