/*
 * call.c
 *	  Calls that return the time of an ID, and the functions of the extension.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "pushdown/call.h"
#include "compat.h"
#include "functions/functions.h"
#include "functions/sno_type.h"
#include "state/shared.h"

/* The functions that are recognized. */
static const struct
{
	SfFunctionKind kind;
	const char *name;
	PGFunction	address;
}			time_functions[] = {
	{SF_TIMESTAMP, "snowflake_timestamp", snowflake_timestamp},
	{SF_SNO_TIMESTAMP, "sno_timestamp", sno_timestamp},
	{SF_DECODE, "snowflake_decode", snowflake_decode},
	{SF_SNO_DECODE, "sno_decode", sno_decode},
};

/* The name of a function's C code; NULL if it is in another language or does not exist. */
static char *
c_name(Oid function)
{
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	char	   *name = NULL;

	if (!HeapTupleIsValid(row))
		return NULL;
	if (((Form_pg_proc) GETSTRUCT(row))->prolang == ClanguageId)
	{
		bool		isnull;
		Datum		source = SysCacheGetAttr(PROCOID, row, Anum_pg_proc_prosrc, &isnull);

		if (!isnull)
			name = TextDatumGetCString(source);
	}
	ReleaseSysCache(row);
	return name;
}

/* A function with a SET clause has another address. */
static bool
has_address(Oid function, PGFunction address)
{
	FmgrInfo	info;

	fmgr_info(function, &info);
	return info.fn_addr == address;
}

/* Whether a function that is not in C is the extension's snowflake_between(). */
static bool
is_between(Oid function)
{
	char	   *name = get_func_name(function);
	bool		same = name && strcmp(name, "snowflake_between") == 0;
	Oid			extension;

	if (name)
		pfree(name);
	if (!same)
		return false;
	extension = getExtensionOfObject(ProcedureRelationId, function);
	return OidIsValid(extension) && extension == get_extension_oid("snowflake", true);
}

static SfFunctionKind
look_up(Oid function)
{
	char	   *name = c_name(function);
	SfFunctionKind kind = SF_OTHER_FUNCTION;

	if (name == NULL)
		return is_between(function) ? SF_BETWEEN : SF_OTHER_FUNCTION;
	for (size_t i = 0; i < lengthof(time_functions); i++)
	{
		if (strcmp(name, time_functions[i].name) == 0 &&
			has_address(function, time_functions[i].address))
			kind = time_functions[i].kind;
	}
	pfree(name);
	return kind;
}

static SfFunctionKind
function_kind(SfFunctionLookups *lookups, Oid function)
{
	unsigned	place;

	if (function < FirstNormalObjectId)
		return SF_OTHER_FUNCTION;
	for (unsigned i = 0; i < Min(lookups->count, SF_LOOKUPS); i++)
	{
		if (lookups->known[i].function == function)
			return lookups->known[i].kind;
	}
	place = lookups->count++ % SF_LOOKUPS;
	lookups->known[place].kind = look_up(function);
	lookups->known[place].function = function;
	return lookups->known[place].kind;
}

/*
 * The call within an expression that is the time of an ID; NULL if the expression is something
 * else.
 */
static FuncExpr *
time_function(SfFunctionLookups *lookups, Node *node, SfFunctionKind *kind)
{
	bool		is_field = IsA(node, FieldSelect);
	FuncExpr   *call = (FuncExpr *) (is_field ? (Node *) ((FieldSelect *) node)->arg : node);

	if (exprType(node) != TIMESTAMPTZOID || !IsA(call, FuncExpr))
		return NULL;
	*kind = function_kind(lookups, call->funcid);
	if (is_field)
		return (*kind == SF_DECODE || *kind == SF_SNO_DECODE) &&
			((FieldSelect *) node)->fieldnum == 1 ? call : NULL;
	return *kind == SF_TIMESTAMP || *kind == SF_SNO_TIMESTAMP ? call : NULL;
}

/*
 * Determine the layout of a call.  Returns false if it can differ from row to row, or is known only
 * when the query starts, or is null, or is not a layout.
 */
static bool
layout_of_call(SfTimeCall *call)
{
	Const	   *argument = (Const *) call->layout_argument;
	SfParseError error;

	if (call->is_sno)
		call->layout = sf_sno_layout;
	else if (argument == NULL)
		call->layout = *sf_layout_in_force();
	else
		return IsA(argument, Const) && !argument->constisnull &&
			sf_layout_parse(TextDatumGetCString(argument->constvalue), &call->layout, &error);
	return true;
}

bool
sf_time_call(SfFunctionLookups *lookups, Node *node, SfTimeCall *call)
{
	SfFunctionKind kind;
	FuncExpr   *function;

	if (!IsA(node, FuncExpr) && !IsA(node, FieldSelect))
		return false;
	function = time_function(lookups, node, &kind);
	if (function == NULL)
		return false;
	call->function = function->funcid;
	call->is_sno = kind == SF_SNO_TIMESTAMP || kind == SF_SNO_DECODE;
	call->id = linitial(function->args);
	call->column = sf_column((Node *) call->id);
	call->layout_argument = list_length(function->args) > 1 ? lsecond(function->args) : NULL;
	return call->column != NULL && layout_of_call(call);
}

bool
sf_is_between(SfFunctionLookups *lookups, Node *node)
{
	return IsA(node, FuncExpr) &&
		function_kind(lookups, ((FuncExpr *) node)->funcid) == SF_BETWEEN;
}

static bool
mentions_time(Node *node, void *lookups)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, mentions_time, lookups, 0);
	if (IsA(node, FuncExpr) &&
		function_kind(lookups, ((FuncExpr *) node)->funcid) != SF_OTHER_FUNCTION)
		return true;
	return expression_tree_walker(node, mentions_time, lookups);
}

bool
sf_mentions_time(SfFunctionLookups *lookups, Node *node)
{
	return mentions_time(node, lookups);
}

bool
sf_same_call(const SfTimeCall *a, const SfTimeCall *b)
{
	return a->function == b->function && a->column->varno == b->column->varno &&
		a->column->varattno == b->column->varattno &&
		a->column->varlevelsup == b->column->varlevelsup &&
		equal(a->layout_argument, b->layout_argument);
}

Var *
sf_column(Node *expression)
{
	while (expression && IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	return expression && IsA(expression, Var) ? (Var *) expression : NULL;
}

bool
sf_may_call(Oid function, bool *depends_on_role)
{
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		for_all = false;

	if (HeapTupleIsValid(row))
	{
		/*
		 * A function without an access control list (null) may be called by
		 * all roles.
		 */
		SysCacheGetAttr(PROCOID, row, Anum_pg_proc_proacl, &for_all);
		ReleaseSysCache(row);
	}
	if (for_all)
		return true;
	*depends_on_role = true;
	return sf_may_execute(function);
}

Oid
sf_sibling(Oid function, const char *name, PGFunction address, int nargs, Oid *types,
		   bool *depends_on_role)
{
	oidvector  *arguments = buildoidvector(types, nargs);
	Oid			found = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
										CStringGetDatum(name),
										PointerGetDatum(arguments),
										ObjectIdGetDatum(get_func_namespace(function)));
	char	   *found_name = OidIsValid(found) ? c_name(found) : NULL;

	pfree(arguments);
	if (found_name == NULL || strcmp(found_name, name) != 0 || !has_address(found, address) ||
		!sf_may_call(found, depends_on_role))
		return InvalidOid;
	return found;
}
