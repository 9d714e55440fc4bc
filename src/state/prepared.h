/*
 * prepared.h
 *	  Prepared transactions that hold the horizon back.
 */
#ifndef SF_PREPARED_H
#define SF_PREPARED_H

#include "postgres.h"

#include "access/transam.h"
#include "utils/timestamp.h"

/* A prepared transaction that has issued IDs, or one that is about to be prepared. */
typedef struct SfPrepared
{
	FullTransactionId xid;		/* InvalidFullTransactionId: this entry is
								 * free */
	Oid			database;
	int64		first;			/* the first ID that it may have issued */
	TimestampTz since;			/* 0 if unknown */
} SfPrepared;

/* The size of the shared memory; initialize it; and use memory that was initialized before. */
extern Size sf_prepared_size(void);
extern void sf_prepared_init(void *memory);
extern void sf_prepared_attach(void *memory);

/*
 * Take the lock that keeps the first ID of this transaction when the transaction is prepared.
 * Raises out_of_memory if the lock table is full.
 */
extern void sf_prepared_lock(int64 first);

/* Add this transaction, before it is prepared.  The lock of the horizon is held. */
extern void sf_prepared_add(FullTransactionId xid, int64 first, TimestampTz since);

/*
 * The first entry, from an index on, whose transaction has not ended, or NULL after the last one;
 * moves the index past the entry.  Entries of transactions that have ended are freed.  The lock of
 * the horizon is held exclusively.  sf_prepared_recover must be called before the first call.
 */
extern const SfPrepared *sf_prepared_next(int *index);

/*
 * Add the transactions that were prepared before this run of the server, if that has not been
 * done.  During recovery these transactions are unknown.  The lock of the horizon is held
 * exclusively.  Raises out_of_memory.
 */
extern void sf_prepared_recover(void);

#endif							/* SF_PREPARED_H */
