/*
 * exempt.h
 *	  Conditions that are left unchanged, because an index or partitions need them.
 */
#ifndef SF_EXEMPT_H
#define SF_EXEMPT_H

#include "postgres.h"

#include "pushdown/match.h"

/*
 * Whether the planner can use the time of an ID, from an attribute of a relation, as it is written,
 * so that conditions on it are left unchanged.
 */
extern bool sf_is_exempt(SfPass *pass, Oid relid, AttrNumber attribute, const SfCall *call);

/* Whether a call is that of a column of the pass's relation, and is to be replaced. */
extern bool sf_applies_to_relation(SfPass *pass, const SfCall *call);

#endif							/* SF_EXEMPT_H */
