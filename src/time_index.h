/*
 * time_index.h
 *	  Relations whose owner has said how to find rows by time.
 */
#ifndef SF_TIME_INDEX_H
#define SF_TIME_INDEX_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/*
 * Whether a column is, through views, subqueries and joins, that of a relation
 * with an index, a constraint or a partition key on the very function.  The first
 * of the given queries is the one that the column is in, and each is within the
 * next.
 */
extern bool sf_has_time_index(Node *column, List *queries, Oid function);

#endif							/* SF_TIME_INDEX_H */
