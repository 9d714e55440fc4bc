/*
 * exempt.c
 *	  Relations that use the time of an ID themselves.
 *
 * The planner can match conditions on the time, as they are written, with
 *
 * - a B-tree in whose order the time is the next key after columns that the query compares by =.
 *	 It serves the query at least as well as an index on the ID, so the conditions are left
 *	 unchanged.
 * - the predicate of a partial index that the query implies, or the partition key of the table or
 *	 of one of its partitions.  They do not find the rows of a time within the index or partition,
 *	 so the conditions are kept beside those on the ID.
 *
 * Only indexes of the relation that the query names count.  CHECK constraints have no effect: one
 * of the table itself is true for all of its rows, and children of an inheritance parent can have
 * constraints on the ID.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/prep.h"
#include "partitioning/partdesc.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "compat.h"
#include "pushdown/exempt.h"
#include "pushdown/expression.h"

/* The call for which expressions of a relation are searched. */
typedef struct Search
{
	SfPass	   *pass;
	AttrNumber	attribute;		/* of the relation, which the call is of */
	const SfCall *call;
} Search;

/* Whether an expression is the call for the attribute of the relation. */
static bool
is_the_call(Node *node, Search *search)
{
	SfCall		other;

	return sf_time_call(node, &other) && other.bucket.function == NULL &&
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

/* The conditions in a tree of joins that restrict the rows of a relation. */
static List *
conditions_of_joins(Node *node, Index relid)
{
	List	   *conditions = NIL;
	ListCell   *cell;

	if (IsA(node, FromExpr))
	{
		conditions = list_copy((List *) ((FromExpr *) node)->quals);
		foreach(cell, ((FromExpr *) node)->fromlist)
			conditions = list_concat(conditions, conditions_of_joins(lfirst(cell), relid));
	}
	else if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		if (join->jointype == JOIN_INNER || join->jointype == JOIN_SEMI ||
			bms_is_member((int) relid, sf_relids_in_jointree(join->rarg)))
			conditions = list_copy((List *) join->quals);
		conditions = list_concat(conditions, conditions_of_joins(join->larg, relid));
		conditions = list_concat(conditions, conditions_of_joins(join->rarg, relid));
	}
	return conditions;
}

/* The conditions of the query; not known if the planner has not begun. */
static List *
conditions_of_query(SfPass *pass)
{
	return pass->root ? conditions_of_joins((Node *) pass->root->parse->jointree,
											pass->rel->relid) : NIL;
}

/* Whether the query implies a predicate of an index. */
static bool
is_implied(SfPass *pass, List *predicate)
{
	if (pass->root == NULL)
		return false;
	ChangeVarNodes((Node *) predicate, 1, (int) pass->rel->relid, 0);
	return predicate_implied_by(predicate, conditions_of_query(pass), false);
}

/* Whether the arguments of an operator of a family for = include a column of the relation. */
static bool
fixes_attribute(SfPass *pass, Oid operator, List *arguments, AttrNumber attribute, Oid family)
{
	ListCell   *cell;

	if (get_op_opfamily_strategy(operator, family) != BTEqualStrategyNumber)
		return false;
	foreach(cell, arguments)
	{
		Var		   *column = sf_column(lfirst(cell));

		if (column && column->varno == (int) pass->rel->relid && column->varlevelsup == 0 &&
			column->varattno == attribute)
			return true;
	}
	return false;
}

/* Whether the query compares a column by =, or with the elements of an array by =. */
static bool
is_fixed(SfPass *pass, AttrNumber attribute, Oid family)
{
	ListCell   *cell;

	foreach(cell, conditions_of_query(pass))
	{
		OpExpr	   *operator = lfirst(cell);
		ScalarArrayOpExpr *any = lfirst(cell);

		if (IsA(operator, OpExpr) &&
			fixes_attribute(pass, operator->opno, operator->args, attribute, family))
			return true;
		if (IsA(any, ScalarArrayOpExpr) && any->useOr &&
			fixes_attribute(pass, any->opno, any->args, attribute, family))
			return true;
	}
	return false;
}

/* Whether the time is a key of a B-tree, and the query fixes those before it. */
static bool
has_key(Relation index, Search *search)
{
	Oid			type = search->call->is_text ? TEXTOID : TIMESTAMPTZOID;
	int			i = 0;

	if (index->rd_rel->relam != BTREE_AM_OID)
		return false;
	while (index->rd_index->indkey.values[i] != 0)
	{
		if (!is_fixed(search->pass, index->rd_index->indkey.values[i], index->rd_opfamily[i]) ||
			++i == index->rd_index->indnkeyatts)
			return false;
	}
	return is_the_call(linitial(RelationGetIndexExpressions(index)), search) &&
		index->rd_opfamily[i] == lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf &&
		index->rd_indcollation[i] == search->call->collation;
}

/* The treatment of the conditions because of an index. */
static SfTreatment
treatment_by_index(Relation index, Search *search)
{
	List	   *predicate = RelationGetIndexPredicate(index);
	bool		in_predicate = contains_call((Node *) predicate, search);

	if (!index->rd_index->indisvalid || (predicate && !is_implied(search->pass, predicate)))
		return SF_REPLACED;
	if (has_key(index, search))
		return SF_UNCHANGED;
	return in_predicate ? SF_KEPT : SF_REPLACED;
}

/* The treatment of the conditions because of the indexes of a relation. */
static SfTreatment
treatment_by_indexes(Relation relation, Search *search)
{
	List	   *indexes = RelationGetIndexList(relation);
	SfTreatment treatment = SF_REPLACED;
	ListCell   *cell;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), AccessShareLock);

		treatment = Min(treatment, treatment_by_index(index, search));
		index_close(index, NoLock);
	}
	list_free(indexes);
	return treatment;
}

/*
 * Whether the partition key of a table or of one of its partitions has the call.  Columns of a
 * partition can have another order.
 */
static bool
partition_key_has(Relation relation, Search search)
{
	char	   *column = get_attname(RelationGetRelid(relation), search.attribute, false);
	PartitionDesc partitions;
	bool		found;

	if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return false;
	found = contains_call((Node *) RelationGetPartitionKey(relation)->partexprs, &search);
	partitions = RelationGetPartitionDesc(relation, true);
	for (int i = 0; i < partitions->nparts && !found; i++)
	{
		Relation	partition;

		if (partitions->is_leaf[i])
			continue;
		partition = table_open(partitions->oids[i], AccessShareLock);
		search.attribute = get_attnum(partitions->oids[i], column);
		found = partition_key_has(partition, search);
		table_close(partition, NoLock);
	}
	return found;
}

SfTreatment
sf_treatment(SfPass *pass, Oid relid, AttrNumber attribute, const SfCall *call)
{
	Search		search = {.pass = pass,.attribute = attribute,.call = call};
	Relation	relation;
	SfTreatment treatment;

	if (call->bucket.function)
		return SF_REPLACED;
	relation = table_open(relid, NoLock);
	treatment = treatment_by_indexes(relation, &search);
	if (treatment == SF_REPLACED && partition_key_has(relation, search))
		treatment = SF_KEPT;
	table_close(relation, NoLock);
	return treatment;
}

SfTreatment
sf_treatment_in_relation(SfPass *pass, const SfCall *call)
{
	if (call->column->varno != (int) pass->rel->relid || call->column->varlevelsup > 0 ||
		call->column->varattno <= 0 || !sf_may_call(call->function, pass->depends_on_role))
		return SF_UNCHANGED;
	return sf_treatment(pass, pass->root->simple_rte_array[pass->rel->relid]->relid,
						call->column->varattno, call);
}
