/*
 * horizon.c
 *	  The horizon: the ID below which no row can appear any more.
 *
 * IDs are issued before the rows that contain them are committed.  A reader that remembers the
 * greatest ID it has seen, and requests greater ones, misses rows with lower IDs that are committed
 * later.  The horizon of a database is the ID up to which such a reader may read.  It holds for
 * rows whose ID was issued by this server in the transaction that writes them: if such a row is not
 * visible yet to a statement that begins after the horizon was returned, its ID is not below the
 * horizon.  The horizon is the least of
 *
 *	- the first IDs of all open transactions of the database that have issued any, and
 *	- the cursor, below which no further ID is issued.
 *
 * Each backend has a slot, which only it writes, for the first ID of its open transaction.
 * Readers look at all slots.  One reader works at a time, under the lock; writers take no lock.
 *
 * A writer
 *	W1. publishes an ID in its slot,
 *	W2. full barrier,
 *	W3. swaps the cursor; the ID is that of the cursor that is swapped.  If the swap fails, the
 *		writer withdraws the ID, so that a session that waits does not hold the horizon back.
 * A batch ends with its transaction, and so the first ID of each transaction comes from a swap.
 * A reader
 *	R1. reads the cursor,
 *	R2. publishes the candidate: the horizon that the cursor alone allows,
 *	R3. full barrier,
 *	R4. reads all slots.
 *
 * If R4 finds the ID, the horizon is not above it.  Suppose it does not.  Then W1 follows R4, and
 * by the barriers W3 follows R1.  The cursor does not move backward, so the cursor that W3 swaps is
 * at or above the one that R1 read, and so is the ID.
 *
 * A slot is cleared after the end of the transaction is visible to others.  A reader that finds the
 * slot cleared returns a horizon that may be above the ID, and a statement that begins afterwards
 * sees the row (there is a write barrier before the slot is cleared, and a snapshot is taken under
 * the lock of the process array).  A transaction that has issued several IDs has published the
 * first one, which is the least, since the IDs of a session increase.
 *
 * PostgreSQL 15 to 19 end a transaction in these steps:
 *
 *	E1. Its end is in WAL (RecordTransactionCommit, RecordTransactionAbort, EndPrepare).
 *	E2. The process array has changed (ProcArrayEndTransaction, ProcArrayClearTransaction).
 *	E3. CallXactCallbacks calls the callbacks of transactions, the newest first.
 *	E4. ResourceOwnerRelease is called for TopTransactionResourceOwner in three phases: before the
 *		locks, the locks, after the locks.  In each it releases the children of the owner first, and
 *		then calls the callbacks of resource owners.
 *
 * Callbacks of other extensions in E3 can commit rows with IDs of this transaction in other
 * sessions and on other servers: Citus sends COMMIT PREPARED to its workers there.  A callback of
 * ours in E3 would run before those of libraries that are preloaded earlier.  So the slot is
 * cleared in E4, in the first phase: a session that has waited for a lock of the transaction finds
 * it cleared.  Such callbacks are called for portals and subtransactions too, and for resource
 * owners that other extensions release; CurrentResourceOwner tells which owner it is.  A
 * transaction that inserts a row executes 0.08 % more instructions than with a callback in E3.  A
 * transaction that fails runs E1 to E4 when its error is reported, not at the ROLLBACK, as the
 * callbacks of memory contexts do.
 *
 * An error in E3 or E4 leads to AbortTransaction, which begins with E1.  If the transaction has
 * committed with a transaction ID, PostgreSQL raises a PANIC there.  In all other cases, an abort
 * and a PREPARE TRANSACTION included, E2 to E4 follow, and the slot is cleared in E4.  A callback
 * that raises an error each time repeats this until PostgreSQL's stack of errors is full, which is
 * a PANIC too.  Interrupts are held from before E1 to after E4.
 *
 * A slot holds the ID alone.  The database of the session is that of the PGPROC with the same
 * number; a session clears its slot before it leaves its PGPROC.  If a reader finds the database
 * of the previous session of a PGPROC, it has read that after R3, and so before W2 of the next
 * session: as above, an ID of that session is not below the horizon.
 *
 * A reader needs the machine ID that belongs to the cursor, as sessions do (change.c).  It reads
 * the generation before and after cursor, machine ID and reserved_until.  If a change is in
 * progress or the generation has changed, the machine ID may be of another state than the cursor.
 * In that case, and if the cursor is above reserved_until, the reader uses the start of a tick,
 * which is valid for all machine IDs: the tick of the cursor or of reserved_until, whichever is
 * lower.
 *
 * No horizon is above reserved_until.  This position is on disk, and after a crash the generator
 * starts again above it.  A crash ends all transactions except the prepared ones (prepared.c).  So
 * a crash does not move the horizon backward.  A candidate stays valid, since the cursor does not
 * move backward, and so a reader that can compute only a lower one uses the published candidate.
 *
 * Rows whose ID was not issued in their transaction can be admitted (sf_horizon_admit): the ID is
 * published in the slot as well, and the candidate is read after the barrier.  A reader that has
 * missed the slot has published its candidate before that, so its candidate is read.  If the
 * candidate is not above the ID, the horizon that the reader returns is not above the ID either.
 * If the candidate is above the ID, the ID is published under the lock, and only if no horizon
 * above it has been returned.  The horizons that were returned in an earlier run of the server are
 * unknown, and so each ID below the start of this run is refused.
 *
 * The greatest horizon that was returned is kept for each database, and no lower one is returned
 * later: without this the horizon could decrease, since the slot of a session that loses the race
 * for the cursor has a low ID for a moment.
 *
 * Several servers can have one horizon, for tables whose rows are stored on servers other than
 * those that issue their IDs.  Each server that stores rows has the guard.  So the ID of a row is
 * in the slot, or in the entry, of a transaction of that server, from the INSERT until the row is
 * visible.  A coordinator computes the horizon in these steps, each of which asks all servers:
 *
 *	C1. Each server proposes the horizon of all its databases.  It notes nothing, so no row is
 *		refused on account of it.
 *	C2. The proposal of all is the least of these, or the last result if that is greater.
 *	C3. Each server promises the proposal: it takes the steps R1 to R4 with a candidate that is
 *		not above the proposal, notes the least first ID as promised, writes it to disk, and answers
 *		the lower one of the proposal and the greatest promise.
 *	C4. The result is the least answer, if it is not below the last result.  The coordinator, if it
 *		stores rows or has readers, is the last to promise, and it promises the least of the other
 *		answers.
 *
 * If a server does not answer, there is no new result.  The promises that were noted or written
 * by then only refuse rows that would have been refused later.  Calls exclude each other.  A
 * server that is new, or that has lost its promise, as a standby can, may answer less than the
 * last result.  So it stores rows only after the next one.
 *
 * No row is missed.  Let x be the ID of a row that transaction T writes on server S, below the
 * result.  Then S has promised p > x in C3 of the call with this result, or earlier.
 *	- If T was open when p was noted, and the guard had admitted x, R4 would have found an ID not
 *	  above x in the slot or the entry of T, and p would not be above x.
 *	- If T had ended, statements that begin after C3 see the row, or no statement ever does.
 *	- If the guard sees x later, it refuses it: as for the horizons above, it either reads a
 *	  candidate above x, takes the lock, and finds p; or R4 has found x.  After a crash of S the
 *	  guard finds p on disk, as S has written it before it answered.  Prepared transactions of
 *	  before the crash have entries.
 * Nothing is said here about the server that has issued x.  It may have been cancelled, cut off,
 * stopped or removed.
 *
 * No row is refused without a fault.  As long as the transaction that has issued x is open, which
 * includes all callbacks that commit rows elsewhere, its slot keeps each proposal at or below x.
 * An ID that is issued after C1 is not below the proposal of its server.  So promises above x are
 * made after the end of that transaction.  The exceptions are servers that did not take part in
 * C1, such as a new one, and those that propose less than the last result.  Such a server is raised
 * to the proposal in C3 before it answers, and so all of its later IDs are above.
 *
 * A server that has promised anything returns its last promise as the horizon of each database, and
 * notes no other.  Otherwise it would refuse rows of servers whose clocks are behind.  At a start,
 * the bound of its guard is the last promise on disk, and not the position at which the generator
 * is opened, so that it refuses no ID that other servers issue.  Promises end by an explicit call,
 * by moving the generator back, and by a change of the layout.
 *
 * horizon->promise is written under the lock.  The number on disk and its copy are written under
 * the lock of the generator (change.c), after the lock of the horizon was released, so that writers
 * do not wait for the disk.  The copy is written last, so that snowflake_horizon() returns nothing
 * that a crash loses.  A crash before the number is on disk leaves the previous promise; no answer
 * was given.  A crash after that leaves a promise that the coordinator does not know of.
 *
 * test/model checks all of this, for interleavings and for the memory model of AArch64.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/proc.h"

#include "compat.h"
#include "core/batch.h"
#include "core/hot.h"
#include "horizon/horizon.h"
#include "horizon/prepared.h"
#include "state/lock.h"

/*
 * The slot of a backend, on a cache line of its own.  Only the backend writes it.  first is an
 * int64, the first ID that the backend's open transaction may have issued, or SF_NO_ID.
 */
