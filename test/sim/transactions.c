/*
 * transactions.c
 *	  Transactions: their steps in PostgreSQL's order, prepared ones, and the locks of these.
 *
 * A transaction is a list of the IDs of its rows.  It has a transaction ID from its first row on.
 * In each run transaction IDs pass 2^32.
 */
#include "world.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "storage/procarray.h"

#define TRANSACTIONS	1024

static Transaction transactions[TRANSACTIONS];
static int	next = 0;			/* the number of transactions */
static int	next_completed = 0; /* one more than the last that has ended */
static uint64 first_xid;
int64		ends;
int64		released_at;
int64		finished_at;
static OF_PROCESS Transaction *mine = NULL;
static OF_PROCESS Transaction *ending = NULL;	/* until all callbacks were
												 * called */

ResourceOwner CurrentResourceOwner OF_PROCESS = NULL;
ResourceOwner TopTransactionResourceOwner OF_PROCESS = NULL;
XLogRecPtr	XactLastRecEnd OF_PROCESS = 0;
int			max_prepared_xacts = 8;

/* transam.h: 0 to 2 are no xids of transactions. */
static uint64
full_xid(int64 number)
{
	uint64		xid = first_xid + (uint64) number;

	return xid >> 32 ? xid + FirstNormalTransactionId : xid;
}

static uint32
xid_of(const Transaction *transaction)
{
	return (uint32) full_xid(transaction - transactions);
}

RETURNS(uint32, mine ? xid_of(mine) : 0, my_xid, void);

Transaction *
next_transaction(Transaction *before)
{
	Transaction *after = before ? before + 1 : transactions;

	return after < transactions + next ? after : NULL;
}

/* procarray.c: a transaction ends for all snapshots that are taken later. */
static void
leave_array(Transaction *t, TransactionState state)
{
	t->state = state;
	t->ended = ++ends;
	next_completed = Max(next_completed, (int) (t - transactions) + 1);
}

static Process *object_holder;	/* see LockSharedObject */

/* All at the begin of a run; otherwise the transactions that have not ended. */
void
forget_transactions(bool all)
{
	object_holder = NULL;
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		if (t->state <= IN_DOUBT)
			leave_array(t, GONE);
	next_completed = next;
	if (!all)
		return;
	next = next_completed = 0;
	ends = 0;
	first_xid = (UINT64CONST(1) << 32) - 1 - (uint64) below(20);
}

bool
transactions_open(void)
{
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		if (t->state == OPEN)
			return true;
	return false;
}

/* varsup.c: a transaction ID is in the process array before it is returned. */
static Transaction *
assign_xid(void)
{
	if (mine == NULL)
	{
		if (next >= TRANSACTIONS)
			fail("the simulation has no transaction IDs left");
		mine = &transactions[next++];
		memset(mine, 0, sizeof(*mine));
		mine->database = (int) MyDatabaseId;
	}
	return mine;
}

/* xact.c, and varsup.c */
static FullTransactionId
full(const Transaction *t)
{
	FullTransactionId none = {0};

	return t ? (FullTransactionId)
	{
		full_xid(t - transactions)
	} : none;
}

RETURNS(FullTransactionId, full(assign_xid()), GetTopFullTransactionId, void);
RETURNS(FullTransactionId, full(mine ? mine : ending), GetTopFullTransactionIdIfAny, void);
RETURNS(FullTransactionId, full(transactions + next), ReadNextFullTransactionId, void);

/* procarray.c: an open transaction, or a prepared one. */
bool
TransactionIdIsInProgress(TransactionId xid)
{
	point();
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		if (xid_of(t) == xid)
			return t->state <= IN_DOUBT;
	return false;
}

/*
 * Snapshots
 */

/*
 * procarray.c: under a lock that each end of a transaction takes as well.  xmax is one more than the
 * greatest xid that has ended.  The transaction of this process is not listed, and one that is
 * being prepared can be listed twice.
 */
Snapshot
GetSnapshotData(Snapshot snapshot)
{
	static TransactionId listed[LISTED];

	point();
	if (snapshot->xip == NULL)
		snapshot->xip = listed;
	snapshot->takenDuringRecovery = in_recovery;
	snapshot->xmax = (TransactionId) full_xid(next_completed);
	snapshot->xmin = snapshot->xmax;
	snapshot->xcnt = 0;
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL && t < transactions + next_completed;)
	{
		if (t->ended == 0 && snapshot->xmin == snapshot->xmax)
			snapshot->xmin = xid_of(t);
		for (int times = t->twice ? 2 : 1; t->ended == 0 && t != mine && times > 0; times--)
		{
			Assert(snapshot->xcnt < LISTED);
			snapshot->xip[snapshot->xcnt++] = xid_of(t);
		}
	}
	return snapshot;
}

