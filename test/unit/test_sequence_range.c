/*
 * test_sequence_range.c
 *	  Sequence ranges: valid texts, and the errors of invalid ones.
 */
#include "sequence_range.h"
#include "tap.h"

static void
test_good(void)
{
	static const struct
	{
		const char *text;
		uint32_t	min;
		uint32_t	max;
	}			good[] = {
		{"", 0, SF_SEQUENCE_MAX},
		{"0-0", 0, 0},
		{"0-2047", 0, 2047},
		{"2048-4095", 2048, 4095},
		{"7-7", 7, 7},
		{"0-2147483647", 0, 2147483647},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
	{
		SfSequenceRange range = {1, 2};
		SfParseError error;

		ok(sf_sequence_range_parse(good[i].text, &range, &error), "\"%s\" is a range", good[i].text);
		is_int(range.min, good[i].min, "its min");
		is_int(range.max, good[i].max, "its max");
	}
}

static void
test_bad(void)
{
	static const struct
	{
		const char *text;
		size_t		position;
		const char *message;
	}			bad[] = {
		{"-5", 1, "the lowest sequence number is missing"},
		{"x", 1, "the lowest sequence number is missing"},
		{" 0-1", 1, "the lowest sequence number is missing"},
		{"5", 2, "\"-\" is missing"},
		{"5 -6", 2, "\"-\" is missing"},
		{"5-", 3, "the highest sequence number is missing"},
		{"5-x", 3, "the highest sequence number is missing"},
		{"5--6", 3, "the highest sequence number is missing"},
		{"0-10 ", 5, "the range continues after the highest sequence number"},
		{"0-10-20", 5, "the range continues after the highest sequence number"},
		{"9-8", 1, "the lowest sequence number is above the highest"},
		{"0-2147483648", 3, "the highest sequence number is over 2147483647"},
		{"99999999999999999999-99999999999999999999", 1, "the lowest sequence number is over 2147483647"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		SfSequenceRange range = {1, 2};
		SfParseError error = {0, ""};

		ok(!sf_sequence_range_parse(bad[i].text, &range, &error) &&
		   range.min == 1 && range.max == 2, "refused: \"%s\"", bad[i].text);
		is_int((int64_t) error.position, (int64_t) bad[i].position, "its position");
		is_text(error.message, bad[i].message, "its message");
	}
}

static void
test_sno(void)
{
	static const struct
	{
		const char *text;
		bool		valid;
		uint32_t	min;
		uint32_t	max;
		size_t		position;	/* of the error */
	}			tests[] = {
		{"", true, 0, 65535, 0},
		{"0-65535", true, 0, 65535, 0},
		{"100-103", true, 100, 103, 0},
		{"103-100", true, 100, 103, 0},
		{"100-102", false, 0, 0, 1},
		{"102-100", false, 0, 0, 1},
		{"100-100", false, 0, 0, 1},
		{"0-65536", false, 0, 0, 1},
		{"65536-0", false, 0, 0, 1},
		{"0-", false, 0, 0, 3},
		{"0-4294967295", false, 0, 0, 3},
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		SfSequenceRange range = {7, 8};
		SfParseError error;
		bool		valid = sf_sno_sequence_range_parse(tests[i].text, &range, &error);

		ok(valid == tests[i].valid, "of type sno, \"%s\" is %s", tests[i].text, tests[i].valid ? "a range" : "none");
		if (valid)
			ok(range.min == tests[i].min && range.max == tests[i].max, "%u to %u", range.min, range.max);
		else
			is_int((int64_t) error.position, (int64_t) tests[i].position, error.message);
	}
}

int
main(void)
{
	test_good();
	test_bad();
	test_sno();
	return done_testing();
}
