/*
 * test_batch.c
 *	  Batches: compared with a slow statement of the rules, and in a simulation.
 */
#include "reserved_time.h"
#include "backoff.h"
#include "batch.h"
#include "tap.h"

/* Three bits of sequence: a tick has eight positions. */
static SfLayout
small_layout(void)
{
	SfLayout	layout;
	SfParseError error;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=5 machine=2 sequence=3",
					   &layout, &error), "the small layout parses");
	return layout;
}

/* The number of positions of the small layout. */
#define SMALL_END	(32u * 8)

/*
 * The start of a batch, by the rule itself, one position at a time: the first
 * position at or above the cursor that is in the range and in a tick not before
 * the clock's.  If no position of the range was taken from its tick, the
 * position must also be past the jitter.
 */
static uint64_t
slow_start(const SfBatchTerms *terms, uint64_t cursor)
{
	uint64_t	position = cursor;

	for (;; position++)
	{
		int64_t		tick = (int64_t) (position / 8);
		uint32_t	sequence = (uint32_t) (position % 8);
		bool		touched = cursor > (uint64_t) tick * 8 + terms->range.min;
		uint32_t	first = terms->range.min;

		if (!touched)
			first += terms->jitter;
		if (first > terms->range.max)
			first = terms->range.max;
		if (tick >= terms->now_tick && sequence >= first && sequence <= terms->range.max)
			return position;
	}
}

static bool
agrees(const SfBatchTerms *terms, uint64_t cursor)
{
	SfBatch		batch = {0, 0, 0};
	SfBatchStatus status = sf_batch_next(terms, cursor, &batch);
	uint64_t	start = slow_start(terms, cursor);
	uint64_t	end = start;

	if (batch.tick != start / 8)
		return false;
	if (start / 8 > terms->last_tick)
		return status == SF_BATCH_EXHAUSTED;
	if ((int64_t) (start / 8) > terms->last_allowed_tick)
		return status == SF_BATCH_AHEAD;
	if (start >= terms->reserved_until)
		return status == SF_BATCH_NOT_RESERVED;
	while (end < start + terms->size && end < terms->reserved_until &&
		   end / 8 == start / 8 && end % 8 <= terms->range.max && end % 8 >= terms->range.min)
		end++;
	return status == SF_BATCH_OK && batch.start == start && batch.end == end;
}

static void
test_against_rule(void)
{
	SfLayout	layout = small_layout();
	int			wrong = 0;
	int			seen[4] = {0};

	for (int n = 0; n < 500000; n++)
	{
		SfBatchTerms terms = {.layout = &layout,.last_tick = sf_layout_last_tick(&layout)};
		uint64_t	cursor = random_number() % (SMALL_END + 1);
		SfBatch		batch;

		terms.last_tick -= random_number() % 4;
		terms.range.min = (uint32_t) (random_number() % 8);
		terms.range.max = terms.range.min + (uint32_t) (random_number() % (8 - terms.range.min));
		terms.now_tick = (int64_t) (random_number() % 40) - 4;
		terms.last_allowed_tick = terms.now_tick + (int64_t) (random_number() % 4);
		terms.reserved_until = random_number() % (SMALL_END + 1);
		terms.size = 1 + (uint32_t) (random_number() % 10);
		terms.jitter = (uint32_t) (random_number() % 10);
		wrong += !agrees(&terms, cursor);
		seen[sf_batch_next(&terms, cursor, &batch)]++;
	}
	is_int(wrong, 0, "batches follow the rule");
	for (int status = 0; status < 4; status++)
		ok(seen[status] > 1000, "status %d was met", status);
}

/*
 * Several backends, which have each read the cursor some steps ago, try to swap
 * it, under a clock that moves at random.  No position may be taken twice.
 */
