/*
 * pushdown.c
 *	  Replacing comparisons of an ID's time by comparisons of the ID.
 *
 * IDs are in the order of their times, so a condition on the time is equivalent to a
 * condition on the ID, for which an index can be used.  Let b(t) be
 * snowflake_boundary(t): an ID is at or above b(t) exactly if its time is at or after
 * t.  Let t' be the instant after t, a microsecond later.  Then the replacements are:
 *
 *		snowflake_timestamp(id) <  t		id <  b(t)
 *		snowflake_timestamp(id) >= t		id >= b(t)
 *		snowflake_timestamp(id) <= t		id <  b(t')
 *		snowflake_timestamp(id) >  t		id >= b(t')
 *		snowflake_timestamp(id) =  t		id >= b(t) AND id < b(t')
 *
 * Comparisons of sno_timestamp(id) are replaced in the same way, with sno_boundary(t).
 *
 * A planner hook looks for such comparisons in WHERE and in JOIN ON, in the query and in
 * all queries within it.  If it finds one, it copies the query and replaces the
 * comparisons in the copy.  The planner then works with conditions on IDs only.  If t is
 * a constant, the bound is a constant.  Otherwise the bound is a call of the immutable
 * function, which the planner evaluates if it can determine the value of t.
 *
 * A column of a domain over bigint or sno is relabelled as the base type.  The
 * replacement keeps that, because the parser writes comparisons of such a column in the
 * same way, and so the planner finds indexes, partitions and constraints on it.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "pushdown/match.h"
#include "compat.h"
#include "functions/functions.h"
#include "pushdown/pushdown.h"
#include "settings.h"
#include "functions/sno_type.h"
#include "pushdown/exempt.h"

static planner_hook_type prev_planner = NULL;

static Expr *
compare_id(const SfComparison *comparison, StrategyNumber strategy, Expr *bound)
{
	Oid			type = comparison->id_type;
	Oid			family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Oid			operator = get_opfamily_member(family, type, type, (int16) strategy);
	OpExpr	   *comparing = (OpExpr *) make_opclause(operator, BOOLOID, false,
													 copyObject(comparison->id),
													 bound, InvalidOid, InvalidOid);

	set_opfuncid(comparing);
	return (Expr *) comparing;
}

static Const *
bound_constant(const SfComparison *comparison, TimestampTz instant)
{
	if (comparison->is_sno)
		return makeConst(comparison->id_type, -1, InvalidOid, SF_SNO_SIZE,
						 sf_sno_result(sf_sno_boundary(instant)), false, false);
	return makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
					 Int64GetDatum(sf_layout_boundary(&comparison->layout, instant)),
					 false, true);
}

/*
 * A comparison of the ID with the bound of a constant instant.  The strategy is < or
 * >=.  Type sno, and a layout of all 63 bits, have no value above the last ID.  For
 * an instant after their end the bound is therefore the last ID itself, and the
 * comparison becomes <= or >.
 */
static Expr *
compare_with_constant(const SfComparison *comparison, StrategyNumber strategy, TimestampTz instant)
{
	const SfLayout *layout = comparison->is_sno ? &sf_sno_layout : &comparison->layout;

	if ((comparison->is_sno || sf_layout_last_id(layout) == PG_INT64_MAX) &&
		sf_layout_tick_ceil(layout, instant) > (int64) sf_layout_last_tick(layout))
		strategy = strategy == BTLessStrategyNumber ?
			BTLessEqualStrategyNumber : BTGreaterStrategyNumber;
	return compare_id(comparison, strategy, (Expr *) bound_constant(comparison, instant));
}

/*
 * A call of the function that returns the bound of an instant.  NULL if the function is
 * missing or the user may not call it.
 */
static Expr *
bound_call(const SfComparison *comparison, Node *instant)
{
	Oid			types[2] = {TIMESTAMPTZOID, TEXTOID};
	List	   *arguments = list_make1(instant);
	Oid			function;

	if (comparison->is_sno)
		function = sf_sibling(comparison, "sno_boundary", sno_boundary, 1, types);
	else
	{
		function = sf_sibling(comparison, "snowflake_boundary", snowflake_boundary, 2, types);
		arguments = lappend(arguments, comparison->layout_text);
	}
	if (!OidIsValid(function))
		return NULL;
	return (Expr *) makeFuncExpr(function, comparison->id_type, arguments,
								 InvalidOid,
								 comparison->is_sno ? InvalidOid : DEFAULT_COLLATION_OID,
								 COERCE_EXPLICIT_CALL);
}

/*
 * A comparison of the ID with the bound of the instant, or of the instant after it.
 * NULL if a function for it is missing or the user may not call it.
 */
