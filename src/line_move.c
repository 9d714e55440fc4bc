/*
 * line_move.c
 *	  Moving a line to another instant, as an administrator says.
 *
 * Backends lease from the line meanwhile, without a lock.  What they see of it in steps
 * must never let one issue what is neither of the old line nor of the new: see at each
 * direction.
 */
#include "postgres.h"

#include "core/reserve.h"
#include "line_move.h"
#include "line_state.h"

/*
 * The durable ceiling comes first, then the cursor, then the generation, by which
 * leases of before are dropped, then the ceiling that they see.  If that is above the
 * instant it is written again: the register may have been made anew since.
 *
 * A ceiling that is seen before the generation does no harm: the cursor was swapped before
 * either, so a lease from the old cursor was taken under the old ceiling.
 *
 * Nothing below is to be issued in any timeline, and so it is below wall_safe.
 */
static void
move_forth(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	SfInstant	reserved = sf_line_time(line, pg_atomic_read_u64(&line->ceiling));
	uint64		wall_safe = Max(pg_atomic_read_u64(&line->wall_safe), sf_line_tick_before(line, position));

	sf_line_state_write(line, origin, Max(instant, reserved), wall_safe, pg_atomic_read_u32(&line->drifts), false);
	pg_atomic_write_u64(&line->wall_safe, wall_safe);
	sf_line_move_cursor(line, position, false);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	if (pg_atomic_read_u64(&line->ceiling) < position)
		pg_atomic_write_u64(&line->ceiling, position);
}

/*
 * The register comes first, since that can fail: what raises it is kept out by the
 * lock.  Then a ceiling of 0 refuses all leases while the line is neither here
 * nor there.  A backend that has read the old cursor and ceiling fails to swap the
 * one, or, when the line has come to be there again, sees after the swap that the
 * generation is another one; by that, leases in hand are dropped as well.  What
 * was issued meanwhile, and what a backend issues that has looked at the
 * generation and not yet returned, is of the old line.
 *
 * No barrier is needed: the swap of the cursor follows the ceiling of 0 for all who see it, and
 * the new ceiling, which is where the cursor is, refuses leases as well, until it is raised
 * under the lock.
 *
 * Whoever moves the line back says that nothing was issued there, in any timeline.
 */
static bool
move_back(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	uint64		wall_safe = Min(pg_atomic_read_u64(&line->wall_safe), sf_line_tick_before(line, position));

	if (sf_line_time(line, sf_line_position(line)) - instant <= sf_ceiling_reserve(&line->layout))
		return false;
	sf_line_state_write(line, origin, instant, wall_safe, pg_atomic_read_u32(&line->drifts), true);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_atomic_write_u64(&line->wall_safe, wall_safe);
	sf_line_move_cursor(line, position, true);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, position);
	return true;
}

/*
 * The line has not been opened in this run: only the register knows where it is.  If that has
 * lost its value, this gives it one.
 */
static void
move_unopened(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	SfTimelineState state;
	uint64		before = sf_line_tick_before(line, position);

	(void) sf_line_state_read(line, origin, &state);

	/* As move_back and move_forth do. */
	if (sf_position_tick(&line->layout, position) < state.ceiling_tick)
		state.wall_safe = Min(state.wall_safe, before);
	else
		state.wall_safe = Max(state.wall_safe, before);
	sf_line_state_write(line, origin, instant, state.wall_safe, state.drifts, true);
}

static SfMove
move_locked(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	if (sf_line_is_closed(line))
		return SF_MOVE_CLOSED;
	if (position < pg_atomic_read_u64(&line->span_start))
		return SF_MOVE_BEFORE_SPAN;
	if (!sf_line_was_opened(line))
		move_unopened(line, origin, instant, position);
	else if (position >= sf_line_position(line))
		move_forth(line, origin, instant, position);
	else if (!move_back(line, origin, instant, position))
		return SF_MOVE_TOO_SHORT;
	pg_atomic_write_u64(&line->floor, (uint64) sf_line_time(line, position));
	return SF_MOVED;
}

SfMove
sf_line_move(SfLine *line, RepOriginId origin, SfInstant instant)
{
	SfMove		moved;

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	moved = move_locked(line, origin, instant, sf_position_at(&line->layout, instant));
	LWLockRelease(&line->lock);
	return moved;
}
