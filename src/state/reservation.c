/*
 * reservation.c
 *	  The time that the server has reserved, up to which it may issue IDs.
 *
 * A position at or above reserved_until is not issued.  A session that needs one extends
 * the reservation first.  An extension is three steps, in this order:
 *
 *	1. the later end is written to WAL (durable.c),
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
 * extensions reserve (core/reserved_time.h).
 *
 * The lock serializes extensions, and is held during the flush.  Under the lock a session checks
 * again whether the extension is still needed, so that if many sessions reach the end at once, only
 * one of them extends the reservation; the others wait for it as for the clock, with interrupts
 * (lock.h).
 *
 * If a registry grants leases to this server (lease.c), the reservation never ends after
 * the lease.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "utils/timestamp.h"

#include "state/reservation.h"
#include "core/hot.h"
#include "core/reserved_time.h"
#include "state/postmaster_memory.h"
#include "state/durable.h"
#include "state/horizon.h"

/*
 * The end is rounded as the durable state stores it, and is neither after the last tick nor after
 * the lease.
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

/*
 * Step 1.  The reading of the clock may be old by now, but it was checked: a new one could be
 * wrong.  The lock is held.
 */
static void
write_extension(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	SfPendingExtension *pending = &generator->pending;
	uint64		end;

	end = sf_reservation_next_end(generator, now, sf_generator_position(generator));
	if (end <= seen)
		return;
	pending->since = sf_time_since_boot();
	pending->taken = 0;
	pending->lsn = sf_durable_state_log(generator, sf_generator_time(generator, end),
										pg_atomic_read_u64(&generator->wall_safe),
										pg_atomic_read_u32(&generator->drifts), false);
	pg_atomic_write_u64(&pending->until, end);
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
	sf_durable_state_note_time(generator, pending->taken, flush, sf_time_since(pending->since));
	pg_atomic_write_u64(&pending->until, 0);
	pg_atomic_write_u64(&generator->reserved_until, reserved_until);
}

/* Steps 2 and 3.  The lock is held. */
static void
flush_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;
	int64		before = sf_time_since_boot();
	int64		flush = 0;

	if (XLogNeedsFlush(pending->lsn))
	{
		XLogFlush(pending->lsn);
		flush = sf_time_since(before);
		pending->taken = sf_time_since(pending->since);
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

	if (!XLogNeedsFlush(pending->lsn) || sf_time_since(pending->since) >= length / 4)
		flush_extension(generator);
	else
		pending->taken = sf_time_since(pending->since);
}

/* Whether a pending extension reserves the next position at a time. */
static bool
is_extended_to(SfGenerator *generator, TimestampTz now)
{
	uint64		until = pg_atomic_read_u64(&generator->pending.until);

	return until > sf_generator_position(generator) &&
		until > sf_position_at(&generator->layout, now);
}

bool
sf_reservation_extend(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	if (!sf_lock_try(&generator->lock))
		return false;
	if (pg_atomic_read_u64(&generator->reserved_until) == seen)
	{
		if (!is_extended_to(generator, now))
			write_extension(generator, seen, now);
		if (pg_atomic_read_u64(&generator->pending.until) != 0)
			flush_extension(generator);
	}
	sf_lock_release(&generator->lock);
	return true;
}

/* A session looks again after this time, not with each batch. */
#define RETRY_AFTER		10000	/* us */

void
sf_reservation_extend_early(SfGenerator *generator, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_GENERATOR_COUNT] = {0};
	SfPendingExtension *pending = &generator->pending;

	if (seen >= pg_atomic_read_u64(&generator->lease_end) ||
		(now >= tried[generator->kind] && now < tried[generator->kind] + RETRY_AFTER))
		return;
	tried[generator->kind] = now;
	if (!sf_lock_try(&generator->lock))
		return;
	if (pg_atomic_read_u64(&pending->until) != 0)
		look_at_extension(generator);
	else if (pg_atomic_read_u64(&generator->reserved_until) == seen)
	{
		write_extension(generator, seen, now);
		if (pg_atomic_read_u64(&pending->until) != 0)
			XLogSetAsyncXactLSN(pending->lsn);
	}
	sf_lock_release(&generator->lock);
}

