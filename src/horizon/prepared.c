/*
 * prepared.c
 *	  Prepared transactions that hold the horizon back.
 *
 * A transaction that is prepared leaves its session.  It may be committed by another session, or
 * after a restart of the server, or by a standby that was promoted; no callback reports that.  So
 * two things are kept for it:
 *
 * - A lock.  Before the transaction is prepared it takes a share lock of the kind of advisory
 *	 locks, whose tag consists of the database, the first ID, and a class that no SQL function
 *	 can lock.  PostgreSQL keeps the locks of a prepared transaction in its state file and in WAL,
 *	 and takes them again after a restart and at a promotion.
 * - An entry in shared memory, so that readers need not search the table of locks.  It holds the
 *	 horizon back as long as its transaction is in progress.  Then it remains until another one
 *	 needs it, since snapshots may exist for which the transaction has not ended.  A transaction
 *	 whose preparation fails ends as well.
 *
 * In each run of the server the first reader after recovery adds the transactions that were
 * prepared in earlier ones, from the table of locks.  Their locks are held by dummy processes
 * that have no process ID, and whose local transaction ID is the xid.  A transaction that is
 * prepared in this run has its entry already.
 *
 * An entry is added before the transaction is prepared, while the session's slot still has the
 * ID; the slot is cleared afterwards.  A reader looks at the slots first and then at the entries,
 * so it sees the ID in at least one of the two.  The transaction has an xid by then, and is in
 * progress.
 *
 * There is an entry for each transaction that can be prepared, and for each session that may be
 * about to prepare one, so a free entry always exists.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/procarray.h"

#include "compat.h"
#include "horizon/prepared.h"

/* In the fourth field of the tag; SQL functions use 1 and 2. */
#define LOCK_CLASS	0x5346

typedef struct PreparedState
{
	bool		recovered;		/* whether those of earlier runs are entered */
	uint64		lost;			/* a full xid: transactions without an entry
								 * have ended for each snapshot whose xmax is
								 * above it */
	SfHorizonHolder entries[FLEXIBLE_ARRAY_MEMBER];
} PreparedState;

static PreparedState *prepared = NULL;

static int
entry_count(void)
{
	return max_prepared_xacts + MaxBackends;
}

Size
sf_prepared_size(void)
{
	return offsetof(PreparedState, entries) + (Size) entry_count() * sizeof(SfHorizonHolder);
}

void
sf_prepared_attach(void *memory)
{
	prepared = memory;
}

void
sf_prepared_lock(int64 first)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) ((uint64) first >> 32), (uint32) first,
						 LOCK_CLASS);
	(void) LockAcquire(&tag, ShareLock, false, false);
}

/* A full xid above the xids of all transactions that have ended. */
static uint64
next_xid(void)
{
	return U64FromFullTransactionId(ReadNextFullTransactionId());
}

/*
 * Whether the transaction of an entry has ended.  A transaction whose xid is half of all xids
 * behind the next one cannot be in progress, and its xid may have been assigned to another one
 * since.
 */
static bool
has_ended(SfHorizonHolder *entry)
{
	if (entry->ended == 0 &&
		(next_xid() - U64FromFullTransactionId(entry->xid) >= UINT64CONST(1) << 31 ||
		 !TransactionIdIsInProgress(XidFromFullTransactionId(entry->xid))))
		entry->ended = next_xid();
	return entry->ended != 0;
}

/* A free entry, or the entry of the transaction that has ended first, as far as that is known. */
static SfHorizonHolder *
free_entry(void)
{
	SfHorizonHolder *ended = NULL;

	for (int i = 0; i < entry_count(); i++)
	{
		SfHorizonHolder *entry = &prepared->entries[i];

		if (!FullTransactionIdIsValid(entry->xid))
			return entry;
		if (has_ended(entry) && (ended == NULL || entry->ended < ended->ended))
			ended = entry;
	}
	if (ended == NULL)
		elog(ERROR, "no entry is free for a prepared transaction");
	prepared->lost = Max(prepared->lost, ended->ended);
	return ended;
}

void
sf_prepared_add(FullTransactionId xid, Oid database, int64 first)
{
	SfHorizonHolder *entry = free_entry();

	entry->xid = xid;
	entry->database = database;
	entry->first = first;
	entry->ended = 0;
}

const SfHorizonHolder *
sf_prepared_next(int *index)
{
	while (*index < entry_count())
	{
		SfHorizonHolder *entry = &prepared->entries[(*index)++];

		if (FullTransactionIdIsValid(entry->xid) && !has_ended(entry))
			return entry;
	}
	return NULL;
}

int64
sf_prepared_least_unseen(Oid database, Snapshot snapshot, SfPlace place)
{
	int64		least = PG_INT64_MAX;

	if (place.xmax <= prepared->lost)
		return PG_INT64_MIN;
	for (int i = 0; i < entry_count(); i++)
	{
		const SfHorizonHolder *entry = &prepared->entries[i];

		if (entry->database == database &&
			sf_snapshot_lacks(snapshot, place, U64FromFullTransactionId(entry->xid)))
			least = Min(least, entry->first);
	}
	return least;
}

LockData *
sf_prepared_find_locks(void)
{
	if (prepared->recovered || RecoveryInProgress())
		return NULL;
	return GetLockStatusData();
}

/*
 * A transaction that has ended since its lock was found gets an entry as well.  Those that have
 * ended before have none.
 */
void
sf_prepared_recover(const LockData *locks)
{
	if (locks == NULL || prepared->recovered)
		return;
	for (int i = 0; i < locks->nelements; i++)
	{
		const LockInstanceData *lock = &locks->locks[i];
		const LOCKTAG *tag = &lock->locktag;

		if (tag->locktag_type == LOCKTAG_ADVISORY && tag->locktag_field4 == LOCK_CLASS &&
			sf_lock_is_recovered(lock))
			sf_prepared_add(sf_full_xid(sf_lock_local_xid(lock)), (Oid) tag->locktag_field1,
							(int64) ((uint64) tag->locktag_field2 << 32 | tag->locktag_field3));
	}
	if (max_prepared_xacts > 0)
		prepared->lost = next_xid();
	prepared->recovered = true;
}
