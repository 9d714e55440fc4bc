/*
 * horizon.h
 *	  The horizon: the ID below which no new row can appear.
 */
#ifndef SF_HORIZON_H
#define SF_HORIZON_H

#include "postgres.h"

#include "horizon/prepared.h"
#include "horizon/snapshot.h"
#include "state/generator_state.h"

/* In place of the first ID of a transaction that has issued none; above all IDs. */
#define SF_NO_ID	PG_INT64_MAX

/* The size of the shared memory, which depends on max_connections and similar settings. */
extern Size sf_horizon_size(void);

/* Make the state in new memory.  Raises nothing. */
extern void sf_horizon_init(void *memory);

/* Use the memory that sf_horizon_init has made. */
extern void sf_horizon_attach(void *memory);

/*
 * Sessions
 */

/*
 * Publish that the transaction may issue an ID, before it does so: no horizon that is
 * returned from now on is above the ID.  Returns the argument with which sf_horizon_withdraw undoes
 * that.
 *
 * Must not be called in a parallel worker, whose transaction ends before the transaction of the
 * session that commits its rows.
 */
extern int64 sf_horizon_publish(int64 id);

/* Undo sf_horizon_publish: the ID was not issued. */
extern void sf_horizon_withdraw(int64 before);

/* The first ID that the transaction may have issued, or SF_NO_ID. */
extern int64 sf_horizon_first(void);

/*
 * The transaction has ended: its rows are visible, including rows that callbacks of transactions
 * have made visible elsewhere, or will never be.
 */
extern void sf_horizon_end(void);

/*
 * Let the prepared transaction hold the horizon back, in place of this session.  Called before the
 * transaction is prepared.  Raises the errors of LockAcquire.
 */
extern void sf_horizon_prepare(void);

/*
 * Publish the ID of a row, where the ID was not, or may not have been, issued in this transaction.
 * Returns false, and an upper bound of the returned horizons, if a horizon above the ID was
 * returned already, or may have been.  The generator must have been opened.
 */
extern bool sf_horizon_admit(int64 id, int64 *returned);

/*
 * Readers
 */

/*
 * The horizon of a snapshot in a database, which it keeps until the end of this transaction;
 * PG_INT64_MIN if none is known.  The generator must have been opened.  If the server makes
 * promises, it is not above the one on disk; as long as none is, it is not above the horizons that
 * were returned before.  Raises out_of_memory.
 */
extern int64 sf_horizon_of_snapshot(SfGenerator *generator, Oid database, Snapshot snapshot);

/*
 * Wait until the horizon of a database for snapshots that are taken later is above an ID, or for
 * some microseconds; 0 and less do not wait.  Returns that horizon.  The session holds no snapshot
 * while it waits, unless the caller has one.  The generator must have been opened.  Serves
 * interrupts.
 */
extern int64 sf_horizon_await(SfGenerator *generator, Oid database, int64 next_id, int64 time);

/* Wake the sessions that wait: the horizon has moved, but not since a transaction has ended. */
extern void sf_horizon_wake(void);

/*
 * The horizon that several servers have in common: README.md in this directory explains its two
 * steps.  The second one raises what the generator allows to the proposal, so the caller has raised
 * the generator to it; sf_horizon_reaches tells whether that is necessary.  The answer is a promise
 * only when *durable, which is not below it, is on disk.  If that is 0, no promise can be made yet,
 * because a higher horizon was returned without one.  They raise the errors of
 * sf_horizon_of_snapshot.
 */
extern int64 sf_horizon_propose(SfGenerator *generator);
extern bool sf_horizon_reaches(SfGenerator *generator, int64 proposal);
extern int64 sf_horizon_promise(SfGenerator *generator, int64 proposal, int64 *durable);

/*
 * The promises end.  As long as one is on disk, it remains the horizon.  No horizon that is
 * returned afterwards is below a promise.
 */
extern void sf_horizon_end_promises(void);

/*
 * All transactions that hold horizons back, in all databases; allocates the array.  Has no effect
 * on horizons.
 */
extern int	sf_horizon_holders(SfHorizonHolder **holders);

/* The least first ID of all of these transactions, or SF_NO_ID. */
extern int64 sf_horizon_least(void);

/*
 * Changes of the generator
 */

/*
 * The generator is opened for the first time in this run of the server, and the server has made
 * promises up to an ID; 0 for none.  The generator's lock is held.
 */
extern void sf_horizon_opened(SfGenerator *generator, uint64 position, int64 promise);

#endif							/* SF_HORIZON_H */
