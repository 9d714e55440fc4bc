/*
 * support.c
 *	  Planner support functions of snowflake_timestamp(), snowflake_boundary() and others.
 *
 * The planner calls them when it simplifies a call of the function.  They note that the plan
 * depends on the function, and the hook of pushdown.c looks for this dependency.  So a plan is also
 * made again if the function or its privileges change, and the library is loaded in time.
 *
 * Two calls are simplified.  min() and max() use an index only if their argument is IMMUTABLE,
 * so in a query with aggregates, snowflake_timestamp(id) is replaced by the form with the layout as
 * an argument.  And snowflake_boundary() of a constant is a constant, as the bound of a comparison
 * is (replace.c); snowflake_between() is made of these.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/planmain.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "functions/functions.h"
#include "pushdown/call.h"
#include "settings.h"
#include "state/shared.h"

PG_FUNCTION_INFO_V1(snowflake_timestamp_support);
PG_FUNCTION_INFO_V1(snowflake_boundary_support);

/* The dependency is noted once, however often the function is called. */
static void
depend_on_function(PlannerInfo *root, Oid function)
{
	uint32		hash = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(function));
	ListCell   *cell;

	foreach(cell, root->glob->invalItems)
	{
		PlanInvalItem *item = lfirst(cell);

		if (item->cacheId == PROCOID && item->hashValue == hash)
			return;
	}
	record_plan_function_dependency(root, function);
}

/* Whether the planner tries min() and max() of a query as subqueries. */
static bool
can_have_extremes(const Query *query)
{
	return query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL &&
		!query->hasWindowFuncs;
}

/* The form of a function with the layout as its second argument; InvalidOid if not usable. */
static Oid
form_with_layout(PlannerInfo *root, Oid function, const char *name, PGFunction address, Oid type)
{
	Oid			types[2] = {type, TEXTOID};
	bool	   *depends_on_role = &root->glob->dependsOnRole;

	if (!sf_may_call(function, depends_on_role))
		return InvalidOid;
	return sf_sibling(function, name, address, 2, types, depends_on_role);
}

/* snowflake_timestamp(id) with the layout of the server as an argument. */
static Node *
immutable_form(PlannerInfo *root, FuncExpr *call)
{
	Oid			function;
	Const	   *layout;

	if (call->funcresulttype != TIMESTAMPTZOID || list_length(call->args) != 1 ||
		sf_column(linitial(call->args)) == NULL || exprType(linitial(call->args)) != INT8OID)
		return NULL;
	function = form_with_layout(root, call->funcid, "snowflake_timestamp", snowflake_timestamp,
								INT8OID);
	if (!OidIsValid(function))
		return NULL;
	depend_on_function(root, function);
	layout = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
					   CStringGetTextDatum(sf_layout_in_force_text()), false, false);
	return (Node *) makeFuncExpr(function, TIMESTAMPTZOID,
								 list_make2(linitial(call->args), layout),
								 InvalidOid, DEFAULT_COLLATION_OID, COERCE_EXPLICIT_CALL);
}

/* snowflake_boundary(instant) of a constant. */
static Node *
boundary_of_constant(PlannerInfo *root, FuncExpr *call)
{
	Const	   *instant = linitial(call->args);
	int64		bound;

	if (list_length(call->args) != 1 || !IsA(instant, Const) || instant->constisnull ||
		!OidIsValid(form_with_layout(root, call->funcid, "snowflake_boundary",
									 snowflake_boundary, TIMESTAMPTZOID)))
		return NULL;
	bound = sf_layout_boundary(sf_layout_in_force(),
							   DatumGetTimestampTz(instant->constvalue));
	return (Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(bound),
							  false, true);
}

/* The request to simplify a call while a query is planned; NULL if the request is another one. */
static SupportRequestSimplify *
simplify_request(FunctionCallInfo fcinfo)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL ||
		!sf_enable_timestamp_pushdown)
		return NULL;
	depend_on_function(request->root, request->fcall->funcid);
	return request;
}

Datum
snowflake_timestamp_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = simplify_request(fcinfo);

	if (request == NULL || !can_have_extremes(request->root->parse))
		PG_RETURN_POINTER(NULL);
	PG_RETURN_POINTER(immutable_form(request->root, request->fcall));
}

Datum
snowflake_boundary_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = simplify_request(fcinfo);

	if (request == NULL)
		PG_RETURN_POINTER(NULL);
	PG_RETURN_POINTER(boundary_of_constant(request->root, request->fcall));
}
