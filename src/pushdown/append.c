/*
 * append.c
 *	  Conditions on a UNION ALL of tables.
 *
 * The planner merges the tables of a UNION ALL into the query as children of one parent,
 * which is not a relation.  When it processes a child, the conditions on the parent have already
 * been distributed, and they are copied to the child, with the child's columns, only after the
 * hook.  So they cannot be replaced.  But a child has conditions of its own, those of its security
 * policies.  The replaced conditions are added to these; they are true for the same rows.
 *
 * Security policies are evaluated before other conditions.  The conditions that are added here may
 * be evaluated at the same time, since they reveal nothing about the rows: comparisons of IDs are
 * leakproof, and other conditions are not added.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "pushdown/pass.h"

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

	if (replaced == original || equal(replaced, original) || !may_be_added((Node *) replaced))
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

void
sf_add_conditions_of_union(SfPass *pass)
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
