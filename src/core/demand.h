/*
 * demand.h
 *	  How many IDs a session is expected to need, and so how many it takes at once.
 *
 * A session takes its IDs in batches.  Each batch costs a swap of the shared cursor.  The rest of
 * a batch is lost when its transaction ends, and when its tick has passed.  A batch is as large as
 * these limits allow:
 *
 * - At most as many IDs as the transaction is still expected to use.  If a transaction uses fewer
 *   than expected, the next one is expected to use as few; if it uses more, the number rises by a
 *   sixteenth of the difference.  So transactions of one size lose nothing, and transactions of
 *   many sizes are expected to be among the small ones.
 * - Beyond it, an eighth of the IDs that the transaction has used so far.  So no more than an
 *   eighth is lost.
 * - The pace: what the session uses in a 64th of a tick.  So about a 128th of a tick is lost when
 *   it passes.
 * - A 64th of the sequence numbers of a tick.  With 64 swaps a tick or fewer, sessions do not
 *   contend for the cursor.
 *
 * IDs lost while the cursor is behind the clock cost nothing, since the server could not use all
 * numbers of the tick anyway.  A swap costs little too, unless many processors swap the cursor at
 * once.  So a session whose last swap failed, behind the clock, takes more: as many IDs as the
 * previous transaction used, beyond it as many as it has used so far, and as many as it uses in
 * half a tick.  If the cursor moves ahead of the clock by that, the other rules are used again.
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
	uint64_t	expected;		/* IDs that a transaction uses */
	uint64_t	previous;		/* IDs that the previous one has used */
	uint32_t	size;			/* of the last batch */
	uint32_t	pace;			/* IDs used in a 64th of a tick */
	bool		generous;		/* whether swaps cost more than IDs */
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
 * transactions says nothing about the pace.  The pace rises to no more than twice the batch, since
 * a reading of the clock has whole microseconds.
 */
static inline void
sf_demand_end_batch(SfDemand *demand, uint32_t left, int64_t elapsed, int64_t tick_length)
{
	uint64_t	pace;
	uint64_t	most = demand->pace > 2 * demand->size ? demand->pace : 2 * demand->size;

	if (demand->used == 0)
		return;
	demand->used -= left;
	pace = elapsed > 0 ?
		(demand->size - left) * (uint64_t) tick_length / 64 / (uint64_t) elapsed : most;
	demand->pace = (uint32_t) (pace < most ? pace : most);
}

/* The number of IDs to take, at least 1, at most size_max. */
static inline uint32_t
sf_demand_size(const SfDemand *demand, uint32_t size_max)
{
	uint64_t	expected = demand->generous ? demand->previous : demand->expected;
	uint64_t	pace = (uint64_t) demand->pace << (demand->generous ? 5 : 0);
	uint64_t	size = demand->used >> (demand->generous ? 0 : 3);

	if (demand->used < expected)
		size = expected - demand->used;
	if (size > pace)
		size = pace;
	if (size > size_max)
		size = size_max;
	return size > 0 ? (uint32_t) size : 1;
}

/*
 * The session has taken a batch of a number of IDs.  contended is whether a swap failed, because
 * another session was faster, and ahead is whether the tick of the batch has not begun.
 */
static inline void
sf_demand_add_batch(SfDemand *demand, uint32_t count, bool contended, bool ahead)
{
	demand->used += count;
	demand->size = count;
	demand->generous = contended && !ahead;
}

/* The transaction has ended, and a number of IDs is left of its last batch. */
static inline void
sf_demand_end_transaction(SfDemand *demand, uint32_t left)
{
	uint64_t	used = demand->used - left;

	if (demand->used == 0)
		return;
	if (used > demand->expected)
		demand->expected += (used - demand->expected + 15) / 16;
	else
		demand->expected = used;
	demand->previous = used;
	demand->used = 0;
}

#endif							/* SF_DEMAND_H */
