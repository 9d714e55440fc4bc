/*
 * exempt.h
 *	  Relations that use the time of an ID themselves.
 */
#ifndef SF_EXEMPT_H
#define SF_EXEMPT_H

#include "postgres.h"

#include "pushdown/match.h"

/*
 * Whether the planner can use the time of an ID of a relation as it is written, so that
 * conditions on it are left unchanged.  The pass's rel is NULL if the planner has not begun.
 */
extern bool sf_is_exempt(SfPass *pass, Oid relid, const SfTimeCall *call);

#endif							/* SF_EXEMPT_H */
