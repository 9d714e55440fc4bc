/*
 * returned.h
 *	  The horizons that were returned, the greatest of each database.
 */
#ifndef SF_RETURNED_H
#define SF_RETURNED_H

#include "postgres.h"

/* The number of databases that have an entry. */
#define SF_RETURNED_ENTRIES	256

typedef struct SfReturned
{
	Oid			database;		/* InvalidOid if the entry is free */
	int64		horizon;
	int64		bound;			/* bound of the table when the entry was
								 * assigned */
	uint64		used;			/* time of the last use, counted in calls */
} SfReturned;

/* In shared memory; protected by a lock of the caller. */
typedef struct SfReturnedTable
{
	uint64		calls;
	int64		bound;			/* not below any horizon that was returned in
								 * a database without an entry */
	SfReturned	entries[SF_RETURNED_ENTRIES];
} SfReturnedTable;

/* Make an empty table, in new memory. */
extern void sf_returned_init(SfReturnedTable *table);

/* A bound of the horizons that may have been returned in a database, at any time. */
extern int64 sf_returned_bound(SfReturnedTable *table, Oid database);

/*
 * Note a horizon that is about to be returned.  Returns the greatest horizon that was noted for its
 * database.
 */
extern int64 sf_returned_note(SfReturnedTable *table, Oid database, int64 horizon);

/* Note that horizons up to this one may have been returned, in any database. */
extern void sf_returned_raise_bound(SfReturnedTable *table, int64 horizon);

/*
 * Forget the horizons above a given one.  Returns the greatest of them, or the given one if there
 * was none above it.
 */
extern int64 sf_returned_forget_above(SfReturnedTable *table, int64 horizon);

#endif							/* SF_RETURNED_H */