static OF_PROCESS Snapshot active = NULL;

RETURNS(bool, active != NULL, ActiveSnapshotSet, void);
RETURNS(Snapshot, active, GetActiveSnapshot, void);

void
take_snapshot(HeldSnapshot *snapshot)
{
	snapshot->data.xip = snapshot->xip;
	(void) GetSnapshotData(&snapshot->data);
	snapshot->ends = ends;
	snapshot->lists_recovered = false;
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		snapshot->lists_recovered |= t->recovered && t->ended == 0;
	trace("snapshot                     xmax %u, %u are open", snapshot->data.xmax, snapshot->data.xcnt);
}

void
push_snapshot(HeldSnapshot *snapshot)
{
	active = &snapshot->data;
}

int64
add_row(int64 id)
{
	Transaction *t = assign_xid();
	int64		lsn = insert_record(RECORD_ROW, (int) xid_of(t), (uint64) id, false);

	if (t->rows < ROWS)
		t->ids[t->rows++] = id;
	trace("row                          %lld, transaction %u", (long long) id, xid_of(t));
	point();
	return lsn;
}

/*
 * Locks of prepared transactions
 */

/*
 * lock.c: kept until the end of the transaction, even if it is prepared; in its state file and
 * WAL.
 */
LockAcquireResult
LockAcquire(const LOCKTAG *tag, LOCKMODE mode, bool session, bool dont_wait)
{
	Transaction *t = assign_xid();

	point();
	t->lock = *tag;
	t->locked = true;
	return LOCKACQUIRE_OK;
}

/*
 * lmgr.c: the lock of one object, until it is released, or the transaction ends.  A process that waits
 * for it serves interrupts.
 */
void
LockSharedObject(Oid class, Oid object, uint16 part, LOCKMODE mode)
{
	point();
	while (object_holder != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		sleep_until(now + 1000);
	}
	object_holder = current;
}

void
UnlockSharedObject(Oid class, Oid object, uint16 part, LOCKMODE mode)
{
	object_holder = NULL;
	point();
}

static void
release_object(void)
{
	if (object_holder == current)
		object_holder = NULL;
}

/*
 * lock.c: a prepared transaction has a dummy process without a process ID.  After a restart its
 * local transaction ID is the xid, and it has no backend (MarkAsPreparingGuts in twophase.c).  The
 * locks are taken again at the end of recovery (RecoverPreparedTransactions).
 */
LockData *
GetLockStatusData(void)
{
	LockData   *data = palloc(sizeof(LockData));

	point();
	data->locks = palloc(sizeof(LockInstanceData) * (Size) (next + 1));
	data->nelements = 0;
	for (Transaction *t = NULL; !in_recovery && (t = next_transaction(t)) != NULL;)
	{
		LockInstanceData *lock = &data->locks[data->nelements];

		if (t->state > IN_DOUBT || !t->locked)
			continue;
		data->nelements++;
		memset(lock, 0, sizeof(*lock));
		lock->locktag = t->lock;
		lock->pid = t->state == IN_DOUBT ? 0 : 100;
#if PG_VERSION_NUM >= 170000
		lock->vxid.procNumber = t->recovered ? INVALID_PROC_NUMBER : 1;
		lock->vxid.localTransactionId = t->recovered ? xid_of(t) : 7;
#else
		lock->backend = t->recovered ? InvalidBackendId : 1;
		lock->lxid = t->recovered ? xid_of(t) : 7;
#endif
	}
	return data;
}

/*
 * Callbacks
 */

static XactCallback xact_callback;
static ResourceReleaseCallback release_callback;
static char owner_of_transaction,
			owner_of_portal;

/* xact.c */
void
RegisterXactCallback(XactCallback callback, void *argument)
{
	xact_callback = callback;
}

/* resowner.c */
void
RegisterResourceReleaseCallback(ResourceReleaseCallback callback, void *argument)
{
	release_callback = callback;
}

/* resowner.c: called in three phases, for portals and subtransactions too. */
static void
release_resources(bool commit, bool top)
{
	TopTransactionResourceOwner = (ResourceOwner) & owner_of_transaction;
	CurrentResourceOwner = (ResourceOwner) (top ? &owner_of_transaction : &owner_of_portal);
	current->releasing = top;
	for (int phase = RESOURCE_RELEASE_BEFORE_LOCKS; phase <= RESOURCE_RELEASE_AFTER_LOCKS; phase++)
		release_callback((ResourceReleasePhase) phase, commit, top, NULL);
	if (top)
		release_object();
	CurrentResourceOwner = TopTransactionResourceOwner;
	current->releasing = false;
	released_at = now;
}

