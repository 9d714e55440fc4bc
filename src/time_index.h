/*
 * time_index.h
 *	  Relations whose owner has said how to find rows by time.
 */
#ifndef SF_TIME_INDEX_H
#define SF_TIME_INDEX_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* A query, and the one that it is within; NULL around the outermost. */
typedef struct SfQueryLevel
{
	Query	   *query;
	const struct SfQueryLevel *outer;
} SfQueryLevel;

/*
 * Whether a column is, through views, subqueries and joins, that of a relation
 * with an index, a constraint or a partition key on the very function.  The column is in
 * the query of the given level.
 */
extern bool sf_has_time_index(Node *column, const SfQueryLevel *level, Oid function);

#endif							/* SF_TIME_INDEX_H */
