/*
 * clock.h
 *	  What the wall clock is up to: jumps forward, steps back.
 */
#ifndef SF_CLOCK_H
#define SF_CLOCK_H

#include "state/generator_state.h"
#include "state/shared.h"

/*
 * Judge the wall clock, which says now.  A step back is counted and logged; it
 * needs no other care, since the generator never moves backward by itself.
 *
 * Raises object_not_in_prerequisite_state when it has jumped forward by more
 * than snowflake.max_clock_step since it was last believed.
 */
extern void sf_clock_check(SfGenerator *generator, TimestampTz now);

/* Believe the wall clock as it is.  Returns how far it had jumped, in us. */
extern int64 sf_clock_accept(SfShared *shared);

#endif							/* SF_CLOCK_H */
