/*
 * match.c
 *	  Comparisons of the time or text of an ID.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "functions/sno_type.h"
#include "pushdown/expression.h"
#include "pushdown/match.h"

/*
 * The longest list of constants that becomes an OR of ranges.  The planner compares an OR with each
 * partition or child of a table, and with all others, so there are limits for such tables and for
 * all lists of a pass.
 */
#define MAX_INSTANTS 100
#define MAX_INSTANTS_OF_PARENT 10
#define MAX_INSTANTS_OF_PASS 1000

/* The treatment of conditions on the time of a column. */
typedef struct SfDecision
{
	SfCall		call;
	SfTreatment treatment;
} SfDecision;

/* Whether the decision for two calls is the same: same function, column and layout. */
static bool
same_call(const SfCall *a, const SfCall *b)
{
	return a->function == b->function && a->collation == b->collation &&
		(a->bucket.function == NULL) == (b->bucket.function == NULL) &&
		a->column->varno == b->column->varno && a->column->varattno == b->column->varattno &&
		a->column->varlevelsup == b->column->varlevelsup &&
		equal(a->layout_argument, b->layout_argument);
}

/* The treatment of conditions on the time of a column, as decided for its first call. */
static SfTreatment
treatment_of(SfPass *pass, const SfCall *call)
{
	SfDecision *decision;
	ListCell   *cell;

	foreach(cell, pass->decided)
	{
		decision = lfirst(cell);
		if (same_call(&decision->call, call))
			return decision->treatment;
	}
	decision = palloc(sizeof(SfDecision));
	decision->call = *call;
	decision->treatment = pass->treatment(pass, call);
	pass->decided = lappend(pass->decided, decision);
	return decision->treatment;
}

SfTreatment
sf_match_call(SfPass *pass, Node *node, SfCall *call)
{
	return sf_time_call(node, call) ? treatment_of(pass, call) : SF_UNCHANGED;
}

/*
 * Whether a constant date or timestamp can be converted to timestamptz in all time zones: the time
 * zone of the session can change after a plan was made.  No offset from UTC reaches seven days.
 */
static bool
fits_in_all_time_zones(const Const *constant, Oid type)
{
	const int64 first = DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE;
	const int64 end = TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE;
	int64		value = type == DATEOID ? DatumGetDateADT(constant->constvalue) :
	DatumGetTimestamp(constant->constvalue);
	int64		day = type == DATEOID ? value : value / USECS_PER_DAY;

	if (type == DATEOID ? DATE_NOT_FINITE(value) : TIMESTAMP_NOT_FINITE(value))
		return true;
	return day > first + 7 && day < end - 7;
}

/*
 * The other side of the comparison as a timestamptz, by core's own cast.  NULL if the
 * other side is a constant whose cast could raise an error for its range: the original
 * comparison raises none.
 */
static Node *
as_timestamptz(Node *other)
{
	Oid			type = exprType(other);
	Oid			cast;

	if (type == TIMESTAMPTZOID)
		return other;
	if ((IsA(other, Const) && !fits_in_all_time_zones((Const *) other, type)) ||
		find_coercion_pathway(TIMESTAMPTZOID, type, COERCION_IMPLICIT, &cast) != COERCION_PATH_FUNC)
		return NULL;
	return (Node *) makeFuncExpr(cast, TIMESTAMPTZOID, list_make1(other),
								 InvalidOid, InvalidOid, COERCE_IMPLICIT_CAST);
}

/*
 * Whether a comparison of the time of an ID with another expression is worth
 * replacing.  A volatile expression and one of columns of the same row change from row to
 * row, so an index cannot be searched for them.  A comparison by = becomes two conditions.
 * If the other expression contains columns, = is left as it is, because hash and merge
 * joins can use it.
 */
bool
sf_is_worth_replacing(SfPass *pass, const SfComparison *comparison, Node *other)
{
	const Var  *column = comparison->call.column;
	Relids		relations;

	if (IsA(other, Const))
		return true;
	relations = pull_varnos_of_level(pass->root, other, (int) column->varlevelsup);
	if (contain_volatile_functions(other) || bms_is_member(column->varno, relations))
		return false;
	return comparison->strategy != BTEqualStrategyNumber ||
		(bms_is_empty(relations) && !contain_subplans(other));
}

