/*
 * generator.h
 *	  Snowflake IDs, one after the other.
 */
#ifndef SF_GENERATOR_H
#define SF_GENERATOR_H

#include "postgres.h"

#include "core/sno.h"
#include "state/shared.h"

/*
 * The next ID of this session, greater than all before it and unlike any other
 * of this server.
 *
 * May wait for the clock.  Raises object_not_in_prerequisite_state (not
 * preloaded, no machine ID set or leased, no origin for the layout, a clock that
 * has jumped), invalid_parameter_value (settings that do not
 * fit each other), read_only_sql_transaction (server in recovery),
 * configuration_limit_exceeded (waited for snowflake.max_wait for the clock, or no slot for
 * the origin), lock_not_available (waited as long for a locked origin),
 * object_in_use (a session has acquired the origin as its origin) and
 * sequence_generator_limit_exceeded (end of the timestamp's bits).
 */
extern int64 sf_next_id(void);

/*
 * The next sno of this session, unlike any other of its partition that this server
 * issues, metabytes left aside.  They increase but where the clock steps back.  Waits and
 * raises as sf_next_id does.
 */
extern SfSno sf_next_sno(uint8 metabyte);

/*
 * The last ID that sf_next_id returned here; false if there is none, or if it was
 * forgotten.
 */
extern bool sf_last_id(int64 *id);
extern void sf_forget_last_id(void);

/*
 * The generator, opened, and so with a cursor.  After another lease has begun, its reservation is
 * extended, if that can be done at once.  Waits and raises as sf_next_id does, except for the clock
 * to reach a tick; the server is not in recovery.
 */
extern SfGenerator *sf_await_open(SfShared *shared, SfGeneratorKind kind);

/*
 * Publish the ID of a row that was not issued in this transaction, or may not have been
 * (state/horizon.c).  Returns false, and the horizon, if a horizon above the ID was returned
 * already, or may have been before the server was started.  Waits and raises as
 * sf_await_open does, and in a parallel worker.
 */
extern bool sf_admit_id(SfShared *shared, int64 id, int64 *horizon);

#endif							/* SF_GENERATOR_H */
