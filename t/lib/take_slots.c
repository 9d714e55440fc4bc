/*
 * take_slots.c
 *	  A library that imitates other sessions: it takes slots for replication origins between the
 *	  two steps of CREATE EXTENSION snowflake that count the slots and take them.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "fmgr.h"
#include "replication/origin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static object_access_hook_type prev_hook = NULL;
static int	slots = 0;

static void
take_slots(ObjectAccessType access, Oid class, Oid object, int column, void *argument)
{
	const char *name = access == OAT_FUNCTION_EXECUTE ? get_func_name(object) : NULL;

	if (prev_hook)
		prev_hook(access, class, object, column, argument);
	if (name == NULL || strcmp(name, "snowflake_create_state") != 0)
		return;
	for (int i = 0; i < slots; i++)
		replorigin_advance(1000 + i, 1, InvalidXLogRecPtr, false, true);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("take_slots.slots", "Sets the number of slots to take.", NULL,
							&slots, 0, 0, 100, PGC_SUSET, 0, NULL, NULL, NULL);
	prev_hook = object_access_hook;
	object_access_hook = take_slots;
}
