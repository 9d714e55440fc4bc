/*
 * replace_hook.c
 *	  A library that requests shared memory without calling the hooks of earlier libraries: that for
 *	  the request, or, if replace_hook.startup is on, that for the start.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static bool startup = false;

static void
do_nothing(void)
{
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("replace_hook.startup", "Sets which hook is replaced.", NULL,
							 &startup, false, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	if (startup)
		shmem_startup_hook = do_nothing;
	else
		shmem_request_hook = do_nothing;
}
