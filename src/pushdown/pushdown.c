/*
 * pushdown.c
 *	  Queries by the time of an ID are answered by the ID.
 *
 * The planner calls a hook for each relation of a query, after it has read the relation's
 * indexes.  By then views, subqueries and SQL functions have been merged into the query and
 * constants have been folded, but conditions have not been distributed to the relations yet.  So
 * the hook finds snowflake_timestamp(id) wherever it was written, and can still replace it in
 * conditions (replace.c), and for a table in a UNION ALL, whose conditions have been distributed,
 * by additional conditions (see below).  Each call replaces only expressions of columns of its own
 * relation, since it has no other relation's indexes.  The order of the time is not replaced: the
 * planner is told which indexes have it (order.c).
 *
 * Most queries do not contain the function, and must not pay for this.  The function has a
 * planner support function, which notes a dependency of the plan on the function (see the end of
 * this file).  If the plan has no dependencies, the hook returns at once.
 *
 * Conditions that this hook does not reach are replaced before the planner begins (early.c).
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planmain.h"

#include "compat.h"
#include "functions/functions.h"
#include "pushdown/early.h"
#include "pushdown/estimate.h"
#include "pushdown/exempt.h"
#include "pushdown/expression.h"
#include "pushdown/order.h"
#include "pushdown/pushdown.h"
#include "pushdown/replace.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_timestamp_support);
PG_FUNCTION_INFO_V1(snowflake_boundary_support);

static sf_relation_hook_type prev_hook = NULL;

/*
 * Conditions on a UNION ALL of tables
 *
 * The planner merges the tables of a UNION ALL into the query as children of one parent, which is
 * not a relation.  When it processes a child, the conditions on the parent have already been
 * distributed, and they are copied to the child, with the child's columns, only after the hook.  So
 * they cannot be replaced.  But a child has conditions of its own, from its security policies.
 * The replaced conditions are added to these; they are true for the same rows.
 *
 * Security policies are evaluated before other conditions.  The conditions that are added here may
 * be evaluated at the same time, since they reveal nothing about the rows: comparisons of IDs are
 * leakproof, and other conditions are not added.
 */

static bool
may_be_added(Node *condition)
{
	return !contain_volatile_functions(condition) && !contain_subplans(condition) &&
		!contain_leaked_vars(condition);
}

/* A condition on the parent as conditions on IDs of the child; NIL if it has none. */
static List *
conditions_on_child(SfPass *pass, RestrictInfo *restriction, AppendRelInfo *child)
{
	Node	   *condition = adjust_appendrel_attrs(pass->root, (Node *) restriction->clause,
												   1, &child);
	List	   *original = make_ands_implicit((Expr *) condition);
	List	   *replaced = sf_replace_in_list(pass, original);

	if (equal(replaced, original) || !may_be_added((Node *) replaced))
		return NIL;
	return replaced;
}

/* The planner needs the number of levels. */
static void
add_conditions(PlannerInfo *root, RangeTblEntry *entry, List *conditions)
{
	if (entry->securityQuals == NIL)
		entry->securityQuals = list_make1(conditions);
	else
	{
		ListCell   *last = list_tail(entry->securityQuals);

		lfirst(last) = list_concat_copy(lfirst(last), conditions);
	}
	root->qual_security_level = Max(root->qual_security_level,
									(Index) list_length(entry->securityQuals));
}

static void
add_conditions_of_union(SfPass *pass)
{
	PlannerInfo *root = pass->root;
	AppendRelInfo *child = root->append_rel_array[pass->rel->relid];
	List	   *conditions = NIL;
	RelOptInfo *parent;
	ListCell   *cell;

	if (root->simple_rte_array[child->parent_relid]->rtekind != RTE_SUBQUERY)
		return;					/* a partition: its parent's conditions were
								 * replaced */
	parent = find_base_rel(root, (int) child->parent_relid);
	foreach(cell, parent->baserestrictinfo)
		conditions = list_concat(conditions, conditions_on_child(pass, lfirst(cell), child));
	if (conditions != NIL)
		add_conditions(root, root->simple_rte_array[pass->rel->relid], conditions);
}

static void
rewrite_relation(PlannerInfo *root, RelOptInfo *rel)
{
	SfPass		pass = {
		.treatment = sf_treatment_in_relation,
		.root = root,
		.rel = rel,
		.joins = root->parse->jointree,
		.depends_on_role = &root->glob->dependsOnRole
	};
	ListCell   *cell;

	if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL)
	{
		pass.adds_only = true;
		add_conditions_of_union(&pass);
		return;
	}
	sf_replace_in_joins(&pass, (Node *) pass.joins);
	/* conditions of security policies and security barriers, by their level */
	foreach(cell, root->simple_rte_array[rel->relid]->securityQuals)
		lfirst(cell) = sf_replace_in_list(&pass, lfirst(cell));
}

static void
plan_relation(SF_RELATION_HOOK_ARGS)
{
	if (prev_hook)
		prev_hook(SF_RELATION_HOOK_PASS);
	if (root->glob->invalItems != NIL && sf_settings_enable_timestamp_pushdown &&
		rel->rtekind == RTE_RELATION)
		rewrite_relation(root, rel);
}

void
sf_pushdown_init(void)
{
	prev_hook = sf_relation_hook;
	sf_relation_hook = plan_relation;
	sf_early_init();
	sf_order_init();
	sf_estimate_init();
}

/*
 * Planner support functions of snowflake_timestamp(), snowflake_boundary() and others
 *
 * The planner calls them when it simplifies a call to the function.  They note that the plan
 * depends on the function, and the hook looks for this dependency.  So a plan is also made again
 * if the function or its privileges change, and the library is loaded in time.
 *
 * Two calls are simplified, to the form with the layout as an argument, which is IMMUTABLE.  min()
 * and max() use an index only if their argument is IMMUTABLE, so this is done for
 * snowflake_timestamp(id) in a query with aggregates.  And snowflake_boundary() of a constant is a
 * constant, as the bound of a comparison is (replace.c); snowflake_between() is made of these.
 */

/* Whether an expression contains an aggregate that returns a time, as min() and max() do. */
static bool
aggregates_times(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) && ((Aggref *) node)->aggtype == TIMESTAMPTZOID)
		return true;
	return expression_tree_walker(node, aggregates_times, context);
}

/* Whether the planner tries min() and max() of a query as subqueries. */
static bool
can_have_extremes(const Query *query)
{
	return query->hasAggs && query->groupClause == NIL && query->groupingSets == NIL &&
		!query->hasWindowFuncs &&
		(aggregates_times((Node *) query->targetList, NULL) ||
		 aggregates_times(query->havingQual, NULL));
}

/*
 * The form of a call with the layout of the server as its second argument.  NULL if the call has a
 * second argument, or if the user may not call this form.
 */
static Node *
form_with_layout(PlannerInfo *root, FuncExpr *call, const char *name, PGFunction address)
{
	bool	   *depends_on_role = &root->glob->dependsOnRole;
	FuncExpr   *form;

	if (list_length(call->args) != 1 || !sf_may_call(call->funcid, depends_on_role))
		return NULL;
	form = sf_call_sibling(call->funcid, name, address,
						   list_make2(linitial(call->args), sf_layout_constant()),
						   DEFAULT_COLLATION_OID, depends_on_role);
	if (form)
		record_plan_function_dependency(root, form->funcid);
	return (Node *) form;
}

/* The request to simplify a call while a query is planned; NULL if the request is another one. */
static SupportRequestSimplify *
simplify_request(FunctionCallInfo fcinfo)
{
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL ||
		!sf_settings_enable_timestamp_pushdown)
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
