/*
 * prepared.h
 *	  Prepared transactions that hold the horizon back.
 */
#ifndef SF_PREPARED_H
#define SF_PREPARED_H

#include "postgres.h"

#include "access/transam.h"
#include "storage/lock.h"
#include "utils/timestamp.h"

#include "horizon/snapshot.h"

/*
 * A transaction that holds the horizon back: one that has issued IDs, and is open, prepared, or
 * about to be prepared.
 */
typedef struct SfHorizonHolder
{
	FullTransactionId xid;		/* if it is prepared, or about to be.  An
								 * entry without it is free */
	Oid			database;
	Oid			role;			/* of a session; otherwise InvalidOid */
	int			pid;			/* of a session; otherwise 0 */
	int64		first;			/* the first ID that it may have issued */
	uint64		ended;			/* if it was prepared, and has ended: a full
								 * xid; each snapshot whose xmax is above it
								 * sees that */
} SfHorizonHolder;

/* The size of the shared memory, and its use.  New memory is all 0. */
extern Size sf_prepared_size(void);
extern void sf_prepared_attach(void *memory);

/*
 * Take the lock that keeps the first ID of this transaction when the transaction is prepared.
 * Raises out_of_memory if the lock table is full.
 */
extern void sf_prepared_lock(int64 first);

/* Add a transaction of this session, before it is prepared.  The lock of the horizon is held. */
extern void sf_prepared_add(FullTransactionId xid, Oid database, int64 first);

/*
 * The first entry, from an index on, whose transaction has not ended, or NULL after the last one;
 * moves the index past the entry.  The lock of the horizon is held, and sf_prepared_recover was
 * called under it.
 */
extern const SfHorizonHolder *sf_prepared_next(int *index);

/*
 * The least first ID of the transactions of a database that were prepared, and have not ended for a
 * snapshot; PG_INT64_MAX if there is none, PG_INT64_MIN if that is not known.  Called as
 * sf_prepared_next.
 */
extern int64 sf_prepared_least_unseen(Oid database, Snapshot snapshot, SfPlace place);

/*
 * Find the locks of transactions that were prepared before this run of the server.  NULL if these
 * transactions have entries already, and during recovery, in which they are unknown.  Called before
 * the lock of the horizon is taken, since it raises out_of_memory.
 */
extern LockData *sf_prepared_find_locks(void);

/* Add these transactions, if that has not been done.  The lock of the horizon is held. */
extern void sf_prepared_recover(const LockData *locks);

#endif							/* SF_PREPARED_H */
