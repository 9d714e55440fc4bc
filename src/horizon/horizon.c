/*
 * horizon.c
 *	  The horizon: the ID below which no new row can appear.
 *
 * The horizon of a database is the least of
 *
 *	- the first IDs of all open transactions of the database that have issued any, and
 *	- the cursor, below which no further ID is issued.
 *
 * Each backend has a slot, which only it writes, for the first ID of its open transaction.
 * Readers look at all slots.  One reader works at a time, under the lock; writers take no lock.
 *
 * The horizon of a snapshot is lower, if transactions have ended that the snapshot does not see.
 * A slot keeps the last of these, and for each database the horizons are kept that were known when
 * older snapshots were taken.
 *
 * README.md in this directory proves that no row is missed.  It describes the steps W1 to W3 of a
 * writer, R1 to R4 of a reader, E1 to E4 of the end of a transaction, S1 to S4 for a snapshot, and
 * C1 to C4 of several servers.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "clocks.h"
#include "compat.h"
#include "core/batch.h"
#include "core/hot.h"
#include "horizon/horizon.h"
#include "horizon/prepared.h"
#include "horizon/returned.h"
#include "horizon/snapshot.h"
#include "horizon/waiters.h"
#include "state/durable.h"
#include "state/lock.h"

/* A transaction that has issued IDs, had an xid, and has ended. */
typedef struct Ended
{
	pg_atomic_uint64 first;		/* the first ID, an int64 */
	pg_atomic_uint64 xid;		/* a full xid; 0 if the entry is free */
} Ended;

#define ENDED_ENTRIES	7

/* The longest sleep of a waiter without a look at the horizon. */
#define LONGEST_SLEEP	INT64CONST(1000000) /* us */

/*
 * The slot of a backend, on a cache line of its own.  Only the backend writes it.  first is an
 * int64, the first ID that the backend's open transaction may have issued, or SF_NO_ID.  The other
 * fields are a ring of the last transactions of the slot that have ended, without prepared ones.
 */
typedef struct Slot
{
	pg_atomic_uint64 first;
	uint64		ended_count;	/* of all; only the backend reads it */
	Ended		ended[ENDED_ENTRIES];
} Slot;

StaticAssertDecl(sizeof(Slot) == PG_CACHE_LINE_SIZE, "a slot is a cache line");

