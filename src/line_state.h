/*
 * line_state.h
 *	  What of a line outlives the server, in its register.
 */
#ifndef SF_LINE_STATE_H
#define SF_LINE_STATE_H

#include "line.h"
#include "register.h"

/*
 * The state that the register of a line holds; all 0 if it was never written, and if it was
 * lost: then false is returned.
 */
extern bool sf_line_state_read(const SfLine *line, RepOriginId origin, SfTimelineState *state);

/*
 * Write a state: up to which instant is reserved, and of a line with timelines the last tick
 * of the other timeline, and how often it has changed over.  The register is
 * held; what goes back needs back, as with sf_register_write, which says what is raised.
 */
extern void sf_line_state_write(SfLine *line, RepOriginId origin, SfInstant ceiling, uint64 wall_safe,
								uint32 drifts, bool back);

#endif							/* SF_LINE_STATE_H */
