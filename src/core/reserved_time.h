/*
 * reserved_time.h
 *	  How far ahead a server reserves time.
 *
 * The reservation ends at the position reserved_until.  It is extended by a second
 * or more at a time, because an extension writes to disk and should be rare.  It is extended when
 * half of it is left, so that it does not end before the extension is on disk.  On a slow disk it
 * is longer: write_time is the time, in microseconds, that recent flushes of an extension took.
 */
#ifndef SF_RESERVED_TIME_H
#define SF_RESERVED_TIME_H

#include "batch.h"

/* The microseconds that one extension reserves if the disk is fast: a second, or two ticks. */
static inline int64_t
sf_reservation_length(const SfLayout *layout)
{
	int64_t		two_ticks = 2 * (int64_t) layout->tick_length;

	return two_ticks > 1000000 ? two_ticks : 1000000;
}

/*
 * The longest write_time.  A process that was stopped for an hour during its write shall not
 * reserve hours, for which the server would wait after a crash.
 */
#define SF_RESERVATION_LONGEST_WRITE	UINT32_C(7500000)	/* us */

/*
 * The microseconds that one extension reserves: eight times the write_time if that is more.  Half
 * of that is left when the next extension is written, and a quarter when a session flushes it, if
 * it is not on disk by then.  A session that is alone can be held up for two flushes by full WAL
 * buffers before it can do either.
 */
static inline int64_t
sf_reservation_length_for(const SfLayout *layout, uint32_t write_time)
{
	int64_t		length = sf_reservation_length(layout);
	int64_t		slow = 8 * (int64_t) write_time;

	return slow > length ? slow : length;
}

/*
 * The next write_time, when an extension is on disk.  flush is the time for which a session has
 * flushed it, 0 if others did, and elapsed the time since it was written, in microseconds.  Only a
 * write that was faster than write_time decreases it, by an eighth.
 */
static inline uint32_t
sf_reservation_write_time(uint32_t before, int64_t flush, int64_t elapsed)
{
	if (flush > SF_RESERVATION_LONGEST_WRITE)
		return SF_RESERVATION_LONGEST_WRITE;
	if (elapsed < before)
		before -= before / 8;
	return flush > before ? (uint32_t) flush : before;
}

/* The next end of the reservation, for the clock's time and the cursor. */
static inline uint64_t
sf_reservation_next(const SfLayout *layout, SfInstant now, uint64_t cursor, uint32_t write_time)
{
	SfInstant	from = sf_layout_tick_start(layout, sf_position_tick(layout, cursor));

	if (now > from)
		from = now;
	return sf_position_at(layout, from + sf_reservation_length_for(layout, write_time));
}

/* Whether a position is in the second half of the time that one extension reserves. */
static inline bool
sf_reservation_is_near(const SfLayout *layout, uint64_t position, uint64_t reserved_until,
					   uint32_t write_time)
{
	SfInstant	time = sf_layout_tick_start(layout, sf_position_tick(layout, position));
	SfInstant	end = sf_layout_tick_start(layout, sf_position_tick(layout, reserved_until));

	return end - time <= sf_reservation_length_for(layout, write_time) / 2;
}

#endif							/* SF_RESERVED_TIME_H */
