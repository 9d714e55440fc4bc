/*
 * snapshot.h
 *	  The order of snapshots, what a snapshot sees, and the horizons that are known for snapshots.
 *
 * README.md in this directory proves the order.  A snapshot here is one that was taken by this
 * server, not in recovery, and by the session of this process in its current transaction.
 */
#ifndef SF_SNAPSHOT_H
#define SF_SNAPSHOT_H

#include "postgres.h"

#include "access/transam.h"
#include "utils/snapshot.h"

/*
 * The place of a snapshot among all snapshots of the server.  The same transactions have ended for
 * two snapshots of the same place.
 */
typedef struct SfPlace
{
	uint64		xmax;			/* a full xid: one more than the greatest one
								 * that has ended */
	uint64		running;		/* transactions below xmax that have not ended */
} SfPlace;

/*
 * The place of a snapshot, and the place of a snapshot that is taken now.  They raise
 * out_of_memory.
 */
extern SfPlace sf_place_of(Snapshot snapshot);
extern SfPlace sf_place_now(void);

/* Whether a transaction with a full xid has not ended for a snapshot; 0 is no transaction. */
extern bool sf_snapshot_lacks(Snapshot snapshot, SfPlace place, uint64 xid);

/* The full xid of an xid that a snapshot contains, or whose transaction is in progress. */
extern FullTransactionId sf_full_xid(TransactionId xid);

/*
 * The horizons that are known in a database; new memory is all 0.  They are numbered from 1, and
 * each is in the level that is the number of zeros at the end of its number.  So a level reaches
 * back twice as far as the one before.  The last eight are all kept, and for a snapshot that is k
 * horizons old, one that is about 2 k old at most.
 */
#define SF_KNOWN_LEVELS		16
#define SF_KNOWN_ENTRIES	4

/* A horizon that was computed before a snapshot of this place was taken. */
typedef struct SfKnown
{
	SfPlace		place;			/* its xmax is 0 if the entry is free */
	int64		horizon;
} SfKnown;

typedef struct SfKnownHorizons
{
	uint64		count;
	SfKnown		entries[SF_KNOWN_LEVELS * SF_KNOWN_ENTRIES];
} SfKnownHorizons;

/* Add a horizon, unless it is not greater than the last one. */
extern void sf_known_add(SfKnownHorizons *known, SfPlace place, int64 horizon);

/* The greatest horizon that was known when a snapshot was taken, or PG_INT64_MIN. */
extern int64 sf_known_at(const SfKnownHorizons *known, SfPlace place);

#endif							/* SF_SNAPSHOT_H */
