/*
 * line_move.h
 *	  Moving a line to another instant.
 */
#ifndef SF_LINE_MOVE_H
#define SF_LINE_MOVE_H

#include "line.h"
#include "register.h"

typedef enum SfMove
{
	SF_MOVED,
	SF_MOVE_TOO_SHORT,			/* back, and by no more than what a raise
								 * reserves */
	SF_MOVE_BEFORE_SPAN,		/* to before the span that is leased */
	SF_MOVE_CLOSED,				/* the server has given its span back */
} SfMove;

/*
 * Move the line to the first tick that does not begin before an instant, if that may
 * be.  The register is held, and written; see sf_register_write for what is raised.
 */
extern SfMove sf_line_move(SfLine *line, RepOriginId origin, SfInstant instant);

#endif							/* SF_LINE_MOVE_H */
