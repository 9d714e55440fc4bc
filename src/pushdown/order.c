/*
 * order.c
 *	  The order of IDs is the order of their times.
 *
 * An index on an ID returns the rows in the order of their times as well: the time never decreases
 * from one ID to the next, and it is null exactly if the ID is.  The planner cannot derive this.
 * So whenever a query could use the order of a time, each index on its ID is described to the
 * planner as an index on the time, and each partitioning by ranges of the ID as one by ranges of
 * the time.  Nothing of the query changes: it sorts, groups and compares by the time, and the
 * planner chooses by cost whether to read the rows in this order.  So this serves every use of an
 * order: ORDER BY, with further keys too (an incremental sort does the rest), WITH TIES, DISTINCT,
 * GROUP BY, window functions, min() and max(), merge joins, and the merge of partitions or of a
 * UNION ALL.
 *
 * A time is any call that sf_time_call() finds and whose bucket is monotonic, or the text of an
 * ID, if it is compared byte by byte.  All statements here about the time of an ID are true for
 * such a text.
 *
 * Indexes
 *
 * After the planner has made the paths of a relation, it calls a hook.  The planner has put the
 * sort keys, and the sides of mergejoinable conditions, into equivalence classes.  A member of a
 * class that is the time of a column of the relation is put in place of this column in a copy of
 * each index that has the column as a key, and core derives the order of the copy, as for an index
 * on the expression.  That order can continue, because rows with equal times are in the order of
 * their IDs:
 *
 *		index on			order of the query				order of the index
 *		(id)				time, status					time
 *		(id)				day, hour, time, id, status		day, hour, time, id
 *		(customer, id)		customer, time					customer, time
 *		(customer, id)		time, with customer = 5			time
 *
 * Core also makes the path, so the index conditions, index-only scans and parallel scans are its
 * own; the path is copied with its order and direction.  Core makes no path for an index that has
 * neither conditions nor a useful order, unless the query implies the predicate of the index.  So
 * the path is asked for an index that says so.
 *
 * Partitions
 *
 * If a table is partitioned by ranges of the ID, the partitions can be read one after the other
 * instead of being merged.  Core finds this by the partition key.  So the key is described as the
 * times, followed by the ID: (id) as (time, id).  The ID has to follow, because rows of one time
 * can be in two partitions, and then have the order (time, id), but not (time, status).
 *
 * Core adds up the paths of partitions before it calls the hook for their parent, and again when it
 * applies the target list, if the parent is all that the query reads.  So the parent lends its key
 * from the hook of its first partition until the planner has seen all paths.  It has its own key
 * again when the plan is made, in which partitions are pruned by the key.
 */
#include "postgres.h"

#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/typcache.h"

#include "compat.h"
#include "pushdown/call.h"
#include "pushdown/expression.h"
#include "pushdown/order.h"
#include "settings.h"

/* A member of an equivalence class that has the order of a column of a relation. */
typedef struct Ordered
{
	EquivalenceClass *class;
	Expr	   *expression;		/* of the relation */
	Oid			type;
	Oid			family;			/* by which the expression is sorted */
	AttrNumber	column;
	Oid			column_family;	/* by which the column is sorted */
	bool		is_time;		/* and not the column itself */
} Ordered;

/* The partition key of a parent that describes its partitions as ranges of times. */
typedef struct LentKey
{
	PartitionSchemeData scheme; /* in place of own_scheme */
	PartitionScheme own_scheme;
	List	  **own_expressions;
} LentKey;

static set_rel_pathlist_hook_type prev_paths = NULL;
static create_upper_paths_hook_type prev_upper_paths = NULL;

