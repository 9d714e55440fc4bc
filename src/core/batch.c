/*
 * batch.c
 *	  One step of a generator: taking the next batch of free positions.
 */
#include "batch.h"
#include "hot.h"

static uint64_t
lesser_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether a tick is after another one, which is negative if it is before the epoch. */
static bool
is_after(uint64_t tick, int64_t other)
{
	return other < 0 || tick > (uint64_t) other;
}

SF_HOT SfBatchStatus
sf_batch_next(const SfBatchTerms *terms, uint64_t cursor, SfBatch *batch)
{
	const SfLayout *layout = terms->layout;
	uint64_t	tick = sf_position_tick(layout, cursor);
	uint32_t	sequence = sf_position_sequence(layout, cursor);
	uint64_t	tick_end;

	if (sequence > terms->range.max)	/* carry */
	{
		tick++;
		sequence = 0;
	}
	if (terms->now_tick >= 0 && (uint64_t) terms->now_tick > tick)
	{
		tick = (uint64_t) terms->now_tick;
		sequence = 0;
	}
	if (sequence <= terms->range.min)	/* nothing of the tick is taken yet */
		sequence = terms->range.min +
			(uint32_t) lesser_of(terms->jitter, terms->range.max - terms->range.min);

	batch->tick = tick;
	if (tick > terms->last_tick)
		return SF_BATCH_EXHAUSTED;
	if (is_after(tick, terms->last_allowed_tick))
		return SF_BATCH_AHEAD;

	batch->start = sf_position(layout, tick, sequence);
	if (batch->start >= terms->reserved_until)
		return SF_BATCH_NOT_RESERVED;
	tick_end = sf_position(layout, tick, terms->range.max) + 1;
	batch->end = lesser_of(lesser_of(batch->start + terms->size, tick_end), terms->reserved_until);
	return SF_BATCH_OK;
}
