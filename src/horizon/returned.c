/*
 * returned.c
 *	  The horizons that were returned, and the greatest of each database.
 *
 * The caller holds the lock of the horizon, or opens the generator.
 *
 * The table has a fixed size.  A database that has no entry gets the least recently used one, and
 * the horizon of that entry becomes a bound for all databases that get an entry afterwards.  So a
 * server that returns horizons in more databases than there are entries can return a lower horizon
 * than before, for a moment; but a bound of the horizons that readers may have used is always
 * available.
 */
#include "postgres.h"

#include "horizon/returned.h"

void
sf_returned_init(SfReturnedTable *table)
{
	table->bound = PG_INT64_MIN;
}

void
sf_returned_raise_bound(SfReturnedTable *table, int64 bound)
{
	table->bound = Max(table->bound, bound);
}

SfKnownHorizons *
sf_returned_known(SfReturnedTable *table, const SfReturned *entry)
{
	return &table->known[entry - table->entries];
}

static SfReturned *
find_returned(SfReturnedTable *table, Oid database)
{
	for (int i = 0; i < SF_RETURNED_ENTRIES; i++)
		if (table->entries[i].database == database)
			return &table->entries[i];
	return NULL;
}

static SfReturned *
oldest_returned(SfReturnedTable *table)
{
	SfReturned *entry = &table->entries[0];

	for (int i = 1; i < SF_RETURNED_ENTRIES; i++)
		if (table->entries[i].used < entry->used)
			entry = &table->entries[i];
	return entry;
}

/* Give an entry to a database. */
static SfReturned *
assign_returned(SfReturnedTable *table, Oid database)
{
	SfReturned *entry = oldest_returned(table);

	if (OidIsValid(entry->database))
		sf_returned_raise_bound(table, entry->horizon);
	entry->database = database;
	entry->horizon = PG_INT64_MIN;
	entry->bound = table->bound;
	memset(sf_returned_known(table, entry), 0, sizeof(SfKnownHorizons));
	return entry;
}

SfReturned *
sf_returned_use(SfReturnedTable *table, Oid database)
{
	SfReturned *entry = find_returned(table, database);

	if (entry == NULL)
		entry = assign_returned(table, database);
	entry->used = ++table->calls;
	return entry;
}

int64
sf_returned_bound(SfReturnedTable *table, Oid database)
{
	const SfReturned *entry = find_returned(table, database);

	return entry ? Max(entry->horizon, entry->bound) : table->bound;
}

int64
sf_returned_greatest(const SfReturnedTable *table)
{
	int64		greatest = table->bound;

	for (int i = 0; i < SF_RETURNED_ENTRIES; i++)
		if (OidIsValid(table->entries[i].database))
			greatest = Max(greatest, table->entries[i].horizon);
	return greatest;
}