static void
test_race(void)
{
	enum
	{
		BACKENDS = 4
	};
	SfLayout	layout = small_layout();
	uint8_t		taken[SMALL_END];
	int			twice = 0;
	int			beyond = 0;
	int			batches = 0;

	for (int run = 0; run < 3000; run++)
	{
		uint64_t	cursor = 0;
		uint64_t	reserved_until = 0;
		uint64_t	loaded[BACKENDS] = {0};

		memset(taken, 0, sizeof(taken));
		for (int step = 0; step < 200; step++)
		{
			int			backend = (int) (random_number() % BACKENDS);
			SfBatchTerms terms = {.layout = &layout,.range = {1, 6},
			.last_tick = sf_layout_last_tick(&layout)};
			SfBatch		batch;

			if (random_number() % 2)
			{
				loaded[backend] = cursor;
				continue;
			}
			terms.now_tick = (int64_t) (random_number() % 34) - 2;
			terms.last_allowed_tick = terms.now_tick + 2;
			terms.reserved_until = reserved_until;
			terms.size = 1 + (uint32_t) (random_number() % 4);
			terms.jitter = (uint32_t) (random_number() % 3);
			switch (sf_batch_next(&terms, loaded[backend], &batch))
			{
				case SF_BATCH_OK:
					if (cursor != loaded[backend])	/* the swap fails */
						break;
					cursor = batch.end;
					batches++;
					beyond += batch.end > reserved_until;
					for (uint64_t position = batch.start; position < batch.end; position++)
						twice += taken[position]++;
					break;
				case SF_BATCH_NOT_RESERVED:
					reserved_until += 24;
					break;
				default:
					break;
			}
		}
	}
	is_int(twice, 0, "no position is taken twice");
	is_int(beyond, 0, "no position at or above reserved_until is taken");
	ok(batches > 10000, "%d batches were taken", batches);
}

static void
test_widest_sequence(void)
{
	SfLayout	layout;
	SfParseError error;
	SfBatchTerms terms = {.layout = &layout,.range = {0, SF_SEQUENCE_MAX},
	.last_tick = UINT32_MAX,.now_tick = 1,
	.last_allowed_tick = 1,.reserved_until = UINT64_MAX,.size = UINT32_MAX};
	SfBatch		batch;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=32 sequence=31", &layout, &error),
	   "31 bits of sequence parse");
	is_int(sf_batch_next(&terms, 0, &batch), SF_BATCH_OK, "a whole tick");
	is_int((int64_t) batch.start, INT64_C(1) << 31, "from its first position");
	is_int((int64_t) batch.end, INT64_C(2) << 31, "to its last");
	is_int(sf_batch_next(&terms, batch.end, &batch), SF_BATCH_AHEAD, "then the next tick");

	/*
	 * Positions up to 2^63 - 1: the cursor after the last one does not fit an
	 * int64.
	 */
	ok(sf_layout_parse("epoch=1970-01-01 tick=1us timestamp=63", &layout, &error), "63 bits parse");
	terms.range = sf_sequence_range_within(&layout, terms.range);
	terms.now_tick = terms.last_allowed_tick = INT64_MAX;
	terms.last_tick = sf_layout_last_tick(&layout);
	is_int(sf_batch_next(&terms, 0, &batch), SF_BATCH_OK, "the last position of all");
	ok(batch.end == UINT64_C(1) << 63, "moves the cursor behind it");
	is_int(sf_batch_next(&terms, batch.end, &batch), SF_BATCH_EXHAUSTED, "then nothing");
}

static void
test_next_tick(void)
{
	SfLayout	layout = small_layout();

	is_int((int64_t) sf_position_next_tick(&layout, 16), 24, "the next tick, from the start of one");
	is_int((int64_t) sf_position_next_tick(&layout, 17), 24, "from within one");
	is_int((int64_t) sf_position_next_tick(&layout, 23), 24, "from the end of one");
}

/* The position of an instant: within a tick, the position of the next tick. */
static void
test_position_at(void)
{
	SfLayout	layout = small_layout();
	SfInstant	last = layout.epoch + 31 * 1000;

	is_int((int64_t) sf_position_at(&layout, layout.epoch - 1), 0, "before the epoch");
	is_int((int64_t) sf_position_at(&layout, layout.epoch + 1000), 8, "the start of a tick");
	is_int((int64_t) sf_position_at(&layout, layout.epoch + 1001), 16, "within it");
	is_int((int64_t) sf_position_at(&layout, last), SMALL_END - 8, "the last tick");
	is_int((int64_t) sf_position_at(&layout, last + 1), SMALL_END, "after its start");
}

#define SECOND	INT64_C(1000000)

