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
 * session flushes the record itself.  The time that this takes determines how long the next
 * extensions are (core/reserved_time.h).
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

#include "horizon/horizon.h"
#include "issue/opening_error.h"
#include "issue/reservation.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"

/*
 * Step 1.  The reading of the clock may be old by now, but it was checked: a new one could be
 * wrong.  The lock is held.
 */
static void
write_extension(SfGenerator *generator, int line, uint64 seen, TimestampTz now)
{
	SfPendingExtension *pending = &generator->pending;
	uint64		cursor = pg_atomic_read_u64(&generator->cursor[line]);
	uint64		lease_end = pg_atomic_read_u64(&generator->lease_end);
	uint64		end;

	sf_reservation_shorten(&generator->layout, &generator->reserved, sf_time_since_boot());
	end = sf_reservation_next(&generator->layout, now, cursor, generator->reserved.length);
	end = Min(end, lease_end);
	if (end <= seen)
		return;
	pending->line = line;
	pending->since = sf_time_since_boot();
	pending->taken = 0;
	pending->lsn = sf_durable_raise_end(generator, line, sf_generator_time(generator, end));
	pending->until = end;
}

/* Step 3.  The record of the extension is on disk.  The lock is held. */
static void
confirm_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;
	pg_atomic_uint64 *reserved_until = &generator->reserved_until[pending->line];

	Assert(!XLogNeedsFlush(pending->lsn));
	Assert(pending->until <= pg_atomic_read_u64(&generator->lease_end));
	sf_reservation_judge(&generator->reserved, pending->taken, sf_time_since_boot());
	sf_counter_add(&generator->stats, SF_COUNTER_RESERVATION_WRITES, 1);
	sf_counter_add(&generator->stats, SF_COUNTER_RESERVATION_WRITE_TIME, pending->taken);
	if (pending->until > pg_atomic_read_u64(reserved_until))
		pg_atomic_write_u64(reserved_until, pending->until);
	pending->until = 0;
}

/* Steps 2 and 3.  The lock is held. */
static void
flush_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;

	if (XLogNeedsFlush(pending->lsn))
	{
		XLogFlush(pending->lsn);
		pending->taken = sf_time_since(pending->since);
	}
	confirm_extension(generator);
}

/*
 * Publish a pending extension if its record is on disk by now.  If it is not, though it was written
 * a quarter of the reservation's length ago, flush it.  The lock is held.
 */
static void
look_at_extension(SfGenerator *generator)
{
	SfPendingExtension *pending = &generator->pending;

	if (!XLogNeedsFlush(pending->lsn) ||
		sf_time_since(pending->since) >= generator->reserved.length / 4)
		flush_extension(generator);
	else
		pending->taken = sf_time_since(pending->since);
}

/* Whether an extension of a line is pending.  One of the other line is dropped. */
static bool
is_pending(SfGenerator *generator, int line)
{
	if (generator->pending.line != line)
		generator->pending.until = 0;
	return generator->pending.until != 0;
}

/* Whether the pending extension of a line reserves its next position at a time. */
static bool
is_extended_to(SfGenerator *generator, int line, TimestampTz now)
{
	return is_pending(generator, line) &&
		generator->pending.until > pg_atomic_read_u64(&generator->cursor[line]) &&
		generator->pending.until > sf_position_at(&generator->layout, now);
}

bool
sf_reservation_extend(SfGenerator *generator, int line, uint64 seen, TimestampTz now)
{
	if (!sf_lock_try(&generator->lock))
		return false;
	if (pg_atomic_read_u64(&generator->reserved_until[line]) == seen)
	{
		if (!is_extended_to(generator, line, now))
			write_extension(generator, line, seen, now);
		if (is_pending(generator, line))
			flush_extension(generator);
	}
	sf_generator_unlock(generator);
	return true;
}

/* A session looks again only after this time, and not with each batch. */
#define RETRY_AFTER		10000	/* us */

void
sf_reservation_extend_early(SfGenerator *generator, int line, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_GENERATOR_COUNT] = {0};

	if (seen >= pg_atomic_read_u64(&generator->lease_end) ||
		(now >= tried[generator->kind] && now < tried[generator->kind] + RETRY_AFTER))
		return;
	tried[generator->kind] = now;
	if (!sf_lock_try(&generator->lock))
		return;
	if (is_pending(generator, line))
		look_at_extension(generator);
	else if (pg_atomic_read_u64(&generator->reserved_until[line]) == seen)
	{
		write_extension(generator, line, seen, now);
		if (is_pending(generator, line))
			XLogSetAsyncXactLSN(generator->pending.lsn);
	}
	sf_generator_unlock(generator);
}

/*
 * Opening
 */

int64
sf_reservation_tolerated(SfGenerator *generator)
{
	return sf_generator_max_ahead(generator) + sf_reservation_least(&generator->layout) +
		generator->layout.tick_length;
}

