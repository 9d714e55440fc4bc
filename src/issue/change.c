/*
 * change.c
 *	  Changes of a generator while sessions take batches from it.
 *
 * A session takes a batch without a lock (issue/generator.c).  Cursors, reservations and
 * durable ends only move forward, so a session that has read old values of these repeats no
 * position: its swap of the cursor fails if the cursor has moved, and a batch below an old end is
 * below the new one too.  So a change that only moves forward needs no more than a new generation,
 * by which sessions drop the batches that they hold: an administrator raises the floor.
 *
 * Two changes are more than that.  The registry worker begins another lease, with another machine
 * ID and other bounds.  And the generator is closed: by the registry worker, which then gives the
 * lease back, or by an administrator, to move it back or to drop the durable state.  No session
 * may issue an ID that is partly of the state before such a change and partly of the state after
 * it.  The generation is a sequence lock for them, under the lock of the generator:
 *
 *	1. sf_begin_change makes the generation odd, and executes a full barrier.
 *	2. Machine ID, bounds, cursors and reservations are changed.
 *	3. sf_end_change executes a write barrier, and makes the generation even.
 *
 * A session reads the generation, which has to be even, executes a read barrier, reads machine ID,
 * cursor and reserved_until, swaps the cursor, executes a read barrier, and reads the generation
 * again.  It keeps the batch only if the generation is the same.  Suppose it is.  By the barriers
 * of step 3 and after the first reading, the session has read nothing that is older than the end
 * of the change before.  If it had read or swapped anything that the change after it has written
 * in step 2, its final read would have returned the generation set in step 1.  So all of its
 * values are those between two changes.
 *
 * Each cursor leaves its tick in a close, and in a change of the machine ID.  A session that holds
 * a batch compares the generation before it issues each ID.  A session that is between this
 * comparison and the return of its ID returns an ID of the state before the change.  Its position
 * is below the cursor at the beginning of the change.
 *
 * The durable end is lowered by the move back alone, when the generator is closed: no further
 * batch can be taken, and all batches that were taken are dropped.  A crash before that leaves the
 * later end, and a crash after it the earlier one, at which the administrator wants the next start
 * to begin.  The promise to other servers ends before that, and none follows.  The postmaster's
 * memory notes the move first of all, so that the generator stays closed when the crash of a
 * process restarts all of them.
 *
 * test/sim runs all of this under a scheduler, and test/model/litmus checks it for the memory
 * model of AArch64.
 */
#include "postgres.h"

#include "access/xlog.h"

#include "core/batch.h"
#include "issue/change.h"
#include "issue/reservation.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"

/*
 * The floor
 */

/* The next position of a line, even of a generator that has not been opened; 0 if it is lost. */
static uint64
next_position(SfGenerator *generator, int line)
{
	return sf_generator_is_open(generator) ?
		pg_atomic_read_u64(&generator->cursor[line]) : sf_opening_position(generator, line);
}

/*
 * The lines in the order in which they are raised.  The active one is the last: if it were ahead of
 * the clock before the other one is, sessions would take this for a step back of the clock, and use
 * the other line.  Sessions can change the active line meanwhile, so it is read once.
 */
static void
order_lines(SfGenerator *generator, int order[SF_LINES])
{
	int			active = sf_generator_line(generator);

	order[0] = sf_generator_lines(generator) == 1 ? 0 : !active;
	order[1] = active;
}

/*
 * The durable ends are on disk before sessions see the position.  The new generation ends the
 * batches that sessions hold, which can be below the floor even if no cursor is.  A session that
 * has read the new generation takes no batch below the floor, since the cursors were written before
 * it, with the same barrier as in sf_end_change.
 */
