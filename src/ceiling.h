/*
 * ceiling.h
 *	  The durable end of what this server may issue.
 */
#ifndef SF_CEILING_H
#define SF_CEILING_H

#include "line.h"
#include "register.h"

/*
 * Open the line, if that has not been done in this run of the server: from here
 * on the cursor is at or above everything that was ever issued.
 *
 * Raises object_not_in_prerequisite_state when the register does not allow it
 * (sf_register_find).
 */
extern void sf_ceiling_open(SfLine *line, uint32 machine_id);

/*
 * Try to raise the ceiling that a lease was refused for; the caller looks again.
 * The clock said now, and that was checked.  Returns false where somebody else
 * has locked the register, to drop it or another one.
 *
 * Raises object_not_in_prerequisite_state when the register is gone, and
 * object_in_use when a session has acquired it as its own origin.
 */
extern bool sf_ceiling_raise(SfLine *line, uint32 machine_id, uint64 seen, TimestampTz now);

/*
 * Raise a ceiling that is near, unless somebody is about it: there is time until
 * it is reached, so nobody is waited for.  Where the register is gone, that is
 * logged, once a minute at most.
 *
 * Raises object_in_use when a session has acquired the register.
 */
extern void sf_ceiling_raise_early(SfLine *line, uint64 seen, TimestampTz now);

/*
 * Whether the clock, which said now after the cursor was read, is behind the line by
 * so much that a line with timelines changes over, or has to wait.  Never for a line
 * without.
 */
extern SfStepBack sf_ceiling_judge(SfLine *line, uint64 cursor, TimestampTz now);

/*
 * Go on in the other timeline, where the clock is, if the cursor that was seen is
 * still in this one and the clock is still behind; the caller looks again.  Returns and
 * raises as sf_ceiling_raise does.
 */
extern bool sf_ceiling_change_over(SfLine *line, uint32 machine_id, uint64 seen);

/*
 * Move the line to the first tick that does not begin before an instant.  The
 * register is held.  Returns false, and moves nothing, if that would be back by
 * less than what a raise reserves.
 */
extern bool sf_ceiling_move(SfLine *line, RepOriginId origin, SfInstant instant);

/*
 * Begin another span: from here on IDs of the line have this machine ID, and times from
 * one instant to before another.  What was leased of the line before is dropped.
 */
extern void sf_ceiling_begin_span(SfLine *line, uint32 machine_id, SfInstant from, SfInstant until);

/* Let the span of the line go on to a later instant. */
extern void sf_ceiling_extend_span(SfLine *line, SfInstant until);

/*
 * Let nothing be leased of the line until it is given another span.
 * Returns an instant that all IDs of the line, in whichever timeline, are before; infinity
 * if none is known, -infinity if there are none.
 */
extern SfInstant sf_ceiling_close(SfLine *line);

#endif							/* SF_CEILING_H */
