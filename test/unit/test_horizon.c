/*
 * test_horizon.c
 *	  From cursors to horizons: all of a small layout, in both orders of its fields, and the ends of
 *	  large ones.
 */
#include "batch.h"
#include "tap.h"

static SfLayout
layout_of(const char *text)
{
	SfLayout	layout;
	SfParseError error;

	ok(sf_layout_parse(text, &layout, &error), text);
	return layout;
}

static int64_t
id_at(const SfLayout *layout, uint64_t position, uint32_t machine_id)
{
	SfFields	fields = {
		.tick = sf_position_tick(layout, position),
		.machine = machine_id,
		.sequence = sf_position_sequence(layout, position)
	};

	return sf_layout_compose(layout, fields);
}

/*
 * How many IDs are on the wrong side of the horizon of a cursor: those before it below, those at it or
 * after it not below.  Another machine ID can be in earlier ticks and later ones.
 */
static int
wrong_side(const SfLayout *layout, uint64_t cursor, uint32_t machine_id)
{
	int64_t		horizon = sf_horizon_at(layout, cursor, machine_id);
	uint64_t	end = sf_position(layout, sf_layout_last_tick(layout) + 1, 0);
	uint64_t	tick = sf_position_tick(layout, cursor);
	int			wrong = 0;

	for (uint64_t position = 0; position < end; position++)
		for (uint32_t machine = 0; machine <= sf_field_max(layout->machine_bits); machine++)
			if ((machine == machine_id || sf_position_tick(layout, position) != tick) &&
				(id_at(layout, position, machine) < horizon) != (position < cursor))
				wrong++;
	return wrong;
}

static void
test_small(const char *text)
{
	SfLayout	layout = layout_of(text);
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	int			wrong = 0;
	int			lower = 0;

	for (uint32_t machine = 0; machine <= sf_field_max(layout.machine_bits); machine++)
		for (uint64_t cursor = 0; cursor <= end; cursor++)
		{
			wrong += wrong_side(&layout, cursor, machine);
			lower += cursor > 0 &&
				sf_horizon_at(&layout, cursor, machine) < sf_horizon_at(&layout, cursor - 1, machine);
		}
	is_int(wrong, 0, "IDs on the wrong side of a horizon");
	is_int(lower, 0, "horizons that are lower than the one before");
}

int
main(void)
{
	SfLayout	twitter = layout_of("twitter");
	SfLayout	sonyflake = layout_of("sonyflake");
	SfLayout	full = layout_of("epoch=1970-01-01 tick=1us timestamp=55 machine=3 sequence=5");

	test_small("epoch=2000-01-01 tick=1ms timestamp=3 machine=2 sequence=3");
	test_small("epoch=2000-01-01 tick=1ms timestamp=3 sequence=3 machine=2");
	test_small("epoch=2000-01-01 tick=1ms timestamp=4 sequence=2");
	test_small("epoch=2000-01-01 tick=1ms timestamp=5 machine=2");

	is_int(sf_horizon_at(&twitter, 1 << 12 | 5, 3), (1 << 22 | 3 << 12 | 4) + 1, "within a tick");
	is_int(sf_horizon_at(&twitter, 1 << 12, 3), 1 << 22, "at the start of a tick");
	is_int(sf_horizon_at(&twitter, 0, 1023), 0, "before all");
	is_int(sf_horizon_at(&sonyflake, 1 << 8 | 5, 3), (1 << 24 | 4 << 16 | 3) + 1,
		   "with the sequence above the machine ID");
	is_int(sf_horizon_at(&twitter, UINT64_C(1) << 53, 0), INT64_MAX, "after the last tick");
	is_int(sf_horizon_at(&full, UINT64_C(1) << 60, 0), INT64_MAX, "after the last ID of 63 bits");
	is_int(sf_horizon_at(&sonyflake, UINT64_C(1) << 47, 0), INT64_MAX, "after the last one of sonyflake");
	return done_testing();
}
