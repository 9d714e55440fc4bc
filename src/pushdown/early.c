/*
 * early.c
 *	  Conditions that are replaced before the planner begins.
 *
 * The planner keeps some subqueries apart: views that are security barriers, and set
 * operations.  A condition on the time of an ID stays outside of a barrier, because the
 * function is not leakproof; and as a condition of a join, it is passed to the tables of a UNION
 * ALL unchanged.  A condition on the ID passes through both.  So conditions on columns of such
 * subqueries are replaced before the planner begins.  Every query is searched for them, so the
 * search has to be cheap: it covers range tables, and the conditions of queries that have such a
 * subquery.
 *
 * Citus plans queries in a hook of its own, from the query as it was written, and refuses some
 * whose conditions have STABLE functions of columns.  If Citus is loaded, all conditions are
 * replaced here, and snowflake_between() becomes its two comparisons, as it does otherwise when the
 * planner inlines it.  Citus has to be the first library that is preloaded, so its settings exist
 * when this library loads.
 *
 * A column is followed through subqueries and common table expressions to its table, which can need
 * the condition as it is (exempt.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/guc.h"

#include "compat.h"
#include "pushdown/early.h"
#include "pushdown/exempt.h"
#include "pushdown/expression.h"
#include "pushdown/replace.h"
#include "settings.h"

/* A query and the level that contains it, whose query is NULL for the outermost query. */
typedef struct SfQueryLevel
{
	Query	   *query;
	const struct SfQueryLevel *outer;
	bool	   *depends_on_role;	/* of all levels */
} SfQueryLevel;

static planner_hook_type prev_planner = NULL;
static bool citus_is_loaded = false;

/* Whether the planner keeps a subquery apart. */
static bool
is_kept_apart(const RangeTblEntry *entry)
{
	return entry->security_barrier || entry->subquery->setOperations != NULL;
}

/*
 * Whether a query has conditions on the time of an ID at a level whose columns can come from a part
 * that is kept apart.  Such a part is in the range table, at any depth, or in a common table
 * expression, including one of an outer level ("outer").  If there is such a part, *apart becomes
 * true.
 */
static bool
has_early_conditions(Query *query, bool outer, bool *apart)
{
	bool		found;
	ListCell   *cell;

	foreach(cell, query->cteList)
	{
		Query	   *common = (Query *) ((CommonTableExpr *) lfirst(cell))->ctequery;

		if (IsA(common, Query) && has_early_conditions(common, outer, &outer))
			return true;
	}
	found = outer;
	foreach(cell, query->rtable)
	{
		RangeTblEntry *entry = lfirst(cell);

		if (entry->rtekind != RTE_SUBQUERY)
			continue;
		found = found || is_kept_apart(entry);
		if (has_early_conditions(entry->subquery, outer, &found))
			return true;
	}
	*apart = *apart || found;
	return found && sf_mentions_time((Node *) query->jointree);
}

/* The level that is a number of levels above another one. */
static const SfQueryLevel *
level_up(const SfQueryLevel *level, Index levels)
{
	for (; levels > 0; levels--)
		level = level->outer;
	return level;
}

/* The query of a common table expression that is defined at a level; NULL if not found. */
static Query *
common_query(const SfQueryLevel *level, const RangeTblEntry *entry)
{
	ListCell   *cell;

	foreach(cell, level->query->cteList)
	{
		CommonTableExpr *common = lfirst(cell);

		if (strcmp(common->ctename, entry->ctename) == 0)
			return IsA(common->ctequery, Query) ? (Query *) common->ctequery : NULL;
	}
	return NULL;
}

/*
 * Follow a column to the table it comes from.  Returns InvalidOid if there is none, or if it is
 * behind a security barrier, which keeps conditions on the time from its indexes.  *apart becomes
 * true if the column passes through a subquery that is kept apart; of set operations the first
 * query is followed.
 */
