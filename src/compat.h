/*
 * compat.h
 *	  Differences between versions of PostgreSQL; no other unit depends on the version.
 *
 * Each function and macro has the form of the newest version, so callers need no conditions.  A
 * file that uses a macro includes the header of PostgreSQL for what the macro names.
 */
#ifndef SF_COMPAT_H
#define SF_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "snowflake needs PostgreSQL 15 or later"
#endif

/*
 * A bigint is passed by value, and the shared cursor is swapped by one instruction.  Both byte
 * orders work.
 */
#if SIZEOF_VOID_P != 8
#error "snowflake needs a platform of 64 bits"
#endif

/* PostgreSQL 16 moved the access to varlenas to a header of its own. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* PostgreSQL 16 introduced soft errors, which a caller can receive as a value. */
#if PG_VERSION_NUM >= 160000
#define sf_soft_error(fcinfo, result, ...) ereturn((fcinfo)->context, (result), __VA_ARGS__)
#else
#define sf_soft_error(fcinfo, result, ...) ereport(ERROR, __VA_ARGS__)
#endif

/* 19 renamed a type (access/xlogdefs.h). */
#if PG_VERSION_NUM < 190000
#define ReplOriginId RepOriginId
#endif

/* 20 renamed the comparator of sort keys. */
#if PG_VERSION_NUM < 200000
#define ssup_datum_uint64_cmp ssup_datum_unsigned_cmp
#endif

/*
 * The relations in a tree of joins; 16 distinguishes two kinds of joins that could be included
 * (optimizer/prep.h).
 */
#if PG_VERSION_NUM >= 160000
#define sf_relids_in_jointree(node)	get_relids_in_jointree((node), false, false)
#else
#define sf_relids_in_jointree(node)	get_relids_in_jointree((node), false)
#endif

/* pg_noreturn, before the declaration of a function that does not return, exists since 18. */
#ifndef pg_noreturn
#ifdef __GNUC__
#define pg_noreturn __attribute__((noreturn))
#else
#define pg_noreturn
#endif
#endif

/* The lease is kept in memory that children inherit by fork (state/postmaster_memory.c). */
#ifdef EXEC_BACKEND
#error "snowflake needs processes that are made by fork()"
#endif

/* 18 reports name and version of a module in pg_get_loaded_modules(). */
#if PG_VERSION_NUM >= 180000
#define SF_MODULE_MAGIC(name_, version_) \
	PG_MODULE_MAGIC_EXT(.name = (name_), .version = (version_))
#else
#define SF_MODULE_MAGIC(name_, version_) PG_MODULE_MAGIC
#endif

/*
 * The number of this process among all, from 0 and, in a backend, below MaxBackends
 * (storage/proc.h).
 */
#if PG_VERSION_NUM >= 170000
#define sf_my_proc_number()	MyProcNumber
#else
#define sf_my_proc_number()	(MyProc->pgprocno)
#endif

/*
 * Whether a lock belongs to a prepared transaction of an earlier run of the server, and the xid of
 * that transaction.
 */
#if PG_VERSION_NUM >= 170000
#define sf_lock_is_recovered(lock) \
	((lock)->pid == 0 && (lock)->vxid.procNumber == INVALID_PROC_NUMBER)
#define sf_lock_local_xid(lock)		((lock)->vxid.localTransactionId)
#else
#define sf_lock_is_recovered(lock) \
	((lock)->pid == 0 && (lock)->backend == InvalidBackendId)
#define sf_lock_local_xid(lock)		((lock)->lxid)
#endif

/* The planner hook of 19 also receives the state of EXPLAIN. */
#if PG_VERSION_NUM >= 190000
#define SF_PLANNER_HOOK_ARGS \
	Query *query, const char *query_string, int cursor_options, ParamListInfo parameters, \
	struct ExplainState *explain
#define SF_PLANNER_HOOK_PASS		query, query_string, cursor_options, parameters, explain
#else
#define SF_PLANNER_HOOK_ARGS \
	Query *query, const char *query_string, int cursor_options, ParamListInfo parameters
#define SF_PLANNER_HOOK_PASS		query, query_string, cursor_options, parameters
#endif

/* The limit on replication origins with progress is a setting of its own since 18. */
#if PG_VERSION_NUM >= 180000
#define SF_MAX_ORIGINS_NAME	"max_active_replication_origins"
#else
#define SF_MAX_ORIGINS_NAME	"max_replication_slots"
#endif
extern int	sf_max_origins(void);

/*
 * The planner's hook for each relation of a query, after its indexes have been read
 * (optimizer/plancat.h).  19 calls another one, which is also called for subqueries
 * (optimizer/pathnode.h).
 */
#if PG_VERSION_NUM >= 190000
#define sf_relation_hook		build_simple_rel_hook
#define sf_relation_hook_type	build_simple_rel_hook_type
#define SF_RELATION_HOOK_ARGS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define SF_RELATION_HOOK_PASS	root, rel, rte
#else
#define sf_relation_hook		get_relation_info_hook
#define sf_relation_hook_type	get_relation_info_hook_type
#define SF_RELATION_HOOK_ARGS	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define SF_RELATION_HOOK_PASS	root, relid, inhparent, rel
#endif

/*
 * An expression of the topmost parent of a relation as one of the relation
 * (optimizer/appendinfo.h).
 */
#if PG_VERSION_NUM >= 160000
#define sf_translate_to_child(root, node, rel) \
	adjust_appendrel_attrs_multilevel((root), (node), (rel), (rel)->top_parent)
#else
#define sf_translate_to_child(root, node, rel) \
	adjust_appendrel_attrs_multilevel((root), (node), (rel)->relids, (rel)->top_parent_relids)
#endif

/* The direction of a sort key, whose name 18 changed (nodes/pathnodes.h). */
#if PG_VERSION_NUM >= 180000
#define sf_direction(key)	((key)->pk_cmptype)
#else
#define sf_direction(key)	((key)->pk_strategy)
#endif

/*
 * Whether the rows of a B-tree come in its order if it is searched for the elements of an array by
 * a key other than the first.
 */
#define SF_ARRAYS_KEEP_ORDER	(PG_VERSION_NUM >= 170000)

/* The configuration file that has set a setting; NULL if none has. */
extern const char *sf_setting_file(const char *name);

/*
 * Memory for the value that a check hook passes to an assign hook, which PostgreSQL frees; NULL if
 * there is none.
 */
extern void *sf_setting_alloc(size_t size);

/* The number of a wait event with a name. */
extern uint32 sf_named_wait_event(const char *name);

#endif							/* SF_COMPAT_H */
