/*
 * replace.c
 *	  Conditions on the ID in place of conditions on its time.
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
 *		snowflake_timestamp(id) IN (t, u)	one range or the other
 *		snowflake_timestamp(id) IS NULL		id IS NULL, and so IS NOT NULL
 *		(snowflake_timestamp(id), ...) < (t, ...)	id < b(t') beside it
 *
 * Comparisons of sno_timestamp(id) are replaced in the same way, with sno_boundary(t).  If
 * t is a constant, the bound is a constant.  Otherwise the bound is a call to the immutable
 * function, which the planner evaluates if it can determine the value of t.  Nothing folds
 * constants after this, so the conditions are built as the planner would leave them.
 *
 * A column of a domain over bigint or sno is relabelled as the base type.  The
 * replacement keeps that, because the parser writes comparisons of such a column in the
 * same way, and so the planner finds indexes, partitions and constraints on it.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/timestamp.h"

#include "functions/functions.h"
#include "functions/sno_type.h"
#include "pushdown/replace.h"
#include "pushdown/text.h"

static Const *
bound_constant(const SfComparison *comparison, TimestampTz instant)
{
	if (comparison->call.is_sno)
		return makeConst(comparison->call.id_type, -1, InvalidOid, SF_SNO_SIZE,
						 sf_sno_result(sf_sno_boundary(instant)), false, false);
	return makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
					 Int64GetDatum(sf_layout_boundary(&comparison->call.layout, instant)),
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
	const SfLayout *layout = &comparison->call.layout;

	if ((comparison->call.is_sno || sf_layout_last_id(layout) == PG_INT64_MAX) &&
		sf_layout_tick_ceil(layout, instant) > (int64) sf_layout_last_tick(layout))
		strategy = strategy == BTLessStrategyNumber ?
			BTLessEqualStrategyNumber : BTGreaterStrategyNumber;
	return sf_compare_id(&comparison->call, strategy, (Expr *) bound_constant(comparison, instant));
}

/*
 * A call to the function that returns the bound of an instant.  NULL if the function is missing or
 * the user may not call it.
 */
static Expr *
bound_call(SfPass *pass, const SfComparison *comparison, Node *instant)
{
	const SfCall *call = &comparison->call;
	Expr	   *layout;

	if (call->is_sno)
		return (Expr *) sf_call_sibling(call->function, "sno_boundary", sno_boundary,
										list_make1(instant), InvalidOid, pass->depends_on_role);
	layout = call->layout_argument ? copyObject(call->layout_argument) : sf_layout_constant();
	return (Expr *) sf_call_sibling(call->function, "snowflake_boundary", snowflake_boundary,
									list_make2(instant, layout), DEFAULT_COLLATION_OID,
									pass->depends_on_role);
}

/* The instant of a comparison or one later by us; NULL as above. */
static Node *
instant_of(SfPass *pass, const SfComparison *comparison, int64 us)
{
	Node	   *instant = copyObject(comparison->instant);
	Const	   *difference;

	if (us == 0)
		return instant;
	if (IsA(instant, Const))
	{
		Const	   *constant = (Const *) instant;
		TimestampTz value = DatumGetTimestampTz(constant->constvalue);

		constant->constvalue = TimestampTzGetDatum(sf_instant_later(value, us));
		return instant;
	}
	difference = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(us), false,
						   FLOAT8PASSBYVAL);
	return (Node *) sf_call_sibling(comparison->call.function, "snowflake_later", snowflake_later,
									list_make2(instant, difference), InvalidOid,
									pass->depends_on_role);
}

/*
 * The comparison of the ID with the bound of a comparison from below, or from above (bucket.c);
 * NULL as above.
 */
static Expr *
bound_of(SfPass *pass, const SfComparison *comparison, bool above)
{
	StrategyNumber strategy = above ? BTLessStrategyNumber : BTGreaterEqualStrategyNumber;
	int64		slack = comparison->call.bucket.slack;
	bool		after = above ? comparison->strategy != BTLessStrategyNumber :
	comparison->strategy == BTGreaterStrategyNumber;
	int64		exact = after ? comparison->width : 0;
	int64		rough = above ? comparison->width + slack : -slack;
	Node	   *instant = instant_of(pass, comparison, comparison->is_exact ? exact : rough);
	Expr	   *bound;

	if (instant && IsA(instant, Const))
		return compare_with_constant(comparison, strategy,
									 DatumGetTimestampTz(((Const *) instant)->constvalue));
	bound = instant ? bound_call(pass, comparison, instant) : NULL;
	return bound ? sf_compare_id(&comparison->call, strategy, bound) : NULL;
}

