/*
 * pushdown.c
 *	  Queries by the time of an ID are answered by the ID.
 *
 * The planner calls a hook for each relation of a query, after it has read the relation's
 * indexes.  By then views, subqueries and SQL functions have been merged into the query and
 * constants have been folded, but conditions and sort keys have not been distributed to the
 * relations yet.  So the hook finds snowflake_timestamp(id) wherever it was written, and can still
 * replace it: in conditions (replace.c), in ORDER BY (sort.c), and for a table in a UNION ALL,
 * whose conditions have been distributed, by additional conditions (append.c).  Each call replaces
 * only expressions of columns of its own relation, since it has no other relation's indexes.
 *
 * Most queries do not contain the function, and must not pay for this.  The function has a
 * planner support function (support.c), which notes a dependency of the plan on the
 * function.  If the plan has no dependencies, the hook returns at once.
 *
 * Conditions that this hook does not reach are replaced before the planner begins (early.c).
 */
#include "postgres.h"

#include "optimizer/plancat.h"

#include "compat.h"
#include "pushdown/pass.h"
#include "pushdown/pushdown.h"
#include "settings.h"

static sf_relation_hook_type prev_hook = NULL;

/* Whether a call is that of a column of the relation, and is to be replaced. */
static bool
applies_to_relation(SfPass *pass, const SfTimeCall *call)
{
	return call->column->varno == (int) pass->rel->relid && call->column->varlevelsup == 0 &&
		call->column->varattno > 0 &&
		sf_may_call(call->function, pass->depends_on_role) &&
		!sf_is_exempt(pass, pass->relid, call->column->varattno, call);
}

/* Conditions of security policies and security barriers, by their level. */
static void
rewrite_security_conditions(SfPass *pass, RangeTblEntry *entry)
{
	ListCell   *cell;

	foreach(cell, entry->securityQuals)
		lfirst(cell) = sf_replace_in_list(pass, lfirst(cell));
}

static void
rewrite_relation(PlannerInfo *root, Oid relid, RelOptInfo *rel)
{
	SfPass		pass = {
		.applies = applies_to_relation,
		.root = root,
		.rel = rel,
		.relid = relid,
		.depends_on_role = &root->glob->dependsOnRole
	};

	if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL)
	{
		sf_add_conditions_of_union(&pass);
		return;
	}
	sf_replace_in_joins(&pass, (Node *) root->parse->jointree);
	rewrite_security_conditions(&pass, root->simple_rte_array[rel->relid]);
	sf_rewrite_sort(&pass);
}

static void
plan_relation(SF_RELATION_HOOK_ARGS)
{
	if (prev_hook)
		prev_hook(SF_RELATION_HOOK_PASS);
	if (root->glob->invalItems != NIL && sf_enable_timestamp_pushdown &&
		rel->rtekind == RTE_RELATION)
		rewrite_relation(root, root->simple_rte_array[rel->relid]->relid, rel);
}

void
sf_pushdown_init(void)
{
	prev_hook = sf_relation_hook;
	sf_relation_hook = plan_relation;
	sf_early_init();
}
