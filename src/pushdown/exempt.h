/*
 * exempt.h
 *	  Columns whose comparisons are left unchanged.
 */
#ifndef SF_EXEMPT_H
#define SF_EXEMPT_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* A query and the query that contains it, which is NULL for the outermost query. */
typedef struct SfQueryLevel
{
	Query	   *query;
	const struct SfQueryLevel *outer;
} SfQueryLevel;

/*
 * Whether a column is that of a relation with an index, a constraint or a partition key that
 * calls the function.  The column is followed through views, subqueries and common table
 * expressions.  It belongs to the query of the given level, or to one around it.
 */
extern bool sf_is_exempt(Node *column, const SfQueryLevel *level, Oid function);

#endif							/* SF_EXEMPT_H */
