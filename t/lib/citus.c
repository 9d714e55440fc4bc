/*
 * citus.c
 *	  A library that imitates Citus: it has the settings of Citus, and a planner hook that reports
 *	  which queries it receives that call snowflake_timestamp() or snowflake_between().  It counts
 *	  the calls to its other hooks, which the libraries after it have to call.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "../../src/compat.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static planner_hook_type prev_planner = NULL;
static int	shard_count = 32;
static int	hooks = 0;
static int	relations = 0;

static bool
calls_timestamp(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, calls_timestamp, context, 0);
	if (IsA(node, FuncExpr))
	{
		char	   *name = get_func_name(((FuncExpr *) node)->funcid);

		if (name && (strcmp(name, "snowflake_timestamp") == 0 || strcmp(name, "snowflake_between") == 0))
			return true;
	}
	return expression_tree_walker(node, calls_timestamp, context);
}

static PlannedStmt *
plan(SF_PLANNER_HOOK_ARGS)
{
	if (calls_timestamp((Node *) query, NULL))
		ereport(NOTICE, errmsg("the query calls snowflake_timestamp() or snowflake_between()"));
	return (prev_planner ? prev_planner : standard_planner) (SF_PLANNER_HOOK_PASS);
}

static void
count_hook(void)
{
	hooks++;
}

static void
count_relation(SF_RELATION_HOOK_ARGS)
{
	relations++;
}

static void
count_in(const char *setting, int *counter)
{
	DefineCustomIntVariable(setting, "Counts calls.", NULL,
							counter, 0, 0, INT_MAX, PGC_INTERNAL, 0, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("citus.shard_count", "Sets the number of shards.", NULL,
							&shard_count, 32, 1, 64000, PGC_USERSET, 0, NULL, NULL, NULL);
	count_in("citus.hooks", &hooks);
	count_in("citus.relations", &relations);
	prev_planner = planner_hook;
	planner_hook = plan;
	shmem_request_hook = count_hook;
	shmem_startup_hook = count_hook;
	sf_relation_hook = count_relation;
}
