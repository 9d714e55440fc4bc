/*
 * exempt.c
 *	  Columns whose comparisons are left unchanged.
 *
 * These are columns of relations that use the function of the comparison themselves:
 * in an index expression, the predicate of a partial index, a CHECK constraint or a
 * partition key.  PostgreSQL matches the comparison with these, and could no longer do
 * so if the comparison were replaced.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "pushdown/match.h"
#include "pushdown/exempt.h"

/* Whether an expression calls a function.  The second argument points to its OID. */
static bool
calls_function(Node *node, void *function)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == *(Oid *) function)
		return true;
	return expression_tree_walker(node, calls_function, function);
}

static bool
index_calls(Relation relation, Oid function)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;
	bool		calls = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		calls = calls ||
			calls_function((Node *) RelationGetIndexExpressions(index), &function) ||
			calls_function((Node *) RelationGetIndexPredicate(index), &function);
		index_close(index, NoLock);
	}
	list_free(indexes);
	return calls;
}

static bool
constraint_calls(Relation relation, Oid function)
{
	TupleConstr *constraints = RelationGetDescr(relation)->constr;

	for (int i = 0; constraints && i < constraints->num_check; i++)
	{
		if (calls_function(stringToNode(constraints->check[i].ccbin), &function))
			return true;
	}
	return false;
}

static bool
partition_key_calls(Relation relation, Oid function)
{
	return relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE &&
		calls_function((Node *) RelationGetPartitionKey(relation)->partexprs, &function);
}

/* Whether an index, a constraint or the partition key of a relation calls a function. */
static bool
relation_calls(Oid relid, Oid function)
{
	Relation	relation = table_open(relid, NoLock);
	bool		calls = index_calls(relation, function) ||
	constraint_calls(relation, function) || partition_key_calls(relation, function);

	table_close(relation, NoLock);
	return calls;
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
cte_query(const SfQueryLevel *level, const RangeTblEntry *entry)
{
	ListCell   *cell;

	foreach(cell, level->query->cteList)
	{
		CommonTableExpr *cte = lfirst(cell);

		if (strcmp(cte->ctename, entry->ctename) == 0)
			return IsA(cte->ctequery, Query) ? (Query *) cte->ctequery : NULL;
	}
	return NULL;
}

bool
sf_is_exempt(Node *column, const SfQueryLevel *level, Oid function)
{
	Var		   *var = sf_column(column);
	RangeTblEntry *entry;
	SfQueryLevel inner = {0};

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (var == NULL || var->varattno <= 0)
		return false;
	level = level_up(level, var->varlevelsup);
	entry = rt_fetch(var->varno, level->query->rtable);
	switch (entry->rtekind)
	{
		case RTE_RELATION:
			return relation_calls(entry->relid, function);
		case RTE_SUBQUERY:
			inner.query = entry->subquery;
			break;
		case RTE_CTE:
			level = level_up(level, entry->ctelevelsup);
			inner.query = cte_query(level, entry);
			break;
		default:
			break;
	}
	if (inner.query == NULL || inner.query->commandType != CMD_SELECT)
		return false;			/* rows of RETURNING have no index */
	inner.outer = level;
	return sf_is_exempt((Node *) get_tle_by_resno(inner.query->targetList, var->varattno)->expr,
						&inner, function);
}
