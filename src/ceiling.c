/*
 * ceiling.c
 *	  The durable end of what this server may issue.
 *
 * A position at or above the ceiling is not issued.  Whoever wants one raises
 * the ceiling first; to spare callers the wait, the one who takes a lease past
 * the middle of the reserve raises it early.  A raise is three steps, in this
 * order:
 *
 *	1. a higher ceiling is written to the register, which logs it,
 *	2. the log is flushed to disk,
 *	3. the ceiling is published in shared memory.
 *
 * A crash before 2 leaves the old ceiling, which nothing was issued above.  A
 * crash after it leaves the new one; whatever of it was issued or not, the
 * server goes on above it.  And because an ID is issued after 3, any record of
 * a transaction that holds it follows the ceiling in the log: whoever replays
 * that transaction, a standby or a recovery to a point in time, has replayed
 * the ceiling before.
 *
 * Raises are serialised by the shared lock, and look again under it whether they
 * are still wanted, so that of many who meet the ceiling at once only one works.
 * The register is held before the lock is taken, and not waited for: whoever drops
 * an origin may wait for us in ways that no deadlock detector sees.
 *
 * Where a registry leases spans of time to this server (span.c), the ceiling never is
 * above the end of the span, and neither cursor nor change over goes below its start.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ceiling.h"
#include "core/reserve.h"
#include "kept.h"
#include "register.h"
#include "settings.h"
#include "stopwatch.h"

/*
 * What the register of a line holds for a ceiling: its time in microseconds since the
 * Unix epoch; of a line with timelines their state, packed.
 */
static uint64
register_number(const SfLine *line, SfInstant ceiling, uint64 wall_safe, uint32 drifts)
{
	SfTimelineState state;

	if (!sf_line_has_timelines(line))
		return (uint64) (ceiling - SF_UNIX_EPOCH);
	state.ceiling_tick = (uint64) sf_layout_tick_ceil(&line->layout, ceiling);
	state.wall_safe = wall_safe;
	state.drifts = drifts;
	return sf_timeline_pack(state);
}

/* And back. */
static SfTimelineState
register_state(const SfLine *line, uint64 number)
{
	SfTimelineState state = {0};

	if (sf_line_has_timelines(line))
		return sf_timeline_unpack(number);
	state.ceiling_tick = sf_position_tick(&line->layout,
										  sf_position_at(&line->layout, (SfInstant) number + SF_UNIX_EPOCH));
	return state;
}

static void
write_number(SfLine *line, RepOriginId origin, uint64 number, bool back)
{
	instr_time	before = sf_start_stopwatch();

	sf_register_write(origin, number, back);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITES, 1);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITE_TIME, sf_stopwatch(before));
}

/* In the timeline in which the line is. */
static void
write_register(SfLine *line, RepOriginId origin, SfInstant ceiling, bool back)
{
	write_number(line, origin,
				 register_number(line, ceiling, pg_atomic_read_u64(&line->wall_safe),
								 pg_atomic_read_u32(&line->drifts)),
				 back);
}

/*
 * The ceiling to raise to: what the register holds of it when it was rounded, and no
 * further than the line and the span go.
 */
static uint64
next_ceiling(SfLine *line, TimestampTz now, uint64 position)
{
	const SfLayout *layout = &line->layout;
	uint64		ceiling = sf_ceiling_next(layout, now, position);
	uint64		tick = sf_position_tick(layout, ceiling);

	if (sf_line_has_timelines(line))
		ceiling = sf_position(layout, Min(sf_round_up(tick, SF_TIMELINE_CEILING_TICKS), SF_TIMELINE_TICKS), 0);
	return Min(ceiling, pg_atomic_read_u64(&line->span_end));
}

/* Whether the server stops, and issues nothing any more. */
static bool
is_closed(SfLine *line)
{
	return pg_atomic_read_u64(&line->cursor) == SF_CURSOR_CLOSED;
}

static RepOriginId
origin_of(SfLine *line)
{
	return (RepOriginId) pg_atomic_read_u32(&line->origin);
}

/*
 * The register is held, and the lock is taken.  A reading of the clock that was
 * checked is used, though it may be old by now: one that was not could be wrong.
 */