/* The operators by which a type is sorted. */
static Oid
family_of(Oid type)
{
	return lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

/* Which comparison of texts an operator is; 0 if none that can be replaced with this collation. */
static int
text_strategy(Oid operator, Oid collation)
{
	Oid			family = family_of(TEXTOID);
	int			strategy = get_op_opfamily_strategy(operator, family);

	if (get_opfamily_member(family, TEXTOID, TEXTOID, (int16) strategy) != operator ||
		!OidIsValid(collation))
		return 0;
	return collation == C_COLLATION_OID ||
		(strategy == BTEqualStrategyNumber && get_collation_isdeterministic(collation)) ?
		strategy : 0;
}

/*
 * Which comparison of the text of an ID, or of its time with a time of any type, an operator is; 0
 * if it is another operator.
 */
static int
strategy_of(const SfCall *call, Oid operator, Oid collation)
{
	return call->is_text ? text_strategy(operator, collation) :
		get_op_opfamily_strategy(operator, family_of(TIMESTAMPTZOID));
}

bool
sf_set_instant(SfComparison *comparison, Node *instant)
{
	const SfBucket *bucket = &comparison->call.bucket;

	comparison->instant = as_timestamptz(instant);
	if (comparison->instant == NULL)
		return false;
	comparison->width = bucket->width;
	comparison->is_exact = bucket->function == NULL ||
		(IsA(comparison->instant, Const) &&
		 sf_bucket_begins(bucket,
						  DatumGetTimestampTz(((Const *) comparison->instant)->constvalue),
						  &comparison->width));
	return true;
}

/* Whether the planner has begun, and a call is of a table of its query. */
static bool
is_of_table(SfPass *pass, const SfCall *call)
{
	return pass->root && call->column->varlevelsup == 0 &&
		planner_rt_fetch(call->column->varno, pass->root)->rtekind == RTE_RELATION;
}

/* Whether a call is of the table whose conditions the pass rewrites. */
static bool
is_of_pass(const SfPass *pass, const SfCall *call)
{
	return call->column->varno == (int) pass->rel->relid;
}

/* The planner's state of the table of a call; NULL if it has not read the table yet. */
static RelOptInfo *
relation_of(const SfPass *pass, const SfCall *call)
{
	return is_of_pass(pass, call) ? pass->rel :
		pass->root->simple_rel_array[call->column->varno];
}

/* The rows of a table.  Those of a parent are not known yet. */
static double
rows_of(SfPass *pass, const SfCall *call)
{
	return planner_rt_fetch(call->column->varno, pass->root)->inh ? get_float8_infinity() :
		relation_of(pass, call)->tuples;
}

/* The treatment of conditions on the time of a table, which need not be the table of the pass. */
static SfTreatment
treatment_of_table(const SfPass *pass, SfCall *call)
{
	SfPass		of_table = *pass;

	of_table.rel = relation_of(pass, call);
	return of_table.treatment(&of_table, call);
}

/* The search for a bound of an ID that only this ID can have. */
typedef struct SfBoundSearch
{
	SfPass	   *pass;
	const SfCall *bounded;
	const SfCall *other;
} SfBoundSearch;

/* Whether an expression is an ID or its time, as in a call. */
static bool
is_of_column(Node *expression, const SfCall *call)
{
	SfCall		found;
	Var		   *column = sf_time_call(expression, &found) ? found.column : sf_column(expression);

	return column && column->varno == call->column->varno &&
		column->varattno == call->column->varattno;
}

/*
 * Whether one of two expressions is the ID or its time, and the other one is computed from a row of
 * the other table.
 */
static bool
is_bound(SfBoundSearch *search, Node *expression, Node *computed)
{
	SfCall		call;

	return !sf_time_call(computed, &call) && sf_column(computed) == NULL &&
		is_of_column(expression, search->bounded) &&
		bms_is_member(search->other->column->varno, pull_varnos(search->pass->root, computed));
}

static bool
has_bound(Node *node, void *context)
{
	List	   *sides = node && IsA(node, OpExpr) ? ((OpExpr *) node)->args : NIL;

	if (node == NULL)
		return false;
	if (list_length(sides) == 2 && (is_bound(context, linitial(sides), lsecond(sides)) ||
									is_bound(context, lsecond(sides), linitial(sides))))
		return true;
	return expression_tree_walker(node, has_bound, context);
}

/*
 * Whether the query has a condition that bounds the ID of a call by rows of the table of another.
 */
static bool
has_own_bound(SfPass *pass, const SfCall *bounded, const SfCall *other)
{
	SfBoundSearch search = {.pass = pass,.bounded = bounded,.other = other};

	return has_bound((Node *) pass->joins, &search);
}

/* Of two times, the only side that has a bound of its own; -1 if both have one, or none. */
static int
side_with_own_bound(SfPass *pass, const SfCall calls[2])
{
	bool		second = has_own_bound(pass, &calls[1], &calls[0]);

	if (second == has_own_bound(pass, &calls[0], &calls[1]))
		return -1;
	return second ? 1 : 0;
}

/* Whether two times are of different relations of the query. */
static bool
are_joined(const SfCall calls[2])
{
	return calls[0].column->varlevelsup == 0 && calls[1].column->varlevelsup == 0 &&
		calls[0].column->varno != calls[1].column->varno;
}

/* Of two times of tables, the side that is bounded by the other one; -1 if it is not known yet. */
static int
side_of_tables(SfPass *pass, const SfCall calls[2])
{
	int			side;

	if (!relation_of(pass, &calls[0]) || !relation_of(pass, &calls[1]) ||
		!(is_of_pass(pass, &calls[0]) || is_of_pass(pass, &calls[1])))
		return -1;
	side = side_with_own_bound(pass, calls);
	if (side < 0)
		side = rows_of(pass, &calls[1]) > rows_of(pass, &calls[0]) ? 1 : 0;
	return side;
}

/*
 * The side whose ID is compared with a bound; -1 if there is none.
 *
 * If both sides are times of relations, a nested loop can search the index of either one, but only
 * if its ID has the bound.  In a condition such as b.time > a.time - interval '1 hour' only the ID
 * of b can have it.  If there is one, b has all of them, so that its index is searched for a
 * range.  Otherwise it is the table that has more rows.  This is decided when the planner has read
 * both tables, in the pass of the later one.  Before the planner begins, the rows are not known.
 */
static int
side_of_call(SfPass *pass, List *sides, SfCall calls[2], SfTreatment *treatment)
{
	bool		is_call[2];
	int			side;

	for (side = 0; side < 2; side++)
		is_call[side] = sf_time_call(list_nth(sides, side), &calls[side]);
	if (is_call[0] && is_call[1] && are_joined(calls))
	{
		if (is_of_table(pass, &calls[0]) && is_of_table(pass, &calls[1]))
		{
			side = side_of_tables(pass, calls);
			*treatment = side < 0 ? SF_UNCHANGED : treatment_of_table(pass, &calls[side]);
			return *treatment == SF_UNCHANGED ? -1 : side;
		}
		side = pass->root ? -1 : side_with_own_bound(pass, calls);
		if (side >= 0)
		{
			*treatment = treatment_of(pass, &calls[side]);
			return *treatment == SF_UNCHANGED ? -1 : side;
		}
	}
	for (side = 0; side < 2; side++)
	{
		*treatment = is_call[side] ? treatment_of(pass, &calls[side]) : SF_UNCHANGED;
		if (*treatment != SF_UNCHANGED)
			return side;
	}
	return -1;
}

bool
sf_match_comparison(SfPass *pass, OpExpr *operator, SfComparison *comparison, Node **other)
{
	SfCall		calls[2];
	SfTreatment treatment;
	int			strategy;
	int			side;

	if (list_length(operator->args) != 2)
		return false;
	side = side_of_call(pass, operator->args, calls, &treatment);
	if (side < 0)
		return false;
	comparison->is_kept = treatment == SF_KEPT;
	strategy = strategy_of(&calls[side], operator->opno, operator->inputcollid);
	comparison->call = calls[side];
	comparison->strategy = side == 0 ? strategy : BTCommuteStrategyNumber(strategy);
	*other = list_nth(operator->args, 1 - side);
	return strategy != 0 && !(IsA(*other, Const) && ((Const *) *other)->constisnull);
}

/* The elements of a constant array of timestamptz. */
static List *
elements_of(const Const *array)
{
	List	   *result = NIL;
	Datum	   *values;
	bool	   *nulls;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(array->constvalue), TIMESTAMPTZOID,
					  sizeof(TimestampTz), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		result = lappend(result, makeConst(TIMESTAMPTZOID, -1, InvalidOid, sizeof(TimestampTz),
										   values[i], nulls[i], FLOAT8PASSBYVAL));
	return result;
}

/* The order of instants. */
static int
compare_instants(const ListCell *a, const ListCell *b)
{
	TimestampTz x = DatumGetTimestampTz(((Const *) lfirst(a))->constvalue);
	TimestampTz y = DatumGetTimestampTz(((Const *) lfirst(b))->constvalue);

	return x < y ? -1 : x > y;
}

/*
 * The planner makes a constant of an array of constants.  Before it begins, nothing is evaluated,
 * since that could raise an error.
 */
List *
sf_instants_of(Node *array)
{
	List	   *instants;
	ListCell   *cell;

	if (exprType(array) != TIMESTAMPTZARRAYOID)
		return NIL;
	if (sf_is_constant(array))
		instants = elements_of((Const *) array);
	else if (IsA(array, ArrayExpr) && !((ArrayExpr *) array)->multidims)
		instants = list_copy(((ArrayExpr *) array)->elements);
	else
		return NIL;
	foreach(cell, instants)
	{
		if (IsA(lfirst(cell), Const) && ((Const *) lfirst(cell))->constisnull)
			return NIL;
	}
	if (sf_are_constant(instants))
		list_sort(instants, compare_instants);
	return instants;
}

bool
sf_are_constant(const List *instants)
{
	ListCell   *cell;

	foreach(cell, instants)
	{
		if (!sf_is_constant(lfirst(cell)))
			return false;
	}
	return true;
}

bool
sf_match_any(SfPass *pass, ScalarArrayOpExpr *any, SfComparison *comparison)
{
	SfTreatment treatment = any->useOr ?
	sf_match_call(pass, linitial(any->args), &comparison->call) : SF_UNCHANGED;

	comparison->is_kept = treatment == SF_KEPT;
	comparison->strategy = BTEqualStrategyNumber;
	return treatment != SF_UNCHANGED &&
		strategy_of(&comparison->call, any->opno, any->inputcollid) == BTEqualStrategyNumber;
}

bool
sf_are_few(SfPass *pass, const List *instants)
{
	bool		single = pass->rel && pass->rel->reloptkind == RELOPT_BASEREL &&
	!planner_rt_fetch(pass->rel->relid, pass->root)->inh;

	if (list_length(instants) > (single ? MAX_INSTANTS : MAX_INSTANTS_OF_PARENT) ||
		pass->instants + list_length(instants) > MAX_INSTANTS_OF_PASS)
		return false;
	pass->instants += list_length(instants);
	return true;
}

Expr *
sf_compare_id(const SfCall *call, StrategyNumber strategy, Expr *bound)
{
	Oid			operator = get_opfamily_member(family_of(call->id_type), call->id_type,
											   call->id_type, (int16) strategy);
	OpExpr	   *comparing = (OpExpr *) make_opclause(operator, BOOLOID, false,
													 copyObject(call->id), bound,
													 InvalidOid, InvalidOid);

	set_opfuncid(comparing);
	return (Expr *) comparing;
}
