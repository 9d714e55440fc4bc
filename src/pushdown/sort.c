/*
 * sort.c
 *	  ORDER BY the time of an ID.
 *
 * The order of the IDs is that of their times, and it is finer: rows whose times are equal
 * are in the order of their IDs as well.  A query that sorts by the time leaves the order of
 * these rows open.  So
 *
 *		ORDER BY ..., snowflake_timestamp(id)			becomes		ORDER BY ..., id
 *		ORDER BY snowflake_timestamp(id), id, ...		becomes		ORDER BY id, ...
 *
 * if both keys of the second form have the same direction.  Nulls keep their places, since the time
 * is null exactly if the ID is.  If a key other than the ID follows the time, it determines the
 * order of rows with equal times, and the time is left unchanged.  The time is also left unchanged
 * in queries in which equal times affect more than the order: with DISTINCT, GROUP BY, aggregates,
 * window functions, or WITH TIES.
 *
 * The time can be rounded in a way that keeps its order (bucket.c).  The text of an ID in base 32
 * is replaced as its time is, if its collation compares bytes.
 *
 * min() and max() of the time are handled here as well.  The planner tries them as subqueries with
 * ORDER BY and LIMIT 1.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "nodes/nodeFuncs.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "utils/typcache.h"

#include "compat.h"
#include "pushdown/expression.h"
#include "pushdown/sort.h"

static bool
order_is_all(const Query *query)
{
	return query->commandType == CMD_SELECT && query->sortClause != NIL &&
		query->limitOption != LIMIT_OPTION_WITH_TIES && query->distinctClause == NIL &&
		query->groupClause == NIL && query->groupingSets == NIL &&
		query->setOperations == NULL && !query->hasAggs && !query->hasWindowFuncs &&
		!query->hasTargetSRFs;
}

/* Whether a key sorts in the default order of its type, and if so, in which direction. */
static bool
has_default_order(const SortGroupClause *key, Oid type, bool *descending)
{
	TypeCacheEntry *operators = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);

	*descending = key->sortop == operators->gt_opr;
	return *descending || key->sortop == operators->lt_opr;
}

/* Whether a key is the time of an ID that the pass replaces. */
static bool
sorts_by_time(SfPass *pass, SortGroupClause *key, List *targets, SfCall *call,
			  bool *descending)
{
	Node	   *expression = (Node *) get_sortgroupclause_tle(key, targets)->expr;

	return sf_match_call(pass, expression, call) && call->bucket.is_monotonic &&
		has_default_order(key, exprType(expression), descending) &&
		(!call->is_text || call->collation == C_COLLATION_OID);
}

/* Whether a key is the ID of a call, in a direction. */
static bool
sorts_by_id(SortGroupClause *key, List *targets, const SfCall *call, bool descending)
{
	TargetEntry *target = get_sortgroupclause_tle(key, targets);
	bool		id_descending;

	return equal(sf_column((Node *) target->expr), call->column) &&
		has_default_order(key, call->id_type, &id_descending) &&
		id_descending == descending;
}

/* The target that is the ID of a call; it is added if there is none. */
static TargetEntry *
target_of_id(SfPass *pass, const SfCall *call)
{
	PlannerInfo *root = pass->root;
	TargetEntry *target;
	ListCell   *cell;

	foreach(cell, root->processed_tlist)
	{
		target = lfirst(cell);
		if (equal(target->expr, call->id))
			return target;
	}
	target = makeTargetEntry(copyObject(call->id),
							 (AttrNumber) (list_length(root->processed_tlist) + 1), NULL, true);
	root->processed_tlist = lappend(root->processed_tlist, target);
	return target;
}

/*
 * Detach a key from the target of the time.  If the target served only to sort, it becomes a
 * null, so that the time is not computed for each row.  It keeps its place and type: the query
 * around a subquery that is kept apart has another copy of the targets, and expects columns of
 * these types.
 */
static void
release_target(SortGroupClause *key, List *targets)
{
	TargetEntry *target = get_sortgroupclause_tle(key, targets);

	target->ressortgroupref = 0;
	if (target->resjunk)
		target->expr = (Expr *) makeNullConst(exprType((Node *) target->expr), -1,
											  exprCollation((Node *) target->expr));
}

/* Replace a key that is the time by one that is the ID. */
static void
sort_by_id(SfPass *pass, ListCell *cell, const SfCall *call, bool descending)
{
	SortGroupClause *by_time = lfirst(cell);
	SortGroupClause *key = makeNode(SortGroupClause);
	TypeCacheEntry *operators = lookup_type_cache(call->id_type, TYPECACHE_LT_OPR |
												  TYPECACHE_GT_OPR | TYPECACHE_EQ_OPR);
	TargetEntry *target;

	release_target(by_time, pass->root->processed_tlist);
	target = target_of_id(pass, call);
	key->tleSortGroupRef = assignSortGroupRef(target, pass->root->processed_tlist);
	key->eqop = operators->eq_opr;
	key->sortop = descending ? operators->gt_opr : operators->lt_opr;
	key->nulls_first = by_time->nulls_first;
	sf_set_descending(key, descending);
	lfirst(cell) = key;
}

/* Rewrite the key at a place; those behind it were rewritten before. */
static void
rewrite_key(SfPass *pass, int place)
{
	Query	   *query = pass->root->parse;
	List	   *targets = pass->root->processed_tlist;
	ListCell   *cell = list_nth_cell(query->sortClause, place);
	ListCell   *next = lnext(query->sortClause, cell);
	SortGroupClause *key = lfirst(cell);
	SfCall		call;
	bool		descending;

	if (!sorts_by_time(pass, key, targets, &call, &descending))
		return;
	if (next == NULL)
		sort_by_id(pass, cell, &call, descending);
	else if (sorts_by_id(lfirst(next), targets, &call, descending))
	{
		((SortGroupClause *) lfirst(next))->nulls_first = key->nulls_first;
		release_target(key, targets);
		query->sortClause = list_delete_cell(query->sortClause, cell);
	}
}

void
sf_rewrite_sort(SfPass *pass)
{
	if (!order_is_all(pass->root->parse))
		return;
	for (int place = list_length(pass->root->parse->sortClause) - 1; place >= 0; place--)
		rewrite_key(pass, place);
}
