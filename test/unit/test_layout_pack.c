/*
 * test_layout_pack.c
 *	  Layouts as two numbers: each becomes itself again, and a damaged bit is noticed.
 */
#include "layout.h"
#include "tap.h"

static void
check_layout(const char *text)
{
	SfLayout	layout;
	SfLayout	unpacked;
	SfParseError error;
	SfPackedLayout packed;
	int			unnoticed = 0;

	ok(sf_layout_parse(text, &layout, &error), text);
	packed = sf_layout_pack(&layout);
	ok(packed.epoch != 0 && packed.fields != 0, "no number is 0");
	ok(sf_layout_unpack(packed, &unpacked) && sf_layout_equal(&layout, &unpacked),
	   "unpacked, it is the same layout");
	for (int bit = 0; bit < 64; bit++)
	{
		SfPackedLayout other = packed;

		other.epoch ^= UINT64_C(1) << bit;
		unnoticed += sf_layout_unpack(other, &unpacked);
		other = packed;
		other.fields ^= UINT64_C(1) << bit;
		unnoticed += sf_layout_unpack(other, &unpacked);
	}
	ok(unnoticed == 0, "each bit that changes is noticed");
}

int
main(void)
{
	SfLayout	layout;
	SfPackedLayout none = {0};

	for (int i = 0; i < sf_preset_count; i++)
		check_layout(sf_presets[i].definition);
	check_layout("epoch=0001-01-01 tick=1us timestamp=1");
	check_layout("epoch=9999-12-31 tick=1s timestamp=32 machine=31");
	check_layout("epoch=2000-01-01 tick=1s timestamp=32 sequence=31");
	check_layout("epoch=2000-01-01 tick=1us timestamp=61 sequence=1 machine=1");
	check_layout("epoch=2000-01-01 tick=1us timestamp=61 machine=1 sequence=1");
	ok(!sf_layout_unpack(none, &layout), "zeros are no layout");
	return done_testing();
}
