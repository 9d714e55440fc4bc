/*
 * position.c
 *	  Positions and their ticks and sequence numbers determine each other, in the same order, and the
 *	  position after the last one of a layout does not overflow.
 *
 * Any layout, any two positions from the first to the one after the last, any range of sequence
 * numbers whose min fits the layout.  The code has no loop.
 */
#include "batch.h"
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	SfFields	fields = any_fields(&layout);
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	uint64_t	position = nondet_uint64();
	uint64_t	other = nondet_uint64();
	uint64_t	composed = sf_position(&layout, fields.tick, fields.sequence);
	uint64_t	next;
	SfSequenceRange range = {nondet_uint32(), nondet_uint32()};
	SfSequenceRange within = sf_sequence_range_within(&layout, range);

	always(end != 0 && end - 1 == sf_position(&layout, sf_layout_last_tick(&layout),
											  (uint32_t) sf_field_max(layout.sequence_bits)));
	always(composed < end);
	always(sf_position_tick(&layout, composed) == fields.tick);
	always(sf_position_sequence(&layout, composed) == fields.sequence);

	assume(position <= end && other <= end);
	always(sf_position(&layout, sf_position_tick(&layout, position),
					   sf_position_sequence(&layout, position)) == position);
	always(sf_position_tick(&layout, position) <= sf_position_tick(&layout, other) || position > other);

	/* The next tick: no position is between it and the tick of the position. */
	assume(position < end);
	next = sf_position_next_tick(&layout, position);
	always(next > position && next <= end && sf_position_sequence(&layout, next) == 0);
	always(other <= position || other >= next ||
		   sf_position_tick(&layout, other) == sf_position_tick(&layout, position));

	assume(range.min <= range.max && range.min <= sf_field_max(layout.sequence_bits));
	always(within.min == range.min && within.min <= within.max && within.max <= range.max);
	always((fields.sequence <= within.max) == (fields.sequence <= range.max));

	sometimes(position + 1 == end);
	sometimes(other > position && other < next);
	sometimes(within.max < range.max);
}
