/*
 * test_instant.c
 *	  Instants and durations: published values, round trips, bad input.
 */
#include "instant.h"
#include "tap.h"

static void
test_instants(void)
{
	/* The seconds since 1970 are from date -u -d TEXT +%s. */
	static const struct
	{
		const char *text;
		int64_t		unix_us;
	}			values[] = {
		{"2000-01-01", INT64_C(946684800000000)},
		{"2000-01-01T00:00:00Z", INT64_C(946684800000000)},
		{"1970-01-01T00:00:00Z", 0},
		{"1970-01-01T00:00:00.000001Z", 1},
		{"1969-12-31T23:59:59.999999Z", -1},
		{"2010-11-04T01:42:54.657Z", INT64_C(1288834974657000)},
		{"2024-02-29", INT64_C(1709164800000000)},
		{"2000-02-29", INT64_C(951782400000000)},
		{"2100-03-01", INT64_C(4107542400000000)},
		{"0001-01-01", -INT64_C(62135596800000000)},
		{"9999-12-31T23:59:59.999999Z", INT64_C(253402300799999999)},
		{"2024-01-01T00:00:00.5Z", INT64_C(1704067200500000)},
		{"1288834974657ms", INT64_C(1288834974657000)},
		{"1409529600s", INT64_C(1409529600000000)},
		{"0s", 0},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
	{
		SfInstant	instant = 42;

		ok(sf_instant_parse(values[i].text, strlen(values[i].text), &instant),
		   "\"%s\" is an instant", values[i].text);
		is_int(instant - SF_UNIX_EPOCH, values[i].unix_us, values[i].text);
	}
}

static void
test_bad_instants(void)
{
	static const char *const texts[] = {
		"", "2024", "2024-1-1", "2024-13-01", "2024-00-01", "2024-01-00",
		"2024-01-32", "2023-02-29", "2100-02-29", "1900-02-29", "2024-04-31",
		"0000-01-01", "2024-01-01T", "2024-01-01T00:00Z", "2024-01-01T00:00:00",
		"2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z",
		"2024-01-01T00:00:00.Z", "2024-01-01T00:00:00.1234567Z",
		"2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00Zx", "2024-01-01 ",
		"2024-01-01t00:00:00z", "-1ms", "ms", "99999999999999999999", "1.5us",
		"20240101x", "1288834974657"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		SfInstant	instant = 42;

		ok(!sf_instant_parse(texts[i], strlen(texts[i]), &instant) && instant == 42,
		   "\"%s\" is no instant", texts[i]);
	}
}

/* Each day of 800 years, which is two eras, so that each kind of century occurs. */
static void
test_round_trip(void)
{
	const int64_t day = INT64_C(86400000000);
	int			wrong = 0;
	int			days = 0;

	for (SfInstant instant = -400 * INT64_C(365) * day; days < 800 * 365; days++, instant += day)
	{
		char		text[SF_INSTANT_TEXT_SIZE];
		SfInstant	again = 42;
		SfInstant	exact = instant + (SfInstant) (random_number() % (uint64_t) day);

		sf_instant_format(exact, text);
		wrong += !sf_instant_parse(text, strlen(text), &again) || again != exact;
	}
	is_int(wrong, 0, "instants of 800 years survive format and parse");
}

static void
test_durations(void)
{
	static const struct
	{
		const char *text;
		SfDurationStatus status;
		int64_t		us;
	}			values[] = {
		{"1ms", SF_DURATION_OK, 1000},
		{"0.5ms", SF_DURATION_OK, 500},
		{"0.001ms", SF_DURATION_OK, 1},
		{"1000ns", SF_DURATION_OK, 1},
		{"10us", SF_DURATION_OK, 10},
		{"1s", SF_DURATION_OK, 1000000},
		{"0.1s", SF_DURATION_OK, 100000},
		{"1.0us", SF_DURATION_OK, 1},
		{"1.50000000000ms", SF_DURATION_OK, 1500},
		{"9223372036s", SF_DURATION_OK, INT64_C(9223372036000000)},
		{"1.5us", SF_DURATION_NOT_WHOLE, 0},
		{"0.0005ms", SF_DURATION_NOT_WHOLE, 0},
		{"100ns", SF_DURATION_NOT_WHOLE, 0},
		{"1000.05ns", SF_DURATION_NOT_WHOLE, 0},
		{"1.00005us", SF_DURATION_NOT_WHOLE, 0},
		{"1.00000000001s", SF_DURATION_NOT_WHOLE, 0},
		{"1000.000ns", SF_DURATION_OK, 1},
		{"0.0000000001s", SF_DURATION_NOT_WHOLE, 0},
		{"", SF_DURATION_BAD_SYNTAX, 0},
		{"ms", SF_DURATION_BAD_SYNTAX, 0},
		{".5ms", SF_DURATION_BAD_SYNTAX, 0},
		{"5.ms", SF_DURATION_BAD_SYNTAX, 0},
		{"1.2.3ms", SF_DURATION_BAD_SYNTAX, 0},
		{"1", SF_DURATION_BAD_SYNTAX, 0},
		{"1min", SF_DURATION_BAD_SYNTAX, 0},
		{"1 ms", SF_DURATION_BAD_SYNTAX, 0},
		{"-1ms", SF_DURATION_BAD_SYNTAX, 0},
		{"9223372037s", SF_DURATION_BAD_SYNTAX, 0},
		{"9223372036854775807s", SF_DURATION_BAD_SYNTAX, 0},
		{"99999999999999999999ns", SF_DURATION_BAD_SYNTAX, 0},
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
	{
		int64_t		duration = 0;

		ok(sf_duration_parse(values[i].text, strlen(values[i].text), &duration) == values[i].status,
		   "status of duration \"%s\"", values[i].text);
		is_int(duration, values[i].us, values[i].text);
	}
}

static void
test_duration_format(void)
{
	char		text[SF_INSTANT_TEXT_SIZE];

	sf_duration_format(1, text);
	is_text(text, "1us", "1 us");
	sf_duration_format(1500, text);
	is_text(text, "1500us", "1500 us");
	sf_duration_format(10000, text);
	is_text(text, "10ms", "10 ms");
	sf_duration_format(1000000, text);
	is_text(text, "1s", "1 s");
}

static void
test_duration_describe(void)
{
	static const struct
	{
		int64_t		us;
		const char *text;
	}			values[] = {
		{0, "0 ms"},
		{1, "1 us"},
		{999, "999 us"},
		{1000, "1 ms"},
		{12500, "12.5 ms"},
		{12549, "12.5 ms"},
		{INT64_C(999999), "999.9 ms"},
		{INT64_C(1000000), "1 s"},
		{INT64_C(119600000), "119.6 s"},
		{INT64_C(120000000), "2 min"},
		{INT64_C(3599999999), "59.9 min"},
		{INT64_C(3600000000), "1 h"},
		{INT64_C(5400000000), "1.5 h"},
		{INT64_C(172799999999), "47.9 h"},
		{INT64_C(172800000000), "2 days"},
		{INT64_C(315360000000000), "3650 days"},
		{-INT64_C(1500000), "-1.5 s"},
		{INT64_MAX, "106751991.1 days"},
		{INT64_MIN, "-106751991.1 days"},
	};
	char		text[SF_INSTANT_TEXT_SIZE];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		is_text(sf_duration_describe(values[i].us, text), values[i].text, values[i].text);
}

int
main(void)
{
	test_instants();
	test_bad_instants();
	test_round_trip();
	test_durations();
	test_duration_format();
	test_duration_describe();
	return done_testing();
}
