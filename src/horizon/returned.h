/*
 * returned.h
 *	  The horizons that were returned, and the greatest of each database.
 */
#ifndef SF_RETURNED_H
#define SF_RETURNED_H

#include "postgres.h"

#include "horizon/snapshot.h"

/* The number of databases whose horizons are kept. */
#define SF_RETURNED_ENTRIES	256

typedef struct SfReturned
{
	Oid			database;		/* InvalidOid if the entry is free */
	int64		horizon;		/* the greatest that was returned */
	int64		bound;			/* bound of the table when the entry was
								 * assigned */
	uint64		used;			/* time of the last use, counted in calls */
} SfReturned;

typedef struct SfReturnedTable
{
	uint64		calls;
	int64		bound;			/* not below any horizon that was returned in
								 * a database without an entry */
	SfReturned	entries[SF_RETURNED_ENTRIES];
	SfKnownHorizons known[SF_RETURNED_ENTRIES];
} SfReturnedTable;

/* Make a table in memory that is all 0. */
extern void sf_returned_init(SfReturnedTable *table);

/* Note that horizons up to this one may have been returned, in any database. */
extern void sf_returned_raise_bound(SfReturnedTable *table, int64 bound);

/*
 * The entry of a database, which is created if it does not exist; and the horizons of its
 * snapshots.
 */
extern SfReturned *sf_returned_use(SfReturnedTable *table, Oid database);
extern SfKnownHorizons *sf_returned_known(SfReturnedTable *table, const SfReturned *entry);

/* A bound of the horizons that may have been returned in a database, at any time; and in any. */
extern int64 sf_returned_bound(SfReturnedTable *table, Oid database);
extern int64 sf_returned_greatest(const SfReturnedTable *table);

#endif							/* SF_RETURNED_H */