static void
raise_locked(SfLine *line, RepOriginId origin, uint64 seen, TimestampTz now)
{
	uint64		ceiling;

	if (pg_atomic_read_u64(&line->ceiling) != seen || origin_of(line) != origin || is_closed(line))
		return;
	ceiling = next_ceiling(line, now, sf_line_position(line));
	if (ceiling <= seen)
		return;
	write_register(line, origin, sf_line_time(line, ceiling), false);
	pg_write_barrier();
	pg_atomic_write_u64(&line->ceiling, ceiling);
}

/*
 * The register was dropped, and perhaps made anew: open the line again, from
 * where it is.  Until then nothing is issued.
 */
static void
reopen(SfLine *line, RepOriginId gone, uint32 machine_id)
{
	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	if (origin_of(line) == gone)
	{
		pg_atomic_write_u64(&line->ceiling, 0);
		pg_atomic_fetch_add_u32(&line->generation, 1);
		pg_atomic_write_u32(&line->origin, InvalidRepOriginId);
	}
	LWLockRelease(&line->lock);
	sf_ceiling_open(line, machine_id);
}

/*
 * Hold the register and take the lock, until unlock.  A register that is gone is looked
 * for again instead.
 */
static SfRegisterHold
hold_and_lock(SfLine *line, RepOriginId origin, uint32 machine_id)
{
	SfRegisterHold hold = sf_register_hold(origin, line, false);

	if (hold == SF_REGISTER_HELD)
		LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	else if (hold == SF_REGISTER_GONE)
		reopen(line, origin, machine_id);
	return hold;
}

static void
unlock(SfLine *line, RepOriginId origin)
{
	LWLockRelease(&line->lock);
	sf_register_release(origin);
}

bool
sf_ceiling_raise(SfLine *line, uint32 machine_id, uint64 seen, TimestampTz now)
{
	RepOriginId origin = origin_of(line);
	SfRegisterHold hold = hold_and_lock(line, origin, machine_id);

	if (hold == SF_REGISTER_HELD)
	{
		raise_locked(line, origin, seen, now);
		unlock(line, origin);
	}
	return hold != SF_REGISTER_BUSY;
}

static void
report_no_raise(SfLine *line, uint64 ceiling)
{
	ereport(LOG,
			errmsg("no more Snowflake IDs can be reserved: their register is missing"),
			errdetail("This server goes on until its IDs reach %s.",
					  timestamptz_to_str(sf_line_time(line, ceiling))),
			errhint("Make it anew by \"SELECT snowflake_make_register()\"."),
			errhidestmt(true));
}

/* While somebody else raises, a backend need not try again with each lease. */
#define RETRY_AFTER		10000	/* us */

void
sf_ceiling_raise_early(SfLine *line, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_LINE_COUNT] = {0};
	RepOriginId origin = origin_of(line);

	if (origin == InvalidRepOriginId || seen >= pg_atomic_read_u64(&line->span_end) ||
		(now >= tried[line->kind] && now < tried[line->kind] + RETRY_AFTER))
		return;
	tried[line->kind] = now;
	switch (sf_register_hold(origin, line, false))
	{
		case SF_REGISTER_HELD:
			break;
		case SF_REGISTER_BUSY:
			return;
		case SF_REGISTER_GONE:
			if (sf_log_allowed(&line->raise_logged))
				report_no_raise(line, seen);
			return;
	}
	if (LWLockConditionalAcquire(&line->lock, LW_EXCLUSIVE))
	{
		raise_locked(line, origin, seen, now);
		LWLockRelease(&line->lock);
	}
	sf_register_release(origin);
}

/* Move the cursor, which others may be moving, to a position in its timeline. */
static void
move_cursor(SfLine *line, uint64 position, bool back)
{
	uint64		cursor = pg_atomic_read_u64(&line->cursor);
	uint64		moved;

	do
	{
		moved = sf_cursor(sf_line_timeline_of(line, cursor), position);
		if (!back && cursor >= moved)
			return;
	} while (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, moved));
	pg_atomic_write_u64(&line->opened, moved);
}

/* Let nothing before a position be issued, in any timeline.  The lock is taken. */
static void
start_at(SfLine *line, uint64 position)
{
	uint64		tick = sf_position_tick(&line->layout, position);

	if (tick > 0 && pg_atomic_read_u64(&line->wall_safe) < tick - 1)
		pg_atomic_write_u64(&line->wall_safe, tick - 1);
	pg_write_barrier();
	move_cursor(line, position, false);
}

