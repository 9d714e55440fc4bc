/*
 * position_at.c
 *	  sf_position_at is the first position whose tick does not begin before an instant.
 *
 * Any position of the layout, and any instant; with 63 bits of timestamp, any up to the last tick.  The code has no loop.
 */
#define EPOCHS_MATTER
#include "batch.h"
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	uint64_t	position = nondet_uint64();
	SfInstant	instant = nondet_int64();
	uint64_t	first = sf_position_at(&layout, instant);

	assume(position < end && is_within_int64(&layout, instant));
	always((position < first) ==
		   (sf_layout_tick_start(&layout, sf_position_tick(&layout, position)) < instant));
	always(first <= end);

	sometimes(first == end);
	sometimes(first == 0);
	sometimes(position >= first && first > 0);
}
