/*
 * change.c
 *	  Changes of a generator while sessions take batches from it.
 *
 * There are six.  An administrator moves the generator forward or backward.  When the clock has
 * stepped back, a session changes the phase of a generator that has phases.  The registry worker
 * begins another lease, and closes the generator when the server stops.  A session that is
 * terminated returns the time that is reserved and not used.  Sessions take batches meanwhile,
 * without a lock.  No session may issue an ID that is partly of the state before the change and
 * partly of the state after it.
 *
 * All of them follow one protocol (invariant 3 in src/README.md), under the lock:
 *
 *	1. The durable state is written, if it changes.  If this fails, nothing has changed.  (The
 *	   return of the reservation writes it after step 3; see return_locked.)
 *	2. sf_stop_issuing sets the end of the reservation to 0, which refuses all batches.
 *	3. The cursor and the other fields are changed.
 *	4. sf_resume_issuing changes the generation, and then publishes the new reservation.
 *
 * A session reads generation, machine ID, cursor and reserved_until in this order, swaps the
 * cursor, and reads the generation again (generator/generator.c, invariant 4).  It keeps the
 * batch only if the generation is the same.  The cases:
 *
 * - It has read the new reserved_until.  That was written after the generation, so the second
 *   read of the generation returns the new one.  If the first read did not return the new one as
 *   well, the batch is dropped.  Everything that was read after the new generation is new.
 * - It has read 0.  The batch is refused.
 * - It has read the old reserved_until, and so read machine ID and cursor before step 3.  If the
 *   cursor has been swapped since, by step 3 or by another session, the session's own swap fails.
 *   If not, the batch lies below the old reservation and belongs to the state before the change, in
 *   which this server was allowed to issue it.  Step 3 then moves a cursor that is already past
 *   this batch.
 *
 * Barriers: the one in sf_stop_issuing pairs with the one before the read of reserved_until, so
 * that a session that sees any change of step 3 does not see the old reservation.  The one in
 * sf_resume_issuing pairs with the one after the swap, so that a session that has read the new
 * reservation sees the new generation.  test/model checks all of this, for interleavings and for
 * the memory model of AArch64.
 *
 * Before it issues each ID of a batch that it holds, a session compares the generation of the batch
 * with that of the generator, and drops the batch if they differ.  A session that is between this
 * comparison and the return of its ID returns an ID of the state before the change.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "storage/fd.h"
#include "storage/pmsignal.h"
#include "utils/pidfile.h"

#include "core/batch.h"
#include "core/reserved_time.h"
#include "state/change.h"
#include "state/durable.h"
#include "state/horizon.h"
#include "state/postmaster_memory.h"
#include "state/reservation.h"
#include "state/shared.h"

/*
 * Moving forward and backward
 */

/*
 * The reservation is not lowered: if it is above the instant, it is written again.  The durable
 * state may be an extension that was not published, in which a greater reservation is packed with
 * an older wall_safe.  It is replaced, as nothing above the published reservation was issued.
 * Nothing below the position is to be issued in either phase, so the ticks below it are at or below
 * wall_safe.
 */
static void
move_forward(SfGenerator *generator, SfInstant instant, uint64 position)
{
	SfInstant	reserved = sf_generator_time(generator,
											 pg_atomic_read_u64(&generator->reserved_until));
	uint64		before = sf_generator_tick_before(generator, position);
	uint64		wall_safe = pg_atomic_read_u64(&generator->wall_safe);
	uint64		reserved_until;

	wall_safe = Max(wall_safe, before);
	sf_durable_state_write(generator, Max(instant, reserved), wall_safe,
						   pg_atomic_read_u32(&generator->drifts));
	reserved_until = sf_stop_issuing(generator);
	pg_atomic_write_u64(&generator->wall_safe, wall_safe);
	sf_generator_move_cursor(generator, position, false);
	sf_resume_issuing(generator, Max(reserved_until, position));
}

/*
 * An administrator who moves a generator backward asserts that nothing was issued at the instant or
 * after it, in either phase.
 */