static Expr *
compare_with_bound(const SfComparison *comparison, StrategyNumber strategy, bool after)
{
	Node	   *instant = comparison->instant;
	Oid			type = TIMESTAMPTZOID;
	Oid			function;
	Expr	   *bound;

	if (IsA(instant, Const))
	{
		TimestampTz value = DatumGetTimestampTz(((Const *) instant)->constvalue);

		return compare_with_constant(comparison, strategy, after ? sf_instant_after(value) : value);
	}
	if (after)
	{
		function = sf_sibling(comparison, "snowflake_next_instant", snowflake_next_instant,
							  1, &type);
		if (!OidIsValid(function))
			return NULL;
		instant = (Node *) makeFuncExpr(function, TIMESTAMPTZOID, list_make1(instant),
										InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	}
	bound = bound_call(comparison, instant);
	return bound ? compare_id(comparison, strategy, bound) : NULL;
}

/* The replacement of a comparison; NULL if the comparison is left unchanged. */
static Expr *
replacement(const SfComparison *comparison)
{
	Expr	   *from;
	Expr	   *to;

	switch (comparison->strategy)
	{
		case BTLessStrategyNumber:
			return compare_with_bound(comparison, BTLessStrategyNumber, false);
		case BTLessEqualStrategyNumber:
			return compare_with_bound(comparison, BTLessStrategyNumber, true);
		case BTGreaterEqualStrategyNumber:
			return compare_with_bound(comparison, BTGreaterEqualStrategyNumber, false);
		case BTGreaterStrategyNumber:
			return compare_with_bound(comparison, BTGreaterEqualStrategyNumber, true);
		default:
			from = compare_with_bound(comparison, BTGreaterEqualStrategyNumber, false);
			to = compare_with_bound(comparison, BTLessStrategyNumber, true);
			return from && to ? make_andclause(list_make2(from, to)) : NULL;
	}
}

/*
 * Tree walkers.  Their context is the level of the innermost query around the node.
 */

static Node *
rewrite_condition(Node *node, void *context)
{
	const SfQueryLevel *level = context;
	SfComparison comparison;

	if (node == NULL || IsA(node, Query))	/* see rewrite_queries */
		return node;
	if (IsA(node, OpExpr) && sf_match_comparison((OpExpr *) node, &comparison) &&
		sf_may_execute(comparison.function) &&
		!sf_is_exempt((Node *) comparison.id, level, comparison.function))
	{
		Expr	   *replaced = replacement(&comparison);

		if (replaced)
			return (Node *) replaced;
	}
	return expression_tree_mutator(node, rewrite_condition, context);
}

static void
rewrite_joins(Node *node, void *context)
{
	if (node && IsA(node, FromExpr))
	{
		FromExpr   *from = (FromExpr *) node;
		ListCell   *cell;

		foreach(cell, from->fromlist)
			rewrite_joins(lfirst(cell), context);
		from->quals = rewrite_condition(from->quals, context);
	}
	else if (node && IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		rewrite_joins(join->larg, context);
		rewrite_joins(join->rarg, context);
		join->quals = rewrite_condition(join->quals, context);
	}
}

/* Rewrite a query, in place, and all queries in it. */
static bool
rewrite_queries(Node *node, void *context)
{
	SfQueryLevel level = {.query = (Query *) node,.outer = context};

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, rewrite_queries, context);
	rewrite_joins((Node *) level.query->jointree, &level);
	return query_tree_walker(level.query, rewrite_queries, &level, 0);
}

static bool compares_time(Node *node, void *context);

/*
 * Whether a query compares the time of an ID.  This runs for every query of the server,
 * so it looks only where such a comparison can be.  A query without sublinks has
 * conditions only in its joins, and further queries only in its range table and its
 * common table expressions.
 */
static bool
query_compares_time(Query *query, void *context)
{
	ListCell   *cell;

	if (query->hasSubLinks)
		return query_tree_walker(query, compares_time, context, 0);
	foreach(cell, query->rtable)
	{
		RangeTblEntry *entry = lfirst(cell);

		if (entry->rtekind == RTE_SUBQUERY && compares_time((Node *) entry->subquery, context))
			return true;
	}
	return compares_time((Node *) query->jointree, context) ||
		compares_time((Node *) query->cteList, context);
}

/* Whether a tree contains a comparison of the time of an ID, at any depth. */
static bool
compares_time(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_Param:
		case T_RangeTblRef:
			return false;		/* the most frequent nodes, without children */
		case T_Query:
			return query_compares_time((Query *) node, context);
		case T_OpExpr:
			if (sf_compares_time((OpExpr *) node))
				return true;
			break;
		default:
			break;
	}
	return expression_tree_walker(node, compares_time, context);
}

static PlannedStmt *
plan_query(Query *query, const char *query_string, int cursor_options, ParamListInfo parameters)
{
	if (sf_enable_timestamp_pushdown && compares_time((Node *) query, NULL))
	{
		query = copyObject(query);
		rewrite_queries((Node *) query, NULL);
	}
	return (prev_planner ? prev_planner : standard_planner)
		(query, query_string, cursor_options, parameters);
}

void
sf_pushdown_init(void)
{
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