static bool
raise_lines(SfGenerator *generator, SfInstant instant, uint64 position)
{
	uint64		lease_end = pg_atomic_read_u64(&generator->lease_end);
	XLogRecPtr	written = InvalidXLogRecPtr;
	bool		raised = false;
	int			order[SF_LINES];

	for (int line = 0; line < sf_generator_lines(generator); line++)
	{
		raised |= next_position(generator, line) < position;
		written = sf_durable_raise_end(generator, line, instant);
	}
	XLogFlush(written);
	if (!sf_generator_is_open(generator))
		return raised;
	order_lines(generator, order);
	for (int i = 0; i < sf_generator_lines(generator); i++)
	{
		int			line = order[i];
		uint64		reserved_until = pg_atomic_read_u64(&generator->reserved_until[line]);

		if (reserved_until < position)
			pg_atomic_write_u64(&generator->reserved_until[line], Min(position, lease_end));
		sf_generator_raise_cursor(generator, line, position);
	}
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&generator->generation, 2);
	return raised;
}

/*
 * The floor that restores a durable end which was lost.  If the promise to other servers was not
 * lost with it, the new end is above it too.  An administrator can find out the IDs, but not
 * necessarily a promise, for example one that was written when the server crashed.
 */
static SfInstant
floor_above_promise(SfGenerator *generator, SfInstant instant)
{
	uint64		promise = sf_durable_read(SF_DURABLE_PROMISE);
	uint64		tick;

	if (generator->kind != SF_GENERATOR_BIGINT || promise == 0 || next_position(generator, 0) != 0)
		return instant;
	tick = sf_layout_decompose(&generator->layout, (int64) promise).tick + 1;
	return Max(instant, sf_layout_tick_start(&generator->layout, tick));
}

SfOpening
sf_change_floor(SfGenerator *generator, SfInstant instant, bool *raised, bool *layout_recorded)
{
	uint64		first = sf_position_first(&generator->layout);
	uint64		position;
	SfOpening	status = SF_OPENING_DONE;

	*raised = false;
	*layout_recorded = false;
	if (pg_atomic_read_u32(&generator->moved_back) != 0)
		return SF_OPENING_MOVED_BACK;
	if (generator->kind == SF_GENERATOR_BIGINT)
		status = sf_durable_layout_check(generator);
	if (status == SF_OPENING_OTHER_LAYOUT)
		return status;
	*layout_recorded = status != SF_OPENING_DONE;
	if (*layout_recorded)
		sf_durable_layout_write(&generator->layout);
	instant = floor_above_promise(generator, instant);
	position = sf_position_at(&generator->layout, instant);
	position = Max(position, first);
	*raised = raise_lines(generator, instant, position);
	if (*raised)
	{
		pg_atomic_write_u64(&generator->began, (uint64) sf_generator_time(generator, position));
		pg_atomic_write_u64(&generator->floor, (uint64) sf_generator_time(generator, position));
	}
	return SF_OPENING_DONE;
}

/* A generator that is open has the recorded layout, so nothing is issued meanwhile. */
bool
sf_change_layout(SfGenerator *generator, SfLayout *before, bool *recorded)
{
	*recorded = sf_durable_layout_read(before) == SF_OPENING_DONE;
	if (sf_durable_layout_check(generator) == SF_OPENING_DONE)
		return false;
	sf_durable_layout_write(&generator->layout);
	return true;
}

/*
 * Closing
 */

/* The lock is held.  Every position that was issued is below the cursors. */
static void
close_locked(SfGenerator *generator)
{
	bool		open = sf_generator_is_open(generator);

	if (open)
		sf_begin_change(generator);
	pg_atomic_write_u64(&generator->lease_end, 0);
	for (int line = 0; line < sf_generator_lines(generator); line++)
		pg_atomic_write_u64(&generator->reserved_until[line], 0);
	if (!open)
		return;
	sf_generator_leave_tick(generator);
	sf_end_change(generator);
}

/*
 * A generator that has not been opened has issued nothing, unless it was opened before all
 * processes were restarted; in that case there is no record of the IDs that it issued.
 */
SfInstant
sf_change_close(SfGenerator *generator)
{
	bool		opened;
	SfInstant	end;

	sf_lock_acquire(&generator->lock);
	close_locked(generator);
	opened = sf_generator_is_open(generator);
	end = sf_generator_time(generator, sf_generator_end(generator));
	sf_generator_unlock(generator);
	if (!opened)
		return sf_postmaster_was_opened(generator->kind) ? DT_NOEND : DT_NOBEGIN;
	return end;
}

