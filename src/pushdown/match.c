/*
 * match.c
 *	  Finding comparisons of snowflake_timestamp(id) and sno_timestamp(id) in a query.
 *
 * Functions are recognized by the name and address of their C code.  So their names in
 * SQL and their schema do not matter, and no cache of OIDs has to be invalidated.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "pushdown/match.h"
#include "compat.h"
#include "functions/functions.h"
#include "state/shared.h"

/* Whether a SQL function is implemented by the C function with this name and address. */
static bool
is_c_function(Oid function, const char *name, PGFunction address)
{
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		same_name = false;
	FmgrInfo	info;

	if (!HeapTupleIsValid(row))
		return false;
	if (((Form_pg_proc) GETSTRUCT(row))->prolang == ClanguageId)
	{
		bool		isnull;
		Datum		source = SysCacheGetAttr(PROCOID, row, Anum_pg_proc_prosrc, &isnull);

		same_name = !isnull && strcmp(TextDatumGetCString(source), name) == 0;
	}
	ReleaseSysCache(row);
	if (!same_name)
		return false;
	fmgr_info(function, &info);
	return info.fn_addr == address;
}

static bool
is_sno_timestamp(Oid function)
{
	return is_c_function(function, "sno_timestamp", sno_timestamp);
}

static bool
is_timestamp_function(Oid function)
{
	return function >= FirstNormalObjectId &&
		(is_c_function(function, "snowflake_timestamp", snowflake_timestamp) ||
		 is_sno_timestamp(function));
}

/* A node as a call that returns the time of an ID; NULL if it is not such a call. */
static FuncExpr *
timestamp_call(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;

	if (node == NULL || !IsA(node, FuncExpr) || call->funcresulttype != TIMESTAMPTZOID ||
		!is_timestamp_function(call->funcid))
		return NULL;
	return call;
}

Oid
sf_sibling(const SfComparison *comparison, const char *name, PGFunction address,
		   int nargs, Oid *types)
{
	Oid			schema = get_func_namespace(comparison->function);
	oidvector  *arguments = buildoidvector(types, nargs);
	Oid			found = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
										CStringGetDatum(name),
										PointerGetDatum(arguments),
										ObjectIdGetDatum(schema));

	pfree(arguments);
	if (!OidIsValid(found) || !is_c_function(found, name, address) ||
		!sf_may_execute(found))
		return InvalidOid;
	return found;
}

bool
sf_compares_time(OpExpr *operator)
{
	return list_length(operator->args) == 2 &&
		(timestamp_call(linitial(operator->args)) || timestamp_call(lsecond(operator->args)));
}

Var *
sf_column(Node *expression)
{
	while (expression && IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	return expression && IsA(expression, Var) ? (Var *) expression : NULL;
}

/* What IDs a call works with.  Returns false if their layout is not known now. */
static bool
layout_of_call(FuncExpr *call, SfComparison *comparison)
{
	SfParseError error;

	comparison->is_sno = is_sno_timestamp(call->funcid);
	if (comparison->is_sno)
		return true;
	if (list_length(call->args) == 1)
	{
		comparison->layout = *sf_layout_in_force();
		comparison->layout_text = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
											CStringGetTextDatum(sf_layout_in_force_text()),
											false, false);
		return true;
	}
	comparison->layout_text = (Const *) lsecond(call->args);
	return IsA(comparison->layout_text, Const) && !comparison->layout_text->constisnull &&
		sf_layout_parse(TextDatumGetCString(comparison->layout_text->constvalue),
						&comparison->layout, &error);
}

/*
 * The other side of the comparison as a timestamptz, by core's own cast.  NULL if the
 * other side is a constant whose cast would raise an error for its range: the original
 * comparison raises none.
 */
static Node *
as_timestamptz(Node *other, Oid type)
{
	Const	   *constant = IsA(other, Const) ? (Const *) other : NULL;
	int			overflow = 0;
	Oid			cast;

	if (type == TIMESTAMPTZOID)
		return other;
	if (constant && type == DATEOID)
		date2timestamptz_opt_overflow(DatumGetDateADT(constant->constvalue), &overflow);
	else if (constant && type == TIMESTAMPOID)
		timestamp2timestamptz_opt_overflow(DatumGetTimestamp(constant->constvalue), &overflow);
	if (overflow != 0 ||
		find_coercion_pathway(TIMESTAMPTZOID, type, COERCION_IMPLICIT, &cast) != COERCION_PATH_FUNC)
		return NULL;
	return (Node *) makeFuncExpr(cast, TIMESTAMPTZOID, list_make1(other),
								 InvalidOid, InvalidOid, COERCE_IMPLICIT_CAST);
}

/*
 * Whether an expression contains a column.  Subqueries, including those of IN, ANY and ALL,
 * count as columns.
 */
static bool
contains_column(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) || IsA(node, SubLink) ||
		(IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK))
		return true;
	return expression_tree_walker(node, contains_column, context);
}

/*
 * Whether a comparison of the time of an ID with another expression is worth
 * replacing.  A volatile expression changes from row to row, so an index cannot
 * be searched for it.  A comparison by = becomes two conditions.  If the other
 * expression contains columns, = is left as it is, because hash and merge joins
 * can use it.
 */
static bool
is_worth_replacing(StrategyNumber strategy, Node *other)
{
	if (contain_volatile_functions(other))
		return false;
	return strategy != BTEqualStrategyNumber || !contains_column(other, NULL);
}

bool
sf_match_comparison(OpExpr *operator, SfComparison *comparison)
{
	FuncExpr   *call;
	Node	   *other;
	Oid			family;
	int			strategy;
	Oid			types[2];
	int			side;

	if (list_length(operator->args) != 2)
		return false;
	for (side = 0; side < 2; side++)
	{
		call = timestamp_call(list_nth(operator->args, side));
		if (call)
			break;
	}
	if (call == NULL || sf_column(linitial(call->args)) == NULL)
		return false;
	family = lookup_type_cache(TIMESTAMPTZOID, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	if (!op_in_opfamily(operator->opno, family))
		return false;
	get_op_opfamily_properties(operator->opno, family, false, &strategy, &types[0], &types[1]);

	other = list_nth(operator->args, 1 - side);
	if (IsA(other, Const) && ((Const *) other)->constisnull)
		return false;
	comparison->strategy = side == 0 ? strategy : BTCommuteStrategyNumber(strategy);
	comparison->id = linitial(call->args);
	comparison->id_type = exprType((Node *) comparison->id);
	comparison->function = call->funcid;
	comparison->instant = as_timestamptz(other, types[1 - side]);
	return comparison->instant && is_worth_replacing(comparison->strategy, other) &&
		layout_of_call(call, comparison);
}
