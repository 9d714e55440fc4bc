/*
 * reservation.c
 *	  The time that the server has reserved, up to which it may issue IDs.
 *
 * A position at or above reserved_until is not issued.  A session that needs one extends
 * the reservation first.  To spare callers the wait, a session that takes a batch in the second
 * half of the reservation extends it early.  An extension is three steps, in this
 * order:
 *
 *	1. the later end is written to the origin, which logs it in WAL,
 *	2. WAL is flushed to disk,
 *	3. the end is published in shared memory.
 *
 * A crash before step 2 leaves the old reservation, above which nothing was issued.  A
 * crash after it leaves the new one; the server continues above it, however much of it was
 * used.  And because an ID is issued after step 3, all WAL records of
 * a transaction that contains it follow the reservation in WAL: a standby or a recovery to a
 * point in time that has replayed the transaction has replayed the reservation before.
 *
 * The lock serializes extensions.  Under the lock a session checks again whether the extension is
 * still needed, so that if many sessions reach the end at once, only one of them extends the
 * reservation.  The origin is held before the lock is taken, and without waiting for it: a session
 * that drops an origin can wait for this session in ways that no deadlock detector sees.
 *
 * If a registry grants leases to this server (lease.c), the reservation never ends after
 * the lease.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "state/reservation.h"
#include "core/hot.h"
#include "core/reservation.h"
#include "state/postmaster_memory.h"
#include "state/durable_state.h"
#include "state/horizon.h"

/*
 * The end is rounded as the origin stores it, and is neither after the last tick nor after the
 * lease.
 */
uint64
sf_reservation_next_end(SfGenerator *generator, TimestampTz now, uint64 position)
{
	const SfLayout *layout = &generator->layout;
	uint64		reserved_until = sf_reservation_next(layout, now, position);
	uint64		tick = sf_position_tick(layout, reserved_until);
	uint64		lease_end;

	if (sf_generator_has_phases(generator))
		reserved_until = sf_position(layout,
									 Min(sf_round_up(tick, SF_PHASE_RESERVED_TICKS),
										 SF_PHASE_TICKS),
									 0);
	lease_end = pg_atomic_read_u64(&generator->lease_end);
	return Min(reserved_until, lease_end);
}

/*
 * The origin is held, and so is the lock.  The reading of the clock may be old by now, but it was
 * checked: a new one could be wrong.
 */
static void
extend_locked(SfGenerator *generator, ReplOriginId origin, uint64 seen, TimestampTz now)
{
	uint64		reserved_until;

	Assert(LWLockHeldByMeInMode(&generator->lock, LW_EXCLUSIVE));
	if (pg_atomic_read_u64(&generator->reserved_until) != seen ||
		sf_generator_origin(generator) != origin ||
		sf_generator_is_closed(generator))
		return;
	reserved_until = sf_reservation_next_end(generator, now, sf_generator_position(generator));
	if (reserved_until <= seen && !sf_generator_doubts_origin(generator))
		return;
	reserved_until = Max(reserved_until, seen);
	sf_durable_state_write(generator, origin, sf_generator_time(generator, reserved_until),
						   pg_atomic_read_u64(&generator->wall_safe),
						   pg_atomic_read_u32(&generator->drifts), false);
	pg_atomic_write_u32(&generator->origin_doubtful, 0);
	pg_write_barrier();
	Assert(reserved_until <= pg_atomic_read_u64(&generator->lease_end));
	pg_atomic_write_u64(&generator->reserved_until, reserved_until);
}

/*
 * The origin was dropped, and perhaps created again: open the generator again, from its current
 * position.  Until then nothing is issued.
 */
static void
reopen(SfGenerator *generator, ReplOriginId gone)
{
	LWLockAcquire(&generator->lock, LW_EXCLUSIVE);
	if (sf_generator_origin(generator) == gone)
	{
		(void) sf_stop_issuing(generator);
		pg_atomic_write_u32(&generator->origin, InvalidReplOriginId);
		sf_resume_issuing(generator, 0);
	}
	LWLockRelease(&generator->lock);
	(void) sf_generator_open(generator);	/* the caller finds that it is not
											 * open */
}

SfOriginHold
sf_reservation_hold(SfGenerator *generator, ReplOriginId origin)
{
	SfOriginHold hold = sf_origin_hold(origin, generator, false);

	if (hold == SF_ORIGIN_HELD)
		LWLockAcquire(&generator->lock, LW_EXCLUSIVE);
	else if (hold == SF_ORIGIN_GONE)
		reopen(generator, origin);
	return hold;
}

void
sf_reservation_release(SfGenerator *generator, ReplOriginId origin)
{
	LWLockRelease(&generator->lock);
	sf_origin_release(origin);
}

bool
sf_reservation_extend(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	ReplOriginId origin = sf_generator_origin(generator);
	SfOriginHold hold = sf_reservation_hold(generator, origin);

	if (hold == SF_ORIGIN_HELD)
	{
		extend_locked(generator, origin, seen, now);
		sf_reservation_release(generator, origin);
	}
	return hold != SF_ORIGIN_BUSY;
}

static void
report_no_reservation(SfGenerator *generator, uint64 reserved_until)
{
	ereport(LOG,
			errmsg("could not reserve time for %s IDs", sf_generator_name(generator)),
			errdetail("The origin of these IDs is missing.  IDs are issued until their times reach %s.",
					  timestamptz_to_str(sf_generator_time(generator, reserved_until))),
			errhint("Use snowflake_create_origin() before the server is restarted, so that no ID is issued twice."),
			errhidestmt(true), errhidecontext(true));
}