/*
 * The cursor is not below the register from here on, nor below the span, and nothing is
 * reserved.  It is already above the register where that was made anew in this run, and
 * then others may be moving it; what the server knows of timelines stands then.  Returns
 * the time from which on IDs are issued.
 */
static SfInstant
open_locked(SfLine *line, RepOriginId origin)
{
	SfTimelineState state = register_state(line, sf_register_read(origin));
	uint64		position = sf_position(&line->layout, state.ceiling_tick, 0);
	uint64		cursor = pg_atomic_read_u64(&line->cursor);

	if (cursor == 0)
	{
		pg_atomic_write_u64(&line->wall_safe, state.wall_safe);
		pg_atomic_write_u32(&line->drifts, state.drifts);
	}
	if (cursor == 0 || sf_line_timeline_of(line, cursor) == (state.drifts & 1))
	{
		uint64		start = sf_cursor(state.drifts & 1, position);

		while (cursor < start && !pg_atomic_compare_exchange_u64(&line->cursor, &cursor, start))
			;
		cursor = Max(cursor, start);
	}
	start_at(line, pg_atomic_read_u64(&line->span_start));
	position = sf_line_position(line);
	pg_atomic_write_u64(&line->opened, pg_atomic_read_u64(&line->cursor));
	pg_atomic_write_u64(&line->ceiling, position);
	pg_atomic_write_u64(&line->floor, (uint64) sf_line_time(line, position));
	if (line->leased)
		sf_kept_put_opened(line->kind);
	pg_write_barrier();
	pg_atomic_write_u32(&line->origin, origin);
	return sf_line_time(line, position);
}

void
sf_ceiling_open(SfLine *line, uint32 machine_id)
{
	RepOriginId origin;
	SfInstant	floor = 0;
	bool		opened = false;

	if (likely(origin_of(line) != InvalidRepOriginId))
	{
		pg_read_barrier();		/* cursor and ceiling were written before it */
		return;
	}
	origin = sf_register_find(line);
	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	if (origin_of(line) == InvalidRepOriginId && !is_closed(line))
	{
		floor = open_locked(line, origin);
		opened = true;
	}
	LWLockRelease(&line->lock);
	if (opened)
		ereport(LOG,
				sf_line_has_timelines(line) ?
				errmsg("issuing IDs of type sno in partition %u, from %s on",
					   machine_id, timestamptz_to_str(floor)) :
				errmsg("issuing Snowflake IDs with machine ID %u in the layout \"%s\", from %s on",
					   machine_id, line->layout_text, timestamptz_to_str(floor)),
				errhidestmt(true));
}

/*
 * The durable ceiling comes first, then the cursor, then the generation, by which
 * leases of before are dropped, then the ceiling that they see.  If that is above the
 * instant it is written again: the register may have been made anew since.
 *
 * Nothing below is to be issued in any timeline, and so it is below wall_safe.
 */
static void
move_forth(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	SfInstant	reserved = sf_line_time(line, pg_atomic_read_u64(&line->ceiling));
	uint64		wall_safe = Max(pg_atomic_read_u64(&line->wall_safe), sf_position_tick(&line->layout, position) - 1);

	write_number(line, origin,
				 register_number(line, Max(instant, reserved), wall_safe, pg_atomic_read_u32(&line->drifts)), false);
	pg_atomic_write_u64(&line->wall_safe, wall_safe);
	pg_write_barrier();
	move_cursor(line, position, false);
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
 * Whoever moves the line back says that nothing was issued there, in any timeline.
 */
static bool
move_back(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	uint64		wall_safe = pg_atomic_read_u64(&line->wall_safe);
	uint64		tick = sf_position_tick(&line->layout, position);

	if (sf_line_time(line, sf_line_position(line)) - instant <= sf_ceiling_reserve(&line->layout))
		return false;
	wall_safe = Min(wall_safe, tick > 0 ? tick - 1 : 0);
	write_number(line, origin,
				 register_number(line, instant, wall_safe, pg_atomic_read_u32(&line->drifts)), true);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_atomic_write_u64(&line->wall_safe, wall_safe);
	pg_memory_barrier();
	move_cursor(line, position, true);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, position);
	return true;
}

