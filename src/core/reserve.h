/*
 * reserve.h
 *	  How far ahead a server reserves time.
 *
 * The ceiling is the position up to which the server has reserved the line,
 * a second or more ahead of the clock, so that raising it, which is slow, is
 * rare.
 */
#ifndef SF_RESERVE_H
#define SF_RESERVE_H

#include "lease.h"

/* Microseconds that one raise reserves: a second, but at least two ticks. */
static inline int64_t
sf_ceiling_reserve(const SfLayout *layout)
{
	int64_t		two_ticks = 2 * (int64_t) layout->tick_length;

	return two_ticks > 1000000 ? two_ticks : 1000000;
}

/* The ceiling to raise to, when the clock says now and the cursor is cursor. */
static inline uint64_t
sf_ceiling_next(const SfLayout *layout, SfInstant now, uint64_t cursor)
{
	SfInstant	from = sf_layout_tick_start(layout, sf_position_tick(layout, cursor));

	if (now > from)
		from = now;
	return sf_position_at(layout, from + sf_ceiling_reserve(layout));
}

/* Whether a position is in the second half of what one raise reserved. */
static inline bool
sf_ceiling_is_near(const SfLayout *layout, uint64_t position, uint64_t ceiling)
{
	SfInstant	time = sf_layout_tick_start(layout, sf_position_tick(layout, position));
	SfInstant	end = sf_layout_tick_start(layout, sf_position_tick(layout, ceiling));

	return end - time <= sf_ceiling_reserve(layout) / 2;
}

#endif							/* SF_RESERVE_H */