static Oid
family_of(Oid type)
{
	return lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

/*
 * Whether an expression has the order of a column of a relation, if it is compared by its type's
 * own operators in the collation of its class.
 */
static bool
has_order_of_column(RelOptInfo *rel, Ordered *ordered)
{
	SfCall		call;
	Var		   *column = sf_column((Node *) ordered->expression);
	Oid			type = exprType((Node *) ordered->expression);

	ordered->is_time = column == NULL;
	if (!ordered->is_time && OidIsValid(ordered->class->ec_collation))
		return false;			/* no ID */
	if (ordered->is_time)
	{
		if (!sf_time_call((Node *) ordered->expression, &call) || !call.bucket.is_monotonic ||
			(call.is_text && ordered->class->ec_collation != C_COLLATION_OID))
			return false;
		column = call.column;
		type = call.id_type;
	}
	ordered->column = column->varattno;
	ordered->column_family = family_of(type);
	return column->varno == (int) rel->relid && column->varlevelsup == 0 && column->varattno > 0;
}

/* A member of a class as one of a relation that is the member's, or is a child of it. */
static Ordered *
ordered_of_member(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *class,
				  EquivalenceMember *member)
{
	Ordered    *ordered = palloc0(sizeof(Ordered));

	ordered->class = class;
	ordered->expression = member->em_expr;
	ordered->type = member->em_datatype;
	ordered->family = family_of(ordered->type);
	if (rel->top_parent_relids)
		ordered->expression = (Expr *) sf_translate_to_child(root, (Node *) member->em_expr, rel);
	return list_member_oid(class->ec_opfamilies, ordered->family) &&
		has_order_of_column(rel, ordered) ? ordered : NULL;
}

/* All members of classes that have the order of a column of a relation; NIL if none is a time. */
static List *
ordered_members(PlannerInfo *root, RelOptInfo *rel)
{
	Relids		relids = rel->top_parent_relids ? rel->top_parent_relids : rel->relids;
	List	   *result = NIL;
	bool		has_time = false;
	ListCell   *cell;
	ListCell   *inner;

	foreach(cell, root->eq_classes)
	{
		EquivalenceClass *class = lfirst(cell);

		if (class->ec_has_volatile || class->ec_has_const ||
			!bms_is_subset(relids, class->ec_relids))
			continue;
		foreach(inner, class->ec_members)
		{
			EquivalenceMember *member = lfirst(inner);
			Ordered    *ordered;

			if (!bms_equal(member->em_relids, relids))
				continue;
			ordered = ordered_of_member(root, rel, class, member);
			if (ordered == NULL)
				continue;
			result = lappend(result, ordered);
			has_time = has_time || ordered->is_time;
		}
	}
	return has_time ? result : NIL;
}

/* The member of a class that has the order of a column, as a sort key; NULL if there is none. */
static Ordered *
ordered_of_key(List *members, AttrNumber column, const PathKey *key)
{
	ListCell   *cell;

	foreach(cell, members)
	{
		Ordered    *ordered = lfirst(cell);

		if (ordered->class == key->pk_eclass && ordered->family == key->pk_opfamily &&
			ordered->column == column)
			return ordered;
	}
	return NULL;
}

/*
 * The order of an index if its key at a place were an expression that has the order of this key.
 * NIL if the expression adds no key to those before, because one of them is equal to it.
 */
static List *
order_with(PlannerInfo *root, const IndexOptInfo *index, int place, const Ordered *ordered,
		   ScanDirection direction)
{
	IndexOptInfo other = *index;
	Oid			families[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];
	Oid			collations[INDEX_MAX_KEYS];
	List	   *keys;
	int			before;

	memcpy(families, index->sortopfamily, (size_t) place * sizeof(Oid));
	memcpy(types, index->opcintype, (size_t) place * sizeof(Oid));
	memcpy(collations, index->indexcollations, (size_t) place * sizeof(Oid));
	families[place] = ordered->family;
	types[place] = ordered->type;
	collations[place] = ordered->class->ec_collation;
	other.sortopfamily = families;
	other.opcintype = types;
	other.indexcollations = collations;
	other.indextlist = lappend(list_copy_head(index->indextlist, place),
							   makeTargetEntry(ordered->expression, (AttrNumber) (place + 1),
											   NULL, false));
	other.nkeycolumns = place;
	before = list_length(build_index_pathkeys(root, &other, direction));
	other.nkeycolumns = place + 1;
	keys = build_index_pathkeys(root, &other, direction);
	return list_length(keys) > before ? keys : NIL;
}

/*
 * An order whose last key has the order of a column, and the keys that the query wants after it,
 * as far as they have the order of the same column.  All of them are null for the same rows, so
 * only the last key says where nulls are.
 */
static List *
continued(PlannerInfo *root, List *members, AttrNumber column, List *keys)
{
	PathKey    *last = llast(keys);
	int			n;

	if (!pathkeys_count_contained_in(keys, root->query_pathkeys, &n))
		return keys;

	for (; n < list_length(root->query_pathkeys); n++)
	{
		PathKey    *key = list_nth(root->query_pathkeys, n);

		if (sf_direction(key) != sf_direction(last) || !ordered_of_key(members, column, key))
			break;
		keys = lappend(keys, key);
	}
	return keys;
}

/*
 * An order whose last key is an expression, continued, as far as the query can use it; NIL if it
 * has no use for the expression, or if this is the ID itself, for any key that follows.
 */
static List *
useful_order(PlannerInfo *root, RelOptInfo *rel, List *members, const Ordered *ordered,
			 List *keys)
{
	int			least = list_length(keys) + (ordered->is_time ? 0 : 1);

	keys = truncate_useless_pathkeys(root, rel, continued(root, members, ordered->column, keys));
	return list_length(keys) >= least ? keys : NIL;
}

/*
 * Put core's paths of an index into the lists of the relation, which have only these then: one path
 * for the conditions on the relation alone, and one for parallel workers.
 */
static void
make_paths(PlannerInfo *root, RelOptInfo *rel, const IndexOptInfo *index)
{
	IndexOptInfo *alone = makeNode(IndexOptInfo);
	List	   *query_pathkeys = root->query_pathkeys;

	*alone = *index;
	alone->predOK = true;
	alone->amhasgetbitmap = false;
	rel->indexlist = list_make1(alone);
	rel->pathlist = rel->partial_pathlist = NIL;
	rel->joininfo = NIL;
	rel->has_eclass_joins = false;
	root->query_pathkeys = NIL;
	create_index_paths(root, rel);
	root->query_pathkeys = query_pathkeys;
}

/* Whether the rows of a path have the order of its index. */
static bool
is_in_order(const IndexPath *path)
{
	ListCell   *cell;

	if (path->path.param_info)
		return false;
	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst(cell);

		if (!SF_ARRAYS_KEEP_ORDER && clause->indexcol > 0 &&
			IsA(clause->rinfo->clause, ScalarArrayOpExpr))
			return false;
	}
	return true;
}