void
sf_change_stop(SfGenerator *generator)
{
	sf_postmaster_note_moved_back(generator->kind);
	pg_atomic_write_u32(&generator->moved_back, 1);
	pg_write_barrier();			/* a session that finds it closed sees why */
	close_locked(generator);
}

SfOpening
sf_change_back(SfGenerator *generator, SfInstant instant, SfInstant *before, bool *moved)
{
	uint64		end = 0;

	*moved = false;
	if (pg_atomic_read_u32(&generator->moved_back) != 0)
		return SF_OPENING_MOVED_BACK;
	for (int line = 0; line < sf_generator_lines(generator); line++)
	{
		uint64		position = next_position(generator, line);

		if (position == 0)
			return SF_OPENING_LOST;
		end = Max(end, position);
	}
	*before = sf_generator_time(generator, end);
	if (instant >= *before ||
		sf_position_at(&generator->layout, instant) < pg_atomic_read_u64(&generator->lease_start))
		return SF_OPENING_DONE;
	*moved = true;
	sf_change_stop(generator);
	if (generator->kind == SF_GENERATOR_BIGINT)
		sf_durable_set(SF_DURABLE_PROMISE, 0);
	for (int line = 0; line < sf_generator_lines(generator); line++)
		sf_durable_lower_end(generator, line, instant);
	if (sf_generator_is_open(generator))
		*before = sf_generator_time(generator, sf_generator_end(generator));
	return SF_OPENING_DONE;
}

bool
sf_change_promise(SfGenerator *generator, int64 promise)
{
	if (pg_atomic_read_u32(&generator->moved_back) != 0)
		return false;
	if (promise == 0)
		sf_durable_set(SF_DURABLE_PROMISE, 0);
	else
		sf_durable_raise(SF_DURABLE_PROMISE, (uint64) promise);
	return true;
}

/*
 * The lease
 */

/*
 * Move the end of the lease that is used.  Returns false if this is another lease, or the generator
 * is closed.  Only extensions of the reservation use the end.
 */
static bool
extend_lease(SfGenerator *generator, uint32 machine_id, uint64 start, uint64 end)
{
	uint64		current = pg_atomic_read_u64(&generator->lease_end);

	if (pg_atomic_read_u32(&generator->machine_id) != machine_id ||
		pg_atomic_read_u64(&generator->lease_start) != start)
		return false;
	while (current != 0 && current <= end)
		if (pg_atomic_compare_exchange_u64(&generator->lease_end, &current, end))
			return true;
	return false;
}

/*
 * Within a tick, IDs of another machine ID may be smaller than IDs of this machine ID.  So the
 * cursors leave their ticks, and the IDs of a session increase.
 *
 * A generator that has not been opened starts within the lease when it is opened.
 */
static void
begin_lease(SfGenerator *generator, uint32 machine_id, SfInstant from, SfInstant until)
{
	bool		open = sf_generator_is_open(generator);
	int			order[SF_LINES];

	order_lines(generator, order);
	if (open)
		sf_begin_change(generator);
	if (open && pg_atomic_read_u32(&generator->machine_id) != machine_id)
		sf_generator_leave_tick(generator);
	sf_generator_set_lease(generator, machine_id, from, until);
	for (int i = 0; open && i < sf_generator_lines(generator); i++)
	{
		int			line = order[i];
		uint64		reserved_until = pg_atomic_read_u64(&generator->reserved_until[line]);
		uint64		lease_end = pg_atomic_read_u64(&generator->lease_end);

		sf_generator_raise_cursor(generator, line, pg_atomic_read_u64(&generator->lease_start));
		pg_atomic_write_u64(&generator->reserved_until[line], Min(reserved_until, lease_end));
	}
	if (open)
		sf_end_change(generator);
}

/*
 * The state of the generator decides, not the record of the registry worker: the worker can have
 * failed between the two.  The worker is the only process that calls this.
 */
void
sf_change_lease(SfGenerator *generator, uint32 machine_id, SfInstant from, SfInstant until)
{
	if (extend_lease(generator, machine_id, sf_position_at(&generator->layout, from),
					 sf_position_at(&generator->layout, until)))
		return;
	sf_lock_acquire(&generator->lock);
	begin_lease(generator, machine_id, from, until);
	sf_generator_unlock(generator);
}