/* The line has not been opened in this run: only the register knows where it is. */
static void
move_unopened(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	SfTimelineState state = register_state(line, sf_register_read(origin));
	uint64		tick = sf_position_tick(&line->layout, position);

	/* As move_back and move_forth do. */
	if (tick < state.ceiling_tick)
		state.wall_safe = Min(state.wall_safe, tick > 0 ? tick - 1 : 0);
	else
		state.wall_safe = Max(state.wall_safe, tick > 0 ? tick - 1 : 0);
	write_number(line, origin, register_number(line, instant, state.wall_safe, state.drifts), true);
}

bool
sf_ceiling_move(SfLine *line, RepOriginId origin, SfInstant instant)
{
	uint64		position = sf_position_at(&line->layout, instant);
	bool		moved = true;

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	if (is_closed(line) || position < pg_atomic_read_u64(&line->span_start))
		moved = false;
	else if (pg_atomic_read_u64(&line->cursor) == 0 && origin_of(line) == InvalidRepOriginId)
		move_unopened(line, origin, instant, position);
	else if (position > sf_line_position(line))
		move_forth(line, origin, instant, position);
	else
		moved = move_back(line, origin, instant, position);
	if (moved)
		pg_atomic_write_u64(&line->floor, (uint64) sf_line_time(line, position));
	LWLockRelease(&line->lock);
	return moved;
}

/* How far the line may be ahead of the clock without that being a step back. */
static int64
tolerated(SfLine *line, uint64 cursor)
{
	int64		ahead = (int64) sf_max_ahead * 1000;

	if (cursor == pg_atomic_read_u64(&line->opened))
		ahead += sf_ceiling_reserve(&line->layout) + SF_TIMELINE_CEILING_TICKS * line->layout.tick_length;
	return ahead;
}

SfStepBack
sf_ceiling_judge(SfLine *line, uint64 cursor, TimestampTz now)
{
	const SfLayout *layout = &line->layout;

	if (!sf_line_has_timelines(line) || sf_line_position_of(line, cursor) == 0)
		return SF_STEP_BACK_NONE;
	return sf_timeline_judge(sf_position_tick(layout, sf_line_position_of(line, cursor) - 1),
							 pg_atomic_read_u64(&line->wall_safe),
							 sf_layout_tick_floor(layout, now),
							 sf_layout_tick_floor(layout, now + tolerated(line, cursor)));
}

/*
 * The register is held, and the lock is taken.  The judgement is made again, by a new
 * reading of the clock.
 *
 * The register comes first: timeline, lower ceiling and wall_safe in one number, so that
 * a crash leaves all of the old ones or all of the new.  Then, as in move_back, a ceiling
 * of 0 refuses leases, the cursor is swapped, and the new ceiling is published.  Until
 * the swap others may lease what is left below the old ceiling; the wall_safe of the
 * register is above all of that, the one in memory is what was leased.
 */
static void
change_over_locked(SfLine *line, RepOriginId origin, uint64 seen)
{
	const SfLayout *layout = &line->layout;
	uint64		cursor = pg_atomic_read_u64(&line->cursor);
	bool		timeline = !sf_line_timeline_of(line, cursor);
	uint32		drifts = pg_atomic_read_u32(&line->drifts) + 1;
	TimestampTz now = GetCurrentTimestamp();
	uint64		start;
	uint64		ceiling;

	if (sf_line_timeline_of(line, cursor) != sf_line_timeline_of(line, seen) || origin_of(line) != origin || is_closed(line) ||
		sf_ceiling_judge(line, cursor, now) != SF_STEP_BACK_CHANGE)
		return;
	start = sf_cursor(timeline, sf_position(layout, (uint64) sf_layout_tick_floor(layout, now), 0));
	ceiling = next_ceiling(line, now, sf_line_position_of(line, start));

	write_number(line, origin,
				 register_number(line, sf_line_time(line, ceiling),
								 sf_position_tick(layout, Max(pg_atomic_read_u64(&line->ceiling), sf_line_position_of(line, cursor)) - 1),
								 drifts),
				 true);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_memory_barrier();
	while (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, start))
		;
	pg_atomic_write_u64(&line->wall_safe, sf_position_tick(layout, sf_line_position_of(line, cursor) - 1));
	pg_atomic_write_u32(&line->drifts, drifts);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, ceiling);
}

