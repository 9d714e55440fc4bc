/*
 * clock.h
 *	  Checks the wall clock for jumps forward and steps back.
 */
#ifndef SF_CLOCK_H
#define SF_CLOCK_H

#include "issue/shared.h"

/*
 * Check the wall clock, whose reading is now.  A step back is counted and
 * logged; no other action is needed, since the generator never moves backward
 * by itself.
 *
 * Raises object_not_in_prerequisite_state when it has jumped forward by more than
 * snowflake.max_clock_step since it was last accepted, from a time after 2010, and the generator
 * would move by more than max_clock_step.
 */
extern void sf_clock_check(SfGenerator *generator, TimestampTz now);

/*
 * Raise the error that sf_clock_check would raise for a generator that has come to a position, and
 * change nothing.
 */
extern void sf_clock_refuse(SfGenerator *generator, uint64 position, TimestampTz now);

/*
 * Whether a line, whose cursor is ahead of the clock, is still to be used.  Its cursor and
 * reserved_until were read together.  Always SF_LINE_KEEP for a generator with one line; otherwise
 * *other is the time from which on the other line can be used.
 */
extern SfLineChoice sf_clock_choose_line(SfGenerator *generator, uint64 cursor,
										 uint64 reserved_until, uint64 other_cursor,
										 TimestampTz *other);

/*
 * Accept the current wall clock for all generators.  Returns how far it had jumped, in us.
 */
extern int64 sf_clock_accept(SfShared *shared);

#endif							/* SF_CLOCK_H */