static bool
move_backward(SfGenerator *generator, SfInstant instant, uint64 position, int64 *horizon)
{
	uint64		before = sf_generator_tick_before(generator, position);
	uint64		wall_safe = pg_atomic_read_u64(&generator->wall_safe);

	wall_safe = Min(wall_safe, before);
	if (sf_generator_time(generator, sf_generator_position(generator)) - instant <=
		sf_reservation_length(&generator->layout))
		return false;
	sf_durable_state_write(generator, instant, wall_safe,
						   pg_atomic_read_u32(&generator->drifts));
	(void) sf_stop_issuing(generator);
	pg_atomic_write_u64(&generator->wall_safe, wall_safe);
	if (generator->kind == SF_GENERATOR_BIGINT)
		*horizon = sf_horizon_move_back(generator, position);
	else
		sf_generator_move_cursor(generator, position, true);
	sf_resume_issuing(generator, position);
	return true;
}

/*
 * The generator has not been opened in this run of the server: only the durable state shows its
 * position.  One that was lost, or is invalid, is replaced.
 */
static void
move_unopened(SfGenerator *generator, SfInstant instant, uint64 position, int64 *horizon)
{
	SfDurableState state;
	uint64		before = sf_generator_tick_before(generator, position);

	(void) sf_durable_state_read(generator, &state);

	/* As move_backward and move_forward do. */
	if (sf_position_tick(&generator->layout, position) < state.reserved_tick)
	{
		state.wall_safe = Min(state.wall_safe, before);
		if (generator->kind == SF_GENERATOR_BIGINT)
			*horizon = sf_horizon_at(&generator->layout,
									 sf_position(&generator->layout, state.reserved_tick, 0), 0);
	}
	else
		state.wall_safe = Max(state.wall_safe, before);
	sf_durable_state_write(generator, instant, state.wall_safe, state.drifts);
}

/* Record the layout if none is.  The lock is held.  Returns false if another one is recorded. */
static bool
record_layout(SfGenerator *generator, bool *recorded)
{
	SfOpening	status = sf_check_layout(&generator->layout);

	*recorded = status == SF_OPENING_LOST || status == SF_OPENING_INVALID;
	if (*recorded)
		sf_durable_layout_write(&generator->layout);
	return status != SF_OPENING_OTHER_LAYOUT;
}

/* The cursor of a generator that is open is not 0. */
SfFloorChange
sf_change_floor(SfGenerator *generator, SfInstant instant, SfFloorEffects *effects)
{
	uint64		tick_start = sf_position_at(&generator->layout, instant);
	uint64		position = Max(tick_start, 1);

	effects->horizon = SF_NO_ID;
	effects->layout_recorded = false;
	if (position < pg_atomic_read_u64(&generator->lease_start))
		return SF_FLOOR_BEFORE_LEASE;
	if (generator->kind == SF_GENERATOR_BIGINT &&
		!record_layout(generator, &effects->layout_recorded))
		return SF_FLOOR_OTHER_LAYOUT;
	if (!sf_generator_is_open(generator))
		move_unopened(generator, instant, position, &effects->horizon);
	else if (position >= sf_generator_position(generator))
		move_forward(generator, instant, position);
	else if (!move_backward(generator, instant, position, &effects->horizon))
		return SF_FLOOR_TOO_NEAR;
	pg_atomic_write_u64(&generator->floor, (uint64) sf_generator_time(generator, position));
	pg_atomic_write_u64(&generator->floor_set, (uint64) sf_generator_time(generator, position));
	return SF_FLOOR_CHANGED;
}

/* A generator that is open has the recorded layout, so nothing is issued meanwhile. */
bool
sf_change_layout(SfGenerator *generator, SfLayout *before, bool *recorded)
{
	*recorded = sf_durable_layout_read(before) == SF_OPENING_DONE;
	if (sf_check_layout(&generator->layout) == SF_OPENING_DONE)
		return false;
	sf_durable_layout_write(&generator->layout);
	return true;
}

/*
 * The phase, when the clock has stepped back (core/phase.h)
 */

/* How far the generator may be ahead of the clock before that counts as a step back. */
static int64
tolerated(SfGenerator *generator, uint64 cursor)
{
	int64		ahead = sf_generator_max_ahead(generator);

	if (cursor == pg_atomic_read_u64(&generator->opened))
		ahead += sf_reservation_length(&generator->layout) +
			(int64) SF_PHASE_RESERVED_TICKS * generator->layout.tick_length;
	return ahead;
}

