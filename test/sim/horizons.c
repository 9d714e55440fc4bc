/*
 * horizons.c
 *	  "P8: A statement that calls snowflake_horizon(), and later statements, see each row below the
 *	  horizon that will ever exist, unless it is deleted.  The promise covers rows whose ID was issued by this
 *	  server, in this database, in the transaction that writes the row."  All calls with a snapshot in a
 *	  transaction return the same horizon.  With the guard the promise covers all rows that the guard
 *	  checks, and the guard refuses no row without need.
 */
#include "record.h"

/* The greatest horizons of each database; 0: of all. */
int64		returned[DATABASES + 1];
int64		promised;
int			promise_ends;
static int64 proposed;			/* the greatest that was to be promised */
static int64 greatest_noted;	/* in all databases */
static int64 promise_at_start;	/* of this run of the server; 0: none */
static int	readers;			/* calls that can return a horizon */
static int64 noted[DATABASES + 1];	/* the greatest that can have been
									 * computed */
static int	calls_begun;		/* of readers */
int			calls_ended;
static bool unreported;			/* one of them has failed */

#define ALWAYS_KEPT	8			/* horizons of a database, at least */

/* Of each session: when its transaction began. */
static OF_PROCESS int64 transaction_proposed = 0;
static OF_PROCESS int transaction_run = 0;

void
forget_horizons(void)
{
	memset(returned, 0, sizeof(returned));
	promised = proposed = 0;
}

/* The promise is forgotten with the layout. */
void
horizons_of_new_layout(void)
{
	promise_at_start = 0;
}

void
horizons_start(void)
{
	promise_at_start = (int64) in_memory[NUMBER(PROMISE)];
	readers = 0;
	calls_begun = calls_ended = 0;
	memset(noted, 0, sizeof(noted));
	unreported = in_recovery;
	greatest_noted = 0;
}

void
oracle_transaction_begins(void)
{
	transaction_proposed = proposed;
	transaction_run = run;
	order_of_transaction();
}

/* IDs of transactions that begin after a promise are above the proposal. */
void
check_proposal(int64 id)
{
	if (id < transaction_proposed && transaction_run == run)
		fail("P8: ID %lld is below the proposal %lld", (long long) id,
			 (long long) transaction_proposed);
}

/*
 * Readers
 */

void
oracle_reader_begins(void)
{
	call.reads = true;
	readers++;
	calls_begun++;
}

static void
reader_ends(void)
{
	call.reads = false;
	readers--;
	calls_ended++;
}

void
reader_fails(void)
{
	readers--;
	calls_ended++;
	unreported = true;
}

/*
 * Rows that have appeared after the snapshot are not below its horizon.  Rows that the callbacks of
 * a transaction commit elsewhere are visible to snapshots that are taken after the call.
 */
static void
check_rows(int64 horizon, const HeldSnapshot *snapshot)
{
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		for (int i = 0; t->state == VISIBLE && t->ended > snapshot->ends && i < t->rows; i++)
			if (t->database == (int) MyDatabaseId && t->ids[i] < horizon)
				fail("P8: row %lld is not in the snapshot of the horizon %lld", (long long) t->ids[i],
					 (long long) horizon);
}

/*
 * The greatest horizon that the call can have computed for later snapshots, which the guard keeps.  If
 * no transaction has ended since the snapshot was taken, it is the result.
 */
static int64
greatest_computed(int64 horizon, const HeldSnapshot *snapshot)
{
	const SfGenerator *generator = generator_of(SF_GENERATOR_BIGINT);

	if (snapshot->ends == ends)
		return horizon;
	return Max(horizon, sf_horizon_at(&generator->layout, generator->cursor[0].value,
									  (uint32) config.machines - 1));
}

/*
 * The horizon of a snapshot was returned.  If the snapshot was taken in this call, and no more calls
 * are between the two than the number of horizons that are always kept, it is not below one that was
 * returned before.
 */
