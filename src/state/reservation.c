/*
 * reservation.c
 *	  The time that the server has reserved, up to which it may issue IDs.
 *
 * A position at or above reserved_until is not issued.  A session that needs one extends
 * the reservation first.  An extension is three steps, in this order:
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
 * Usually no session waits for step 2.  A session that takes a batch in the second half of the
 * reservation writes the extension, and wakes the WAL writer if it sleeps.  The WAL writer or any
 * commit flushes the record.  The extension is pending until a session that takes a batch finds
 * that its record is on disk, and publishes it.  If that takes too long, or the reservation ends, a
 * session flushes the record itself.  The time of these flushes determines how much time the next
 * extensions reserve (core/reservation.h).
 *
 * The lock serializes extensions, and is held during the flush.  Under the lock a session checks
 * again whether the extension is still needed, so that if many sessions reach the end at once, only
 * one of them extends the reservation; the others wait for it as for the clock, with interrupts
 * (lock.h).  The origin is held before the lock is taken, and without waiting for it: a session
 * that drops an origin can wait for this session in ways that no deadlock detector sees.
 *
 * If a registry grants leases to this server (lease.c), the reservation never ends after
 * the lease.
 */
#include "postgres.h"

#include "access/xlog.h"
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
	uint64		reserved_until = sf_reservation_next(layout, now, position,
													 pg_atomic_read_u32(&generator->write_time));
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

/* Whether the state is still the one for which an extension was requested.  The lock is held. */
static bool
is_wanted(SfGenerator *generator, ReplOriginId origin, uint64 seen)
{
	Assert(sf_lock_is_mine(&generator->lock));
	return pg_atomic_read_u64(&generator->reserved_until) == seen &&
		sf_generator_origin(generator) == origin && !sf_generator_is_closed(generator);
}

/*
 * Step 1.  The origin is held, and so is the lock.  The reading of the clock may be old by now, but
 * it was checked: a new one could be wrong.
 */
static void
write_extension(SfGenerator *generator, ReplOriginId origin, uint64 seen, TimestampTz now)
{
	SfPendingExtension *pending = &generator->pending;
	uint64		reserved_until;

	reserved_until = sf_reservation_next_end(generator, now, sf_generator_position(generator));
	if (reserved_until <= seen && !sf_generator_doubts_origin(generator))
		return;
	reserved_until = Max(reserved_until, seen);
	pending->since = sf_start_stopwatch();
	pending->taken = 0;
	pending->lsn = sf_durable_state_log(generator, origin,
										sf_generator_time(generator, reserved_until),
										pg_atomic_read_u64(&generator->wall_safe),
										pg_atomic_read_u32(&generator->drifts), false);
	pg_atomic_write_u32(&generator->origin_doubtful, 0);
	pg_atomic_write_u64(&pending->until, reserved_until);
}

/*
 * Step 3.  The record of the extension is on disk, and this process has flushed it for a number of
 * microseconds.  The lock is held.
 */
static void
publish_extension(SfGenerator *generator, int64 flush)
{
	SfPendingExtension *pending = &generator->pending;
	uint64		reserved_until = pg_atomic_read_u64(&pending->until);

	Assert(!XLogNeedsFlush(pending->lsn));
	Assert(reserved_until <= pg_atomic_read_u64(&generator->lease_end));
	Assert(reserved_until >= pg_atomic_read_u64(&generator->reserved_until));
	sf_durable_state_note_time(generator, pending->taken, flush, sf_stopwatch(pending->since));
	pg_atomic_write_u64(&pending->until, 0);
	pg_atomic_write_u64(&generator->reserved_until, reserved_until);
}

/* Steps 2 and 3.  The lock is held. */
static void
flush_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;
	SfStopwatch before = sf_start_stopwatch();
	int64		flush = 0;

	if (XLogNeedsFlush(pending->lsn))
	{
		XLogFlush(pending->lsn);
		flush = sf_stopwatch(before);
		pending->taken = sf_stopwatch(pending->since);
	}
	publish_extension(generator, flush);
}

/*
 * Publish a pending extension if its record is on disk by now.  If it is not, though it was written
 * a quarter of the reservation's length ago, flush it.  The lock is held.
 */
static void
look_at_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;
	uint32		write_time = pg_atomic_read_u32(&generator->write_time);
	int64		length = sf_reservation_length_for(&generator->layout, write_time);

	if (pg_atomic_read_u64(&pending->until) == 0)
		return;
	if (!XLogNeedsFlush(pending->lsn) || sf_stopwatch(pending->since) >= length / 4)
		flush_extension(generator);
	else
		pending->taken = sf_stopwatch(pending->since);
}

