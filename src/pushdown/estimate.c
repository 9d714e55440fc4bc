/*
 * estimate.c
 *	  Estimates of conditions that stay beside a range of IDs.
 *
 * A condition on a bucket that has not the order of the time, or on a row of the time and other
 * columns, becomes a range of IDs, and stays beside it (replace.c), as do conditions that partial
 * indexes or partitions need (exempt.c).  The planner multiplies the estimate of the range by one
 * of the condition, which it takes from nothing.  But the condition is true for nearly all rows of
 * the range: the rows of a bucket are spread over the bucket and the slack around it, and a bound
 * of the time is the bound of the first column of the row.
 *
 * The planner has no hook for the estimate of an operator.  It asks for the statistics of a column
 * by a hook, first for the range, which is before the condition in the list of conditions.  The
 * hook writes the estimate of the condition where the planner keeps it after the first computation.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "pushdown/estimate.h"
#include "pushdown/exempt.h"
#include "settings.h"

static get_relation_stats_hook_type prev_hook = NULL;

/*
 * Whether a condition on the time of a column stays beside a range.  A child has the conditions of
 * its topmost parent that is a table.
 */
static bool
has_range(PlannerInfo *root, RelOptInfo *rel, const SfCall *call, bool is_row)
{
	bool		depends_on_role = false;
	SfPass		pass = {.root = root,.rel = rel,.depends_on_role = &depends_on_role};
	AttrNumber	attribute = call->column->varattno;
	AppendRelInfo *child;
	SfTreatment treatment;

	while (root->append_rel_array && (child = root->append_rel_array[pass.rel->relid]) != NULL &&
		   root->simple_rte_array[child->parent_relid]->rtekind == RTE_RELATION)
	{
		attribute = child->parent_colnos[attribute - 1];
		pass.rel = root->simple_rel_array[child->parent_relid];
	}
	if (!sf_may_call(call->function, &depends_on_role))
		return false;
	treatment = sf_treatment(&pass, root->simple_rte_array[pass.rel->relid]->relid, attribute,
							 call);
	return treatment == SF_KEPT ||
		(treatment == SF_REPLACED && (is_row || call->bucket.function != NULL));
}

/* Whether one of two expressions is the time of a column, and the other one is constant. */
static bool
compares_time(Node *left, Node *right, AttrNumber attribute, SfCall *call)
{
	return ((sf_time_call(left, call) && is_pseudo_constant_clause(right)) ||
			(sf_time_call(right, call) && is_pseudo_constant_clause(left))) &&
		!call->is_text && call->column->varattno == attribute;
}

/* The part of the rows of its range for which a condition is true; -1 if it has no range. */
static double
part_of_range(PlannerInfo *root, RelOptInfo *rel, Node *condition, AttrNumber attribute)
{
	OpExpr	   *operator = (OpExpr *) condition;
	RowCompareExpr *row = (RowCompareExpr *) condition;
	SfCall		call;
	double		width;
	int			strategy;

	if (IsA(condition, RowCompareExpr))
		return compares_time(linitial(row->largs), linitial(row->rargs), attribute, &call) &&
			has_range(root, rel, &call, true) ? 1 : -1;
	if (!IsA(condition, OpExpr) || list_length(operator->args) != 2 ||
		!compares_time(linitial(operator->args), lsecond(operator->args), attribute, &call) ||
		!has_range(root, rel, &call, false) || (call.bucket.function && call.bucket.width <= 0))
		return -1;
	strategy = get_op_opfamily_strategy(operator->opno,
										lookup_type_cache(TIMESTAMPTZOID,
														  TYPECACHE_BTREE_OPFAMILY)->btree_opf);
	if (strategy == 0)
		return -1;
	if (strategy != BTEqualStrategyNumber || call.bucket.function == NULL)
		return 1;
	width = (double) call.bucket.width;
	return width / (width + 2 * (double) call.bucket.slack);
}

/* The relation of an entry, which not all callers of the hook have; NULL if there is none. */
static RelOptInfo *
relation_of(PlannerInfo *root, const RangeTblEntry *entry)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rte_array[i] == entry && root->simple_rel_array[i])
			return root->simple_rel_array[i];
	}
	return NULL;
}

static void
set_estimates(PlannerInfo *root, const RangeTblEntry *entry, AttrNumber attribute)
{
	RelOptInfo *rel = relation_of(root, entry);
	ListCell   *cell;

	if (rel == NULL || entry->rtekind != RTE_RELATION)
		return;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *condition = lfirst(cell);
		double		part = condition->norm_selec < 0 ?
		part_of_range(root, rel, (Node *) condition->clause, attribute) : -1;

		if (part >= 0)
			condition->norm_selec = part;
	}
}

static bool
look_up_statistics(PlannerInfo *root, RangeTblEntry *entry, AttrNumber attribute,
				   VariableStatData *statistics)
{
	if (root->glob->invalItems != NIL && sf_settings_enable_timestamp_pushdown)
		set_estimates(root, entry, attribute);
	return prev_hook && prev_hook(root, entry, attribute, statistics);
}

void
sf_estimate_init(void)
{
	prev_hook = get_relation_stats_hook;
	get_relation_stats_hook = look_up_statistics;
}
