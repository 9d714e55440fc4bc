/*
 * demand.h
 *	  How many IDs a session is expected to need, and so how many it takes at once.
 *
 * A session takes its IDs in batches.  Each batch costs a swap of the shared cursor.  The IDs that
 * are left of a batch are lost when its transaction ends, and when its tick has passed.  While the
 * cursor is behind the clock, that costs nothing: the server could not use all numbers of the tick
 * anyway.  While it is ahead, each ID that is lost is missing from the rate.  A batch is as large
 * as these limits allow:
 *
 * - Up to the number of IDs that both of the last two transactions have used, those that are still
 *   missing from it.  Of transactions of one size, nothing is lost.  Of transactions of two sizes
 *   in turn, nothing is lost by the smaller ones.
 * - Beyond it, an eighth of the IDs that the transaction has used so far.  So no more than an
 *   eighth is lost.
 * - The pace: what the session uses in a 32nd of a tick.  So about a 64th of a tick is lost when it
 *   passes.
 * - A 64th of the sequence numbers of a tick.  With 64 swaps a tick or fewer, sessions do not
 *   contend for the cursor.
 */
#ifndef SF_DEMAND_H
#define SF_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "sequence_range.h"

/* The demand of a session.  All zero before its first transaction. */
typedef struct SfDemand
{
	uint64_t	used;			/* IDs in the batches of this transaction,
								 * without those lost when their tick passed */
	uint64_t	previous;		/* IDs that the last transaction has used */
	uint64_t	second_last;	/* and the one before that */
	uint32_t	size;			/* of the last batch */
	uint32_t	pace;			/* IDs used in a 32nd of a tick, or less */
} SfDemand;

/* The largest batch: a 64th of a tick. */
static inline uint32_t
sf_demand_max(SfSequenceRange range)
{
	uint32_t	size = (range.max - range.min + 1) / 64;

	return size > 0 ? size : 1;
}

/*
 * A session cannot use the last batch of its transaction any longer, of which a number of IDs is
 * left, some microseconds after it took it.  Nothing changes if it has taken none: the time between
 * transactions says nothing about the pace.
 */
static inline void
sf_demand_end_batch(SfDemand *demand, uint32_t left, int64_t elapsed, int64_t tick_length)
{
	if (demand->used == 0)
		return;
	demand->used -= left;
	if (left == 0 && elapsed <= tick_length / 64)
	{
		if (demand->pace < 2 * demand->size)
			demand->pace = 2 * demand->size;
	}
	else if (left > 0 || elapsed > tick_length / 32)
	{
		if (demand->pace > demand->size / 2)
			demand->pace = demand->size / 2;
	}
}

/* The number of IDs to take, at least 1, at most size_max. */
static inline uint32_t
sf_demand_size(const SfDemand *demand, uint32_t size_max)
{
	uint64_t	expected = demand->previous;
	uint64_t	size;

	if (expected > demand->second_last)
		expected = demand->second_last;
	size = demand->used < expected ? expected - demand->used : demand->used / 8;
	if (size > demand->pace)
		size = demand->pace;
	if (size > size_max)
		size = size_max;
	return size > 0 ? (uint32_t) size : 1;
}

/* The session has taken a batch of a number of IDs. */
static inline void
sf_demand_add_batch(SfDemand *demand, uint32_t count)
{
	demand->used += count;
	demand->size = count;
}

/* The transaction has ended, and a number of IDs is left of its last batch. */
static inline void
sf_demand_end_transaction(SfDemand *demand, uint32_t left)
{
	if (demand->used == 0)
		return;
	demand->second_last = demand->previous;
	demand->previous = demand->used - left;
	demand->used = 0;
}

#endif							/* SF_DEMAND_H */