/* Copies of paths of an index that have an order. */
static List *
in_order(List *paths, IndexOptInfo *index, List *keys, ScanDirection direction)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, paths)
	{
		IndexPath  *path = makeNode(IndexPath);

		*path = *(IndexPath *) lfirst(cell);
		path->indexinfo = index;
		path->indexscandir = direction;
		path->path.pathkeys = keys;
		if (is_in_order(path))
			result = lappend(result, path);
	}
	return result;
}

/* Offer the paths of an index in an order. */
static void
offer(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, List *keys, ScanDirection direction)
{
	RelOptInfo	own = *rel;
	List	   *paths;
	List	   *partial_paths;
	ListCell   *cell;

	make_paths(root, rel, index);
	paths = in_order(rel->pathlist, index, keys, direction);
	partial_paths = in_order(rel->partial_pathlist, index, keys, direction);
	*rel = own;
	foreach(cell, paths)
		add_path(rel, lfirst(cell));
	foreach(cell, partial_paths)
		add_partial_path(rel, lfirst(cell));
}

/* The place of the key of a B-tree that has the order of an expression; -1 if there is none. */
static int
place_of(const IndexOptInfo *index, const Ordered *ordered)
{
	if (index->relam != BTREE_AM_OID || (index->indpred && !index->predOK))
		return -1;
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (index->indexkeys[i] == ordered->column)
			return index->sortopfamily[i] == ordered->column_family ? i : -1;
	}
	return -1;
}

/* Offer the paths of an index that are in the order of a time. */
static void
offer_orders_of_index(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, List *members)
{
	static const ScanDirection directions[] = {ForwardScanDirection, BackwardScanDirection};
	ListCell   *cell;

	foreach(cell, members)
	{
		Ordered    *ordered = lfirst(cell);
		int			place = place_of(index, ordered);

		for (size_t i = 0; place >= 0 && i < lengthof(directions); i++)
		{
			List	   *keys = order_with(root, index, place, ordered, directions[i]);

			if (keys == NIL)
				break;			/* nor in the other direction */
			keys = useful_order(root, rel, members, ordered, keys);
			if (keys)
				offer(root, rel, index, keys, directions[i]);
		}
	}
}

static void
offer_orders(PlannerInfo *root, RelOptInfo *rel)
{
	List	   *members = ordered_members(root, rel);
	ListCell   *cell;

	if (members == NIL)
		return;
	foreach(cell, rel->indexlist)
		offer_orders_of_index(root, rel, lfirst(cell), members);
}

/*
 * The first keys that the query wants, if they have the order of a column; NIL if the first is no
 * time.
 */
static List *
leading_times(PlannerInfo *root, RelOptInfo *rel, AttrNumber column)
{
	List	   *members = ordered_members(root, rel);
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, root->query_pathkeys)
	{
		Ordered    *ordered = ordered_of_key(members, column, lfirst(cell));

		if (ordered == NULL || !ordered->is_time)
			break;
		result = lappend(result, ordered);
	}
	return result;
}

/* The column by whose order a table is partitioned; NULL if there is none. */
static Var *
ordering_column(const RelOptInfo *parent)
{
	Var		   *column = sf_column(linitial(parent->partexprs[0]));

	if (parent->part_scheme->strategy == PARTITION_STRATEGY_HASH || column == NULL ||
		parent->part_scheme->partopfamily[0] != family_of(parent->part_scheme->partopcintype[0]))
		return NULL;
	return column;
}

