/*
 * pass.h
 *	  A pass over the conditions or sort keys of a query, and its steps.
 */
#ifndef SF_PASS_H
#define SF_PASS_H

#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"

#include "pushdown/call.h"

/* One pass: the columns whose conditions are rewritten. */
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
	/* The innermost query, if the planner has not begun (early.c). */
	const struct SfQueryLevel *level;
	bool		inlines_between;	/* calls of snowflake_between() */
	/* Becomes true if another user might get another result. */
	bool	   *depends_on_role;
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

/*
 * match.c
 */

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

/*
 * replace.c
 */

/* A condition with all conditions in it replaced; a new tree. */
extern Node *sf_replace_in_condition(SfPass *pass, Node *condition);

/*
 * As sf_replace_in_condition, for a list of conditions that are connected by AND, as the planner
 * keeps them.  Returns the list itself if nothing was replaced.
 */
extern List *sf_replace_in_list(SfPass *pass, List *conditions);

/*
 * The same for the conditions of WHERE and JOIN ON, in place: lists if the planner has begun, and
 * otherwise expressions.
 */
extern void sf_replace_in_joins(SfPass *pass, Node *join);

/*
 * The others
 */

/* Replace the time of an ID by the ID in the sort keys of the pass's query (sort.c). */
extern void sf_rewrite_sort(SfPass *pass);

/*
 * Whether the planner can use the time of an ID, from an attribute of a relation, as it is written,
 * so that conditions on it are left unchanged (exempt.c).
 */
extern bool sf_is_exempt(SfPass *pass, Oid relid, AttrNumber attribute, const SfTimeCall *call);

/* Install the planner hook (early.c). */
extern void sf_early_init(void);

#endif							/* SF_PASS_H */
