/*
 * lease.c
 *	  One step of the generator: taking the next range of free positions.
 */
#include "lease.h"

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Compares a tick with one that may lie before the epoch. */
static bool
is_after(uint64_t tick, int64_t other)
{
	return other < 0 || tick > (uint64_t) other;
}

SfLeaseStatus
sf_lease_next(const SfLeaseTerms *terms, uint64_t cursor, SfLease *lease)
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
	if (sequence <= terms->range.min)	/* not touched yet */
		sequence = terms->range.min +
			(uint32_t) least(terms->jitter, terms->range.max - terms->range.min);

	lease->tick = tick;
	if (tick > terms->last_tick)
		return SF_LEASE_EXHAUSTED;
	if (is_after(tick, terms->last_allowed_tick))
		return SF_LEASE_AHEAD;

	lease->start = sf_position(layout, tick, sequence);
	if (lease->start >= terms->ceiling)
		return SF_LEASE_AT_CEILING;
	tick_end = sf_position(layout, tick, terms->range.max) + 1;
	lease->end = least(least(lease->start + terms->size, tick_end), terms->ceiling);
	return SF_LEASE_OK;
}
