/*
 * sno_estimate.c
 *	  Estimates of the fraction of rows that a comparison of type sno selects.
 *
 * Core's estimators, scalarltsel and its siblings, look up the constant in the column's
 * statistics.  For a type that core does not support, their estimates are poor in two ways.
 *
 * First, within a bin of the histogram core converts the values to numbers, according to
 * their type, and interpolates.  For an unknown type it uses the middle of the bin.  Two
 * bounds in one bin then have the same estimate, and the range between them is estimated
 * as one row.  An example is one day in data of a year, since a bin is 1 % of the rows.  So
 * the estimators are called with both sides labelled as macaddr, which core reads as a number of
 * six bytes, the highest first.  The upper six bytes of a sno are its time, line and
 * metabyte.  Core does everything else: most common values, nulls, commuted operators, and the
 * actual least and greatest value, which it reads from an index.  (macaddr8 has more bytes, but
 * core converts each half of it as a signed number, which is not monotonic.)
 *
 * Second, the two bounds of a range, such as id >= a AND id < b, are not independent: half of the
 * rows can be at or above the one, half of them below the other, and few rows both.  Core adds such
 * estimates instead of multiplying them, but recognizes them by the OIDs of its own estimators (see
 * clauselist_selectivity()).  All others are multiplied.  So the estimator of sno finds the other
 * bounds of the same expression, among the conditions that are ANDed with the given one.  The
 * first of them has the estimate of the range, and the others have 1, so their product is the
 * estimate of the range.
 *
 * A comparison with an estimator that is not core's own does not use extended statistics
 * (CREATE STATISTICS with mcv).
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

PG_FUNCTION_INFO_V1(sno_rangesel);

/* The strategy of an operator in the default btree operator class of its left argument, or 0. */
static StrategyNumber
btree_strategy(Oid operator)
{
	Oid			left;
	Oid			right;
	TypeCacheEntry *type;

	op_input_types(operator, &left, &right);
	type = lookup_type_cache(left, TYPECACHE_BTREE_OPFAMILY);
	return (StrategyNumber) get_op_opfamily_strategy(operator, type->btree_opf);
}

/*
 * The expression of a table's columns that a comparison bounds from one side.  NULL unless the
 * condition compares an expression with another one that contains no columns and is not volatile.
 */
static Node *
bounded_by(Node *condition, bool *is_upper)
{
	OpExpr	   *comparison = (OpExpr *) condition;
	StrategyNumber strategy;
	bool		on_left;

	if (!is_opclause(condition) || list_length(comparison->args) != 2)
		return NULL;
	strategy = btree_strategy(comparison->opno);
	if (strategy == InvalidStrategy || strategy == BTEqualStrategyNumber)
		return NULL;
	on_left = is_pseudo_constant_clause(lsecond(comparison->args));
	if (!on_left && !is_pseudo_constant_clause(linitial(comparison->args)))
		return NULL;
	*is_upper = (strategy < BTEqualStrategyNumber) == on_left;
	return on_left ? linitial(comparison->args) : lsecond(comparison->args);
}

static Node *
without_restrict_info(Node *condition)
{
	RestrictInfo *info = (RestrictInfo *) condition;

	if (!IsA(condition, RestrictInfo))
		return condition;
	/* orclause is the form of an OR whose parts are estimated */
	return (Node *) (info->orclause ? info->orclause : info->clause);
}

/*
 * The innermost list of ANDed conditions that contains the comparison with the given
 * arguments: the given list, or the list of a branch of an OR in it.  NIL if there is none.
 */
static List *
find_anded_conditions(List *conditions, List *arguments)
{
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Node	   *condition = without_restrict_info(lfirst(cell));
		ListCell   *branch;

		if (is_opclause(condition) && ((OpExpr *) condition)->args == arguments)
			return conditions;
		if (!is_orclause(condition))
			continue;
		foreach(branch, ((BoolExpr *) condition)->args)
		{
			List	   *inner = make_ands_implicit(lfirst(branch));
			List	   *found = find_anded_conditions(inner, arguments);

			if (found)
				return found;
		}
	}
	return NIL;
}

/*
 * The innermost such list among all conditions of a table and the predicates of its indexes, which
 * are estimated as well.
 */
static List *
find_in_table(RelOptInfo *table, List *arguments)
{
	List	   *found = find_anded_conditions(table->baserestrictinfo, arguments);
	ListCell   *cell;

	if (found == NIL)
		found = find_anded_conditions(table->joininfo, arguments);
	foreach(cell, table->indexlist)
	{
		if (found == NIL)
			found = find_anded_conditions(((IndexOptInfo *) lfirst(cell))->indpred, arguments);
	}
	return found;
}

