/*
 * test_lease.c
 *	  The lease step, against a slow statement of its rules and in simulation.
 */
#include "reserve.h"
#include "lease.h"
#include "tap.h"

/* Three bits of sequence: ticks are used up after eight positions. */
static SfLayout
small_layout(void)
{
	SfLayout	layout;
	SfParseError error;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=5 machine=2 sequence=3",
					   &layout, &error), "the small layout parses");
	return layout;
}

#define SMALL_LINE_END	(32u * 8)

/*
 * The rule, one position at a time: the first one at or above the cursor that
 * is within the range, in a tick not before the clock's, and past the jitter if
 * no position of the range was taken from its tick.
 */
static uint64_t
slow_start(const SfLeaseTerms *terms, uint64_t cursor)
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
agrees(const SfLeaseTerms *terms, uint64_t cursor)
{
	SfLease		lease = {0, 0, 0};
	SfLeaseStatus status = sf_lease_next(terms, cursor, &lease);
	uint64_t	start = slow_start(terms, cursor);
	uint64_t	end = start;

	if (lease.tick != start / 8)
		return false;
	if (start / 8 > terms->last_tick)
		return status == SF_LEASE_EXHAUSTED;
	if ((int64_t) (start / 8) > terms->last_allowed_tick)
		return status == SF_LEASE_AHEAD;
	if (start >= terms->ceiling)
		return status == SF_LEASE_AT_CEILING;
	while (end < start + terms->size && end < terms->ceiling &&
		   end / 8 == start / 8 && end % 8 <= terms->range.max && end % 8 >= terms->range.min)
		end++;
	return status == SF_LEASE_OK && lease.start == start && lease.end == end;
}

static void
test_against_rule(void)
{
	SfLayout	layout = small_layout();
	int			wrong = 0;
	int			seen[4] = {0};

	for (int n = 0; n < 500000; n++)
	{
		SfLeaseTerms terms = {.layout = &layout,.last_tick = sf_layout_last_tick(&layout)};
		uint64_t	cursor = random_number() % (SMALL_LINE_END + 1);
		SfLease		lease;

		terms.last_tick -= random_number() % 4;
		terms.range.min = (uint32_t) (random_number() % 8);
		terms.range.max = terms.range.min + (uint32_t) (random_number() % (8 - terms.range.min));
		terms.now_tick = (int64_t) (random_number() % 40) - 4;
		terms.last_allowed_tick = terms.now_tick + (int64_t) (random_number() % 4);
		terms.ceiling = random_number() % (SMALL_LINE_END + 1);
		terms.size = 1 + (uint32_t) (random_number() % 10);
		terms.jitter = (uint32_t) (random_number() % 10);
		wrong += !agrees(&terms, cursor);
		seen[sf_lease_next(&terms, cursor, &lease)]++;
	}
	is_int(wrong, 0, "leases are as the rule says");
	for (int status = 0; status < 4; status++)
		ok(seen[status] > 1000, "status %d was met", status);
}

/*
 * Backends that each loaded the cursor some steps ago race to swap it, under a
 * clock that goes anywhere.  No position may be given away twice.
 */
static void
test_race(void)
{
	enum
	{
		BACKENDS = 4
	};
	SfLayout	layout = small_layout();
	uint8_t		given[SMALL_LINE_END];
	int			twice = 0;
	int			beyond = 0;
	int			leases = 0;

	for (int run = 0; run < 3000; run++)
	{
		uint64_t	cursor = 0;
		uint64_t	ceiling = 0;
		uint64_t	loaded[BACKENDS] = {0};

		memset(given, 0, sizeof(given));
		for (int step = 0; step < 200; step++)
		{
			int			backend = (int) (random_number() % BACKENDS);
			SfLeaseTerms terms = {.layout = &layout,.range = {1, 6},.last_tick = sf_layout_last_tick(&layout)};
			SfLease		lease;

			if (random_number() % 2)
			{
				loaded[backend] = cursor;
				continue;
			}
			terms.now_tick = (int64_t) (random_number() % 34) - 2;
			terms.last_allowed_tick = terms.now_tick + 2;
			terms.ceiling = ceiling;
			terms.size = 1 + (uint32_t) (random_number() % 4);
			terms.jitter = (uint32_t) (random_number() % 3);
			switch (sf_lease_next(&terms, loaded[backend], &lease))
			{
				case SF_LEASE_OK:
					if (cursor != loaded[backend])	/* the swap fails */
						break;
					cursor = lease.end;
					leases++;
					beyond += lease.end > ceiling;
					for (uint64_t position = lease.start; position < lease.end; position++)
						twice += given[position]++;
					break;
				case SF_LEASE_AT_CEILING:
					ceiling += 24;
					break;
				default:
					break;
			}
		}
	}
	is_int(twice, 0, "no position is given away twice");
	is_int(beyond, 0, "no position beyond the ceiling is given away");
	ok(leases > 10000, "%d leases were taken", leases);
}