/* The bounds of a comparison; NIL if a function for them is missing. */
static List *
bounds_of(SfPass *pass, const SfComparison *comparison)
{
	List	   *bounds = NIL;

	if (comparison->strategy >= BTEqualStrategyNumber)
		bounds = lappend(bounds, bound_of(pass, comparison, false));
	if (comparison->strategy <= BTEqualStrategyNumber)
		bounds = lappend(bounds, bound_of(pass, comparison, true));
	return list_member_ptr(bounds, NULL) ? NIL : bounds;
}

/*
 * The replacement of a condition by bounds; NULL if there are none.  If the bounds are not
 * equivalent to the condition, or it is kept, it remains beside them.  It can be null where they
 * are false, so this is not done within expressions.
 */
static Expr *
with_condition(SfPass *pass, List *bounds, bool replaces, Node *condition)
{
	if (bounds == NIL || (!replaces && pass->in_expression))
		return NULL;
	if (!replaces && !pass->adds_only)
		bounds = lappend(bounds, copyObject(condition));
	return make_ands_explicit(bounds);
}

static Expr *
replace_comparison(SfPass *pass, OpExpr *operator)
{
	SfComparison comparison;
	Node	   *other;

	if (!sf_match_comparison(pass, operator, &comparison, &other))
		return NULL;
	if (comparison.call.is_text)
		return with_condition(pass,
							  make_ands_implicit(sf_replace_text(pass, &comparison, other,
																 operator->inputcollid)),
							  !comparison.is_kept, (Node *) operator);
	if (!sf_set_instant(&comparison, other) || !sf_is_worth_replacing(pass, &comparison, other))
		return NULL;
	return with_condition(pass, bounds_of(pass, &comparison),
						  comparison.is_exact && !comparison.is_kept, (Node *) operator);
}

/* The range from the first to the last of several constants. */
static List *
range_of(SfPass *pass, SfComparison *comparison, List *instants)
{
	Expr	   *lower;

	sf_set_instant(comparison, linitial(instants));
	lower = bound_of(pass, comparison, false);
	sf_set_instant(comparison, llast(instants));
	return list_make2(lower, bound_of(pass, comparison, true));
}

/*
 * The replacement of x = ANY(array): one range for each instant.  Of many constants, the range
 * from the first to the last one, beside the condition.
 */
static Expr *
replace_any(SfPass *pass, ScalarArrayOpExpr *any)
{
	SfComparison comparison;
	List	   *instants;
	List	   *bounds;
	List	   *ranges = NIL;
	Expr	   *range = NULL;
	bool		are_exact;
	ListCell   *cell;

	if (!sf_match_any(pass, any, &comparison))
		return NULL;
	are_exact = !comparison.is_kept;
	if (comparison.call.is_text)
		return with_condition(pass,
							  make_ands_implicit(sf_replace_text_any(pass, &comparison, any)),
							  !comparison.is_kept, (Node *) any);
	instants = sf_instants_of(lsecond(any->args));
	foreach(cell, instants)
	{
		if (!sf_is_worth_replacing(pass, &comparison, lfirst(cell)))
			return NULL;
	}
	if (instants == NIL)
		return NULL;
	if (!sf_are_few(pass, instants))
		return sf_are_constant(instants) ?
			with_condition(pass, range_of(pass, &comparison, instants), false, (Node *) any) : NULL;
	foreach(cell, instants)
	{
		sf_set_instant(&comparison, lfirst(cell));
		bounds = bounds_of(pass, &comparison);
		if (bounds == NIL)
			return NULL;
		range = make_andclause(bounds);
		ranges = lappend(ranges, range);
		are_exact = are_exact && comparison.is_exact;
	}
	if (list_length(ranges) > 1)
		range = make_orclause(ranges);
	return with_condition(pass, make_ands_implicit(range), are_exact, (Node *) any);
}

/* The replacement of IS NULL and IS NOT NULL: only a null ID has no time. */
static Expr *
replace_null_test(SfPass *pass, NullTest *test)
{
	SfCall		call;
	SfTreatment treatment;
	NullTest   *result;

	treatment = test->argisrow ? SF_UNCHANGED : sf_match_call(pass, (Node *) test->arg, &call);
	if (treatment == SF_UNCHANGED || !call.bucket.is_monotonic)
		return NULL;
	result = makeNode(NullTest);
	result->arg = copyObject(call.id);
	result->nulltesttype = test->nulltesttype;
	result->location = test->location;
	return with_condition(pass, list_make1(result), treatment == SF_REPLACED, (Node *) test);
}

