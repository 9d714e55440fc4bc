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

/* The size of the shared memory, and the memory, which is new or has been initialized. */
extern Size sf_prepared_size(void);
extern void sf_prepared_init(void *memory);
extern void sf_prepared_attach(void *memory);

/*
 * Take the lock by which the first ID of this transaction survives with the transaction when it is
 * prepared.  Raises out_of_memory if the lock table is full.
 */
extern void sf_prepared_lock(int64 first);

/* Add this transaction, before it is prepared.  The lock of the horizon is held. */
extern void sf_prepared_add(FullTransactionId xid, int64 first, TimestampTz since);

/*
 * The first of the entries from an index on whose transaction has not ended, or NULL after the
 * last one; moves the index past it.  Entries of transactions that have ended are made free.  The
 * lock of the horizon is held exclusively.  Before the first call sf_prepared_recover is called.
 */
extern const SfPrepared *sf_prepared_next(int *index);

/*
 * Add the transactions that were prepared before this run of the server, if that has not been
 * done.  During recovery they are not known.  The lock of the horizon is held exclusively.  Raises
 * out_of_memory.
 */
extern void sf_prepared_recover(void);

#endif							/* SF_PREPARED_H */