/* Where a generator starts: neither below the durable end nor below the lease, and not at 0. */
static uint64
opening_position(SfGenerator *generator, SfDurableState *state)
{
	uint64		reserved = sf_position(&generator->layout, state->reserved_tick, 0);
	uint64		start = pg_atomic_read_u64(&generator->lease_start);
	uint64		before = sf_generator_tick_before(generator, start);

	state->wall_safe = Max(state->wall_safe, before);
	return Max(Max(reserved, start), 1);
}

/*
 * The lock is held.  Afterwards the cursor is neither below the durable end nor below the lease,
 * and nothing above it is reserved.
 *
 * The durable state is written first: if that fails, the generator is as before.  If the lease
 * begins later than the durable end, an end above the cursor is written; readers rely on this
 * (horizon.c).  Otherwise the state that was read is written again, because a checkpoint can have
 * saved one whose record of WAL was lost in a crash, and standbys do not have it.  Such a state can
 * be lower than that of a standby, after a change of phase.
 *
 * The cursor is set last, since other processes take a generator that has one as open.
 */
static SfOpening
open_locked(SfGenerator *generator)
{
	SfDurableState state;
	SfInstant	instant;
	uint64		position;
	uint64		lease_end;

	if (!sf_durable_state_read(generator, &state))
		return SF_OPENING_LOST;
	position = opening_position(generator, &state);
	instant = sf_generator_time(generator, position);
	if (sf_position_tick(&generator->layout, position) > state.reserved_tick)
		instant += generator->layout.tick_length;
	sf_durable_state_write(generator, instant, state.wall_safe, state.drifts);
	pg_atomic_write_u64(&generator->wall_safe, state.wall_safe);
	pg_atomic_write_u32(&generator->drifts, state.drifts);
	pg_atomic_write_u64(&generator->opened, sf_cursor(state.drifts & 1, position));
	lease_end = pg_atomic_read_u64(&generator->lease_end);
	pg_atomic_write_u64(&generator->reserved_until, Min(position, lease_end));
	pg_atomic_write_u64(&generator->floor, (uint64) sf_generator_time(generator, position));
	if (generator->leased)
		sf_postmaster_note_opened(generator->kind);
	if (generator->kind == SF_GENERATOR_BIGINT)
		sf_horizon_opened(generator, position);
	pg_write_barrier();			/* pairs with the one in sf_generator_is_open */
	pg_atomic_write_u64(&generator->cursor, sf_cursor(state.drifts & 1, position));
	return SF_OPENING_DONE;
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
			errdetail("The first ID has a time of %s or later.", timestamptz_to_str(floor)),
			errhidestmt(true), errhidecontext(true));
}

SfOpening
sf_check_layout(const SfLayout *layout)
{
	SfLayout	recorded;
	SfOpening	result = sf_durable_layout_read(&recorded);

	if (result == SF_OPENING_DONE && !sf_layout_equal(&recorded, layout))
		return SF_OPENING_OTHER_LAYOUT;
	return result;
}

static SfOpening
check_and_open(SfGenerator *generator)
{
	SfOpening	result = SF_OPENING_DONE;

	if (generator->kind == SF_GENERATOR_BIGINT)
		result = sf_check_layout(&generator->layout);
	return result == SF_OPENING_DONE ? open_locked(generator) : result;
}

SfOpening
sf_generator_open(SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);
	bool		wanted;
	SfOpening	result = SF_OPENING_DONE;

	if (!sf_lock_try(&generator->lock))
		return SF_OPENING_BUSY;
	wanted = !sf_generator_is_open(generator);
	if (wanted)
		result = check_and_open(generator);
	sf_lock_release(&generator->lock);
	if (wanted && result == SF_OPENING_DONE)
		log_opened(generator, machine_id);
	return result;
}
