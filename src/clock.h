/*
 * clock.h
 *	  What the wall clock is up to: jumps forward, steps back.
 */
#ifndef SF_CLOCK_H
#define SF_CLOCK_H

#include "line.h"
#include "shared.h"

/* How far the wall clock is from the clock that counts from the boot, in us. */
extern int64 sf_clock_difference(void);

/*
 * Judge the wall clock, which says now.  A step back is counted and logged; it
 * needs no other care, since the line never goes back.
 *
 * Raises object_not_in_prerequisite_state when it has jumped forward by more
 * than snowflake.max_clock_step since it was last believed.
 */
extern void sf_clock_check(SfLine *line, TimestampTz now);

/* Believe the wall clock as it is.  Returns how far it had jumped, in us. */
extern int64 sf_clock_accept(SfShared *shared);

#endif							/* SF_CLOCK_H */