void
end_subtransaction(void)
{
	release_resources(true, false);
}

/* Rows appear when their transaction has left the process array, or when they are committed elsewhere. */
static void
make_visible(Transaction *t)
{
	if (t->ended == 0)
		leave_array(t, VISIBLE);
	t->state = VISIBLE;
	rows_are_visible(t);
}

static void
end_mine(void)
{
	ending = mine;
	mine = NULL;
}

/*
 * xact.c, CommitTransaction: WAL, process array, callbacks, resource owners.  A callback of another
 * extension can commit the rows elsewhere.  They are not covered for snapshots that are taken
 * before.
 */
void
commit_transaction(void)
{
	Transaction *t = mine;
	bool		elsewhere = t != NULL && chance(8);

	xact_callback(XACT_EVENT_PRE_COMMIT, NULL);
	trace("commit                       transaction %u", my_xid());
	if (t != NULL)
	{
		t->commit = insert_record(RECORD_COMMIT, (int) my_xid(), 0, false);
		if (!config.async)
			XLogFlush((XLogRecPtr) t->commit);
		point();
		if (!elsewhere)
			make_visible(t);
		else
			leave_array(t, OPEN);
		end_mine();
	}
	point();
	xact_callback(XACT_EVENT_COMMIT, NULL);
	point();
	if (elsewhere)
	{
		sleep_until(now + below(5000));
		make_visible(t);
	}
	release_resources(true, true);
	ending = NULL;
}

/* xact.c, AbortTransaction: when the error is reported. */
void
abort_transaction(void)
{
	trace("abort                        transaction %u", my_xid());
	release_lwlocks();
	if (mine != NULL)
	{
		insert_record(RECORD_ABORT, (int) my_xid(), 0, false);
		point();
		leave_array(mine, GONE);
		end_mine();
	}
	xact_callback(XACT_EVENT_ABORT, NULL);
	release_resources(false, true);
	ending = NULL;
}

static int
count_prepared(void)
{
	int			count = 0;

	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		count += t->state == IN_DOUBT || (t->state == OPEN && t->preparing);
	return count;
}

/* xact.c, PrepareTransaction, and twophase.c, EndPrepare. */
void
prepare_transaction_of_session(void)
{
	Transaction *t;

	xact_callback(XACT_EVENT_PRE_PREPARE, NULL);
	t = assign_xid();
	trace("prepare                      transaction %u", my_xid());
	t->preparing = true;
	point();
	if (count_prepared() > max_prepared_xacts)
		ereport(ERROR, errmsg("maximum number of prepared transactions reached"));
	if (chance(16))
		ereport(ERROR, errmsg("canceled"));
	t->prepare = insert_record(RECORD_PREPARED, (int) my_xid(), 0, false);
	XLogFlush((XLogRecPtr) t->prepare);
	t->state = IN_DOUBT;
	t->twice = true;
	if (chance(2))				/* for a synchronous standby */
		sleep_until(now + below(5000));
	t->twice = false;
	end_mine();
	point();
	xact_callback(XACT_EVENT_PREPARE, NULL);
	release_resources(true, true);
	ending = NULL;
}

/* twophase.c, FinishPreparedTransaction, in any session. */
static void
finish(Transaction *t)
{
	bool		commit = !chance(4);

	trace("finish prepared              transaction %u", xid_of(t));
	*(commit ? &t->commit : &t->end) =
		insert_record(commit ? RECORD_COMMIT : RECORD_ABORT, (int) xid_of(t), 0, false);
	XLogFlush((XLogRecPtr) inserted);
	point();
	if (commit)
		make_visible(t);
	else
		leave_array(t, GONE);
	finished_at = now;
}

void
finish_prepared(void)
{
	int64		skip = chance(2) ? 0 : below(4);

	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		if (t->state == IN_DOUBT && t->commit == 0 && t->end == 0 && skip-- == 0)
		{
			finish(t);
			return;
		}
}

/* The server continues with WAL up to an LSN; prepared transactions are kept. */
void
recover_transactions(int64 lsn)
{
	object_holder = NULL;
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
	{
		bool		committed = t->commit != 0 && t->commit <= lsn;

		if (t->state == GONE || (t->state == VISIBLE && committed))
			continue;
		t->ended = 0;
		t->twice = false;
		if (committed)
			make_visible(t);
		else if (t->prepare != 0 && t->prepare <= lsn && (t->end == 0 || t->end > lsn))
		{
			t->state = IN_DOUBT;
			t->recovered = true;
			t->commit = t->end = 0;
		}
		else
			leave_array(t, GONE);
	}
	next_completed = next;		/* xlog.c, StartupXLOG */
}
