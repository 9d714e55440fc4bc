/*
 * change_over.c
 *	  Going on in the other timeline when the clock steps back.
 *
 * When that may be is core/timeline.h's affair; here the line is moved to where the clock is,
 * while others lease from it.
 */
#include "postgres.h"

#include "ceiling.h"
#include "change_over.h"
#include "core/reserve.h"
#include "line_state.h"

/* How far the line may be ahead of the clock without that being a step back. */
static int64
tolerated(SfLine *line, uint64 cursor)
{
	int64		ahead = sf_line_max_ahead(line);

	if (cursor == pg_atomic_read_u64(&line->opened))
		ahead += sf_ceiling_reserve(&line->layout) + (int64) SF_TIMELINE_CEILING_TICKS * line->layout.tick_length;
	return ahead;
}

SfStepBack
sf_line_judge_clock(SfLine *line, uint64 cursor, TimestampTz now)
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
 * a crash leaves all of the old ones or all of the new.  Then, as in line_move.c, a ceiling
 * of 0 refuses leases, the cursor is swapped, and the new ceiling is published.  Until
 * the swap others may lease what is left below the old ceiling; the wall_safe of the
 * register is above all of that, the one in memory is what was leased.
 *
 * No barrier is needed: the swap follows the ceiling of 0 for all who see it, and who sees the
 * new ceiling and not yet the new generation has a lease from the new cursor, since no swap of
 * the old one succeeds any more.
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
	uint64		issuable;

	if (sf_line_timeline_of(line, cursor) != sf_line_timeline_of(line, seen) ||
		sf_line_origin(line) != origin || sf_line_is_closed(line) ||
		sf_line_judge_clock(line, cursor, now) != SF_STEP_BACK_CHANGE)
		return;
	start = sf_cursor(timeline, sf_position(layout, (uint64) sf_layout_tick_floor(layout, now), 0));
	ceiling = sf_line_next_ceiling(line, now, sf_line_position_of(line, start));

	issuable = Max(pg_atomic_read_u64(&line->ceiling), sf_line_position_of(line, cursor));
	sf_line_state_write(line, origin, sf_line_time(line, ceiling), sf_position_tick(layout, issuable - 1), drifts, true);
	pg_atomic_write_u64(&line->ceiling, 0);
	while (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, start))
		;
	pg_atomic_write_u64(&line->wall_safe, sf_position_tick(layout, sf_line_position_of(line, cursor) - 1));
	pg_atomic_write_u32(&line->drifts, drifts);
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, ceiling);
}

bool
sf_line_change_over(SfLine *line, uint64 seen)
{
	RepOriginId origin = sf_line_origin(line);
	SfRegisterHold hold = sf_ceiling_hold(line, origin);

	if (hold == SF_REGISTER_HELD)
	{
		change_over_locked(line, origin, seen);
		sf_ceiling_release(line, origin);
	}
	return hold != SF_REGISTER_BUSY;
}