SfStepBack
sf_judge_clock(SfGenerator *generator, uint64 cursor, TimestampTz now)
{
	const SfLayout *layout = &generator->layout;

	Assert(sf_generator_position_of(generator, cursor) > 0);
	if (!sf_generator_has_phases(generator))
		return SF_STEP_BACK_NONE;
	return sf_phase_judge(sf_position_tick(layout, sf_generator_position_of(generator, cursor) - 1),
						  pg_atomic_read_u64(&generator->wall_safe),
						  sf_layout_tick_floor(layout, now),
						  sf_layout_tick_floor(layout, now + tolerated(generator, cursor)));
}

/*
 * The lock is held.  The clock is read and judged again.
 *
 * The phase, the lower reservation and wall_safe are one durable number, so a crash leaves either
 * all of the old values or all of the new ones.  Until the swap of the cursor, sessions that have
 * read the old reservation may take batches below it: the durable wall_safe is not below the tick
 * of any of these batches.  The wall_safe in memory is the tick of the position before the cursor
 * that was swapped, and so is not below the tick of any batch that was taken.
 */
static void
change_phase_locked(SfGenerator *generator, uint64 seen)
{
	const SfLayout *layout = &generator->layout;
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);
	bool		phase = !sf_generator_phase_of(generator, cursor);
	uint32		drifts = pg_atomic_read_u32(&generator->drifts) + 1;
	TimestampTz now = GetCurrentTimestamp();
	uint64		position;
	uint64		reserved_until;
	uint64		reserved;
	uint64		issuable;

	if (sf_generator_phase_of(generator, cursor) != sf_generator_phase_of(generator, seen) ||
		sf_generator_state(generator) == SF_NO_LEASE ||
		sf_judge_clock(generator, cursor, now) != SF_STEP_BACK_CHANGE)
		return;
	position = Max(sf_position(layout, (uint64) sf_layout_tick_floor(layout, now), 0), 1);
	reserved_until = sf_reservation_next_end(generator, now, position);
	issuable = sf_generator_position_of(generator, cursor);
	reserved = pg_atomic_read_u64(&generator->reserved_until);
	issuable = Max(issuable, reserved);
	sf_durable_state_write(generator, sf_generator_time(generator, reserved_until),
						   sf_position_tick(layout, issuable - 1), drifts);
	(void) sf_stop_issuing(generator);
	while (!pg_atomic_compare_exchange_u64(&generator->cursor, &cursor, sf_cursor(phase, position)))
		;
	pg_atomic_write_u64(&generator->wall_safe,
						sf_position_tick(layout, sf_generator_position_of(generator, cursor) - 1));
	pg_atomic_write_u32(&generator->drifts, drifts);
	sf_resume_issuing(generator, reserved_until);
}

bool
sf_change_phase(SfGenerator *generator, uint64 seen)
{
	if (!sf_lock_try(&generator->lock))
		return false;
	change_phase_locked(generator, seen);
	sf_lock_release(&generator->lock);
	return true;
}

/*
 * The lease
 */

/*
 * Within a tick, IDs of another machine ID may be smaller than those of this one.  So the cursor
 * leaves its tick, and the IDs of a session increase.  The cursor also leaves its tick if nothing
 * of the tick was taken, since a session that has read the old machine ID and this cursor could
 * still swap the cursor.
 *
 * A generator that has not been opened starts within the lease when it is opened.
 */
void
sf_change_lease(SfGenerator *generator, uint32 machine_id, SfInstant from, SfInstant until)
{
	uint32		before = pg_atomic_read_u32(&generator->machine_id);
	uint64		reserved_until;

	sf_lock_acquire(&generator->lock);
	reserved_until = sf_stop_issuing(generator);
	sf_generator_set_lease(generator, machine_id, from, until);
	if (sf_generator_is_open(generator))
	{
		if (before != machine_id)
			sf_generator_leave_tick(generator);
		sf_generator_start_at(generator, pg_atomic_read_u64(&generator->lease_start));
	}
	sf_resume_issuing(generator, reserved_until);
	sf_lock_release(&generator->lock);
}

void
sf_extend_lease(SfGenerator *generator, SfInstant until)
{
	uint64		end = sf_position_at(&generator->layout, until);

	if (end > pg_atomic_read_u64(&generator->lease_end))
		pg_atomic_write_u64(&generator->lease_end, end);
}

