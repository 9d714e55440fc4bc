/*
 * line_move.h
 *	  Moving a line to another instant.
 */
#ifndef SF_LINE_MOVE_H
#define SF_LINE_MOVE_H

#include "line.h"
#include "register.h"

/*
 * Move the line to the first tick that does not begin before an instant.  The
 * register is held.  Returns false, and moves nothing, if that would be back by
 * less than what a raise reserves.
 */
extern bool sf_line_move(SfLine *line, RepOriginId origin, SfInstant instant);

#endif							/* SF_LINE_MOVE_H */
