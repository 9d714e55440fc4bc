/*
 * 012_hooks.c
 *	  A library that notes which of its hooks for paths were called.  Libraries that are loaded after it have to call them.
 */
#include "postgres.h"

#include "fmgr.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static int	called = 0;

static void
note_paths(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	called |= 1;
}

static void
note_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
				 RelOptInfo *output, void *extra)
{
	called |= 2;
}

void
_PG_init(void)
{
	DefineCustomIntVariable("hooks.called", "Adds 1 for a relation, and 2 for a query.", NULL,
							&called, 0, 0, 3, PGC_INTERNAL, 0, NULL, NULL, NULL);
	set_rel_pathlist_hook = note_paths;
	create_upper_paths_hook = note_upper_paths;
}