/* The bound of the time that (time, ...) < (instant, ...) implies, beside the comparison. */
static Expr *
replace_row(SfPass *pass, RowCompareExpr *row)
{
	OpExpr	   *first = (OpExpr *) make_opclause(linitial_oid(row->opnos), BOOLOID, false,
												 linitial(row->largs), linitial(row->rargs),
												 InvalidOid, linitial_oid(row->inputcollids));
	SfComparison comparison;
	Node	   *other;

	if (!sf_match_comparison(pass, first, &comparison, &other) || comparison.call.is_text ||
		!sf_set_instant(&comparison, other) || !sf_is_worth_replacing(pass, &comparison, other))
		return NULL;
	comparison.strategy = comparison.strategy < BTEqualStrategyNumber ?
		BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
	return with_condition(pass, bounds_of(pass, &comparison), false, (Node *) row);
}

/*
 * snowflake_between() as its two comparisons.  The planner inlines it as well, but one call at a
 * time.
 */
static Expr *
replace_between(SfPass *pass, FuncExpr *call)
{
	if (!pass->inlines_between || !sf_is_between(call->funcid) ||
		!sf_may_call(call->funcid, pass->depends_on_role))
		return NULL;
	return (Expr *) eval_const_expressions(NULL, (Node *) call);
}

static Node *replace_condition(Node *node, void *context);

/* Conditions that are connected by AND with all conditions in them replaced. */
static List *
replace_in_and(SfPass *pass, List *conditions)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Node	   *replaced = replace_condition(lfirst(cell), pass);

		result = list_concat(result, make_ands_implicit((Expr *) replaced));
	}
	return result;
}

/* The replacement of AND or OR.  The planner expects that no argument is of the same kind. */
static Expr *
replace_in_boolean(SfPass *pass, BoolExpr *expression)
{
	List	   *arguments = NIL;
	ListCell   *cell;

	if (expression->boolop == AND_EXPR)
		return make_andclause(replace_in_and(pass, expression->args));
	if (expression->boolop == NOT_EXPR)
		return NULL;
	foreach(cell, expression->args)
	{
		Node	   *argument = replace_condition(lfirst(cell), pass);

		arguments = is_orclause(argument) ?
			list_concat(arguments, ((BoolExpr *) argument)->args) : lappend(arguments, argument);
	}
	return make_orclause(arguments);
}

static Node *
replace_condition(Node *node, void *context)
{
	SfPass	   *pass = context;
	Expr	   *replaced = NULL;
	bool		in_expression = pass->in_expression;

	if (node == NULL)
		return NULL;
	switch (nodeTag(node))
	{
		case T_OpExpr:
			replaced = replace_comparison(pass, (OpExpr *) node);
			break;
		case T_ScalarArrayOpExpr:
			replaced = replace_any(pass, (ScalarArrayOpExpr *) node);
			break;
		case T_NullTest:
			replaced = replace_null_test(pass, (NullTest *) node);
			break;
		case T_RowCompareExpr:
			replaced = replace_row(pass, (RowCompareExpr *) node);
			break;
		case T_FuncExpr:
			replaced = replace_between(pass, (FuncExpr *) node);
			break;
		case T_BoolExpr:
			replaced = replace_in_boolean(pass, (BoolExpr *) node);
			break;
		case T_SubLink:			/* their queries are planned on their own */
		case T_SubPlan:
		case T_AlternativeSubPlan:
		case T_PlaceHolderVar:	/* if two are equal, they must remain equal */
		case T_Query:
			return node;
		default:
			break;
	}
	if (replaced)
		return (Node *) replaced;
	pass->in_expression = true;
	node = expression_tree_mutator(node, replace_condition, context);
	pass->in_expression = in_expression;
	return node;
}

List *
sf_replace_in_list(SfPass *pass, List *conditions)
{
	return sf_mentions_time((Node *) conditions) ? replace_in_and(pass, conditions) : conditions;
}

static Node *
replace_in_join(SfPass *pass, Node *conditions)
{
	if (conditions && IsA(conditions, List))
		return (Node *) sf_replace_in_list(pass, (List *) conditions);
	return replace_condition(conditions, pass);
}

void
sf_replace_in_joins(SfPass *pass, Node *join)
{
	if (join && IsA(join, FromExpr))
	{
		FromExpr   *from = (FromExpr *) join;
		ListCell   *cell;

		foreach(cell, from->fromlist)
			sf_replace_in_joins(pass, lfirst(cell));
		from->quals = replace_in_join(pass, from->quals);
	}
	else if (join && IsA(join, JoinExpr))
	{
		JoinExpr   *on = (JoinExpr *) join;

		sf_replace_in_joins(pass, on->larg);
		sf_replace_in_joins(pass, on->rarg);
		on->quals = replace_in_join(pass, on->quals);
	}
}