static Oid
table_of_column(Var *column, const SfQueryLevel *level, bool *apart, AttrNumber *attribute)
{
	SfQueryLevel inner = {0};
	RangeTblEntry *entry;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (column == NULL || column->varattno <= 0)
		return InvalidOid;
	level = level_up(level, column->varlevelsup);
	entry = rt_fetch(column->varno, level->query->rtable);
	if (entry->rtekind == RTE_RELATION)
	{
		*attribute = column->varattno;
		return entry->relid;
	}
	if (entry->security_barrier)
	{
		*apart = true;
		return InvalidOid;
	}
	if (entry->rtekind == RTE_SUBQUERY)
	{
		*apart = *apart || is_kept_apart(entry);
		inner.query = entry->subquery;
	}
	else if (entry->rtekind == RTE_CTE)
	{
		level = level_up(level, entry->ctelevelsup);
		inner.query = common_query(level, entry);
	}
	if (inner.query == NULL || inner.query->commandType != CMD_SELECT)
		return InvalidOid;		/* rows of RETURNING have no index */
	inner.outer = level;
	return table_of_column(sf_column((Node *) get_tle_by_resno(inner.query->targetList,
															   column->varattno)->expr),
						   &inner, apart, attribute);
}

static SfTreatment
treatment_early(SfPass *pass, const SfCall *call)
{
	bool		apart = citus_is_loaded;
	AttrNumber	attribute;
	Oid			relid = table_of_column(call->column, pass->level, &apart, &attribute);

	if (!apart || !sf_may_call(call->function, pass->depends_on_role))
		return SF_UNCHANGED;
	return OidIsValid(relid) ? sf_treatment(pass, relid, attribute, call) : SF_REPLACED;
}

/* Rewrite a query, in place, and all queries in it. */
static bool
rewrite_queries(Node *node, void *context)
{
	const SfQueryLevel *outer = context;
	SfQueryLevel level = {
		.query = (Query *) node,
		.outer = outer,
		.depends_on_role = outer->depends_on_role
	};
	SfPass		pass = {
		.treatment = treatment_early,
		.level = &level,
		.inlines_between = citus_is_loaded,
		.depends_on_role = outer->depends_on_role
	};

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, rewrite_queries, context);
	pass.joins = level.query->jointree;
	sf_replace_in_joins(&pass, (Node *) pass.joins);
	return query_tree_walker(level.query, rewrite_queries, &level, 0);
}

static PlannedStmt *
call_planner(SF_PLANNER_HOOK_ARGS)
{
	return (prev_planner ? prev_planner : standard_planner) (SF_PLANNER_HOOK_PASS);
}

/* Plan a copy of the query with its conditions replaced. */
static PlannedStmt *
plan_rewritten(SF_PLANNER_HOOK_ARGS)
{
	bool		depends_on_role = false;
	SfQueryLevel none = {.depends_on_role = &depends_on_role};
	PlannedStmt *planned;

	query = copyObject(query);
	rewrite_queries((Node *) query, &none);
	planned = call_planner(SF_PLANNER_HOOK_PASS);
	planned->dependsOnRole = planned->dependsOnRole || depends_on_role;
	return planned;
}

/* The planner hook, which does as little as possible for most queries. */
static PlannedStmt *
plan_query(SF_PLANNER_HOOK_ARGS)
{
	bool		apart = false;

	if (sf_settings_enable_timestamp_pushdown &&
		(citus_is_loaded ? sf_mentions_time((Node *) query) :
		 has_early_conditions(query, false, &apart)))
		return plan_rewritten(SF_PLANNER_HOOK_PASS);
	return call_planner(SF_PLANNER_HOOK_PASS);
}

/* The settings of Citus are defined, and are not merely names in the configuration. */
static bool
is_citus_loaded(void)
{
	const char *setting = "citus.shard_count";

	return GetConfigOption(setting, true, false) != NULL &&
		(GetConfigOptionFlags(setting, true) & GUC_CUSTOM_PLACEHOLDER) == 0;
}

void
sf_early_init(void)
{
	citus_is_loaded = is_citus_loaded();
	prev_planner = planner_hook;
	planner_hook = plan_query;
}
