/*
 * lease.h
 *	  One step of the generator: taking the next range of free positions.
 *
 * A position is (tick << sequence_bits) | sequence: an ID without its machine
 * part.  Positions form one line that only grows.  A generator keeps one shared
 * number, the cursor: every position below it has been given away, none at or
 * above it has.  A lease is the range [start, end) by which one compare-and-swap
 * moves the cursor from what it was to end.  Since start is never below the old
 * cursor and end is the new one, two leases never overlap, in whatever order
 * the swaps happen.
 *
 * A lease lies within one tick.  It starts at the cursor or, where the clock is
 * past the cursor's tick, at the clock's tick.  Four things that other
 * generators treat one by one, the sequence of a tick that ran out, a clock
 * that stepped back, a clock that stands still and a restart under a slow
 * clock, are the same thing here: the cursor is ahead of the clock.  That is
 * fine up to the tick in which now + max_ahead lies, and a reason to wait
 * beyond it.
 *
 * The ceiling is a position that must not be reached before a higher one has
 * been made durable.
 */
#ifndef SF_LEASE_H
#define SF_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"
#include "sequence_range.h"

/* The position of a sequence number in a tick. */
static inline uint64_t
sf_position(const SfLayout *layout, uint64_t tick, uint32_t sequence)
{
	return tick << layout->sequence_bits | sequence;
}

static inline uint64_t
sf_position_tick(const SfLayout *layout, uint64_t position)
{
	return position >> layout->sequence_bits;
}

static inline uint32_t
sf_position_sequence(const SfLayout *layout, uint64_t position)
{
	return (uint32_t) (position & sf_field_max(layout->sequence_bits));
}

/* The first position of the next tick. */
static inline uint64_t
sf_position_next_tick(const SfLayout *layout, uint64_t position)
{
	return sf_position(layout, sf_position_tick(layout, position) + 1, 0);
}

/* The part of a range that the layout has; its min must fit the layout. */
static inline SfSequenceRange
sf_sequence_range_within(const SfLayout *layout, SfSequenceRange range)
{
	uint32_t	max = (uint32_t) sf_field_max(layout->sequence_bits);

	if (range.max > max)
		range.max = max;
	return range;
}

/*
 * The first position of the first tick that does not begin before an instant;
 * the end of the line where there is none.
 */
static inline uint64_t
sf_position_at(const SfLayout *layout, SfInstant instant)
{
	uint64_t	last_tick = sf_layout_last_tick(layout);
	int64_t		tick = sf_layout_tick_ceil(layout, instant);

	if (tick < 0)
		tick = 0;
	if ((uint64_t) tick > last_tick)
		return sf_position(layout, last_tick, 0) + (UINT64_C(1) << layout->sequence_bits);
	return sf_position(layout, (uint64_t) tick, 0);
}

/* On what terms a lease is asked for. */
typedef struct SfLeaseTerms
{
	const SfLayout *layout;
	SfSequenceRange range;		/* within the layout */
	int64_t		now_tick;		/* the clock's tick; negative before the epoch */
	int64_t		last_allowed_tick;	/* the tick of now + max_ahead */
	uint64_t	last_tick;		/* no tick after it is issued */
	uint64_t	ceiling;		/* positions from here on are not durable */
	uint32_t	size;			/* positions wanted, at least 1 */
	uint32_t	jitter;			/* skip so many in a tick not touched yet */
} SfLeaseTerms;

typedef enum SfLeaseStatus
{
	SF_LEASE_OK,
	SF_LEASE_AHEAD,				/* the next free tick is not allowed yet */
	SF_LEASE_AT_CEILING,		/* the ceiling has to be raised first */
	SF_LEASE_EXHAUSTED,			/* no tick is left in the timestamp's bits */
} SfLeaseStatus;

typedef struct SfLease
{
	uint64_t	tick;			/* the tick of the next free position */
	uint64_t	start;
	uint64_t	end;			/* exclusive; the cursor to be */
} SfLease;

/*
 * Work out the lease that follows a cursor.
 *
 * lease->tick is set in every case, for messages and to know what to wait for;
 * start and end only with SF_LEASE_OK.  A lease is shorter than terms->size
 * where the tick's range or the ceiling ends.  A tick not touched yet starts at
 * the range's min plus jitter, at most at its max.
 */
extern SfLeaseStatus sf_lease_next(const SfLeaseTerms *terms, uint64_t cursor,
								   SfLease *lease);

/* Whether a lease has the last position of its tick. */
static inline bool
sf_lease_ends_tick(const SfLeaseTerms *terms, const SfLease *lease)
{
	return lease->end == sf_position(terms->layout, lease->tick, terms->range.max) + 1;
}

/*
 * The largest lease to ask for: a 64th of a tick.  Leases that end unused cost
 * the server capacity, so they should be small beside a tick; and no faster
 * than 64 swaps a tick, the shared cursor is never contended.
 */
static inline uint32_t
sf_lease_size_max(SfSequenceRange range)
{
	uint32_t	size = (range.max - range.min + 1) / 64;

	return size > 0 ? size : 1;
}

/*
 * The size of the next lease, when the last one of the given size had left
 * positions over and its tick has, or has not, passed: twice the size if it
 * was used up within its tick, half of it if more than half was left over.
 */
static inline uint32_t
sf_lease_size_next(uint32_t size, uint32_t left, bool tick_passed, uint32_t size_max)
{
	if (left == 0 && !tick_passed)
		size *= 2;
	else if (left > size / 2)
		size /= 2;
	if (size > size_max)
		size = size_max;
	return size > 0 ? size : 1;
}

#endif							/* SF_LEASE_H */
