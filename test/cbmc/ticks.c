/*
 * ticks.c
 *	  The ticks of an instant: the tick in which it lies, and the first that does not begin before
 *	  it.
 *
 * Any instant, any tick from 0 to the one after the last.  The code has no loop.
 */
#define EPOCHS_MATTER
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	uint64_t	last_tick = sf_layout_last_tick(&layout);
	uint64_t	tick = nondet_uint64();
	SfInstant	instant = nondet_int64();
	SfInstant	start;
	int64_t		floor = sf_layout_tick_floor(&layout, instant);
	int64_t		ceil = sf_layout_tick_ceil(&layout, instant);

	assume(tick <= last_tick + 1);
	start = sf_layout_tick_start(&layout, tick);
	always(start >= layout.epoch);
	always(tick == last_tick + 1 || start < SF_INSTANT_END);

	/* The last of 63 bits is INT64_MAX, which also stands for later ones. */
	if (tick < INT64_MAX)
	{
		always((floor >= (int64_t) tick) == (instant >= start));
		always((ceil <= (int64_t) tick) == (instant <= start));
	}
	always((floor >= 0) == (instant >= layout.epoch));
	always(ceil == floor || ceil - 1 == floor);

	sometimes(floor < 0 && ceil == 0);
	sometimes(ceil == (int64_t) tick && instant < start);
	sometimes(tick == last_tick + 1 && instant > start);
}
