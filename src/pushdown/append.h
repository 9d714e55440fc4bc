/*
 * append.h
 *	  Conditions on a UNION ALL of tables.
 */
#ifndef SF_APPEND_H
#define SF_APPEND_H

#include "postgres.h"

#include "pushdown/match.h"

/* Add conditions on the IDs of the pass's relation if it is a table of a UNION ALL. */
extern void sf_add_conditions_of_union(SfPass *pass);

#endif							/* SF_APPEND_H */
