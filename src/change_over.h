/*
 * change_over.h
 *	  Going on in the other timeline when the clock steps back.
 */
#ifndef SF_CHANGE_OVER_H
#define SF_CHANGE_OVER_H

#include "line.h"

/*
 * Whether the clock, which said now after the cursor was read, is behind the line by
 * so much that a line with timelines changes over, or has to wait.  Never for a line
 * without.
 */
extern SfStepBack sf_line_judge_clock(SfLine *line, uint64 cursor, TimestampTz now);

/*
 * Go on in the other timeline, where the clock is, if the cursor that was seen is
 * still in this one and the clock is still behind; the caller looks again.  Returns and
 * raises as sf_ceiling_raise does.
 */
extern bool sf_line_change_over(SfLine *line, uint64 seen);

#endif							/* SF_CHANGE_OVER_H */