/*
 * Once issuing is stopped and the cursor has left its tick, no session takes a batch: one that has
 * read the old reservation has read an earlier cursor as well.  So every batch, and the rest of
 * each batch that a session holds, is before the tick of the cursor.
 *
 * A generator that has not been opened has issued nothing, unless it was opened before all
 * processes were restarted; in that case there is no record of the IDs that it issued.
 */
SfInstant
sf_change_close(SfGenerator *generator)
{
	bool		opened;
	SfInstant	end;
	SfInstant	safe;

	sf_lock_acquire(&generator->lock);
	opened = sf_generator_is_open(generator);
	(void) sf_stop_issuing(generator);
	pg_atomic_write_u64(&generator->lease_end, 0);
	if (opened)
		sf_generator_leave_tick(generator);
	end = sf_generator_time(generator, sf_generator_position(generator));
	safe = sf_layout_tick_start(&generator->layout,
								pg_atomic_read_u64(&generator->wall_safe) + 1);
	sf_resume_issuing(generator, 0);
	sf_lock_release(&generator->lock);
	if (!opened)
		return sf_postmaster_was_opened(generator->kind) ? DT_NOEND : DT_NOBEGIN;
	return Max(end, safe);
}

/*
 * The end of a session that has issued IDs
 *
 * When the server is stopped in mode fast, its sessions are terminated, and return the time that is
 * reserved and not used, so that the server does not wait for it after its next start.  No other
 * end of a session does that, because it costs a flush of WAL, and because a server without room
 * for WAL would crash.  A session cannot tell why it was terminated, but the postmaster writes into
 * its PID file that the server is being stopped, before it signals any process.
 */

/*
 * The lock is held.
 *
 * The durable end may be lowered only when no session can take a batch above it any more: issuing
 * is stopped, and the cursor has changed, so that a session that has read the old reservation and
 * the old cursor does not succeed with its swap.  So it is written last, unlike in the other
 * changes.  If that fails, nothing is reserved in memory and the old end is on disk, which is what
 * an extension can start from.  A session that issues an ID of a later tick extends the reservation
 * first, and in WAL that record follows this one.
 *
 * The rest of the cursor's tick stays reserved.  If it were lost, a role whose sessions take an ID
 * and are terminated, again and again, would make others wait for the next tick each time.
 */
static void
return_locked(SfGenerator *generator)
{
	const SfLayout *layout = &generator->layout;
	uint64		end = sf_position_next_tick(layout, sf_generator_position(generator));
	uint64		end_tick = sf_position_tick(layout, end);
	SfDurableState state;

	if (sf_generator_has_phases(generator))
		end_tick = sf_round_up(end_tick, SF_PHASE_RESERVED_TICKS);
	if (!sf_durable_state_read(generator, &state) || state.reserved_tick <= end_tick)
		return;
	(void) sf_stop_issuing(generator);
	sf_generator_skip_position(generator);
	end = sf_position_next_tick(layout, sf_generator_position(generator) - 1);
	sf_durable_state_write(generator, sf_generator_time(generator, end),
						   pg_atomic_read_u64(&generator->wall_safe),
						   pg_atomic_read_u32(&generator->drifts));
	sf_resume_issuing(generator, end);
}

/* Whether the PID file, in the data directory, says so; false if it cannot be read. */
static bool
server_is_stopping(void)
{
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	char		line[MAXPGPATH];
	bool		stopping = false;

	if (file == NULL)
		return false;
	for (int i = 1; i <= LOCK_FILE_LINE_PM_STATUS && fgets(line, sizeof(line), file); i++)
		stopping = i == LOCK_FILE_LINE_PM_STATUS &&
			strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
	FreeFile(file);
	return stopping;
}

/*
 * The session can be in the middle of anything, so its transaction is ended first.  A walsender can
 * end after the checkpoint of the stop, when no WAL may be written.  Without a postmaster nothing
 * ends a wait for a process that was killed.
 */
void
sf_session_end(int code, Datum argument)
{
	SfShared   *shared = sf_shared();

	if (code == 0 || shared == NULL || am_walsender || !PostmasterIsAlive() ||
		!server_is_stopping())
		return;
	AbortOutOfAnyTransaction();
	for (int kind = 0; kind < SF_GENERATOR_COUNT; kind++)
	{
		SfGenerator *generator = &shared->generators[kind];

		if (!sf_lock_try(&generator->lock))
			continue;
		if (sf_generator_is_open(generator))
			return_locked(generator);
		sf_lock_release(&generator->lock);
	}
}
