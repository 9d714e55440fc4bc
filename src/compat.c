/*
 * compat.c
 *	  Functions that differ between versions of PostgreSQL.
 */
#include "postgres.h"

#include "replication/origin.h"
#include "replication/slot.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"

#include "compat.h"

int
sf_max_origins(void)
{
#if PG_VERSION_NUM >= 180000
	return max_active_replication_origins;
#else
	return max_replication_slots;
#endif
}

/* 16 made the look-up public. */
const char *
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

/* 16 introduced an allocator for it. */
void *
sf_setting_alloc(size_t size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

/* The wait events of extensions have names since 17. */
uint32
sf_named_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}
