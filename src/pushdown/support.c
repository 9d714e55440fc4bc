/*
 * support.c
 *	  Planner support functions of snowflake_timestamp(), snowflake_boundary() and others.
 *
 * The planner calls them when it simplifies a call of the function.  They note that the plan
 * depends on the function, and the hook of pushdown.c looks for this dependency.  So a plan is also
 * made again if the function or its privileges change, and the library is loaded in time.
 *
 * Two calls are simplified, to the form with the layout as an argument, which is IMMUTABLE.  min()
 * and max() use an index only if their argument is IMMUTABLE, so this is done for
 * snowflake_timestamp(id) in a query with aggregates.  And snowflake_boundary() of a constant is a
 * constant, as the bound of a comparison is (replace.c); snowflake_between() is made of these.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"

#include "functions/functions.h"
#include "pushdown/call.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_timestamp_support);
PG_FUNCTION_INFO_V1(snowflake_boundary_support);

/* Whether the planner tries min() and max() of a query as subqueries. */
static bool
can_have_extremes(const Query *query)
{
	return query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL &&
		!query->hasWindowFuncs;
}

/*
 * The form of a call with the layout of the server as its second argument.  NULL if the call has a
 * second argument, or if the user may not call this form.
 */
static Node *
form_with_layout(PlannerInfo *root, FuncExpr *call, const char *name, PGFunction address)
{
	Oid			types[2] = {exprType(linitial(call->args)), TEXTOID};
	bool	   *depends_on_role = &root->glob->dependsOnRole;
	Oid			function;

	if (list_length(call->args) != 1 || !sf_may_call(call->funcid, depends_on_role))
		return NULL;
	function = sf_sibling(call->funcid, name, address, 2, types, depends_on_role);
	if (!OidIsValid(function))
		return NULL;
	record_plan_function_dependency(root, function);
	return (Node *) makeFuncExpr(function, call->funcresulttype,
								 list_make2(linitial(call->args), sf_layout_constant()),
								 InvalidOid, DEFAULT_COLLATION_OID, COERCE_EXPLICIT_CALL);
}

/* The request to simplify a call while a query is planned; NULL if the request is another one. */
static SupportRequestSimplify *
simplify_request(FunctionCallInfo fcinfo)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL ||
		!sf_enable_timestamp_pushdown)
		return NULL;
	record_plan_function_dependency(request->root, request->fcall->funcid);
	return request;
}

Datum
snowflake_timestamp_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = simplify_request(fcinfo);
	FuncExpr   *call;

	if (request == NULL || !can_have_extremes(request->root->parse))
		PG_RETURN_POINTER(NULL);
	call = request->fcall;
	if (call->funcresulttype != TIMESTAMPTZOID || sf_column(linitial(call->args)) == NULL)
		PG_RETURN_POINTER(NULL);
	PG_RETURN_POINTER(form_with_layout(request->root, call, "snowflake_timestamp",
									   snowflake_timestamp));
}

Datum
snowflake_boundary_support(PG_FUNCTION_ARGS)
{
	SupportRequestSimplify *request = simplify_request(fcinfo);

	if (request == NULL || !IsA(linitial(request->fcall->args), Const))
		PG_RETURN_POINTER(NULL);
	PG_RETURN_POINTER(eval_const_expressions(request->root,
											 form_with_layout(request->root, request->fcall,
															  "snowflake_boundary",
															  snowflake_boundary)));
}
