/*
 * 012_hooks.c
 *	  A library that counts the calls to its hooks for paths, which libraries that are loaded after it have to call.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static int	paths = 0;
static int	upper_paths = 0;

static void
count_paths(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	paths++;
}

static void
count_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
				  RelOptInfo *output, void *extra)
{
	upper_paths++;
}

static void
count_in(const char *setting, int *counter)
{
	DefineCustomIntVariable(setting, "Counts calls.", NULL,
							counter, 0, 0, INT_MAX, PGC_INTERNAL, 0, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	count_in("hooks.paths", &paths);
	count_in("hooks.upper_paths", &upper_paths);
	set_rel_pathlist_hook = count_paths;
	create_upper_paths_hook = count_upper_paths;
}