typedef struct Slot
{
	pg_atomic_uint64 first;
	char		pad[PG_CACHE_LINE_SIZE - sizeof(uint64)];
} Slot;

/* The number of databases whose horizons are kept. */
#define RETURNED_ENTRIES	256

typedef struct Returned
{
	Oid			database;		/* InvalidOid if the entry is free */
	int64		horizon;		/* the greatest that was returned */
	int64		bound;			/* bound of the table when the entry was
								 * assigned */
	uint64		used;			/* time of the last use, counted in calls */
} Returned;

typedef struct ReturnedTable
{
	uint64		calls;
	int64		bound;			/* not below any horizon that was returned in
								 * a database without an entry */
	Returned	entries[RETURNED_ENTRIES];
} ReturnedTable;

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

	/* Protected by the lock. */
	ReturnedTable returned;
	int64		promise;		/* the greatest, in all databases; 0: none */

	Slot		slots[FLEXIBLE_ARRAY_MEMBER];
} Horizon;

static Horizon *horizon = NULL;

/* This session's slot, NULL before the first ID; and the ID in it. */
static Slot *my_slot = NULL;
static int64 my_first = SF_NO_ID;

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

void
sf_horizon_init(void *memory)
{
	Horizon    *new = memory;

	memset(new, 0, sf_horizon_size());
	sf_lock_init(&new->lock, SF_LOCK_HORIZON, SF_WAIT_HORIZON);
	pg_atomic_init_u64(&new->candidate, (uint64) PG_INT64_MIN);
	new->returned.bound = PG_INT64_MIN;
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&new->slots[i].first, (uint64) SF_NO_ID);
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
 * The horizons that were returned, the greatest of each database.  The lock is held, or the
 * generator is being opened.
 *
 * The table has a fixed size.  A database that has no entry gets the least recently used one, and
 * the horizon of that entry becomes a bound for all databases that get an entry afterwards.  So a
 * server that returns horizons in more databases than there are entries can return a lower horizon
 * than before, for a moment; but a bound of the horizons that readers may have used is always
 * available.
 */

