/*
 * pushdown.h
 *	  Queries by the time of an ID are answered by the ID.
 */
#ifndef SF_PUSHDOWN_H
#define SF_PUSHDOWN_H

#include "postgres.h"

#include "access/stratnum.h"
#include "datatype/timestamp.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"

#include "core/layout.h"

/* Install the hooks that rewrite queries. */
extern void sf_pushdown_init(void);

/*
 * bucket.c
 */

/* How a call rounds an instant down to the beginning of a bucket. */
typedef struct SfBucket
{
	FuncExpr   *function;		/* NULL if the instant is not rounded */
	int64		width;			/* of the widest bucket, in us; 1 if the
								 * instant is not rounded */
	int64		slack;			/* by which the ends of a bucket can be off */
	bool		is_monotonic;	/* buckets have the order of the instants */
} SfBucket;

/*
 * The expression that a call rounds, and how; the node itself if it is no such call, or one whose
 * width is not known.
 */
extern Node *sf_unrounded(Node *node, SfBucket *bucket);

/*
 * Whether a bucket of a call that rounds surely begins at an instant, so that conditions on the
 * rounded instant are equivalent to those on the instant itself.  If so, *width becomes the width
 * of this bucket.
 */
extern bool sf_bucket_begins(const SfBucket *bucket, TimestampTz instant, int64 *width);

/* Whether an expression is a constant that is not null. */
extern bool sf_is_constant(Node *node);

/*
 * call.c
 */

/*
 * A call that returns the time of an ID, which is a column.  The layout is the same for all
 * rows, so the order of the IDs is that of their times, and the time is null exactly if the ID
 * is.  The time can be rounded to a bucket.  Or a call that returns the ID in base 32 (text.c).
 */
typedef struct SfCall
{
	Oid			function;
	bool		is_sno;
	bool		is_text;		/* the call returns the ID as text */
	Oid			collation;		/* of the text */
	SfBucket	bucket;
	Expr	   *id;				/* the column, relabelled if its type is a
								 * domain */
	Oid			id_type;		/* bigint or sno */
	Var		   *column;			/* the column without the relabelling */
	Expr	   *layout_argument;	/* a constant; NULL if none */
	SfLayout	layout;
} SfCall;

/*
 * Whether an expression is snowflake_timestamp(id), sno_timestamp(id), created_at of
 * snowflake_decode(id) or sno_decode(id), one of these rounded to a bucket, or
 * snowflake_to_base32(id) in any collation, for an id that is a column and a layout that is known.
 * If so, *call is filled.  All replacements begin here, and rely on what is said at SfCall.
 */
extern bool sf_time_call(Node *node, SfCall *call);

/* The layout of the server, as an argument. */
extern Expr *sf_layout_constant(void);

/* Whether a function is snowflake_between(). */
extern bool sf_is_between(Oid function);

/* Whether a tree contains one of these functions, in any query of it. */
extern bool sf_mentions_time(Node *node);

/*
 * An expression as a column of any type; NULL if it is not a column.  A column of a
 * domain may be relabelled as its base type, which does not change its value.
 */
extern Var *sf_column(Node *expression);

/*
 * A call of another function of the extension: of the one in the schema of a function with the
 * given name, address and types of arguments.  NULL if it is not found, or if the user may not call
 * it.
 */
extern FuncExpr *sf_call_sibling(Oid function, const char *name, PGFunction address,
								 List *arguments, Oid collation, bool *depends_on_role);

/*
 * Whether the current user may call a function.  If this depends on the user, *depends_on_role
 * becomes true.
 */
extern bool sf_may_call(Oid function, bool *depends_on_role);

/*
 * match.c
 */

/* One pass: the columns whose conditions are rewritten. */
typedef struct SfPass
{
	/*
	 * Whether conditions on the time of a column are rewritten; asked once
	 * for each call.
	 */
	bool		(*applies) (struct SfPass *pass, const SfCall *call);

	/*
	 * The planner's state, if the planner has begun, and the relation that
	 * the columns belong to.
	 */
	PlannerInfo *root;
	RelOptInfo *rel;
	/* The innermost query, if the planner has not begun (early.c). */
	const struct SfQueryLevel *level;
	bool		inlines_between;	/* calls of snowflake_between() */
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
	/* Whether the comparison is equivalent to one of the ID. */
	bool		is_exact;
	int64		width;			/* in us, of the bucket that begins at the
								 * instant; or of the widest bucket */
} SfComparison;

/* Whether an expression is the time of an ID whose conditions the pass rewrites. */
extern bool sf_match_call(SfPass *pass, Node *node, SfCall *call);

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
 * The elements of an array of timestamptz, in ascending order, if they are constants, and none is
 * null; otherwise NIL.
 */
extern List *sf_instants_of(Node *array);

/* Whether a list of instants becomes one range for each; otherwise, one range for all. */
extern bool sf_are_few(SfPass *pass, const List *instants);

/*
 * Whether (time of an ID, ID) is compared with two constants of which the second is an ID whose
 * time is the first.  So a page begins where the previous one ended.  If so, the comparison is
 * that of the ID with the second constant, and *strategy becomes that of the second columns.
 */
extern bool sf_match_row(SfPass *pass, RowCompareExpr *row, SfCall *call, int *strategy);

/* The comparison of the ID of a call with a bound, by the operator of a strategy. */
extern Expr *sf_compare_id(const SfCall *call, StrategyNumber strategy, Expr *bound);

/*
 * replace.c
 */

/*
 * A list of conditions that are connected by AND, as the planner keeps them, with all conditions in
 * them replaced; a new list.  Returns the list itself if nothing was replaced.
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

/*
 * The replacements of comparisons of an ID in base 32 with a text, in a collation, and with the
 * elements of an array; NULL if there is none (text.c).
 */
extern Expr *sf_replace_text(SfPass *pass, const SfComparison *comparison, Node *text,
							 Oid collation);
extern Expr *sf_replace_text_any(SfPass *pass, const SfComparison *comparison,
								 ScalarArrayOpExpr *any);

/* Replace the time of an ID by the ID in the sort keys of the pass's query (sort.c). */
extern void sf_rewrite_sort(SfPass *pass);

/*
 * Whether the planner can use the time of an ID, from an attribute of a relation, as it is written,
 * so that conditions on it are left unchanged (exempt.c).
 */
extern bool sf_is_exempt(SfPass *pass, Oid relid, AttrNumber attribute, const SfCall *call);

/* Install the planner hook (early.c). */
extern void sf_early_init(void);

#endif							/* SF_PUSHDOWN_H */
