/*
 * clock.h
 *	  Checks the wall clock for jumps forward and steps back.
 */
#ifndef SF_CLOCK_H
#define SF_CLOCK_H

#include "state/generator_state.h"
#include "state/shared.h"

/*
 * Check the wall clock, whose reading is now.  A step back is counted and
 * logged; no other action is needed, since the generator never moves backward
 * by itself.
 *
 * Raises object_not_in_prerequisite_state when it has jumped forward by more
 * than snowflake.max_clock_step since it was last accepted.
 */
extern void sf_clock_check(SfGenerator *generator, TimestampTz now);

/* Accept the current wall clock.  Returns how far it had jumped, in us. */
extern int64 sf_clock_accept(SfShared *shared);

#endif							/* SF_CLOCK_H */
