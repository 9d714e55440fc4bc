/*
 * horizon.c
 *	  The horizon: the ID below which no row can appear any more.
 *
 * The horizon of a database is the least of
 *
 *	- the first IDs of all open transactions of the database that have issued any, and
 *	- the cursor, below which no further ID is issued.
 *
 * Each backend has a slot, which only it writes, for the first ID of its open transaction.
 * Readers look at all slots.  One reader works at a time, under the lock; writers take no lock.
 * README.md in this directory proves that no row is missed.  It has the steps W1 to W3 of a writer,
 * R1 to R4 of a reader, E1 to E4 of the end of a transaction, and C1 to C4 of several servers.
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
#include "state/durable.h"
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
	bool		promises;		/* whether no horizon above greatest_returned
								 * is returned until a promise is on disk */

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
find_returned(Oid database)
{
	for (int i = 0; i < RETURNED_ENTRIES; i++)
		if (horizon->returned.entries[i].database == database)
			return &horizon->returned.entries[i];
	return NULL;
}

static Returned *
oldest_returned(void)
{
	Returned   *entry = &horizon->returned.entries[0];

	for (int i = 1; i < RETURNED_ENTRIES; i++)
		if (horizon->returned.entries[i].used < entry->used)
			entry = &horizon->returned.entries[i];
	return entry;
}

/* Give an entry to a database. */
static Returned *
assign_returned(Oid database)
{
	Returned   *entry = oldest_returned();

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
	const Returned *entry = find_returned(database);
	int64		bound = entry ? Max(entry->horizon, entry->bound) : horizon->returned.bound;

	return Max(bound, horizon->promise);
}

/* A bound of the horizons that may have been returned in any database, without promises. */
static int64
greatest_returned(void)
{
	int64		greatest = horizon->returned.bound;

	for (int i = 0; i < RETURNED_ENTRIES; i++)
		if (OidIsValid(horizon->returned.entries[i].database))
			greatest = Max(greatest, horizon->returned.entries[i].horizon);
	return greatest;
}

/*
 * Note a horizon that is about to be returned.  Returns the greatest horizon that was noted for its
 * database.
 */
static int64
note_returned(Oid database, int64 id)
{
	Returned   *entry = find_returned(database);

	if (entry == NULL)
		entry = assign_returned(database);
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
		/* An error in the wait for the lock must not leave it as admitted. */
		sf_horizon_withdraw(before);
	}

	/* Once the lock is held, a reader that has missed the slot has returned. */
	sf_lock_acquire(&horizon->lock);
	*returned = returned_bound(MyDatabaseId);
	admitted = *returned <= id;
	if (admitted)
		(void) sf_horizon_publish(id);
	sf_lock_release(&horizon->lock);
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
	candidate = allowed_candidate(generator);
	candidate = Min(candidate, limit);
	if (publish)
		raise_candidate(candidate);
	pg_memory_barrier();
	least = least_first(database);
	return Min(candidate, least);
}

/* Until the first promise is on disk, the horizon does not advance: see README.md. */
int64
sf_horizon_advance(SfGenerator *generator, Oid database)
{
	int64		result = lock_and_compute(generator, database, PG_INT64_MAX, true);
	int64		on_disk = (int64) sf_durable_read(SF_DURABLE_PROMISE);

	if (horizon->promise != 0)
		result = Max(result, horizon->promise);
	if (horizon->promises)
	{
		int64		greatest = greatest_returned();

		result = Min(result, greatest);
	}
	result = on_disk != 0 ? on_disk : note_returned(database, result);
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
	return allowed_candidate(generator) >= proposal;
}

int64
sf_horizon_promise(SfGenerator *generator, int64 proposal, int64 *durable)
{
	int64		result = lock_and_compute(generator, InvalidOid, proposal, true);

	horizon->promises = true;
	horizon->promise = Max(horizon->promise, result);
	result = Min(horizon->promise, proposal);
	*durable = horizon->promise >= greatest_returned() ? horizon->promise : 0;
	sf_lock_release(&horizon->lock);
	return result;
}

void
sf_horizon_end_promises(void)
{
	sf_lock_acquire(&horizon->lock);
	horizon->promises = false;
	raise_returned_bound(horizon->promise);
	sf_lock_release(&horizon->lock);
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
	horizon->promises = promise != 0;
	raise_candidate(id);
	raise_returned_bound(id);
}
