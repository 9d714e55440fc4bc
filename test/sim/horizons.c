/*
 * horizons.c
 *	  "P8: No new row appears below a horizon that was returned.  A row is new if it is not visible to
 *	  a statement that begins after the call.  The promise covers rows whose ID was issued by this
 *	  server, in this database, in the transaction that writes the row.  The horizon of a database
 *	  never moves backward, even after a restart or a crash."  With the guard it covers all rows that the
 *	  guard checks, and the guard refuses no row without need.
 */
#include "record.h"

/* The greatest horizons of each database; 0: of all. */
int64		returned[DATABASES + 1];
int64		promised;
int			promise_ends;
static int64 proposed;			/* the greatest that was to be promised */
static int64 greatest_returned; /* in this run of the server */
static int64 promise_at_start;	/* of this run of the server; 0: none */
static int	readers;			/* calls that can return a horizon */
static bool unreported;			/* one of them has failed */

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
	unreported = in_recovery;
	greatest_returned = 0;
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
}

static void
reader_ends(void)
{
	call.reads = false;
	readers--;
}

void
reader_fails(void)
{
	readers--;
	unreported = true;
}

/*
 * A horizon was returned, and a reader sees a view of the database: the transactions that have
 * become visible after it have no rows below the horizon.
 */
void
oracle_horizon(int64 horizon, int64 view)
{
	int			database = (int) MyDatabaseId;

	trace("horizon                      %lld of database %d", (long long) horizon, database);
	reader_ends();
	greatest_returned = Max(greatest_returned, horizon);
	if (IsolationUsesXactSnapshot() || call.in_recovery)
		fail("P8: a horizon in a transaction with one snapshot, or in recovery");
	if (horizon < call.returned && call.run == run && !config.many_databases &&
		!move_begun[SF_GENERATOR_BIGINT])
		fail("P8: the horizon is %lld, after %lld", (long long) horizon, (long long) call.returned);
	if (call.run == run && call.promised > 1 && promised >= call.promised && !move_begun[SF_GENERATOR_BIGINT] &&
		in_memory[NUMBER(PROMISE)] != 0 && horizon > (int64) in_memory[NUMBER(PROMISE)])
		fail("P8: the horizon is %lld, and not the promise", (long long) horizon);
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		for (int i = 0; t->state == VISIBLE && t->visible > view && i < t->rows; i++)
			if (t->database == database && t->ids[i] < horizon)
				fail("P8: row %lld is not in the view of the horizon %lld", (long long) t->ids[i],
					 (long long) horizon);
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
	if (promise_at_start == 0)
		bound = Max(bound, sf_layout_boundary(sf_layout_in_force(), began) + 1);
	if (config.many_databases)
		bound = Max(bound, greatest_returned);
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