/* Whether a pending extension reserves the next position at a time. */
static bool
is_extended_to(SfGenerator *generator, TimestampTz now)
{
	uint64		until = pg_atomic_read_u64(&generator->pending.until);

	return until > sf_generator_position(generator) &&
		until > sf_position_at(&generator->layout, now);
}

/*
 * The origin was dropped, and perhaps created again: open the generator again, from its current
 * position.  Until then nothing is issued.
 */
static SfObstacle
reopen(SfGenerator *generator, ReplOriginId gone)
{
	if (!sf_lock_try(&generator->lock))
		return SF_OBSTACLE_WRITER;
	if (sf_generator_origin(generator) == gone)
	{
		(void) sf_stop_issuing(generator);
		pg_atomic_write_u32(&generator->origin, InvalidReplOriginId);
		sf_resume_issuing(generator, 0);
	}
	sf_lock_release(&generator->lock);
	return sf_generator_open(generator);	/* the caller finds that it is not
											 * open */
}

bool
sf_reservation_hold(SfGenerator *generator, ReplOriginId origin, SfObstacle *obstacle)
{
	*obstacle = SF_OBSTACLE_NONE;
	switch (sf_origin_hold(origin, generator, false))
	{
		case SF_ORIGIN_HELD:
			if (sf_lock_try(&generator->lock))
				return true;
			sf_origin_release(origin);
			*obstacle = SF_OBSTACLE_WRITER;
			break;
		case SF_ORIGIN_BUSY:
			*obstacle = SF_OBSTACLE_ORIGIN;
			break;
		case SF_ORIGIN_GONE:
			*obstacle = reopen(generator, origin);
			break;
	}
	return false;
}

void
sf_reservation_release(SfGenerator *generator, ReplOriginId origin)
{
	sf_lock_release(&generator->lock);
	sf_origin_release(origin);
}

SfObstacle
sf_reservation_extend(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	ReplOriginId origin = sf_generator_origin(generator);
	SfObstacle	obstacle;

	if (!sf_reservation_hold(generator, origin, &obstacle))
		return obstacle;
	if (is_wanted(generator, origin, seen))
	{
		if (!is_extended_to(generator, now) || sf_generator_doubts_origin(generator))
			write_extension(generator, origin, seen, now);
		if (pg_atomic_read_u64(&generator->pending.until) != 0)
			flush_extension(generator);
	}
	sf_reservation_release(generator, origin);
	return SF_OBSTACLE_NONE;
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

/*
 * Write an extension, unless there is one already, and let others flush it.  If the origin may have
 * lost its value, nothing on disk protects the IDs that are issued, so it is written and flushed.
 * The origin is held, and so is the lock.
 */
static void
begin_extension_locked(SfGenerator *generator, ReplOriginId origin, uint64 seen, TimestampTz now)
{
	SfPendingExtension *pending = &generator->pending;
	bool		doubtful = sf_generator_doubts_origin(generator);

	if (!is_wanted(generator, origin, seen) ||
		(pg_atomic_read_u64(&pending->until) != 0 && !doubtful))
		return;
	write_extension(generator, origin, seen, now);
	if (pg_atomic_read_u64(&pending->until) == 0)
		return;
	if (doubtful)
		flush_extension(generator);
	else
		XLogSetAsyncXactLSN(pending->lsn);
}

static void
begin_extension(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	ReplOriginId origin = sf_generator_origin(generator);

	if (origin == InvalidReplOriginId)
		return;
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
	if (sf_lock_try(&generator->lock))
	{
		begin_extension_locked(generator, origin, seen, now);
		sf_lock_release(&generator->lock);
	}
	sf_origin_release(origin);
}

/* A session looks again after this time, not with each batch. */
#define RETRY_AFTER		10000	/* us */

void
sf_reservation_extend_early(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_GENERATOR_COUNT] = {0};
	bool		doubtful = sf_generator_doubts_origin(generator);

	if ((seen >= pg_atomic_read_u64(&generator->lease_end) && !doubtful) ||
		(now >= tried[generator->kind] && now < tried[generator->kind] + RETRY_AFTER))
		return;
	tried[generator->kind] = now;
	if (pg_atomic_read_u64(&generator->pending.until) == 0 || doubtful)
		begin_extension(generator, seen, now);
	else if (sf_lock_try(&generator->lock))
	{
		look_at_extension(generator);
		sf_lock_release(&generator->lock);
	}
}

/*
 * Where a generator starts: not below the end in the origin, nor below the lease.  If the generator
 * was open before in this run of the server, the position and the phase in memory apply; they
 * replace those that were read from the origin.
 */
