/*
 * line.h
 *	  The two lines of type sno, which let it issue when the clock steps back.
 *
 * A line is a sequence of positions of its own.  One bit of each ID says in which line it was
 * issued ("tick-tock", github.com/muyo/sno).  Both lines only move forward, so no ID is issued
 * twice, whichever line sessions use.  One line is active.  If the clock has stepped back, and the
 * other line was not used at the time that the clock shows, the other line becomes the active one.
 * So a period of time can be used once in each line.
 */
#ifndef SF_LINE_H
#define SF_LINE_H

#include "batch.h"

#define SF_LINES	2

typedef enum SfLineChoice
{
	SF_LINE_KEEP,				/* the clock is not behind the active line */
	SF_LINE_SWITCH,				/* use the other line */
	SF_LINE_WAIT,				/* until one of the lines can be used */
} SfLineChoice;

/* The last tick of a line in which a position was used; 0 if none was. */
static inline uint64_t
sf_line_last_tick(const SfLayout *layout, uint64_t cursor)
{
	return sf_position_tick(layout, cursor - 1);
}

/*
 * Decide what a generator does when the clock is in tick now.  The cursors, of the active line and
 * of the other one, are at least 1.  allowed is the last tick in which the active line may have
 * been used if the clock has not stepped back: the tick of the clock's time plus max_ahead, rounded
 * once.
 *
 * If the active line is ahead only because a tick is used up, the clock has not stepped back: the
 * cursor is then in the tick after the last one that was used.
 */
static inline SfLineChoice
sf_line_choose(const SfLayout *layout, uint64_t active, uint64_t other,
			   int64_t now, int64_t allowed)
{
	if (now < 0)
		return SF_LINE_WAIT;
	if (allowed >= 0 && (uint64_t) allowed >= sf_line_last_tick(layout, active))
		return SF_LINE_KEEP;
	return (uint64_t) now > sf_line_last_tick(layout, other) ? SF_LINE_SWITCH : SF_LINE_WAIT;
}

/*
 * The line that is active after a start: the line that was used last if the clock has reached it,
 * or is behind it by no more than the time that is tolerated; otherwise the other one.  The lines
 * start with these cursors.
 */
static inline int
sf_line_at_start(const SfLayout *layout, const uint64_t cursors[SF_LINES],
				 SfInstant now, int64_t tolerated)
{
	/* cppcheck-suppress ctuArrayIndex ; callers pass SF_LINES cursors */
	int			later = cursors[1] > cursors[0];
	SfInstant	start = sf_layout_tick_start(layout, sf_position_tick(layout, cursors[later]));

	return start <= now + tolerated ? later : !later;
}

#endif							/* SF_LINE_H */
