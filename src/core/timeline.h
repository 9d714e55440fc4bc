/*
 * timeline.h
 *	  Going on when the clock steps back: two timelines.
 *
 * A generator with one timeline waits when the clock steps back.  One with two
 * ("tick-tock", github.com/muyo/sno) goes on at once, where the clock is, in the other
 * timeline, which a bit of its IDs tells.  That works once: a period in which both
 * have been used is used up.  So the generator keeps wall_safe, the greatest tick it had
 * issued in when it last changed over.  No later change over may go to it or
 * below, and then no position of a timeline is visited twice: whoever comes back to a
 * timeline comes back above wall_safe, and so above all that was issued in it.
 *
 * The shared cursor has the timeline in its top bit, above the position.  It
 * therefore never has a value twice either, though positions go back.
 */
#ifndef SF_TIMELINE_H
#define SF_TIMELINE_H

#include "lease.h"

#define SF_TIMELINE_BIT	(UINT64_C(1) << 63)

static inline uint64_t
sf_cursor_position(uint64_t cursor)
{
	return cursor & ~SF_TIMELINE_BIT;
}

static inline bool
sf_cursor_timeline(uint64_t cursor)
{
	return (cursor & SF_TIMELINE_BIT) != 0;
}

static inline uint64_t
sf_cursor(bool timeline, uint64_t position)
{
	return (timeline ? SF_TIMELINE_BIT : 0) | position;
}

typedef enum SfStepBack
{
	SF_STEP_BACK_NONE,			/* the clock is not behind */
	SF_STEP_BACK_CHANGE,		/* change over to the other timeline */
	SF_STEP_BACK_WAIT,			/* wait until the clock is past wall_safe, or
								 * not behind */
} SfStepBack;

/*
 * What to do about a clock whose tick is now, where wall_hi is the greatest tick that
 * was issued in, and allowed the last one that may be: the tick of the clock and what
 * the line may be ahead of it, added up before they are rounded.
 *
 * A line that is ahead because a tick is used up is not behind: its cursor is in
 * the tick after wall_hi.
 */
static inline SfStepBack
sf_timeline_judge(uint64_t wall_hi, uint64_t wall_safe, int64_t now, int64_t allowed)
{
	if (now < 0)
		return SF_STEP_BACK_WAIT;
	if ((uint64_t) allowed >= wall_hi)
		return SF_STEP_BACK_NONE;
	return (uint64_t) now > wall_safe ? SF_STEP_BACK_CHANGE : SF_STEP_BACK_WAIT;
}

/*
 * What of a line with timelines outlives the server.  drifts counts the changes over;
 * its lowest bit is the timeline.
 */
typedef struct SfTimelineState
{
	uint64_t	ceiling_tick;	/* ticks from here on are not reserved */
	uint64_t	wall_safe;
	uint32_t	drifts;
} SfTimelineState;

/*
 * The state as one number, so that it is written by one record, and a crash leaves
 * all of the old one or all of the new: from the top 33 bits of the ceiling, 29 of
 * wall_safe, 2 of drifts.  For that, ticks of 39 bits are rounded up, to 64 and to
 * 1024.  The last 1024 ticks cannot be kept, and so are not issued.
 */
#define SF_TIMELINE_CEILING_TICKS	64
#define SF_TIMELINE_SAFE_TICKS		1024
#define SF_TIMELINE_TICKS			((UINT64_C(1) << 39) - SF_TIMELINE_SAFE_TICKS)

/* The least multiple of a power of two that is not below a number. */
static inline uint64_t
sf_round_up(uint64_t number, uint64_t to)
{
	return (number + to - 1) & ~(to - 1);
}

/* The number of a state, whose ticks are SF_TIMELINE_TICKS at most. */
static inline uint64_t
sf_timeline_pack(SfTimelineState state)
{
	return sf_round_up(state.ceiling_tick, SF_TIMELINE_CEILING_TICKS) / SF_TIMELINE_CEILING_TICKS << 31 |
		sf_round_up(state.wall_safe, SF_TIMELINE_SAFE_TICKS) / SF_TIMELINE_SAFE_TICKS << 2 |
		(state.drifts & 3);
}

static inline SfTimelineState
sf_timeline_unpack(uint64_t number)
{
	SfTimelineState state;

	state.ceiling_tick = (number >> 31) * SF_TIMELINE_CEILING_TICKS;
	state.wall_safe = (number >> 2 & sf_field_max(29)) * SF_TIMELINE_SAFE_TICKS;
	state.drifts = (uint32_t) (number & 3);
	return state;
}

#endif							/* SF_TIMELINE_H */