/* Note that horizons up to this one may have been returned, in any database. */
static void
raise_returned_bound(int64 bound)
{
	horizon->returned.bound = Max(horizon->returned.bound, bound);
}

static Returned *
find(Oid database)
{
	for (int i = 0; i < RETURNED_ENTRIES; i++)
		if (horizon->returned.entries[i].database == database)
			return &horizon->returned.entries[i];
	return NULL;
}

static Returned *
oldest(void)
{
	Returned   *entry = &horizon->returned.entries[0];

	for (int i = 1; i < RETURNED_ENTRIES; i++)
		if (horizon->returned.entries[i].used < entry->used)
			entry = &horizon->returned.entries[i];
	return entry;
}

/* Give an entry to a database. */
static Returned *
assign(Oid database)
{
	Returned   *entry = oldest();

	if (OidIsValid(entry->database))
		raise_returned_bound(entry->horizon);
	entry->database = database;
	entry->horizon = PG_INT64_MIN;
	entry->bound = horizon->returned.bound;
	return entry;
}

/* A bound of the horizons that may have been returned in a database, at any time. */
static int64
returned_bound(Oid database)
{
	const Returned *entry = find(database);
	int64		bound = entry ? Max(entry->horizon, entry->bound) : horizon->returned.bound;

	return Max(bound, horizon->promise);
}