/* Describe the partitions of a table, which are ranges of IDs, as ranges of times and IDs. */
static void
lend_key(PlannerInfo *root, RelOptInfo *parent)
{
	PartitionScheme own = parent->part_scheme;
	Var		   *column = ordering_column(parent);
	List	   *times = column ? leading_times(root, parent, column->varattno) : NIL;
	int			added = list_length(times);
	int			count = added + own->partnatts;
	LentKey    *lent;

	if (times == NIL)
		return;
	lent = palloc0(sizeof(LentKey));
	lent->own_scheme = own;
	lent->own_expressions = parent->partexprs;
	lent->scheme = *own;
	lent->scheme.partnatts = (int16) count;
	lent->scheme.partopfamily = palloc((size_t) count * sizeof(Oid));
	lent->scheme.partopcintype = palloc((size_t) count * sizeof(Oid));
	lent->scheme.partcollation = palloc((size_t) count * sizeof(Oid));
	parent->partexprs = palloc((size_t) count * sizeof(List *));
	for (int i = 0; i < count; i++)
	{
		const Ordered *time = i < added ? list_nth(times, i) : NULL;

		lent->scheme.partopfamily[i] = time ? time->family : own->partopfamily[i - added];
		lent->scheme.partopcintype[i] = time ? time->type : own->partopcintype[i - added];
		lent->scheme.partcollation[i] = time ? time->class->ec_collation :
			own->partcollation[i - added];
		parent->partexprs[i] = time ? list_make1(time->expression) :
			lent->own_expressions[i - added];
	}
	parent->part_scheme = &lent->scheme;
}

static void
take_key_back(PlannerInfo *root, RelOptInfo *rel)
{
	LentKey    *lent = (LentKey *) rel->part_scheme;

	if (lent == NULL || list_member_ptr(root->part_schemes, lent))
		return;
	rel->part_scheme = lent->own_scheme;
	rel->partexprs = lent->own_expressions;
}

static void
take_keys_back(PlannerInfo *root)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rel_array[i])
			take_key_back(root, root->simple_rel_array[i]);
	}
}

/*
 * The planner tries min() and max() as queries of their own, for which it calls no hook at the end.
 * Their path is in the list of the grouped relation when this is complete, and is wrapped later.
 */
static void
take_keys_of_extremes_back(const RelOptInfo *grouped)
{
	ListCell   *cell;
	ListCell   *inner;

	foreach(cell, grouped->pathlist)
	{
		MinMaxAggPath *path = lfirst(cell);

		if (!IsA(path, MinMaxAggPath))
			continue;
		foreach(inner, path->mmaggregates)
			take_keys_back(((MinMaxAggInfo *) lfirst(inner))->subroot);
	}
}

/* The parent of a relation that is its first partition; NULL if it is none. */
static RelOptInfo *
parent_of_first(PlannerInfo *root, const RelOptInfo *rel)
{
	AppendRelInfo *info = root->append_rel_array ? root->append_rel_array[rel->relid] : NULL;
	RelOptInfo *parent = info ? root->simple_rel_array[info->parent_relid] : NULL;

	if (parent == NULL || parent->part_scheme == NULL ||
		parent->part_rels[bms_next_member(parent->live_parts, -1)] != rel)
		return NULL;
	return parent;
}

/* Whether a relation is all that a query reads, or one of its children. */
static bool
is_all(PlannerInfo *root, const RelOptInfo *rel)
{
	return bms_equal(rel->top_parent_relids ? rel->top_parent_relids : rel->relids,
					 root->all_baserels);
}

static void
add_orders(PlannerInfo *root, RelOptInfo *rel, const RangeTblEntry *entry)
{
	RelOptInfo *parent = parent_of_first(root, rel);

	if (parent)
		lend_key(root, parent);
	if (!is_all(root, rel))
		take_key_back(root, rel);
	if (!entry->inh && entry->tablesample == NULL && rel->indexlist != NIL && !IS_DUMMY_REL(rel))
		offer_orders(root, rel);
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	if (prev_paths)
		prev_paths(root, rel, relid, entry);
	if (root->glob->invalItems != NIL && sf_settings_enable_timestamp_pushdown &&
		entry->rtekind == RTE_RELATION && has_useful_pathkeys(root, rel))
		add_orders(root, rel, entry);
}

static void
add_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output,
				void *extra)
{
	if (prev_upper_paths)
		prev_upper_paths(root, stage, input, output, extra);
	if (root->glob->invalItems == NIL)
		return;
	if (stage == UPPERREL_GROUP_AGG && root->parse->hasAggs)
		take_keys_of_extremes_back(output);
	if (stage == UPPERREL_FINAL)
		take_keys_back(root);
}

void
sf_order_init(void)
{
	prev_paths = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
	prev_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = add_upper_paths;
}