/* While another session extends the reservation, a session does not try again with each batch. */
#define RETRY_AFTER		10000	/* us */

void
sf_reservation_extend_early(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_GENERATOR_COUNT] = {0};
	ReplOriginId origin = sf_generator_origin(generator);

	if (origin == InvalidReplOriginId ||
		(seen >= pg_atomic_read_u64(&generator->lease_end) &&
		 !sf_generator_doubts_origin(generator)) ||
		(now >= tried[generator->kind] && now < tried[generator->kind] + RETRY_AFTER))
		return;
	tried[generator->kind] = now;
	switch (sf_origin_hold(origin, generator, false))
	{
		case SF_ORIGIN_HELD:
			break;
		case SF_ORIGIN_BUSY:
			return;
		case SF_ORIGIN_GONE:
			if (sf_log_allowed(&generator->reservation_logged))
				report_no_reservation(generator, seen);
			return;
	}
	if (LWLockConditionalAcquire(&generator->lock, LW_EXCLUSIVE))
	{
		extend_locked(generator, origin, seen, now);
		LWLockRelease(&generator->lock);
	}
	sf_origin_release(origin);
}

/*
 * Move the cursor to the end of the reservation in the origin.  If the origin was created again in
 * this run of the server, the cursor is above that already; then sessions may be moving the cursor,
 * and the phase in memory applies.
 */
static void
start_at_state(SfGenerator *generator, const SfDurableState *state)
{
	bool		phase = state->drifts & 1;
	uint64		start = sf_cursor(phase, sf_position(&generator->layout, state->reserved_tick, 0));
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);

	if (cursor == 0)
	{
		pg_atomic_write_u64(&generator->wall_safe, state->wall_safe);
		pg_atomic_write_u32(&generator->drifts, state->drifts);
	}
	else if (sf_generator_phase_of(generator, cursor) != phase)
		return;
	while (cursor < start && !pg_atomic_compare_exchange_u64(&generator->cursor, &cursor, start))
		;
}

/*
 * The origin is held, and so is the lock.  Afterwards the cursor is neither below the end in the
 * origin nor below the lease, and nothing is reserved.
 *
 * The origin is written if its value may be below the cursor: if the generator was open before in
 * this run, or the lease begins later.  Readers rely on this (horizon.c).  If the generator was not
 * open, only the origin shows which IDs may have been issued; returns false if it has lost its
 * value.
 */
static bool
open_locked(SfGenerator *generator, ReplOriginId origin)
{
	bool		was_open = sf_generator_was_opened(generator);
	SfDurableState state;
	uint64		position;
	uint64		lease_end;

	if (!sf_durable_state_read(generator, origin, &state) && !was_open)
		return false;
	start_at_state(generator, &state);
	sf_generator_start_at(generator, pg_atomic_read_u64(&generator->lease_start));
	position = sf_generator_position(generator);
	if (was_open || position > sf_position(&generator->layout, state.reserved_tick, 0))
		sf_durable_state_write(generator, origin,
							   sf_generator_time(generator, position) +
							   generator->layout.tick_length,
							   pg_atomic_read_u64(&generator->wall_safe),
							   pg_atomic_read_u32(&generator->drifts), false);
	pg_atomic_write_u64(&generator->opened, pg_atomic_read_u64(&generator->cursor));
	lease_end = pg_atomic_read_u64(&generator->lease_end);
	pg_atomic_write_u64(&generator->reserved_until, Min(position, lease_end));
	pg_atomic_write_u64(&generator->floor, (uint64) sf_generator_time(generator, position));
	pg_atomic_write_u32(&generator->origin_doubtful, 0);
	if (generator->leased)
		sf_postmaster_note_opened(generator->kind);
	if (generator->kind == SF_GENERATOR_BIGINT && !was_open)
		sf_horizon_opened(generator, position);
	pg_write_barrier();			/* cursor and reservation come before it */
	pg_atomic_write_u32(&generator->origin, origin);
	return true;
}

static void
log_opened(SfGenerator *generator, uint32 machine_id)
{
	TimestampTz floor = (TimestampTz) pg_atomic_read_u64(&generator->floor);

	ereport(LOG,
			sf_generator_has_phases(generator) ?
			errmsg("started to issue IDs of type sno in partition %u", machine_id) :
			errmsg("started to issue Snowflake IDs with machine ID %u in the layout \"%s\"",
				   machine_id == SF_MACHINE_ID_NOT_PINNED ? 0 : machine_id,
				   generator->layout_text),
			floor > generator->layout.epoch ?
			errdetail("No ID has a time before %s.", timestamptz_to_str(floor)) : 0,
			errhidestmt(true), errhidecontext(true));
}

SF_HOT bool
sf_generator_open(SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);
	ReplOriginId origin;
	bool		wanted;
	bool		opened = false;

	if (likely(sf_generator_origin(generator) != InvalidReplOriginId))
	{
		pg_read_barrier();		/* pairs with the one in open_locked */
		return true;
	}
	if (sf_origin_find(generator, false, &origin) == SF_ORIGIN_BUSY)
		return false;
	LWLockAcquire(&generator->lock, LW_EXCLUSIVE);
	wanted = sf_generator_origin(generator) == InvalidReplOriginId &&
		!sf_generator_is_closed(generator);
	if (wanted)
		opened = open_locked(generator, origin);
	sf_reservation_release(generator, origin);
	if (wanted && !opened)
		sf_origin_report_lost(generator->kind);
	if (opened)
		log_opened(generator, machine_id);
	return true;
}
