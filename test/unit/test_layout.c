/*
 * test_layout.c
 *	  Layouts: presets, definitions, bad definitions, ticks and boundaries.
 */
#include "layout.h"
#include "tap.h"

#define TWITTER "epoch=1288834974657ms tick=1ms timestamp=41 machine=10 sequence=12"

static SfLayout
layout_of(const char *text)
{
	SfLayout	layout;
	SfParseError error;

	if (!sf_layout_parse(text, &layout, &error))
	{
		ok(false, "layout \"%s\" parses: at %zu, %s", text, error.position, error.message);
		memset(&layout, 0, sizeof(layout));
	}
	return layout;
}

/* A preset is read from its name or its definition, and written in a form that can be read. */
static void
test_presets(void)
{
	for (int i = 0; i < sf_preset_count; i++)
	{
		SfLayout	layout = layout_of(sf_presets[i].name);
		SfLayout	defined = layout_of(sf_presets[i].definition);
		SfLayout	again;
		char		text[SF_LAYOUT_TEXT_SIZE];

		ok(sf_layout_equal(&layout, &defined), "%s is its definition", sf_presets[i].name);
		sf_layout_format(&layout, text);
		again = layout_of(text);
		ok(sf_layout_equal(&layout, &again), "%s survives format and parse", sf_presets[i].name);
	}
}

