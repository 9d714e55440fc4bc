/*
 * ceiling.h
 *	  Raising the position up to which this server has reserved the line.
 */
#ifndef SF_CEILING_RAISE_H
#define SF_CEILING_RAISE_H

#include "shared.h"

/* Returns when the ceiling is above seen, which a lease was refused for. */
extern void sf_ceiling_raise(SfShared *shared, uint64 seen);

/*
 * Raise a ceiling that is near, unless somebody is about it; never waits for
 * them.
 */
extern void sf_ceiling_raise_early(SfShared *shared, uint64 seen);

#endif							/* SF_CEILING_RAISE_H */
