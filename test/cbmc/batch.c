/*
 * batch.c
 *	  sf_batch_next takes the first free positions, and none that it must not take.
 *
 * Any layout, cursor (up to the position after the last one), clock, limits and jitter, any range of
 * sequence numbers that fits the layout, any size of at least 1, and any end of the reservation.
 * The code has no loop.
 */
#include "batch.h"
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	uint64_t	cursor = nondet_uint64();
	uint64_t	free = nondet_uint64();
	uint64_t	tick;
	SfBatch		batch;
	SfBatchStatus status;
	SfBatchTerms terms = {
		.layout = &layout,
		.range = {nondet_uint32(), nondet_uint32()},
		.now_tick = nondet_int64(),
		.last_allowed_tick = nondet_int64(),
		.last_tick = nondet_uint64(),
		.reserved_until = nondet_uint64(),
		.size = nondet_uint32(),
		.jitter = nondet_uint32()
	};
	SfSequenceRange range = terms.range;

	assume(range.min <= range.max && range.max <= sf_field_max(layout.sequence_bits));
	assume(terms.last_tick <= sf_layout_last_tick(&layout));
	assume(cursor <= end && terms.size >= 1);
	status = sf_batch_next(&terms, cursor, &batch);

	/*
	 * Any position that the rules leave free: not before the cursor, the
	 * clock or the range.
	 */
	tick = sf_position_tick(&layout, free);
	assume(free >= cursor && free < end);
	assume(terms.now_tick < 0 || tick >= (uint64_t) terms.now_tick);
	assume(sf_position_sequence(&layout, free) >= range.min);
	assume(sf_position_sequence(&layout, free) <= range.max);
	always(batch.tick <= tick);

	always((status == SF_BATCH_EXHAUSTED) == (batch.tick > terms.last_tick));
	if (status != SF_BATCH_EXHAUSTED)
		always((status == SF_BATCH_AHEAD) ==
			   (terms.last_allowed_tick < 0 || batch.tick > (uint64_t) terms.last_allowed_tick));
	if (status == SF_BATCH_NOT_RESERVED)
		always(terms.jitter > 0 || free >= terms.reserved_until);
	if (status == SF_BATCH_OK)
	{
		uint64_t	last = batch.end - 1;

		always(batch.start >= cursor);
		always(batch.start < batch.end);
		always(batch.end <= terms.reserved_until);
		always(sf_position_tick(&layout, batch.start) == batch.tick);
		always(sf_position_tick(&layout, last) == batch.tick);
		always(terms.now_tick < 0 || batch.tick >= (uint64_t) terms.now_tick);
		always(sf_position_sequence(&layout, batch.start) >= range.min);
		always(sf_position_sequence(&layout, last) <= range.max);

		/* It starts at the first free position, or is later by the jitter. */
		always(batch.start <= free || (terms.jitter > 0 && batch.start - free <= terms.jitter));

		/*
		 * It is shorter than wanted only at the end of the range or of the
		 * reservation.
		 */
		always(batch.end - batch.start <= terms.size);
		always(batch.end - batch.start == terms.size || batch.end == terms.reserved_until ||
			   sf_position_sequence(&layout, last) == range.max);
		always(sf_batch_ends_tick(&terms, &batch) == (sf_position_sequence(&layout, last) == range.max));
		sometimes(batch.start > cursor + 1);
		sometimes(batch.start > free);
	}
	sometimes(status == SF_BATCH_AHEAD);
	sometimes(status == SF_BATCH_NOT_RESERVED);
	sometimes(status == SF_BATCH_EXHAUSTED);
}