static void
test_widest_sequence(void)
{
	SfLayout	layout;
	SfParseError error;
	SfLeaseTerms terms = {.layout = &layout,.range = {0, SF_SEQUENCE_MAX},.last_tick = UINT32_MAX,.now_tick = 1,
	.last_allowed_tick = 1,.ceiling = UINT64_MAX,.size = UINT32_MAX};
	SfLease		lease;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=32 sequence=31", &layout, &error),
	   "31 bits of sequence parse");
	is_int(sf_lease_next(&terms, 0, &lease), SF_LEASE_OK, "a whole tick");
	is_int((int64_t) lease.start, INT64_C(1) << 31, "from its first position");
	is_int((int64_t) lease.end, INT64_C(2) << 31, "to its last");
	is_int(sf_lease_next(&terms, lease.end, &lease), SF_LEASE_AHEAD, "then the next tick");

	/* The line that ends at 2^63: the cursor behind its end is no int64. */
	ok(sf_layout_parse("epoch=1970-01-01 tick=1us timestamp=63", &layout, &error), "63 bits parse");
	terms.range = sf_sequence_range_within(&layout, terms.range);
	terms.now_tick = terms.last_allowed_tick = INT64_MAX;
	terms.last_tick = sf_layout_last_tick(&layout);
	is_int(sf_lease_next(&terms, 0, &lease), SF_LEASE_OK, "the last position of all");
	ok(lease.end == UINT64_C(1) << 63, "ends the line");
	is_int(sf_lease_next(&terms, lease.end, &lease), SF_LEASE_EXHAUSTED, "then nothing");
}

static void
test_next_tick(void)
{
	SfLayout	layout = small_layout();

	is_int((int64_t) sf_position_next_tick(&layout, 16), 24, "the next tick, from the start of one");
	is_int((int64_t) sf_position_next_tick(&layout, 17), 24, "from within one");
	is_int((int64_t) sf_position_next_tick(&layout, 23), 24, "from the end of one");
}

static void
test_size(void)
{
	SfSequenceRange twelve_bits = {0, 4095};
	SfSequenceRange few = {10, 20};
	SfSequenceRange all = {0, SF_SEQUENCE_MAX};

	is_int(sf_lease_size_max(twelve_bits), 64, "a 64th of a tick");
	is_int(sf_lease_size_max(few), 1, "at least one");
	is_int(sf_lease_size_max(all), 1 << 25, "of the widest sequence");
	is_int(sf_lease_size_next(0, 0, true, 64), 1, "the first lease has one");
	is_int(sf_lease_size_next(4, 0, false, 64), 8, "used up in its tick: doubled");
	is_int(sf_lease_size_next(64, 0, false, 64), 64, "but no more than the most");
	is_int(sf_lease_size_next(4, 0, true, 64), 4, "used up, but its tick passed: kept");
	is_int(sf_lease_size_next(8, 4, true, 64), 8, "half left over: kept");
	is_int(sf_lease_size_next(8, 5, true, 64), 4, "more left over: halved");
	is_int(sf_lease_size_next(1, 1, true, 64), 1, "but no less than one");
}

static void
test_ceiling(void)
{
	SfLayout	layout;
	SfParseError error;
	uint64_t	ceiling;

	ok(sf_layout_parse("epoch=2000-01-01 tick=1ms timestamp=41 machine=10 sequence=12",
					   &layout, &error), "a layout parses");
	is_int(sf_ceiling_reserve(&layout), 1000000, "a second is reserved");
	ceiling = sf_ceiling_next(&layout, 5000000, 0);
	is_int((int64_t) ceiling, INT64_C(6000) << 12, "a second past the clock");
	is_int((int64_t) sf_ceiling_next(&layout, 5000001, 0), INT64_C(6001) << 12, "rounded up to a tick");
	is_int((int64_t) sf_ceiling_next(&layout, 5000000, (UINT64_C(7000) << 12) + 5),
		   INT64_C(8000) << 12, "a second past the cursor, where that is ahead");
	is_int((int64_t) sf_ceiling_next(&layout, -INT64_C(9000000000), 0),
		   INT64_C(1000) << 12, "under a clock before the epoch");
	ok(!sf_ceiling_is_near(&layout, UINT64_C(5499) << 12, ceiling), "not near before the middle");
	ok(sf_ceiling_is_near(&layout, UINT64_C(5500) << 12, ceiling), "near at the middle");

	ok(sf_layout_parse("epoch=2000-01-01 tick=1s timestamp=4 sequence=2", &layout, &error),
	   "a layout of 16 seconds parses");
	is_int(sf_ceiling_reserve(&layout), 2000000, "two ticks are reserved");
	is_int((int64_t) sf_ceiling_next(&layout, 13000000, 0), 15 << 2, "up to the last tick");
	ok(!sf_ceiling_is_near(&layout, 13 << 2, 15 << 2), "not near in the first of them");
	ok(sf_ceiling_is_near(&layout, 14 << 2, 15 << 2), "near in the second");
	is_int((int64_t) sf_ceiling_next(&layout, 14000000, 0), 16 << 2, "up to the end of the line");
	is_int((int64_t) sf_ceiling_next(&layout, 99000000, 0), 16 << 2, "and no further");
}

int
main(void)
{
	test_against_rule();
	test_race();
	test_widest_sequence();
	test_next_tick();
	test_size();
	test_ceiling();
	return done_testing();
}
