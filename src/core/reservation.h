/*
 * reservation.h
 *	  How far ahead a server reserves time.
 *
 * The reservation ends at the position reserved_until.  It is extended by a second
 * or more at a time, because an extension writes to disk and should be rare.
 */
#ifndef SF_CORE_RESERVATION_H
#define SF_CORE_RESERVATION_H

#include "batch.h"

/* The microseconds that one extension reserves: a second, but at least two ticks. */
static inline int64_t
sf_reservation_length(const SfLayout *layout)
{
	int64_t		two_ticks = 2 * (int64_t) layout->tick_length;

	return two_ticks > 1000000 ? two_ticks : 1000000;
}

/* The next end of the reservation, for the clock's time and the cursor. */
static inline uint64_t
sf_reservation_next(const SfLayout *layout, SfInstant now, uint64_t cursor)
{
	SfInstant	from = sf_layout_tick_start(layout, sf_position_tick(layout, cursor));

	if (now > from)
		from = now;
	return sf_position_at(layout, from + sf_reservation_length(layout));
}

/* Whether a position is in the second half of the time that one extension reserves. */
static inline bool
sf_reservation_is_near(const SfLayout *layout, uint64_t position, uint64_t reserved_until)
{
	SfInstant	time = sf_layout_tick_start(layout, sf_position_tick(layout, position));
	SfInstant	end = sf_layout_tick_start(layout, sf_position_tick(layout, reserved_until));

	return end - time <= sf_reservation_length(layout) / 2;
}

#endif							/* SF_CORE_RESERVATION_H */