typedef struct Horizon
{
	SfLock		lock;

	/*
	 * The greatest horizon that any cursor has allowed, an int64.  Read by
	 * the guard.  Written under the lock.
	 */
	char		pad[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 candidate;
	char		pad_candidate[PG_CACHE_LINE_SIZE];

	/* Read at the end of each transaction that has a first ID. */
	SfWaiters	waiters;
	char		pad_waiters[PG_CACHE_LINE_SIZE];

	/* Protected by the lock. */
	SfReturnedTable returned;
	int64		promise;		/* the greatest, in all databases; 0: none */
	bool		promises;		/* whether no horizon above those returned is
								 * returned until a promise is on disk */
	int64		opened;			/* below it are IDs of earlier runs only, or
								 * promises */
	uint64		opened_xid;		/* a full xid above all xids of earlier runs */

	Slot		slots[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} Horizon;

static Horizon *horizon = NULL;

/* This session's slot, NULL before the first ID; and the ID in it. */
static Slot *my_slot = NULL;
static int64 my_first = SF_NO_ID;
static bool my_is_prepared = false; /* this transaction has an entry */

/* The horizon of a snapshot that was computed in this transaction, and all of these; or NULL. */
typedef struct Computed
{
	SfPlace		place;
	int64		horizon;
} Computed;

static HTAB * computed = NULL;

Size
sf_horizon_size(void)
{
	return CACHELINEALIGN(offsetof(Horizon, slots) + (Size) MaxBackends * sizeof(Slot)) +
		sf_prepared_size();
}

static void *
prepared_memory(void *memory)
{
	return (char *) memory + sf_horizon_size() - sf_prepared_size();
}

/*
 * A reader can read the first ID of a free entry, and then the xid of the transaction that has
 * filled it.  This transaction had not ended when the reader looked at the slot before, so that
 * it needs nothing from the ring.
 */
static void
init_slot(Slot *slot)
{
	pg_atomic_init_u64(&slot->first, (uint64) SF_NO_ID);
	for (int i = 0; i < ENDED_ENTRIES; i++)
		pg_atomic_init_u64(&slot->ended[i].first, (uint64) SF_NO_ID);
}

void
sf_horizon_init(void *memory)
{
	Horizon    *new = memory;

	memset(new, 0, sf_horizon_size());
	sf_lock_init(&new->lock, SF_LOCK_HORIZON, SF_WAIT_HORIZON);
	pg_atomic_init_u64(&new->candidate, (uint64) PG_INT64_MIN);
	sf_waiters_init(&new->waiters);
	sf_returned_init(&new->returned);
	for (int i = 0; i < MaxBackends; i++)
		init_slot(&new->slots[i]);
}

void
sf_horizon_attach(void *memory)
{
	horizon = memory;
	sf_prepared_attach(prepared_memory(memory));
}

static int64
read_candidate(void)
{
	return (int64) pg_atomic_read_u64(&horizon->candidate);
}

/* The lock is held, or the generator is being opened. */
static void
raise_candidate(int64 id)
{
	if (id > read_candidate())
		pg_atomic_write_u64(&horizon->candidate, (uint64) id);
}

/*
 * Sessions
 */

static void
write_slot(int64 first)
{
	pg_atomic_write_u64(&my_slot->first, (uint64) first);
	my_first = first;
}

/* The transaction has been aborted, and the session has not left its PGPROC. */
static void
leave_slot(int code, Datum argument)
{
	write_slot(SF_NO_ID);
	my_slot = NULL;
}

static void
enter_slot(void)
{
	Assert(sf_my_proc_number() < MaxBackends);
	on_shmem_exit(leave_slot, (Datum) 0);
	my_slot = &horizon->slots[sf_my_proc_number()];
}

SF_HOT int64
sf_horizon_publish(int64 id)
{
	int64		before = my_first;

	if (before <= id)
		return before;
	if (my_slot == NULL)
		enter_slot();
	write_slot(id);
	pg_memory_barrier();
	return before;
}

void
sf_horizon_withdraw(int64 before)
{
	int64		first = my_first;

	if (before == first)
		return;
	write_slot(before);
	sf_waiters_wake(&horizon->waiters, first);
}

int64
sf_horizon_first(void)
{
	return my_first;
}

/* Replace the oldest entry.  README.md tells why a reader that meets this misses nothing. */
static SF_HOT void
note_ended(FullTransactionId xid)
{
	Ended	   *entry = &my_slot->ended[my_slot->ended_count++ % ENDED_ENTRIES];

	pg_atomic_write_u64(&entry->first, (uint64) my_first);
	pg_atomic_write_u64(&entry->xid, U64FromFullTransactionId(xid));
}

SF_HOT void
sf_horizon_end(void)
{
	FullTransactionId xid;
	int64		first = my_first;

	computed = NULL;
	if (first == SF_NO_ID)
		return;
	xid = GetTopFullTransactionIdIfAny();
	if (FullTransactionIdIsValid(xid) && !my_is_prepared)
		note_ended(xid);
	my_is_prepared = false;
	pg_write_barrier();
	write_slot(SF_NO_ID);
	sf_waiters_wake(&horizon->waiters, first);
}

void
sf_horizon_prepare(void)
{
	FullTransactionId xid;

	if (my_first == SF_NO_ID)
		return;
	xid = GetTopFullTransactionId();
	sf_prepared_lock(my_first);
	sf_lock_acquire(&horizon->lock);
	sf_prepared_add(xid, MyDatabaseId, my_first);
	sf_lock_release(&horizon->lock);
	my_is_prepared = true;
}

bool
sf_horizon_admit(int64 id, int64 *returned)
{
	int64		before = my_first;
	bool		admitted;

	if (before <= id)
		return true;
	if (my_slot == NULL)
		enter_slot();			/* it can fail, unlike the steps below */
	if (read_candidate() <= id)
	{
		(void) sf_horizon_publish(id);
		if (read_candidate() <= id)
			return true;
		/* An error in the wait for the lock must not leave it as admitted. */
		sf_horizon_withdraw(before);
	}

	/* Once the lock is held, a reader that has missed the slot has returned. */
	sf_lock_acquire(&horizon->lock);
	*returned = sf_returned_bound(&horizon->returned, MyDatabaseId);
	*returned = Max(*returned, horizon->promise);
	admitted = *returned <= id;
	if (admitted)
		(void) sf_horizon_publish(id);
	sf_lock_release(&horizon->lock);
	return admitted;
}

/*
 * Readers
 */

/* The horizon that the cursor alone allows.  README.md contains the proof. */
static int64
allowed_by_cursor(SfGenerator *generator)
{
	uint32		generation = pg_atomic_read_u32(&generator->generation);
	uint64		cursor;
	uint32		machine_id;
	uint64		reserved_until;

	pg_read_barrier();
	cursor = pg_atomic_read_u64(&generator->cursor[0]);
	machine_id = sf_generator_machine_id(generator);
	reserved_until = pg_atomic_read_u64(&generator->reserved_until[0]);
	pg_read_barrier();
	if (machine_id == SF_MACHINE_ID_NOT_PINNED)
		machine_id = 0;			/* its IDs are the lowest of a position */
	if (cursor > reserved_until || generation % 2 == 1 ||
		pg_atomic_read_u32(&generator->generation) != generation)
		cursor = sf_position(&generator->layout,
							 sf_position_tick(&generator->layout, Min(cursor, reserved_until)), 0);
	return sf_horizon_at(&generator->layout, cursor, machine_id);
}

/* What the cursor allows, or has allowed before: it does not move backward. */
static int64
allowed_candidate(SfGenerator *generator)
{
	int64		by_cursor = allowed_by_cursor(generator);
	int64		before = read_candidate();

	return Max(by_cursor, before);
}

/* The least first ID in a database, or in all for InvalidOid. */
static int64
least_first(Oid database)
{
	int64		least = SF_NO_ID;
	int			index = 0;
	const SfHorizonHolder *entry;

	for (int i = 0; i < MaxBackends; i++)
	{
		int64		first = (int64) pg_atomic_read_u64(&horizon->slots[i].first);

		if (first < least &&
			(!OidIsValid(database) || ProcGlobal->allProcs[i].databaseId == database))
			least = first;
	}
	pg_read_barrier();			/* see prepared.c */
	while ((entry = sf_prepared_next(&index)) != NULL)
		if (!OidIsValid(database) || entry->database == database)
			least = Min(least, entry->first);
	return least;
}

/* Take the lock; prepared transactions of earlier runs have entries then. */
static void
lock_as_reader(void)
{
	LockData   *locks = sf_prepared_find_locks();

	sf_lock_acquire(&horizon->lock);
	sf_prepared_recover(locks);
}

/*
 * Compute the horizon of a database, or of all for InvalidOid, by the steps R1 to R4 with a
 * candidate that is not above the limit.  If the candidate is not published, no row is refused on
 * account of the result.
 */
static int64
compute(SfGenerator *generator, Oid database, int64 limit, bool publish)
{
	int64		candidate = allowed_candidate(generator);
	int64		least;

	candidate = Min(candidate, limit);
	if (publish)
		raise_candidate(candidate);
	pg_memory_barrier();
	least = least_first(database);
	return Min(candidate, least);
}

/*
 * Compute the horizon of a database for snapshots that are taken later, and note it.  It is the
 * promise on disk, if there is one.  Until the first promise is on disk, the horizon does not
 * advance: see README.md.
 */
static int64
advance(SfGenerator *generator, SfReturned *entry)
{
	int64		promise = (int64) sf_durable_read(SF_DURABLE_PROMISE);
	int64		result;

	if (promise != 0)
		return promise;
	result = compute(generator, entry->database, PG_INT64_MAX, true);
	if (horizon->promise != 0)
		result = Max(result, horizon->promise);
	if (horizon->promises)
	{
		int64		greatest = sf_returned_greatest(&horizon->returned);

		result = Min(result, greatest);
	}
	entry->horizon = Max(entry->horizon, result);
	return entry->horizon;
}

int64
sf_horizon_propose(SfGenerator *generator)
{
	int64		result;

	lock_as_reader();
	result = compute(generator, InvalidOid, PG_INT64_MAX, false);
	sf_lock_release(&horizon->lock);
	return result;
}

bool
sf_horizon_reaches(SfGenerator *generator, int64 proposal)
{
	return allowed_candidate(generator) >= proposal;
}

int64
sf_horizon_promise(SfGenerator *generator, int64 proposal, int64 *durable)
{
	int64		result;

	lock_as_reader();
	result = compute(generator, InvalidOid, proposal, true);
	horizon->promises = true;
	horizon->promise = Max(horizon->promise, result);
	result = Min(horizon->promise, proposal);
	*durable = horizon->promise >= sf_returned_greatest(&horizon->returned) ? horizon->promise : 0;
	sf_lock_release(&horizon->lock);
	return result;
}

void
sf_horizon_end_promises(void)
{
	sf_lock_acquire(&horizon->lock);
	horizon->promises = false;
	sf_returned_raise_bound(&horizon->returned, horizon->promise);
	sf_lock_release(&horizon->lock);
}

/*
 * Snapshots
 */

/*
 * The least first ID of the transactions of a slot that have ended, but not in the view of a
 * snapshot; SF_NO_ID if there is none, PG_INT64_MIN if one of them can have been replaced.
 */
static int64
least_unseen_of(Slot *slot, Snapshot snapshot, SfPlace place)
{
	int64		firsts[ENDED_ENTRIES];
	int64		least = SF_NO_ID;
	bool		sees_any = false;

	for (int i = 0; i < ENDED_ENTRIES; i++)
		firsts[i] = (int64) pg_atomic_read_u64(&slot->ended[i].first);
	pg_read_barrier();
	for (int i = 0; i < ENDED_ENTRIES; i++)
		if (sf_snapshot_lacks(snapshot, place, pg_atomic_read_u64(&slot->ended[i].xid)))
			least = Min(least, firsts[i]);
		else
			sees_any = true;
	return sees_any ? least : PG_INT64_MIN;
}

/* The same of all slots and of the entries of a database. */
static int64
least_unseen(Oid database, Snapshot snapshot, SfPlace place)
{
	int64		least = sf_prepared_least_unseen(database, snapshot, place);

	for (int i = 0; i < MaxBackends && least != PG_INT64_MIN; i++)
	{
		int64		of_slot = least_unseen_of(&horizon->slots[i], snapshot, place);

		least = Min(least, of_slot);
	}
	return least;
}

/*
 * The greatest horizon that was known when a snapshot was taken; PG_INT64_MIN if none was.  At the
 * start of this run one is known, unless a transaction of an earlier one has not ended.
 */
static int64
known_for(const SfReturned *entry, Snapshot snapshot, SfPlace place)
{
	int64		result = sf_known_at(sf_returned_known(&horizon->returned, entry), place);
	FullTransactionId xmin = sf_full_xid(snapshot->xmin);

	if (U64FromFullTransactionId(xmin) >= horizon->opened_xid)
		result = Max(result, horizon->opened);
	return result;
}

static int64
compute_for_snapshot(SfGenerator *generator, Oid database, Snapshot snapshot, SfPlace place)
{
	SfReturned *entry;
	int64		greatest;
	int64		result;

	lock_as_reader();
	entry = sf_returned_use(&horizon->returned, database);
	greatest = advance(generator, entry);
	sf_known_add(sf_returned_known(&horizon->returned, entry), sf_place_now(), greatest);
	result = known_for(entry, snapshot, place);
	if (result < greatest)
	{
		int64		least = least_unseen(database, snapshot, place);

		least = Min(least, greatest);
		result = Max(result, least);
	}
	sf_lock_release(&horizon->lock);
	return result;
}

/* The horizons that were computed in this transaction, until it ends. */
static HTAB *
computed_table(void)
{
	HASHCTL		control = {.keysize = sizeof(SfPlace),.entrysize = sizeof(Computed),
	.hcxt = TopTransactionContext};

	if (computed == NULL)
		computed = hash_create("horizons of snapshots", 8, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	return computed;
}

int64
sf_horizon_of_snapshot(SfGenerator *generator, Oid database, Snapshot snapshot)
{
	SfPlace		place = sf_place_of(snapshot);
	Computed   *entry = hash_search(computed_table(), &place, HASH_FIND, NULL);
	int64		result;

	if (entry != NULL)
		return entry->horizon;
	result = compute_for_snapshot(generator, database, snapshot, place);
	if (result != PG_INT64_MIN)
	{
		entry = hash_search(computed, &place, HASH_ENTER, NULL);
		entry->horizon = result;
	}
	return result;
}

/*
 * Waiting
 */

/*
 * Let the ends of the transactions wake this session that can let the horizon pass an ID.  If a
 * transaction holds it, these are the transactions that hold it at least as much.  If none does,
 * they are all: the cursor has not moved past the ID.  Returns false if that was announced
 * already, by this session, up to *announced.
 */
static bool
announce(Oid database, int64 next_id, int64 *announced)
{
	int64		least = least_first(database);
	int64		awaited = least <= next_id ? least : SF_NO_ID;

	if (awaited <= *announced || sf_durable_read(SF_DURABLE_PROMISE) != 0)
		return false;
	sf_waiters_announce(&horizon->waiters, awaited);
	*announced = awaited;
	return true;
}

/*
 * The horizon for snapshots that are taken later.  If it has not passed an ID and the caller is
 * going to wait, this session will be woken.  If the caller is not, no later snapshot has a lower
 * horizon.  (The snapshot of that, which holds back VACUUM, does not outlive the wait.)
 */
static int64
look(SfGenerator *generator, Oid database, int64 next_id, bool waits)
{
	SfReturned *entry;
	int64		announced = PG_INT64_MIN;
	int64		result;

	lock_as_reader();
	entry = sf_returned_use(&horizon->returned, database);
	do
		result = advance(generator, entry);
	while (waits && result <= next_id && announce(database, next_id, &announced));
	if (!waits || result > next_id)
		sf_known_add(sf_returned_known(&horizon->returned, entry), sf_place_now(), result);
	sf_lock_release(&horizon->lock);
	return result;
}

/*
 * A session that commits a prepared transaction does not have its first ID, and a change of the
 * generator that moves the cursor does not wake waiters.  So a waiter looks again after
 * LONGEST_SLEEP.
 */
int64
sf_horizon_await(SfGenerator *generator, Oid database, int64 next_id, int64 time)
{
	int64		since = sf_time_since_boot();

	for (;;)
	{
		int64		left = time - sf_time_since(since);
		uint64		wakes = sf_waiters_wakes(&horizon->waiters);
		int64		result = look(generator, database, next_id, left > 0);

		if (result > next_id || left <= 0)
			return result;
		left = Min(left, LONGEST_SLEEP);
		sf_waiters_sleep(&horizon->waiters, wakes, (long) ((left + 999) / 1000));
	}
}

void
sf_horizon_wake(void)
{
	sf_waiters_wake_all(&horizon->waiters);
}

static SfHorizonHolder
holder_of_slot(int number)
{
	const PGPROC *process = &ProcGlobal->allProcs[number];
	SfHorizonHolder holder = {
		.first = (int64) pg_atomic_read_u64(&horizon->slots[number].first),
		.database = process->databaseId,
		.role = process->roleId,
		.pid = process->pid,
	};

	return holder;
}

int
sf_horizon_holders(SfHorizonHolder **holders)
{
	int			count = 0;
	int			index = 0;
	const SfHorizonHolder *entry;

	*holders = palloc(sizeof(SfHorizonHolder) * (Size) (2 * MaxBackends + max_prepared_xacts));
	for (int i = 0; i < MaxBackends; i++)
	{
		(*holders)[count] = holder_of_slot(i);
		if ((*holders)[count].first != SF_NO_ID)
			count++;
	}
	lock_as_reader();
	while ((entry = sf_prepared_next(&index)) != NULL)
		(*holders)[count++] = *entry;
	sf_lock_release(&horizon->lock);
	return count;
}

int64
sf_horizon_least(void)
{
	SfHorizonHolder *holders;
	int			count = sf_horizon_holders(&holders);
	int64		least = SF_NO_ID;

	for (int i = 0; i < count; i++)
		least = Min(least, holders[i].first);
	pfree(holders);
	return least;
}

/*
 * The horizons that were returned in earlier runs of the server are unknown, unless they were
 * promises; none of them was above the horizon of the position.  No reader is at work yet, since
 * readers open the generator first.
 */
void
sf_horizon_opened(SfGenerator *generator, uint64 position, int64 promise)
{
	int64		id = promise != 0 ? promise : sf_horizon_at(&generator->layout, position, 0);

	horizon->promise = promise;
	horizon->promises = promise != 0;
	horizon->opened = id;
	horizon->opened_xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	raise_candidate(id);
	sf_returned_raise_bound(&horizon->returned, id);
}
