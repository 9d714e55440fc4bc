/*
 * exempt.c
 *	  Relations that use the time of an ID themselves.
 *
 * Their conditions on the time are left unchanged, because the planner can match them with
 *
 * - an index whose first key column is the time,
 * - a partial index whose predicate has the time and is implied by the query,
 * - the partition key,
 * - a CHECK constraint with the time, if the planner compares conditions with constraints:
 *   that is so for the children of a parent, and otherwise only if constraint_exclusion is on;
 *   and only if the function is IMMUTABLE.
 *
 * The planner could no longer do so if they were replaced.  Only the relation that the query names
 * is examined, not its partitions and children.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "pushdown/pushdown.h"

/* The call for which a tree of expressions is searched. */
typedef struct Search
{
	SfPass	   *pass;
	AttrNumber	attribute;
	const SfCall *call;
} Search;

/* Whether an expression is the call for the attribute of the relation. */
static bool
is_the_call(Node *node, Search *search)
{
	SfCall		other;

	return sf_time_call(node, &other) &&
		other.function == search->call->function &&
		other.column->varattno == search->attribute &&
		equal(other.layout_argument, search->call->layout_argument);
}

static bool
contains_call(Node *node, void *search)
{
	if (node == NULL)
		return false;
	return is_the_call(node, search) || expression_tree_walker(node, contains_call, search);
}

/* All conditions at the top level of a tree of joins. */
static List *
conditions_of_joins(Node *node, List *conditions)
{
	ListCell   *cell;

	if (IsA(node, FromExpr))
	{
		conditions = list_concat(conditions, (List *) ((FromExpr *) node)->quals);
		foreach(cell, ((FromExpr *) node)->fromlist)
			conditions = conditions_of_joins(lfirst(cell), conditions);
	}
	else if (IsA(node, JoinExpr))
	{
		conditions = list_concat(conditions, (List *) ((JoinExpr *) node)->quals);
		conditions = conditions_of_joins(((JoinExpr *) node)->larg, conditions);
		conditions = conditions_of_joins(((JoinExpr *) node)->rarg, conditions);
	}
	return conditions;
}

/* Whether the query implies a predicate of an index; not known if the planner has not begun. */
static bool
is_implied(SfPass *pass, List *predicate)
{
	if (pass->root == NULL)
		return false;
	ChangeVarNodes((Node *) predicate, 1, (int) pass->rel->relid, 0);
	return predicate_implied_by(predicate,
								conditions_of_joins((Node *) pass->root->parse->jointree, NIL),
								false);
}

static bool
index_has(Relation index, Search *search)
{
	List	   *predicate;

	if (!index->rd_index->indisvalid)
		return false;
	if (index->rd_index->indkey.values[0] == 0 &&
		is_the_call(linitial(RelationGetIndexExpressions(index)), search))
		return true;
	predicate = RelationGetIndexPredicate(index);
	return contains_call((Node *) predicate, search) && is_implied(search->pass, predicate);
}

static bool
any_index_has(Relation relation, Search *search)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		found = found || index_has(index, search);
		index_close(index, NoLock);
	}
	list_free(indexes);
	return found;
}

static bool
any_constraint_has(Relation relation, Search *search)
{
	TupleConstr *constraints = RelationGetDescr(relation)->constr;

	for (int i = 0; constraints && i < constraints->num_check; i++)
	{
		if (contains_call(stringToNode(constraints->check[i].ccbin), search))
			return true;
	}
	return false;
}

static bool
partition_key_has(Relation relation, Search *search)
{
	return relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		contains_call((Node *) RelationGetPartitionKey(relation)->partexprs, search);
}

static bool
constraints_count(Relation relation, const SfCall *call)
{
	if (constraint_exclusion == CONSTRAINT_EXCLUSION_OFF ||
		(constraint_exclusion == CONSTRAINT_EXCLUSION_PARTITION &&
		 !relation->rd_rel->relhassubclass))
		return false;
	return func_volatile(call->function) == PROVOLATILE_IMMUTABLE;
}

bool
sf_is_exempt(SfPass *pass, Oid relid, AttrNumber attribute, const SfCall *call)
{
	Search		search = {.pass = pass,.attribute = attribute,.call = call};
	Relation	relation = table_open(relid, NoLock);
	bool		exempt = any_index_has(relation, &search) || partition_key_has(relation, &search) ||
	(constraints_count(relation, call) && any_constraint_has(relation, &search));

	table_close(relation, NoLock);
	return exempt;
}
