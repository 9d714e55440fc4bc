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

/*
 * The machine ID (machine_id.c)
 */

/*
 * The number of this server in the IDs of a generator: the machine ID, 0 if the layout has no bits
 * for one; or the partition of IDs of type sno, which is snowflake.sno_partition or, if that is not
 * set, the machine ID.  The first call in a run of the server fixes the number until the server is
 * restarted.  With a registry it is the number of the lease, SF_MACHINE_ID_NOT_PINNED before the
 * first lease, and it changes only together with the generator's generation.
 *
 * Raises object_not_in_prerequisite_state when snowflake.machine_id (for sno: and
 * snowflake.sno_partition) is not set, invalid_parameter_value when the settings are inconsistent.
 */
extern uint32 sf_machine_id(SfShared *shared, SfGeneratorKind kind);

/* The number that is in use, or SF_MACHINE_ID_UNSET if it is not fixed yet. */
extern int	sf_machine_id_in_use(SfShared *shared, SfGeneratorKind kind);

/* The value of snowflake.machine_id, or SF_MACHINE_ID_UNSET. */
extern int	sf_configured_machine_id(SfShared *shared);

/*
 * The clock (clock.c)
 */

/*
 * Check the wall clock, whose reading is now.  A step back is counted and
 * logged; no other action is needed, since the generator never moves backward
 * by itself.
 *
 * Raises object_not_in_prerequisite_state when it has jumped forward by more
 * than snowflake.max_clock_step since it was last accepted.
 */
extern void sf_clock_check(SfGenerator *generator, TimestampTz now);

/*
 * Whether a line, whose cursor was read and is ahead of the clock, is still to be used.  Always
 * SF_LINE_KEEP for a generator with one line; otherwise *other is the time from which on the other
 * line can be used.
 */
extern SfLineChoice sf_clock_choose_line(SfGenerator *generator, int line, uint64 cursor,
										 TimestampTz *other);

/* Accept the current wall clock.  Returns how far it had jumped, in us. */
extern int64 sf_clock_accept(SfShared *shared);

#endif							/* SF_GENERATOR_H */