static void
test_reservation(void)
{
	SfLayout	layout;
	SfParseError error;
	uint64_t	reserved_until;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=41 machine=10 sequence=12",
					   &layout, &error), "a layout parses");
	is_int(sf_reservation_least(&layout), SECOND, "a second is reserved");
	reserved_until = sf_reservation_next(&layout, 5000000, 0, SECOND);
	is_int((int64_t) reserved_until, INT64_C(6000) << 12, "a second past the clock");
	is_int((int64_t) sf_reservation_next(&layout, 5000001, 0, SECOND), INT64_C(6001) << 12, "rounded up to a tick");
	is_int((int64_t) sf_reservation_next(&layout, 5000000, (UINT64_C(7000) << 12) + 5, SECOND),
		   INT64_C(8000) << 12, "a second past the cursor, if that is ahead");
	is_int((int64_t) sf_reservation_next(&layout, -INT64_C(9000000000), 0, SECOND),
		   INT64_C(1000) << 12, "under a clock before the epoch");
	ok(!sf_reservation_is_near(&layout, UINT64_C(5499) << 12, reserved_until, SECOND), "not near before the middle");
	ok(sf_reservation_is_near(&layout, UINT64_C(5500) << 12, reserved_until, SECOND), "near at the middle");

	ok(sf_layout_parse("epoch=2000-01-01 tick=1s timestamp=4 sequence=2", &layout, &error),
	   "a layout of 16 seconds parses");
	is_int(sf_reservation_least(&layout), 2 * SECOND, "two ticks are reserved");
	is_int((int64_t) sf_reservation_next(&layout, 13000000, 0, 2 * SECOND), 15 << 2, "up to the last tick");
	ok(!sf_reservation_is_near(&layout, 13 << 2, 15 << 2, 2 * SECOND), "not near in the first of them");
	ok(sf_reservation_is_near(&layout, 14 << 2, 15 << 2, 2 * SECOND), "near in the second");
	is_int((int64_t) sf_reservation_next(&layout, 14000000, 0, 2 * SECOND), 16 << 2, "up to the end of the layout");
	is_int((int64_t) sf_reservation_next(&layout, 99000000, 0, 2 * SECOND), 16 << 2, "and no further");
}

/* A disk with flushes of one duration: the length at which extensions are no longer too slow. */
static int64_t
length_on_disk(const SfLayout *layout, int64_t flush)
{
	SfReservedTime reserved = {0};
	int64_t		now = 0;

	for (int i = 0; i < 30; i++)
	{
		sf_reservation_shorten(layout, &reserved, now);
		sf_reservation_judge(&reserved, flush, now + flush);
		now += reserved.length / 2 > flush ? reserved.length / 2 : flush;
	}
	return reserved.length;
}

static void
test_reserved_time(void)
{
	SfLayout	layout;
	SfParseError error;
	SfReservedTime reserved = {0};

	ok(sf_layout_parse("twitter", &layout, &error), "a layout parses");
	sf_reservation_shorten(&layout, &reserved, 0);
	is_int(reserved.length, SECOND, "a second at first");
	sf_reservation_judge(&reserved, SECOND / 2, 0);
	is_int(reserved.length, SECOND, "half of it is fast enough");
	sf_reservation_judge(&reserved, 3600 * SECOND, 3600 * SECOND);
	is_int(reserved.length, 2 * SECOND, "an hour doubles it");
	sf_reservation_shorten(&layout, &reserved, 3602 * SECOND - 1);
	is_int(reserved.length, 2 * SECOND, "for two seconds");
	sf_reservation_shorten(&layout, &reserved, 3602 * SECOND);
	is_int(reserved.length, SECOND, "and no longer");

	for (int i = 0; i < 10; i++)
		sf_reservation_judge(&reserved, 3600 * SECOND, 4000 * SECOND);
	is_int(reserved.length, 60 * SECOND, "a minute at most");
	sf_reservation_shorten(&layout, &reserved, (4000 + 60 + 29) * SECOND);
	is_int(reserved.length, 30 * SECOND, "half of it after a minute");
	sf_reservation_shorten(&layout, &reserved, (4000 + 60 + 30 + 15) * SECOND);
	is_int(reserved.length, 7500000, "it is halved again after its own time");
	sf_reservation_shorten(&layout, &reserved, 9000 * SECOND);
	is_int(reserved.length, SECOND, "down to a second");

	is_int(length_on_disk(&layout, 10000), SECOND, "a second on a fast disk");
	is_int(length_on_disk(&layout, 300000), SECOND, "and with flushes of 0.3 s");
	is_int(length_on_disk(&layout, SECOND), 2 * SECOND, "two seconds with flushes of one");
	is_int(length_on_disk(&layout, 5 * SECOND), 16 * SECOND, "16 s with flushes of five");
}

static void
test_backoff(void)
{
	is_int(sf_longest_backoff(1), 1, "up to 1 us after the first failed swap");
	is_int(sf_longest_backoff(2), 2, "twice as long after the second");
	is_int(sf_longest_backoff(7), 64, "after the seventh");
	is_int(sf_longest_backoff(8), 128, "up to 128 us");
	is_int(sf_longest_backoff(9), 128, "and no longer");
	is_int(sf_longest_backoff(UINT32_MAX), 128, "after any number");
}

int
main(void)
{
	test_against_rule();
	test_race();
	test_widest_sequence();
	test_next_tick();
	test_position_at();
	test_reservation();
	test_reserved_time();
	test_backoff();
	return done_testing();
}
