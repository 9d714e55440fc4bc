/*
 * compat.h
 *	  Differences between versions of PostgreSQL; no other file depends on the version.
 *
 * Each function has the form of the newest version, so callers need no conditions.
 */
#ifndef SF_COMPAT_H
#define SF_COMPAT_H

#include "postgres.h"
#include "catalog/pg_proc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/prep.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"

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
#include "nodes/miscnodes.h"
#define sf_soft_error(fcinfo, result, ...) ereturn((fcinfo)->context, (result), __VA_ARGS__)
#else
#define sf_soft_error(fcinfo, result, ...) ereport(ERROR, __VA_ARGS__)
#endif

/* 19 renamed a type. */
#if PG_VERSION_NUM < 190000
typedef RepOriginId ReplOriginId;
#endif

/* 20 renamed the comparator of sort keys. */
#if PG_VERSION_NUM < 200000
#define ssup_datum_uint64_cmp ssup_datum_unsigned_cmp
#endif

/* The relations in a tree of joins; 16 distinguishes two kinds of joins that could be included. */
static inline Relids
sf_relids_in_jointree(Node *node)
{
#if PG_VERSION_NUM >= 160000
	return get_relids_in_jointree(node, false, false);
#else
	return get_relids_in_jointree(node, false);
#endif
}

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

/* The number of this process among all, from 0 and, in a backend, below MaxBackends. */
#if PG_VERSION_NUM >= 170000
#define sf_my_proc_number()	MyProcNumber
#else
#define sf_my_proc_number()	(MyProc->pgprocno)
#endif

/*
 * Whether a lock is that of a prepared transaction of an earlier run of the server, and the xid of
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
#define sf_max_origins()	max_active_replication_origins
#else
#define SF_MAX_ORIGINS_NAME	"max_replication_slots"
#define sf_max_origins()	max_replication_slots
#endif

/*
 * The planner's hook for each relation of a query, after its indexes have been read.  19 calls
 * another one, which is also called for subqueries.
 */
#if PG_VERSION_NUM >= 190000
#define sf_relation_hook		build_simple_rel_hook
typedef build_simple_rel_hook_type sf_relation_hook_type;
#define SF_RELATION_HOOK_ARGS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define SF_RELATION_HOOK_PASS	root, rel, rte
#else
#define sf_relation_hook		get_relation_info_hook
typedef get_relation_info_hook_type sf_relation_hook_type;
#define SF_RELATION_HOOK_ARGS	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define SF_RELATION_HOOK_PASS	root, relid, inhparent, rel
#endif

/* Since 18 a sort key states whether it is descending. */
static inline void
sf_set_descending(SortGroupClause *key, bool descending)
{
#if PG_VERSION_NUM >= 180000
	key->reverse_sort = descending;
#endif
}

/* The configuration file that has set a setting; NULL if none has.  16 made the look-up public. */
static inline const char *
sf_setting_file(const char *name)
{
#if PG_VERSION_NUM >= 160000
	struct config_generic *setting = find_option(name, false, true, ERROR);

	return setting == NULL ? NULL : setting->sourcefile;
#else
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (strcmp(settings[i]->name, name) == 0)
			return settings[i]->sourcefile;
	return NULL;
#endif
}

/* The wait events of extensions have names since 17. */
static inline uint32
sf_named_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}

#endif							/* SF_COMPAT_H */
