/*
 * layouts.c
 *	  Prints the layouts of the proofs that do not end for any layout: name, tab, initializer of SfLayout.
 *
 * They are the presets, type sno's, and the extremes of what sf_layout_parse permits.
 */
#include "layout.h"
#include "sno.h"

#include <stdio.h>

static const SfPreset extremes[] = {
	{"longest", "epoch=0001-01-01 tick=1us timestamp=63"},
	{"shortest", "epoch=9999-12-31T23:59:59.999999Z tick=1us timestamp=1"},
	{"last instant", "epoch=0001-01-01 tick=526000us timestamp=44"},
	{"widest machine ID", "epoch=9999-12-31 tick=1s timestamp=32 machine=31"},
	{"widest sequence", "epoch=2000-01-01 tick=1s timestamp=32 sequence=31"},
	{"widest fields", "epoch=0001-01-01 tick=1s timestamp=1 machine=31 sequence=31"},
	{"sequence above", "epoch=2000-01-01 tick=999999us timestamp=1 sequence=31 machine=31"},
};

static void
print(const char *name, const SfLayout *layout)
{
	printf("%s\t{%lld,%d,%d,%d,%d,%d,%d,%d}\n", name, (long long) layout->epoch, layout->tick_length,
		   layout->timestamp_bits, layout->machine_bits, layout->sequence_bits,
		   layout->timestamp_shift, layout->machine_shift, layout->sequence_shift);
}

static int
print_all(const SfPreset *presets, int count)
{
	for (int i = 0; i < count; i++)
	{
		SfLayout	layout;
		SfParseError error;

		if (!sf_layout_parse(presets[i].definition, &layout, &error))
		{
			fprintf(stderr, "%s: %s\n", presets[i].name, error.message);
			return 1;
		}
		print(presets[i].name, &layout);
	}
	return 0;
}

int
main(void)
{
	print("sno", &sf_sno_layout);
	return print_all(sf_presets, sf_preset_count) ||
		print_all(extremes, sizeof(extremes) / sizeof(extremes[0]));
}