/* The conditions that a comparison is ANDed with, including itself; NIL if it is not found. */
static List *
conditions_anded_with(PlannerInfo *root, List *arguments)
{
	Relids		tables = pull_varnos(root, (Node *) arguments);
	List	   *found = NIL;
	int			table = -1;

	while (found == NIL && (table = bms_next_member(tables, table)) >= 0)
	{
		/* an outer join has a number but no entry */
		if (table < root->simple_rel_array_size && root->simple_rel_array[table])
			found = find_in_table(root->simple_rel_array[table], arguments);
	}
	bms_free(tables);
	return found;
}

static Node *
as_six_bytes(Node *argument)
{
	return applyRelabelType(argument, MACADDROID, -1, InvalidOid, COERCE_IMPLICIT_CAST, -1, false);
}

/* Core's estimate of a comparison, without regard to other conditions. */
static double
estimate_alone(PlannerInfo *root, const OpExpr *comparison, int varRelid)
{
	static const PGFunction estimators[BTMaxStrategyNumber + 1] = {
		[BTLessStrategyNumber] = scalarltsel,
		[BTLessEqualStrategyNumber] = scalarlesel,
		[BTGreaterEqualStrategyNumber] = scalargesel,
		[BTGreaterStrategyNumber] = scalargtsel,
	};
	PGFunction	estimator = estimators[btree_strategy(comparison->opno)];
	List	   *six_bytes = list_make2(as_six_bytes(linitial(comparison->args)),
									   as_six_bytes(lsecond(comparison->args)));

	if (estimator == NULL)
		return DEFAULT_INEQ_SEL;
	return DatumGetFloat8(DirectFunctionCall4(estimator, PointerGetDatum(root),
											  ObjectIdGetDatum(comparison->opno),
											  PointerGetDatum(six_bytes), Int32GetDatum(varRelid)));
}

/* The estimate of a range from the estimates of its bounds, as in clauselist_selectivity(). */
static double
estimate_range(PlannerInfo *root, double lower, double upper, Node *bounded, int varRelid)
{
	double		range;

	if (lower == DEFAULT_INEQ_SEL || upper == DEFAULT_INEQ_SEL)
		return DEFAULT_RANGE_INEQ_SEL;
	range = lower + upper - 1.0 + nulltestsel(root, IS_NULL, bounded, varRelid, JOIN_INNER, NULL);
	if (range > 0.0)
		return range;
	/* an empty range, or two defaults that were not recognized */
	return range < -0.01 ? DEFAULT_RANGE_INEQ_SEL : 1.0e-10;
}

/*
 * The estimate of all bounds of an expression among ANDed conditions, if the comparison with the
 * given arguments is the first of them; otherwise 1.  On each side the bound that selects the
 * fewest rows counts.
 */
static double
estimate_bounds(PlannerInfo *root, List *conditions, Node *bounded, List *arguments, int varRelid)
{
	double		tightest[2] = {1.0, 1.0};
	bool		found[2] = {false, false};
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Node	   *condition = without_restrict_info(lfirst(cell));
		bool		is_upper = false;
		double		alone;

		if (!equal(bounded_by(condition, &is_upper), bounded))
			continue;
		if (!found[0] && !found[1] && ((OpExpr *) condition)->args != arguments)
			return 1.0;
		alone = estimate_alone(root, (OpExpr *) condition, varRelid);
		tightest[is_upper] = Min(tightest[is_upper], alone);
		found[is_upper] = true;
	}
	return found[0] && found[1] ?
		estimate_range(root, tightest[0], tightest[1], bounded, varRelid) :
		Min(tightest[0], tightest[1]);
}

/*
 * sno_rangesel(internal, oid, internal, integer) returns double precision
 *
 * The estimator of <, <=, >= and >.
 */
Datum
sno_rangesel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			operator = PG_GETARG_OID(1);
	List	   *arguments = (List *) PG_GETARG_POINTER(2);
	int			varRelid = PG_GETARG_INT32(3);
	OpExpr		comparison = {.xpr.type = T_OpExpr,.opno = operator,.args = arguments};
	bool		is_upper;
	Node	   *bounded = bounded_by((Node *) &comparison, &is_upper);
	List	   *conditions = bounded ? conditions_anded_with(root, arguments) : NIL;

	PG_RETURN_FLOAT8(conditions ? estimate_bounds(root, conditions, bounded, arguments, varRelid) :
					 estimate_alone(root, &comparison, varRelid));
}