uint64
sf_opening_position(SfGenerator *generator, int line)
{
	uint64		end = sf_durable_position(generator, line);
	uint64		start = pg_atomic_read_u64(&generator->lease_start);

	return end == 0 ? 0 : Max(end, start);
}

/*
 * Write the durable end of a line again, because a checkpoint can have saved one whose record of
 * WAL was lost in a crash, and standbys do not have it.  If the lease begins later than the
 * durable end, write an end above the cursor; readers rely on this (horizon/README.md).
 */
static XLogRecPtr
write_opening(SfGenerator *generator, int line, uint64 position)
{
	SfInstant	end = sf_generator_time(generator, position);

	if (position > sf_durable_position(generator, line))
		end += generator->layout.tick_length;
	return sf_durable_raise_end(generator, line, end);
}

SfOpening
sf_opening_positions(SfGenerator *generator, uint64 positions[SF_LINES], int *line)
{
	SfOpening	layout = SF_OPENING_DONE;

	if (pg_atomic_read_u32(&generator->moved_back) != 0)
		return SF_OPENING_MOVED_BACK;
	if (generator->kind == SF_GENERATOR_BIGINT)
		layout = sf_durable_layout_check(generator);
	if (layout != SF_OPENING_DONE)
		return layout;
	for (int i = 0; i < sf_generator_lines(generator); i++)
	{
		positions[i] = sf_opening_position(generator, i);
		if (positions[i] == 0)
			return SF_OPENING_LOST;
	}
	*line = sf_generator_lines(generator) == 1 ? 0 :
		sf_line_at_start(&generator->layout, positions, GetCurrentTimestamp(),
						 sf_reservation_tolerated(generator));
	return SF_OPENING_DONE;
}

/*
 * The lock is held.  Afterwards no cursor is below the durable end or the lease, and nothing above
 * it is reserved.  The durable ends are written first: if that fails, the generator is as before.
 */
static SfOpening
open_locked(SfGenerator *generator)
{
	uint64		lease_end = pg_atomic_read_u64(&generator->lease_end);
	uint64		positions[SF_LINES] = {0};
	XLogRecPtr	written = InvalidXLogRecPtr;
	uint64		promise = 0;
	int			line;
	SfOpening	status = sf_opening_positions(generator, positions, &line);

	if (status != SF_OPENING_DONE)
		return status;
	if (generator->kind == SF_GENERATOR_BIGINT)
		promise = sf_durable_read(SF_DURABLE_PROMISE);
	for (int i = 0; i < sf_generator_lines(generator); i++)
		written = write_opening(generator, i, positions[i]);
	XLogFlush(written);
	if (promise != 0)			/* again, because standbys can lack it */
		sf_durable_raise(SF_DURABLE_PROMISE, promise);
	if (generator->leased)
		sf_postmaster_note_opened(generator->kind);
	if (generator->kind == SF_GENERATOR_BIGINT)
		sf_horizon_opened(generator, positions[0], (int64) promise);
	pg_atomic_write_u32(&generator->switches, (uint32) line);
	pg_atomic_write_u64(&generator->began, (uint64) sf_generator_time(generator, positions[line]));
	for (int i = 0; i < sf_generator_lines(generator); i++)
	{
		pg_atomic_write_u64(&generator->reserved_until[i], Min(positions[i], lease_end));
		pg_atomic_write_u64(&generator->cursor[i], positions[i]);
	}
	sf_end_change(generator);
	return SF_OPENING_DONE;
}

/* A reader of the horizon can open the generator of a server that has no machine ID yet. */
static void
log_opened(SfGenerator *generator, uint32 machine_id)
{
	TimestampTz floor = (TimestampTz) pg_atomic_read_u64(&generator->began);

	if (machine_id == SF_MACHINE_ID_NOT_PINNED && generator->layout.machine_bits > 0)
		return;
	ereport(LOG,
			generator->kind == SF_GENERATOR_SNO ?
			errmsg("started to issue IDs of type sno in partition %u", machine_id) :
			errmsg("started to issue Snowflake IDs with machine ID %u in the layout \"%s\"",
				   machine_id == SF_MACHINE_ID_NOT_PINNED ? 0 : machine_id,
				   generator->layout_text),
			errdetail("The first ID has a time of %s or later.", timestamptz_to_str(floor)),
			errhidestmt(true), errhidecontext(true));
}

bool
sf_generator_open(SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);
	bool		wanted;
	SfOpening	result = SF_OPENING_DONE;

	if (!sf_lock_try(&generator->lock))
		return false;
	wanted = !sf_generator_is_open(generator);
	if (wanted)
		result = open_locked(generator);
	sf_generator_unlock(generator);
	if (result != SF_OPENING_DONE)
		sf_report_not_opened(generator, result);
	if (wanted)
		log_opened(generator, machine_id);
	return true;
}
