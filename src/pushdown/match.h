/*
 * match.h
 *	  Comparisons of the time of an ID with an instant.
 */
#ifndef SF_MATCH_H
#define SF_MATCH_H

#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"

#include "pushdown/call.h"

/*
 * One pass over conditions: the columns whose conditions are rewritten, and a cache of the catalog
 * lookups for them.
 */
typedef struct SfPass
{
	/*
	 * Whether conditions on the time of a column are rewritten; asked once
	 * for each call.
	 */
	bool		(*applies) (struct SfPass *pass, const SfTimeCall *call);

	/*
	 * The planner's state, if the planner has begun, and the relation that
	 * the columns belong to.
	 */
	PlannerInfo *root;
	RelOptInfo *rel;
	Oid			relid;
	/* The innermost query, if the planner has not begun (early.c). */
	const struct SfQueryLevel *level;
	/* Becomes true if another user might get another result. */
	bool	   *depends_on_role;
	SfFunctionLookups lookups;
	List	   *decided;		/* of SfDecision (match.c) */
	int			instants;		/* of the lists that were replaced */
} SfPass;

/* A comparison of the time of an ID with an instant. */
typedef struct SfComparison
{
	SfTimeCall	call;
	Oid			id_type;		/* bigint or sno */
	StrategyNumber strategy;	/* with the call on the left side */
	Node	   *instant;		/* a timestamptz; not a constant null */
} SfComparison;

/* Whether an expression is the time of an ID whose conditions the pass rewrites. */
extern bool sf_match_call(SfPass *pass, Node *node, SfTimeCall *call);

/*
 * Whether an operator is a comparison, which the pass rewrites, of the time of an ID with
 * another expression.  If so, *comparison is filled.
 */
extern bool sf_match_comparison(SfPass *pass, OpExpr *operator, SfComparison *comparison);

/*
 * Whether x = ANY(array) compares the time of an ID with constants.  If so, *comparison is
 * filled for =, and *instants has the constants.
 */
extern bool sf_match_any(SfPass *pass, ScalarArrayOpExpr *any, SfComparison *comparison,
						 List **instants);

/*
 * Whether (time of an ID, ID) is compared with two constants of which the second is an ID whose
 * time is the first.  So a page begins where the previous one ended.  If so, the comparison is
 * that of the ID with the second constant, by the operator of the second columns.
 */
extern bool sf_match_row(SfPass *pass, RowCompareExpr *row, SfTimeCall *call);

#endif							/* SF_MATCH_H */
