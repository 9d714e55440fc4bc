/*
 * generator.h
 *	  Issues Snowflake IDs in a session.
 */
#ifndef SF_GENERATOR_H
#define SF_GENERATOR_H

#include "postgres.h"

#include "core/sno.h"
#include "issue/shared.h"

/*
 * The next ID of this session, greater than all its previous ones and different from all others of
 * this server.
 *
 * May wait for the clock, and for a reservation to be written.  Raises
 * object_not_in_prerequisite_state (not preloaded, no machine ID set or leased, durable state lost,
 * another layout, a clock that has jumped), invalid_parameter_value (settings that are
 * inconsistent), read_only_sql_transaction (server in recovery), invalid_transaction_state
 * (parallel worker), configuration_limit_exceeded (waited for the clock or for a reservation for
 * snowflake.max_wait, or no slot for the durable state) and sequence_generator_limit_exceeded (end
 * of the timestamp's bits).
 */
extern int64 sf_next_id(void);

/*
 * The next sno of this session.  It differs, even without the metabyte, from all others that this
 * server issues in its partition.  The IDs of a session increase except when the clock steps back,
 * or snowflake.max_ahead is lowered.  Waits and raises errors as sf_next_id does.
 */
extern SfSno sf_next_sno(uint8 metabyte);

/* Raise sequence_generator_limit_exceeded: the next tick is after the last one of the layout. */
pg_noreturn extern void sf_report_exhausted(SfGenerator *generator);

/*
 * The last ID that sf_next_id returned in this session; false if there is none,
 * or if it was forgotten.
 */
extern bool sf_last_id(int64 *id);
extern void sf_forget_last_id(void);

/*
 * Return the generator of bigint after it was opened, so that it has a cursor.  This needs no
 * machine ID.  After another lease has begun, its reservation is extended, if that can be done at
 * once.  Waits and raises errors as sf_next_id does, but does not wait for a lease, nor for the
 * clock to reach a tick.  The server must not be in recovery.
 */
extern SfGenerator *sf_await_open(SfShared *shared);

/* Called when the library is preloaded. */
extern void sf_transactions_init(void);

#endif							/* SF_GENERATOR_H */
