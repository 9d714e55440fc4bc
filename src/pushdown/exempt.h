/*
 * exempt.h
 *	  Conditions that are left as they are, because an index or partitions need them.
 */
#ifndef SF_EXEMPT_H
#define SF_EXEMPT_H

#include "postgres.h"

#include "pushdown/match.h"

/*
 * The treatment of conditions on the time of an ID, from an attribute of a relation: the planner
 * may be able to use them as they are written.
 */
extern SfTreatment sf_treatment(SfPass *pass, Oid relid, AttrNumber attribute, const SfCall *call);

/*
 * The same for a call with a column of the pass's relation; conditions on other calls are
 * unchanged.
 */
extern SfTreatment sf_treatment_in_relation(SfPass *pass, const SfCall *call);

#endif							/* SF_EXEMPT_H */