static uint64
opening_position(SfGenerator *generator, SfDurableState *state)
{
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);
	uint64		reserved = sf_position(&generator->layout, state->reserved_tick, 0);
	uint64		start = pg_atomic_read_u64(&generator->lease_start);
	uint64		before = sf_generator_tick_before(generator, start);

	if (cursor == 0 || sf_generator_phase_of(generator, cursor) == (state->drifts & 1))
		start = Max(start, reserved);
	if (cursor != 0)
	{
		uint64		position = sf_generator_position_of(generator, cursor);

		start = Max(start, position);
		state->wall_safe = pg_atomic_read_u64(&generator->wall_safe);
		state->drifts = pg_atomic_read_u32(&generator->drifts);
	}
	state->wall_safe = Max(state->wall_safe, before);
	return start;
}

/*
 * Set the cursor, which sessions may be moving if the generator was open before.
 */
static void
start_at(SfGenerator *generator, uint64 position, const SfDurableState *state)
{
	uint64		unopened = 0;

	pg_atomic_write_u64(&generator->wall_safe, state->wall_safe);
	pg_atomic_write_u32(&generator->drifts, state->drifts);
	if (!pg_atomic_compare_exchange_u64(&generator->cursor, &unopened,
										sf_cursor(state->drifts & 1, position)))
		sf_generator_move_cursor(generator, position, false);
}

/*
 * The origin is held, and so is the lock.  Afterwards the cursor is neither below the end in the
 * origin nor below the lease, and nothing is reserved.
 *
 * The origin is written first: if that fails, the generator is as before.  Afterwards the value in
 * the origin is above the cursor if the cursor was moved: if the generator was open before in this
 * run, or if the lease begins later.  Readers rely on this (horizon.c).  Otherwise the value that
 * was read is written again, because a checkpoint can have saved a value whose record of WAL was
 * lost in a crash, and standbys do not have that value.
 *
 * If the generator was not open, only the origin shows which IDs may have been issued; returns
 * false if it has lost its value.
 */
static bool
open_locked(SfGenerator *generator, ReplOriginId origin)
{
	bool		was_open = sf_generator_was_opened(generator);
	SfDurableState state;
	SfInstant	instant;
	uint64		reserved;
	uint64		position;
	uint64		lease_end;

	if (!sf_durable_state_read(generator, origin, &state) && !was_open)
		return false;
	reserved = sf_position(&generator->layout, state.reserved_tick, 0);
	position = opening_position(generator, &state);
	instant = sf_generator_time(generator, position);
	if (was_open || position > reserved)
		instant += generator->layout.tick_length;
	sf_durable_state_write(generator, origin, instant, state.wall_safe, state.drifts, !was_open);
	start_at(generator, position, &state);
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

/* A reader of the horizon can open the generator of a server that has no machine ID yet. */
static void
log_opened(SfGenerator *generator, uint32 machine_id)
{
	TimestampTz floor = (TimestampTz) pg_atomic_read_u64(&generator->floor);

	if (machine_id == SF_MACHINE_ID_NOT_PINNED && generator->layout.machine_bits > 0)
		return;
	ereport(LOG,
			sf_generator_has_phases(generator) ?
			errmsg("started to issue IDs of type sno in partition %u", machine_id) :
			errmsg("started to issue Snowflake IDs with machine ID %u in the layout \"%s\"",
				   machine_id == SF_MACHINE_ID_NOT_PINNED ? 0 : machine_id,
				   generator->layout_text),
			floor > generator->layout.epoch ?
			errdetail("The first ID has a time of %s or later.", timestamptz_to_str(floor)) : 0,
			errhidestmt(true), errhidecontext(true));
}

SF_HOT SfObstacle
sf_generator_open(SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);
	ReplOriginId origin;
	bool		wanted;
	bool		opened = false;

	if (likely(sf_generator_origin(generator) != InvalidReplOriginId))
	{
		pg_read_barrier();		/* pairs with the one in open_locked */
		return SF_OBSTACLE_NONE;
	}
	if (sf_origin_find(generator, false, &origin) == SF_ORIGIN_BUSY)
		return SF_OBSTACLE_ORIGIN;
	if (!sf_lock_try(&generator->lock))
	{
		sf_origin_release(origin);
		return SF_OBSTACLE_WRITER;
	}
	wanted = sf_generator_origin(generator) == InvalidReplOriginId &&
		!sf_generator_is_closed(generator);
	if (wanted)
		opened = open_locked(generator, origin);
	sf_reservation_release(generator, origin);
	if (wanted && !opened)
		sf_origin_report_lost(generator->kind);
	if (opened)
		log_opened(generator, machine_id);
	return SF_OBSTACLE_NONE;
}