/* The fields in each order, and without a machine ID. */
static void
test_places(void)
{
	static const struct
	{
		const char *name;
		const char *definition;
		int			timestamp_shift;
		int			machine_shift;
		int			sequence_shift;
	}			cases[] = {
		{"twitter", "epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12", 22, 12, 0},
		{"sonyflake", "epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16", 24, 0, 16},
		{"mastodon", "epoch=1970-01-01T00:00:00Z tick=1ms timestamp=47 sequence=16", 16, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		SfLayout	layout = layout_of(cases[i].name);
		char		text[SF_LAYOUT_TEXT_SIZE];

		sf_layout_format(&layout, text);
		is_text(text, cases[i].definition, cases[i].name);
		is_int(layout.timestamp_shift, cases[i].timestamp_shift, "timestamp's place");
		is_int(layout.machine_shift, cases[i].machine_shift, "machine's place");
		is_int(layout.sequence_shift, cases[i].sequence_shift, "sequence's place");
	}
}

static void
test_equal(void)
{
	SfLayout	twitter = layout_of("twitter");
	SfLayout	same = layout_of("\tepoch=2010-11-04T01:42:54.657Z  timestamp=41\n machine=10 sequence=12 tick=0.001s ");
	static const char *const others[] = {
		"discord",
		"epoch=1288834974657ms tick=2ms timestamp=41 machine=10 sequence=12",
		"epoch=1288834974657ms tick=1ms timestamp=40 machine=10 sequence=12",
		"epoch=1288834974657ms tick=1ms timestamp=41 machine=11 sequence=11",
		"epoch=1288834974657ms tick=1ms timestamp=41 sequence=12 machine=10",
		"epoch=1288834974657ms tick=1ms timestamp=41 machine=22",
		"epoch=1288834974657ms tick=1ms timestamp=41 sequence=22",
	};
	SfLayout	zero_machine = layout_of("epoch=0s tick=1ms timestamp=41 sequence=12 machine=0");
	SfLayout	no_machine = layout_of("epoch=0s tick=1ms timestamp=41 sequence=12");

	ok(sf_layout_equal(&twitter, &same), "the same layout, written otherwise");
	ok(sf_layout_equal(&zero_machine, &no_machine), "no bits and no key are the same");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
	{
		SfLayout	other = layout_of(others[i]);

		ok(!sf_layout_equal(&twitter, &other), "not the same: %s", others[i]);
	}
}

static void
test_bad_definitions(void)
{
	static const struct
	{
		const char *text;
		size_t		position;
		const char *message;
	}			bad[] = {
		{"", 1, "the text is empty"},
		{"  ", 1, "the text is empty"},
		{"twiter", 1, "no preset is named \"twiter\""},
		{"Twitter", 1, "no preset is named \"Twitter\""},
		{" twitter", 2, "no preset is named \"twitter\""},
		{"twitter tick=1ms", 1, "no preset is named \"twitter\""},
		{TWITTER " foo=1", 68, "unknown key \"foo\""},
		{TWITTER " foo", 68, "unknown key \"foo\""},
		{TWITTER " =1", 68, "unknown key \"\""},
		{TWITTER " machine", 68, "key \"machine\" is given twice"},
		{TWITTER " timestamp=2", 68, "key \"timestamp\" is given twice"},
		{TWITTER " epoch=0s", 68, "key \"epoch\" is given twice"},
		{"epoch= tick=1ms timestamp=41", 1, "key \"epoch\" has no value"},
		{"epoch=0s tick timestamp=41", 10, "key \"tick\" has no value"},
		{"epoch=0s tick=1ms timestamp=x", 29, "\"x\" is not a number of bits"},
		{"epoch=0s tick=1ms timestamp=-1", 29, "\"-1\" is not a number of bits"},
		{"epoch=0s tick=1ms timestamp=4x", 29, "\"4x\" is not a number of bits"},
		{"epoch=0s tick=1us timestamp=64", 29, "field \"timestamp\" has more than 63 bits"},
		{"epoch=0s tick=1us timestamp=99999999999999999999", 29, "field \"timestamp\" has more than 63 bits"},
		{"epoch=0s tick=1ms timestamp=31 machine=32", 40, "field \"machine\" has 32 bits, more than 31"},
		{"epoch=0s tick=1ms timestamp=31 sequence=32", 41, "field \"sequence\" has 32 bits, more than 31"},
		{"epoch=0s tick=1ms timestamp=41 machine=11 sequence=12", 52, "the fields have more than 63 bits together"},
		{"epoch=0s tick=1ms machine=10 sequence=12", 41, "field \"timestamp\" is missing or has no bits"},
		{"epoch=0s tick=1ms timestamp=0 machine=10", 41, "field \"timestamp\" is missing or has no bits"},
		{"epoch=0s tick=1ms machine=10 timestamp=41 sequence=12", 19, "field \"timestamp\" is not first: \"machine\" is before it"},
		{"epoch=0s tick=1ms sequence=12 timestamp=41", 19, "field \"timestamp\" is not first: \"sequence\" is before it"},
		{"tick=1ms timestamp=41", 22, "key \"epoch\" is missing"},
		{"epoch=0s timestamp=41", 22, "key \"tick\" is missing"},
		{"epoch=2024-02-30 tick=1ms timestamp=41", 7,
		"epoch \"2024-02-30\" is neither a UTC time such as 2024-01-01T00:00:00Z nor a Unix time such as 1704067200000ms"},
		{"epoch=2024-01-01T00:00:00+02:00x-and-a-very-long-tail tick=1ms timestamp=41", 7,
		"epoch \"2024-01-01T00:00:00+02:00x-and-a\" is neither a UTC time such as 2024-01-01T00:00:00Z nor a Unix time such as 1704067200000ms"},
		{"epoch=0s tick=fast timestamp=41", 15, "tick \"fast\" is not a number followed by ns, us, ms or s"},
		{"epoch=0s tick=1.5us timestamp=41", 15, "tick \"1.5us\" is not a whole number of microseconds"},
		{"epoch=0s tick=0ms timestamp=41", 15, "tick \"0ms\" is not within 1us and 1s"},
		{"epoch=0s tick=1.000001s timestamp=41", 15, "tick \"1.000001s\" is not within 1us and 1s"},
		{"epoch=2000-01-01 tick=1us timestamp=63", 37, "the last instant of 63 timestamp bits is outside of timestamptz"},
		{"epoch=0s tick=1ms timestamp=54", 29, "the last instant of 54 timestamp bits is outside of timestamptz"},
		{"epoch=0s tick=1s timestamp=44", 28, "the last instant of 44 timestamp bits is outside of timestamptz"},
		{"epoch=0s tick=1ms timestamp=41 f\xc3\xb6o=1", 32, "unknown key \"f??o\""},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		SfLayout	layout;
		SfParseError error = {0, ""};

		ok(!sf_layout_parse(bad[i].text, &layout, &error), "refused: \"%s\"", bad[i].text);
		is_int((int64_t) error.position, (int64_t) bad[i].position, "its position");
		is_text(error.message, bad[i].message, "its message");
	}
}

/* The largest layouts that fit must be accepted. */
static void
test_limits(void)
{
	SfLayout	layout = layout_of("epoch=1970-01-01 tick=1us timestamp=63");

	/* 2^63 - 1 us after 1970 is within timestamptz, by 29 years. */
	is_int(sf_layout_tick_start(&layout, sf_layout_last_tick(&layout)) - SF_UNIX_EPOCH,
		   INT64_MAX, "63 bits of microseconds since 1970");
	is_int(sf_layout_last_id(&layout), INT64_MAX, "whose last ID is the last bigint");

	layout = layout_of("epoch=0001-01-01 tick=1s timestamp=1 machine=31 sequence=31");
	is_int(sf_layout_last_id(&layout), INT64_MAX, "fields of 1, 31 and 31 bits");
	is_int(layout.timestamp_shift, 62, "the timestamp is the highest bit");

	layout = layout_of("epoch=2000-01-01 tick=1s timestamp=43");
	is_int(sf_layout_last_id(&layout), (INT64_C(1) << 43) - 1, "43 bits of seconds");
}

static void
test_ticks(void)
{
	SfLayout	layout = layout_of("epoch=2000-01-01 tick=10us timestamp=40 machine=3 sequence=4");

	is_int(sf_layout_tick_floor(&layout, 0), 0, "floor of the epoch");
	is_int(sf_layout_tick_floor(&layout, 9), 0, "floor in tick 0");
	is_int(sf_layout_tick_floor(&layout, 10), 1, "floor of the start of tick 1");
	is_int(sf_layout_tick_floor(&layout, -1), -1, "floor right before the epoch");
	is_int(sf_layout_tick_floor(&layout, -10), -1, "floor a tick before the epoch");
	is_int(sf_layout_tick_floor(&layout, -11), -2, "floor more than a tick before the epoch");
	is_int(sf_layout_tick_ceil(&layout, 0), 0, "ceil of the epoch");
	is_int(sf_layout_tick_ceil(&layout, 1), 1, "ceil in tick 0");
	is_int(sf_layout_tick_ceil(&layout, 10), 1, "ceil of the start of tick 1");
	is_int(sf_layout_tick_ceil(&layout, -1), 0, "ceil right before the epoch");
	is_int(sf_layout_tick_ceil(&layout, -10), -1, "ceil a tick before the epoch");
	is_int(sf_layout_tick_floor(&layout, INT64_MAX), INT64_MAX / 10, "floor of infinity");
	is_int(sf_layout_tick_ceil(&layout, INT64_MAX), INT64_MAX / 10 + 1, "ceil of infinity");
	is_int(sf_layout_tick_floor(&layout, INT64_MIN), INT64_MIN / 10 - 1, "floor of -infinity");
	is_int(sf_layout_tick_ceil(&layout, INT64_MIN), INT64_MIN / 10, "ceil of -infinity");

	/* The distance of infinity to an epoch before 2000 does not fit an int64. */
	layout = layout_of("epoch=1970-01-01 tick=1us timestamp=63");
	is_int(sf_layout_tick_floor(&layout, INT64_MAX), INT64_MAX, "floor saturates");
	is_int(sf_layout_tick_ceil(&layout, INT64_MAX), INT64_MAX, "ceil saturates");
	layout = layout_of("epoch=2020-01-01 tick=1us timestamp=41");
	is_int(sf_layout_tick_floor(&layout, INT64_MIN), INT64_MIN, "floor saturates below");
	is_int(sf_layout_tick_ceil(&layout, INT64_MIN), INT64_MIN, "ceil saturates below");
}

/* A random number of a random size, so that small numbers occur as well. */
static uint64_t
random_sized(int bits)
{
	return random_number() >> (64 - bits) >> random_number() % (uint64_t) bits;
}

static void
test_compose(void)
{
	for (int i = 0; i < sf_preset_count; i++)
	{
		SfLayout	layout = layout_of(sf_presets[i].name);
		int64_t		last_id = sf_layout_last_id(&layout);
		int			wrong = 0;
		SfFields	fields;

		for (int n = 0; n < 20000; n++)
		{
			int64_t		id = (int64_t) (random_sized(63) & (uint64_t) last_id);

			fields = sf_layout_decompose(&layout, id);
			wrong += fields.tick > sf_layout_last_tick(&layout) ||
				fields.machine > sf_field_max(layout.machine_bits) ||
				fields.sequence > sf_field_max(layout.sequence_bits) ||
				sf_layout_compose(&layout, fields) != id ||
				sf_layout_tick_floor(&layout, sf_layout_instant(&layout, id)) != (int64_t) fields.tick ||
				sf_layout_tick_ceil(&layout, sf_layout_instant(&layout, id)) != (int64_t) fields.tick;
		}
		is_int(wrong, 0, sf_presets[i].name);

		ok(sf_layout_holds(&layout, 0) && sf_layout_holds(&layout, last_id), "holds its ends");
		ok(!sf_layout_holds(&layout, -1) && !sf_layout_holds(&layout, INT64_MIN), "no negative number");
		ok(last_id == INT64_MAX || !sf_layout_holds(&layout, last_id + 1), "nothing above its end");
		fields = sf_layout_decompose(&layout, last_id);
		ok(fields.tick == sf_layout_last_tick(&layout), "the last tick");
		ok(fields.machine == sf_field_max(layout.machine_bits), "the last machine ID");
		ok(fields.sequence == sf_field_max(layout.sequence_bits), "the last sequence number");
	}
}

/* The rule is (id >= boundary(t)) == (time(id) >= t), except for an ID of INT64_MAX. */
static int
wrong_sides(const SfLayout *layout, SfInstant instant)
{
	int64_t		boundary = sf_layout_boundary(layout, instant);
	int64_t		last_id = sf_layout_last_id(layout);
	int			wrong = boundary < 0;
	uint64_t	ids[8] = {
		0, 1, (uint64_t) boundary, (uint64_t) boundary - 1, (uint64_t) boundary + 1,
		(uint64_t) last_id, (uint64_t) last_id - 1, random_sized(63)
	};

	for (int i = 0; i < 8; i++)
	{
		int64_t		id = (int64_t) (ids[i] & (uint64_t) last_id);

		if (id != INT64_MAX)
			wrong += (id >= boundary) != (sf_layout_instant(layout, id) >= instant);
	}
	return wrong;
}

static void
test_boundary(void)
{
	static const char *const more[] = {
		"epoch=1970-01-01 tick=1us timestamp=63",
		"epoch=2000-01-01 tick=1s timestamp=43",
		"epoch=0001-01-01 tick=7us timestamp=30 machine=1 sequence=31",
		"epoch=2024-01-01 tick=1ms timestamp=1",
	};

	for (int i = 0; i < sf_preset_count + 4; i++)
	{
		const char *name = i < sf_preset_count ? sf_presets[i].name : more[i - sf_preset_count];
		SfLayout	layout = layout_of(name);
		SfInstant	end = sf_layout_tick_start(&layout, sf_layout_last_tick(&layout));
		int			wrong = 0;

		for (int n = 0; n < 20000; n++)
		{
			uint64_t	tick = random_sized(63) & sf_layout_last_tick(&layout);
			SfInstant	start = sf_layout_tick_start(&layout, tick);

			wrong += wrong_sides(&layout, start);
			wrong += wrong_sides(&layout, start - 1);
			wrong += wrong_sides(&layout, start + 1);
			wrong += wrong_sides(&layout, (SfInstant) random_number());
		}
		for (int offset = -3; offset <= 3; offset++)
		{
			wrong += wrong_sides(&layout, layout.epoch + offset);
			wrong += wrong_sides(&layout, end + offset);
			wrong += wrong_sides(&layout, end + layout.tick_length + offset);
		}
		wrong += wrong_sides(&layout, INT64_MIN) + wrong_sides(&layout, INT64_MIN + 1);
		wrong += wrong_sides(&layout, INT64_MAX) + wrong_sides(&layout, INT64_MAX - 1);
		is_int(wrong, 0, name);
	}
}

int
main(void)
{
	test_presets();
	test_places();
	test_equal();
	test_bad_definitions();
	test_limits();
	test_ticks();
	test_compose();
	test_boundary();
	return done_testing();
}
