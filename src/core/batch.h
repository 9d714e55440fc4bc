/*
 * batch.h
 *	  One step of a generator: taking the next batch of free positions.
 *
 * A position is (tick << sequence_bits) | sequence: an ID without its machine
 * ID.  A generator has one shared number, the cursor.  Every position below the
 * cursor was taken or skipped; no position at or above it was taken.  A batch is
 * a range of positions [start, end).  A session takes it by one
 * compare-and-swap, which moves the cursor to end.  The start is never below the
 * old cursor, and the end is the new cursor.  So two batches never overlap, in
 * whatever order the swaps happen.
 *
 * A batch lies within one tick.  It starts at the cursor, or at the clock's tick
 * if the clock is past the cursor's tick.  Other generators treat four
 * situations separately: a tick whose sequence is used up, a clock that stepped
 * back, a clock that stands still, and a restart under a slow clock.  Here these
 * are one situation: the cursor is ahead of the clock.  Positions are taken up
 * to the tick of now + max_ahead.  Beyond that tick the caller has to wait.
 *
 * The reservation ends at a position, reserved_until.  Neither that position nor
 * a later one may be taken before a later end is durable.
 */
#ifndef SF_BATCH_H
#define SF_BATCH_H

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

/*
 * The least position at which a generator starts, the first one of tick 1.  A cursor of 0 means
 * that the generator is not open.  A later one of tick 0 would be within a tick, where the horizon
 * depends on the machine ID.
 */
static inline uint64_t
sf_position_first(const SfLayout *layout)
{
	return sf_position(layout, 1, 0);
}

/* The part of a range that fits the layout; the range's min must fit it. */
static inline SfSequenceRange
sf_sequence_range_within(const SfLayout *layout, SfSequenceRange range)
{
	uint32_t	max = (uint32_t) sf_field_max(layout->sequence_bits);

	if (range.max > max)
		range.max = max;
	return range;
}

/*
 * The first position of the first tick that does not begin before an instant.
 * If the layout has no such tick, the position after the last position of the
 * layout.
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

/*
 * The least number that is above all IDs of positions below a cursor, and not above any ID of
 * the cursor's position or a later one.  The machine ID must fit the layout.
 *
 * At the start of a tick that is the first number of the tick, and so the same for all
 * machine IDs.  Within a tick it is the number after the last ID before the cursor: IDs of
 * another machine ID can follow only in a later tick, since a generator that changes its
 * machine ID leaves the tick.
 */
static inline int64_t
sf_horizon_at(const SfLayout *layout, uint64_t cursor, uint32_t machine_id)
{
	SfFields	fields = {.tick = sf_position_tick(layout, cursor)};
	uint32_t	sequence = sf_position_sequence(layout, cursor);
	int64_t		last_id = sf_layout_last_id(layout);

	if (fields.tick > sf_layout_last_tick(layout))
		return last_id == INT64_MAX ? last_id : last_id + 1;
	if (sequence == 0)
		return sf_layout_compose(layout, fields);
	fields.machine = machine_id;
	fields.sequence = sequence - 1;
	return sf_layout_compose(layout, fields) + 1;
}

/* The conditions under which a batch is taken. */
typedef struct SfBatchTerms
{
	const SfLayout *layout;
	SfSequenceRange range;		/* within the layout */
	int64_t		now_tick;		/* the clock's tick; negative before the epoch */
	int64_t		last_allowed_tick;	/* the tick of now + max_ahead */
	uint64_t	last_tick;		/* no tick after it is issued */
	uint64_t	reserved_until; /* positions at or above it are not durable */
	uint32_t	size;			/* positions wanted, at least 1 */
	uint32_t	jitter;			/* positions to skip at the start of a tick */
} SfBatchTerms;

typedef enum SfBatchStatus
{
	SF_BATCH_OK,
	SF_BATCH_AHEAD,				/* the next free tick is not allowed yet */
	SF_BATCH_NOT_RESERVED,		/* the reservation has to be extended first */
	SF_BATCH_EXHAUSTED,			/* no tick is left in the timestamp's bits */
} SfBatchStatus;

typedef struct SfBatch
{
	uint64_t	tick;			/* the tick of the next free position */
	uint64_t	start;
	uint64_t	end;			/* exclusive; the new cursor */
} SfBatch;

/*
 * Compute the batch that follows a cursor.
 *
 * batch->tick is set in every case: messages and waits need it.  start and end
 * are valid only with SF_BATCH_OK.  A batch is shorter than terms->size if the
 * range of the tick or the reservation ends earlier.  The first batch of a tick
 * starts at the range's min plus jitter, at most at its max.
 */
extern SfBatchStatus sf_batch_next(const SfBatchTerms *terms, uint64_t cursor,
								   SfBatch *batch);

/* Whether a batch contains the last position of its tick. */
static inline bool
sf_batch_ends_tick(const SfBatchTerms *terms, const SfBatch *batch)
{
	return batch->end == sf_position(terms->layout, batch->tick, terms->range.max) + 1;
}

#endif							/* SF_BATCH_H */
