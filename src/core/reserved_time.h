/*
 * reserved_time.h
 *	  How far ahead a server reserves time.
 *
 * The reservation ends at the position reserved_until.  It is extended by a second or more at a
 * time, because an extension writes to disk and should be rare.  It is extended when half of it is
 * left, so that it does not end before the extension is on disk.
 *
 * A server waits after a crash for the time that it had reserved, so this time is short.  It is
 * doubled if an extension took longer to reach the disk than half of it.  It is halved when it has
 * not been needed for as long as it is itself.  So a single stall of the disk, however long, only
 * doubles it for a moment, and on a slow disk it is between twice and eight times the time of a
 * flush.
 */
#ifndef SF_RESERVED_TIME_H
#define SF_RESERVED_TIME_H

#include "batch.h"

/* The most that one extension reserves. */
#define SF_RESERVATION_LONGEST	INT64_C(60000000)	/* us */

/* How long an extension is, and the time of the boot clock from which on it was not needed. */
typedef struct SfReservedTime
{
	int64_t		length;			/* us; 0 at first */
	int64_t		since;
} SfReservedTime;

/* The microseconds that one extension reserves if the disk is fast: a second, or two ticks. */
static inline int64_t
sf_reservation_least(const SfLayout *layout)
{
	int64_t		two_ticks = 2 * (int64_t) layout->tick_length;

	return two_ticks > 1000000 ? two_ticks : 1000000;
}

/* Before an extension: halve the length as often as it was not needed for its own time. */
static inline void
sf_reservation_shorten(const SfLayout *layout, SfReservedTime *reserved, int64_t now)
{
	int64_t		least = sf_reservation_least(layout);

	while (reserved->length > least && now - reserved->since >= reserved->length)
	{
		reserved->since += reserved->length;
		reserved->length /= 2;
	}
	if (reserved->length < least)
		reserved->length = least;
}

/*
 * After an extension, which was seen not to be on disk for a number of microseconds: double the
 * length if that is more than half of it.  If it is more than a quarter, half of the length would
 * not be enough.
 */
static inline void
sf_reservation_judge(SfReservedTime *reserved, int64_t taken, int64_t now)
{
	if (taken > reserved->length / 4)
		reserved->since = now;
	if (taken > reserved->length / 2 && reserved->length < SF_RESERVATION_LONGEST)
		reserved->length = 2 * reserved->length < SF_RESERVATION_LONGEST ?
			2 * reserved->length : SF_RESERVATION_LONGEST;
}

/* The end of an extension of a length, for the clock's time and the cursor. */
static inline uint64_t
sf_reservation_next(const SfLayout *layout, SfInstant now, uint64_t cursor, int64_t length)
{
	SfInstant	from = sf_layout_tick_start(layout, sf_position_tick(layout, cursor));

	if (now > from)
		from = now;
	return sf_position_at(layout, from + length);
}

/* Whether a position is in the second half of the time that one extension reserves. */
static inline bool
sf_reservation_is_near(const SfLayout *layout, uint64_t position, uint64_t reserved_until,
					   int64_t length)
{
	SfInstant	time = sf_layout_tick_start(layout, sf_position_tick(layout, position));
	SfInstant	end = sf_layout_tick_start(layout, sf_position_tick(layout, reserved_until));

	return end - time <= length / 2;
}

#endif							/* SF_RESERVED_TIME_H */