/*
 * Note a horizon that is about to be returned.  Returns the greatest horizon that was noted for its
 * database.
 */
static int64
note_returned(Oid database, int64 id)
{
	Returned   *entry = find(database);

	if (entry == NULL)
		entry = assign(database);
	entry->used = ++horizon->returned.calls;
	entry->horizon = Max(entry->horizon, id);
	return entry->horizon;
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
	if (before != my_first)
		write_slot(before);
}

SF_HOT void
sf_horizon_end(void)
{
	if (my_first == SF_NO_ID)
		return;
	pg_write_barrier();
	write_slot(SF_NO_ID);
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
}

bool
sf_horizon_admit(int64 id, int64 *returned)
{
	int64		before = my_first;
	bool		admitted;

	if (before <= id)
		return true;
	if (my_slot == NULL)
		enter_slot();			/* it can fail, unlike what follows */
	if (read_candidate() <= id)
	{
		(void) sf_horizon_publish(id);
		if (read_candidate() <= id)
			return true;
	}

	/* Once the lock is held, a reader that has missed the slot has returned. */
	sf_lock_acquire(&horizon->lock);
	*returned = returned_bound(MyDatabaseId);
	admitted = *returned <= id;
	if (admitted)
		(void) sf_horizon_publish(id);
	sf_lock_release(&horizon->lock);
	if (!admitted)
		sf_horizon_withdraw(before);
	return admitted;
}

/*
 * Readers
 */

/* The horizon that the cursor alone allows.  The proof is at the top of this file. */
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
allowed(SfGenerator *generator)
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

/*
 * Take the lock, and compute the horizon of a database, or of all for InvalidOid, by the steps R1
 * to R4 with a candidate that is not above the limit.  If the candidate is not published, no row
 * is refused on account of the result.
 */
static int64
lock_and_compute(SfGenerator *generator, Oid database, int64 limit, bool publish)
{
	LockData   *locks = sf_prepared_find_locks();
	int64		candidate;
	int64		least;

	sf_lock_acquire(&horizon->lock);
	sf_prepared_recover(locks);
	candidate = allowed(generator);
	candidate = Min(candidate, limit);
	if (publish)
		raise_candidate(candidate);
	pg_memory_barrier();
	least = least_first(database);
	return Min(candidate, least);
}

int64
sf_horizon_advance(SfGenerator *generator, Oid database)
{
	int64		result = lock_and_compute(generator, database, PG_INT64_MAX, true);

	result = note_returned(database, result);
	sf_lock_release(&horizon->lock);
	return result;
}

int64
sf_horizon_propose(SfGenerator *generator)
{
	int64		result = lock_and_compute(generator, InvalidOid, PG_INT64_MAX, false);

	sf_lock_release(&horizon->lock);
	return result;
}

bool
sf_horizon_reaches(SfGenerator *generator, int64 proposal)
{
	return allowed(generator) >= proposal;
}

int64
sf_horizon_promise(SfGenerator *generator, int64 proposal)
{
	int64		result = lock_and_compute(generator, InvalidOid, proposal, true);

	horizon->promise = Max(horizon->promise, result);
	result = Min(horizon->promise, proposal);
	sf_lock_release(&horizon->lock);
	return result;
}

static SfHorizonHolder
holder_of_slot(int number)
{
	const		PGPROC *process = &ProcGlobal->allProcs[number];
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
	LockData   *locks = sf_prepared_find_locks();

	*holders = palloc(sizeof(SfHorizonHolder) * (Size) (2 * MaxBackends + max_prepared_xacts));
	for (int i = 0; i < MaxBackends; i++)
	{
		(*holders)[count] = holder_of_slot(i);
		if ((*holders)[count].first != SF_NO_ID)
			count++;
	}
	sf_lock_acquire(&horizon->lock);
	sf_prepared_recover(locks);
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
 * promises; none of them was above that of the position.  No reader is at work yet, since readers
 * open the generator first.
 */
void
sf_horizon_opened(SfGenerator *generator, uint64 position, int64 promise)
{
	int64		id = promise != 0 ? promise : sf_horizon_at(&generator->layout, position, 0);

	horizon->promise = promise;
	raise_candidate(id);
	raise_returned_bound(id);
}
