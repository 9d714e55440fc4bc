/*
 * match.h
 *	  Comparisons of the time or text of an ID.
 */
#ifndef SF_MATCH_H
#define SF_MATCH_H

#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/pathnodes.h"

#include "pushdown/call.h"

/* The treatment of the conditions on the time of a column. */
typedef enum SfTreatment
{
	SF_UNCHANGED,
	SF_KEPT,					/* beside conditions on the ID */
	SF_REPLACED
} SfTreatment;

/* One pass: the columns whose conditions are rewritten. */
typedef struct SfPass
{
	/*
	 * The treatment of conditions on the time of a column; asked once for
	 * each call.
	 */
	SfTreatment (*treatment) (struct SfPass *pass, const SfCall *call);

	/*
	 * The planner's state, if the planner has begun, and the relation that
	 * the columns belong to.
	 */
	PlannerInfo *root;
	RelOptInfo *rel;
	/* The innermost query, if the planner has not begun (early.c). */
	const struct SfQueryLevel *level;
	FromExpr   *joins;			/* with the conditions of the query */
	bool		inlines_between;	/* calls to snowflake_between() */
	bool		adds_only;		/* conditions to others, which remain */
	/* In AND and OR a condition may become null instead of false. */
	bool		in_expression;	/* of another kind */
	/* Becomes true if another user might get another result. */
	bool	   *depends_on_role;
	List	   *decided;		/* of SfDecision (match.c) */
	int			instants;		/* of the lists that were replaced */
} SfPass;

/* A comparison of the time of an ID with an instant. */
typedef struct SfComparison
{
	SfCall		call;
	StrategyNumber strategy;	/* with the call on the left side */
	Node	   *instant;		/* a timestamptz */
	bool		is_kept;		/* beside what it implies */
	/* Whether the comparison is equivalent to one of the ID. */
	bool		is_exact;
	int64		width;			/* in us, of the bucket that begins at the
								 * instant; or of the widest bucket */
} SfComparison;

/* What the pass does with conditions on an expression, if it is the time of an ID. */
extern SfTreatment sf_match_call(SfPass *pass, Node *node, SfCall *call);

/*
 * Whether an operator is a comparison, which the pass rewrites, of the time or text of an ID with
 * another expression.  If so, *comparison is filled, except for its instant, and *other is the
 * other expression, which is not a constant null.
 */
extern bool sf_match_comparison(SfPass *pass, OpExpr *operator, SfComparison *comparison,
								Node **other);

/*
 * Whether a comparison of the ID with another expression is worth replacing, for the strategy of
 * the comparison.
 */
extern bool sf_is_worth_replacing(SfPass *pass, const SfComparison *comparison, Node *other);

/* Set the instant of a comparison; false if it cannot be compared as a timestamptz. */
extern bool sf_set_instant(SfComparison *comparison, Node *instant);

/*
 * Whether x = ANY(array), which the pass rewrites, compares the time or text of an ID by =.  If so,
 * *comparison is filled, except for its instant.
 */
extern bool sf_match_any(SfPass *pass, ScalarArrayOpExpr *any, SfComparison *comparison);

/*
 * The elements of an array of timestamptz, in ascending order if they are constants; NIL if one is
 * the constant null, or the array is another expression.
 */
extern List *sf_instants_of(Node *array);

/* Whether all of a list of instants are constants. */
extern bool sf_are_constant(const List *instants);

/* Whether a list of instants becomes one range for each. */
extern bool sf_are_few(SfPass *pass, const List *instants);

/* The comparison of the ID of a call with a bound, by the operator of a strategy. */
extern Expr *sf_compare_id(const SfCall *call, StrategyNumber strategy, Expr *bound);

#endif							/* SF_MATCH_H */
