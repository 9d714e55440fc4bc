/*
 * call.c
 *	  Calls that return the time of an ID, and the functions of the extension.
 *
 * Functions are recognized by the name and address of their C code.  So their names in
 * SQL and their schema do not matter, and no cache of OIDs has to be invalidated.  A function in
 * SQL is recognized by its name and its extension.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "functions/functions.h"
#include "functions/sno_type.h"
#include "issue/shared.h"
#include "pushdown/call.h"
#include "pushdown/expression.h"

/*
 * The functions whose result is, or has as its first field, the time of an ID; and the one whose
 * result is an ID as text.
 */
typedef struct TimeFunction
{
	const char *name;
	PGFunction	address;
	bool		is_row;
	bool		is_sno;
	bool		is_text;
} TimeFunction;

static const TimeFunction time_functions[] = {
	{.name = "snowflake_timestamp",.address = snowflake_timestamp},
	{"sno_timestamp", sno_timestamp,.is_sno = true},
	{"snowflake_decode", snowflake_decode,.is_row = true},
	{"sno_decode", sno_decode,.is_row = true,.is_sno = true},
	{"snowflake_to_base32", snowflake_to_base32,.is_text = true},
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

/* The entry of a function; NULL if it has none. */
static const TimeFunction *
find_time_function(Oid function)
{
	char	   *name = function < FirstNormalObjectId ? NULL : c_name(function);

	for (size_t i = 0; name && i < lengthof(time_functions); i++)
	{
		if (strcmp(name, time_functions[i].name) == 0 &&
			has_address(function, time_functions[i].address))
			return &time_functions[i];
	}
	return NULL;
}

bool
sf_is_between(Oid function)
{
	char	   *name = function < FirstNormalObjectId ? NULL : get_func_name(function);
	Oid			extension;

	if (name == NULL || strcmp(name, "snowflake_between") != 0)
		return false;
	extension = getExtensionOfObject(ProcedureRelationId, function);
	return OidIsValid(extension) && extension == get_extension_oid("snowflake", true);
}

/*
 * Determine the layout of a call.  Returns false if it can differ from row to row, or is known only
 * when the query starts, or is null, or is not a layout.
 */
static bool
layout_of_call(SfCall *call)
{
	Const	   *argument = (Const *) call->layout_argument;
	SfParseError error;

	if (call->is_sno)
		call->layout = sf_sno_layout;
	else if (argument == NULL)
		call->layout = *sf_layout_in_force();
	else
		return sf_is_constant((Node *) argument) &&
			sf_layout_parse(TextDatumGetCString(argument->constvalue), &call->layout, &error);
	return true;
}

Expr *
sf_layout_constant(void)
{
	return (Expr *) makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
							  CStringGetTextDatum(sf_layout_in_force_text()), false, false);
}

/* A text without a collation of its own, and without a cast from text of another kind. */
static Node *
without_collation(Node *node)
{
	while (IsA(node, RelabelType) || IsA(node, CollateExpr))
		node = (Node *) (IsA(node, RelabelType) ? ((RelabelType *) node)->arg :
						 ((CollateExpr *) node)->arg);
	return node;
}

bool
sf_time_call(Node *node, SfCall *call)
{
	const TimeFunction *found;
	FuncExpr   *function;
	bool		is_field;
	bool		is_text;

	node = sf_unrounded(node, &call->bucket);
	is_field = IsA(node, FieldSelect);
	function = (FuncExpr *) (is_field ? (Node *) ((FieldSelect *) node)->arg :
							 without_collation(node));
	if (!IsA(function, FuncExpr))
		return false;
	is_text = !is_field && exprType(node) == TEXTOID;
	if (!is_text && exprType(node) != TIMESTAMPTZOID)
		return false;
	found = find_time_function(function->funcid);
	if (found == NULL || found->is_row != is_field || found->is_text != is_text ||
		(is_field && ((FieldSelect *) node)->fieldnum != 1))
		return false;
	call->function = function->funcid;
	call->is_sno = found->is_sno;
	call->is_text = is_text;
	call->collation = exprCollation(node);
	call->id = linitial(function->args);
	call->id_type = exprType((Node *) call->id);
	call->column = sf_column((Node *) call->id);
	call->layout_argument = list_length(function->args) > 1 ? lsecond(function->args) : NULL;
	return call->column != NULL && layout_of_call(call);
}

/* The search of queries that most often have no such call.  The most frequent nodes come first. */
static bool
mentions_time(Node *node, void *context)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_RangeTblRef:
			return false;
		case T_OpExpr:
			return mentions_time((Node *) ((OpExpr *) node)->args, context);
		case T_List:
			foreach(cell, (List *) node)
			{
				if (mentions_time(lfirst(cell), context))
					return true;
			}
			return false;
		case T_FromExpr:
			return mentions_time((Node *) ((FromExpr *) node)->fromlist, context) ||
				mentions_time(((FromExpr *) node)->quals, context);
		case T_Query:
			return query_tree_walker((Query *) node, mentions_time, context, 0);
		case T_FuncExpr:
			if (find_time_function(((FuncExpr *) node)->funcid) ||
				sf_is_between(((FuncExpr *) node)->funcid))
				return true;
			break;
		default:
			break;
	}
	return expression_tree_walker(node, mentions_time, context);
}

bool
sf_mentions_time(Node *node)
{
	return mentions_time(node, NULL);
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
	return DatumGetBool(DirectFunctionCall2(has_function_privilege_id, ObjectIdGetDatum(function),
											CStringGetTextDatum("EXECUTE")));
}

FuncExpr *
sf_call_sibling(Oid function, const char *name, PGFunction address, List *arguments, Oid collation,
				bool *depends_on_role)
{
	Oid			types[FUNC_MAX_ARGS];
	Oid			found;

	for (int i = 0; i < list_length(arguments); i++)
		types[i] = exprType(list_nth(arguments, i));
	found = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
							PointerGetDatum(buildoidvector(types, list_length(arguments))),
							ObjectIdGetDatum(get_func_namespace(function)));
	if (!OidIsValid(found) || !has_address(found, address) ||
		!sf_may_call(found, depends_on_role))
		return NULL;
	return makeFuncExpr(found, get_func_rettype(found), arguments, InvalidOid, collation,
						COERCE_EXPLICIT_CALL);
}
