/*
 * returned.c
 *	  The horizons that were returned, the greatest of each database.
 *
 * The table has a fixed size.  A database that has no entry gets the least recently used one, and
 * the horizon of that entry becomes a bound for all databases that get an entry afterwards.  So a
 * server that returns horizons in more databases than there are entries can return a lower horizon
 * than before, for a moment; but a bound of the horizons that readers may have used is always
 * available.
 */
#include "postgres.h"

#include "state/returned.h"

void
sf_returned_init(SfReturnedTable *table)
{
	memset(table, 0, sizeof(*table));
	table->bound = PG_INT64_MIN;
}

static SfReturned *
find(SfReturnedTable *table, Oid database)
{
	for (int i = 0; i < SF_RETURNED_ENTRIES; i++)
		if (table->entries[i].database == database)
			return &table->entries[i];
	return NULL;
}

static SfReturned *
oldest(SfReturnedTable *table)
{
	SfReturned *entry = &table->entries[0];

	for (int i = 1; i < SF_RETURNED_ENTRIES; i++)
		if (table->entries[i].used < entry->used)
			entry = &table->entries[i];
	return entry;
}

/* Give an entry to a database. */
static SfReturned *
assign(SfReturnedTable *table, Oid database)
{
	SfReturned *entry = oldest(table);

	if (OidIsValid(entry->database))
		sf_returned_raise_bound(table, entry->horizon);
	entry->database = database;
	entry->horizon = PG_INT64_MIN;
	entry->bound = table->bound;
	return entry;
}

int64
sf_returned_bound(SfReturnedTable *table, Oid database)
{
	const SfReturned *entry = find(table, database);

	return entry ? Max(entry->horizon, entry->bound) : table->bound;
}

int64
sf_returned_note(SfReturnedTable *table, Oid database, int64 horizon)
{
	SfReturned *entry = find(table, database);

	if (entry == NULL)
		entry = assign(table, database);
	entry->used = ++table->calls;
	entry->horizon = Max(entry->horizon, horizon);
	return entry->horizon;
}

void
sf_returned_raise_bound(SfReturnedTable *table, int64 horizon)
{
	table->bound = Max(table->bound, horizon);
}

int64
sf_returned_forget_above(SfReturnedTable *table, int64 horizon)
{
	int64		greatest = Max(horizon, table->bound);

	for (int i = 0; i < SF_RETURNED_ENTRIES; i++)
	{
		SfReturned *entry = &table->entries[i];

		if (!OidIsValid(entry->database))
			continue;
		greatest = Max(greatest, entry->horizon);
		entry->horizon = Min(entry->horizon, horizon);
		entry->bound = Min(entry->bound, horizon);
	}
	table->bound = Min(table->bound, horizon);
	return greatest;
}