bool
sf_ceiling_change_over(SfLine *line, uint32 machine_id, uint64 seen)
{
	RepOriginId origin = origin_of(line);
	SfRegisterHold hold = hold_and_lock(line, origin, machine_id);

	if (hold == SF_REGISTER_HELD)
	{
		change_over_locked(line, origin, seen);
		unlock(line, origin);
	}
	return hold != SF_REGISTER_BUSY;
}

/*
 * IDs of another machine ID may be smaller than those of this one within a tick: let the
 * next ID have a later one, so that those of a session increase.  The lock is taken.
 */
static void
leave_tick(SfLine *line)
{
	uint64		position = sf_line_position(line);

	if (sf_position_sequence(&line->layout, position) > 0)
		move_cursor(line, sf_position(&line->layout, sf_position_tick(&line->layout, position) + 1, 0), false);
}

/*
 * A ceiling of 0 refuses leases while the span changes, and the generation tells backends
 * that have read anything of before, as in move_back.  They read generation, machine ID,
 * cursor and ceiling, in this order.  Whoever has read the new machine ID reads the
 * ceiling of 0, or the one after it, and then the generation is another one when he
 * looks again after his swap.  Whoever has read the old machine ID and swaps the
 * cursor all the same has a position below the old ceiling, which was within the old
 * span: he drops it if he sees the new generation, and does no harm if not.
 *
 * A line that was not opened yet starts within the span when it is.  One that was closed
 * goes on: the registrar was told to end, and the server was not.
 */
void
sf_ceiling_begin_span(SfLine *line, uint32 machine_id, SfInstant from, SfInstant until)
{
	uint32		before = pg_atomic_read_u32(&line->machine_id);
	uint64		ceiling;

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	ceiling = pg_atomic_read_u64(&line->ceiling);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_memory_barrier();
	if (is_closed(line))
		pg_atomic_write_u64(&line->cursor, pg_atomic_read_u64(&line->closed_at));
	sf_line_set_span(line, machine_id, from, until);
	if (origin_of(line) != InvalidRepOriginId)
	{
		start_at(line, pg_atomic_read_u64(&line->span_start));
		if (before != machine_id)
			leave_tick(line);
	}
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, Min(ceiling, pg_atomic_read_u64(&line->span_end)));
	LWLockRelease(&line->lock);
}

/* Raises of the ceiling are bound by it, under the lock: nothing else has to know. */
void
sf_ceiling_extend_span(SfLine *line, SfInstant until)
{
	uint64		end = sf_position_at(&line->layout, until);

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	if (end > pg_atomic_read_u64(&line->span_end))
		pg_atomic_write_u64(&line->span_end, end);
	LWLockRelease(&line->lock);
}

/*
 * The exchange is what ends it: what was leased before it is below the cursor that it
 * gives, and after it no swap succeeds, since nobody has read this cursor and the lock
 * keeps those out who would set another.  What is in hand of leases may still be issued.
 * Should the line be opened again, it has the cursor of before, so that a backend that has
 * slept since it read it can swap it: then the generation is another one.
 *
 * A line that is not open has issued nothing, unless it was open before all processes were
 * restarted: then nobody knows up to where.
 */
SfInstant
sf_ceiling_close(SfLine *line)
{
	uint64		position;
	uint64		cursor;

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	pg_atomic_write_u64(&line->ceiling, 0);
	cursor = pg_atomic_exchange_u64(&line->cursor, SF_CURSOR_CLOSED);
	if (cursor == SF_CURSOR_CLOSED)
		cursor = pg_atomic_read_u64(&line->closed_at);
	pg_atomic_write_u64(&line->closed_at, cursor);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	LWLockRelease(&line->lock);
	if (cursor == 0)
		return sf_kept_opened(line->kind) ? DT_NOEND : DT_NOBEGIN;
	position = sf_line_position_of(line, cursor);
	if (sf_position_sequence(&line->layout, position) > 0)
		position = sf_position(&line->layout, sf_position_tick(&line->layout, position) + 1, 0);
	return Max(sf_line_time(line, position),
			   sf_layout_tick_start(&line->layout, pg_atomic_read_u64(&line->wall_safe) + 1));
}
