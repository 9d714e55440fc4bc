/*
 * line_span.h
 *	  The span of a line.
 */
#ifndef SF_LINE_SPAN_H
#define SF_LINE_SPAN_H

#include "line.h"

/*
 * Begin another span: from here on IDs of the line have this machine ID, and times from
 * one instant to before another.  What was leased of the line before is dropped.
 */
extern void sf_line_begin_span(SfLine *line, uint32 machine_id, SfInstant from, SfInstant until);

/* Let the span of the line go on to a later instant. */
extern void sf_line_extend_span(SfLine *line, SfInstant until);

/*
 * Let nothing be leased of the line until it is given another span.
 * Returns an instant that all IDs of the line, in whichever timeline, are before; infinity
 * if none is known, -infinity if there are none.
 */
extern SfInstant sf_line_close(SfLine *line);

#endif							/* SF_LINE_SPAN_H */
