/*
 * overflow.h
 *	  Ticks whose sequence is used up.
 */
#ifndef SF_OVERFLOW_H
#define SF_OVERFLOW_H

#include "state/generator_state.h"

/*
 * Count a tick, all of whose sequence numbers have been allocated, and log,
 * once a minute at most, if nearly all ticks of a second are used up.
 */
extern void sf_overflow_count(SfGenerator *generator, uint64 tick);

#endif							/* SF_OVERFLOW_H */