void
oracle_horizon(int64 horizon, const HeldSnapshot *snapshot, bool is_new)
{
	int			database = (int) MyDatabaseId;

	trace("horizon                      %lld of database %d", (long long) horizon, database);
	reader_ends();
	noted[database] = Max(noted[database], greatest_computed(horizon, snapshot));
	greatest_noted = Max(greatest_noted, noted[database]);
	if (snapshot->data.takenDuringRecovery)
		fail("P8: a horizon in recovery");
	if (is_new && horizon < call.returned && call.run == run && !config.many_databases &&
		calls_begun - call.calls_ended < ALWAYS_KEPT && !move_begun[SF_GENERATOR_BIGINT])
		fail("P8: the horizon is %lld, after %lld", (long long) horizon, (long long) call.returned);
	if (call.run == run && call.promised > 1 && promised >= call.promised && !move_begun[SF_GENERATOR_BIGINT] &&
		in_memory[NUMBER(PROMISE)] != 0 && horizon > (int64) in_memory[NUMBER(PROMISE)])
		fail("P8: the horizon is %lld, and not the promise", (long long) horizon);
	check_rows(horizon, snapshot);
	returned[database] = Max(returned[database], horizon);
}

void
rows_are_visible(Transaction *t)
{
	int64		horizon = Max(returned[t->database], returned[0]);

	for (int i = 0; i < t->rows; i++)
		if (t->ids[i] < horizon)
			fail("P8: row %lld appears below the horizon %lld", (long long) t->ids[i],
				 (long long) horizon);
}

/* The next ID of a reader of this database. */
int64
oracle_position(void)
{
	return Max(returned[MyDatabaseId], returned[0]);
}

/*
 * Promises to other servers: as the coordinator of several servers, of which this is one
 */

void
oracle_promise_begins(void)
{
	changes[SF_GENERATOR_BIGINT]++;
}

/* No horizon that is returned afterwards is below one that was returned before. */
void
oracle_promises_end(void)
{
	changes[SF_GENERATOR_BIGINT]++;
	promise_ends++;
	promised = 0;
}

void
oracle_promise(int64 proposal, int64 promise)
{
	trace("promise                      %lld of %lld", (long long) promise, (long long) proposal);
	reader_ends();
	changes[SF_GENERATOR_BIGINT]++;
	if (call.run != run)
		return;
	if (call.ends != promise_ends || lowered_at[NUMBER(PROMISE)] >= call.began)
	{							/* they can have ended after it */
		unreported = true;
		return;
	}
	if (promise == 0)			/* a higher horizon was returned, but the
								 * guard refuses lower IDs */
	{
		unreported = true;
		return;
	}
	if (promise > proposal || (call.promised >= proposal && promise < proposal))
		fail("P8: promise %lld of %lld, after %lld", (long long) promise, (long long) proposal,
			 (long long) call.promised);
	if (call.moved && (uint64) promise > on_disk[NUMBER(PROMISE)])
		fail("P8: a promise after a move back");
	if (!move_begun[SF_GENERATOR_BIGINT] && on_disk[NUMBER(PROMISE)] < (uint64) promise)
		fail("P8: a promise that is not on disk");
	oracle_time(SF_GENERATOR_BIGINT,
				sf_layout_tick_start(sf_layout_in_force(),
									 sf_layout_decompose(sf_layout_in_force(), promise).tick));
	promised = Max(promised, promise);
	/* Without a lease the generator is not raised to the proposal. */
	proposed = Max(proposed, config.leased ? promise : proposal);
	returned[0] = Max(returned[0], promise);
}

/*
 * The guard
 */

/*
 * Whether the guard may refuse an ID: a reader has got a horizon above it, or could have before the
 * server was started.
 */
bool
refusal_is_right(void)
{
	TimestampTz began = (TimestampTz) generator_of(SF_GENERATOR_BIGINT)->began.value;
	int64		bound = Max(returned[MyDatabaseId], returned[0]);

	bound = Max(bound, (int64) in_memory[NUMBER(PROMISE)]);
	bound = Max(bound, promise_at_start);
	bound = Max(bound, noted[MyDatabaseId]);
	if (promise_at_start == 0)
		bound = Max(bound, sf_layout_boundary(sf_layout_in_force(), began) + 1);
	if (config.many_databases)
		bound = Max(bound, greatest_noted);
	return call.id < bound || readers > 0 || unreported;
}

/* An ID for the guard that was not issued in this transaction, and that may be below a horizon. */
int64
oracle_some_id(void)
{
	int64		horizon = Max(returned[MyDatabaseId], returned[0]);

	if (horizon > 4 && chance(3))
		return horizon - below(4);
	for (int tries = 10; issued_count > 0 && tries > 0; tries--)
	{
		const Issued *id = &issued[issued_count - 1 - below(Min(issued_count, 12))];

		if (id->kind == SF_GENERATOR_BIGINT)
			return (int64) id->key + (chance(3) ? below(5) - 2 : 0);
	}
	return sf_layout_boundary(sf_layout_in_force(), wall()) + below(8) - 4;
}
