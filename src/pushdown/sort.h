/*
 * sort.h
 *	  Sort keys that are the time of an ID become the ID.
 */
#ifndef SF_SORT_H
#define SF_SORT_H

#include "postgres.h"

#include "pushdown/match.h"

/* Replace the time of an ID by the ID in the sort keys of the pass's query. */
extern void sf_rewrite_sort(SfPass *pass);

#endif							/* SF_SORT_H */
