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
 * above the end of the span.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ceiling.h"
#include "core/reserve.h"
#include "kept.h"
#include "line_state.h"

/*
 * What the register holds of it when it was rounded, and no further than the line and
 * the span go.
 */
uint64
sf_line_next_ceiling(SfLine *line, TimestampTz now, uint64 position)
{
	const SfLayout *layout = &line->layout;
	uint64		ceiling = sf_ceiling_next(layout, now, position);
	uint64		tick = sf_position_tick(layout, ceiling);

	if (sf_line_has_timelines(line))
		ceiling = sf_position(layout, Min(sf_round_up(tick, SF_TIMELINE_CEILING_TICKS), SF_TIMELINE_TICKS), 0);
	return Min(ceiling, pg_atomic_read_u64(&line->span_end));
}

/*
 * The register is held, and the lock is taken.  A reading of the clock that was
 * checked is used, though it may be old by now: one that was not could be wrong.
 */
static void
raise_locked(SfLine *line, RepOriginId origin, uint64 seen, TimestampTz now)
{
	uint64		ceiling;

	if (pg_atomic_read_u64(&line->ceiling) != seen || sf_line_origin(line) != origin || sf_line_is_closed(line))
		return;
	ceiling = sf_line_next_ceiling(line, now, sf_line_position(line));
	if (ceiling <= seen && !sf_line_doubts_register(line))
		return;
	ceiling = Max(ceiling, seen);
	sf_line_state_write(line, origin, sf_line_time(line, ceiling), pg_atomic_read_u64(&line->wall_safe),
						pg_atomic_read_u32(&line->drifts), false);
	pg_atomic_write_u32(&line->register_doubtful, 0);
	pg_write_barrier();
	pg_atomic_write_u64(&line->ceiling, ceiling);
}

/*
 * The register was dropped, and perhaps made anew: open the line again, from
 * where it is.  Until then nothing is issued.
 */
static void
reopen(SfLine *line, RepOriginId gone)
{
	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	if (sf_line_origin(line) == gone)
	{
		pg_atomic_write_u64(&line->ceiling, 0);
		pg_atomic_fetch_add_u32(&line->generation, 1);
		pg_atomic_write_u32(&line->origin, InvalidRepOriginId);
	}
	LWLockRelease(&line->lock);
	(void) sf_ceiling_open(line);	/* a caller finds out that it is not open */
}

SfRegisterHold
sf_ceiling_hold(SfLine *line, RepOriginId origin)
{
	SfRegisterHold hold = sf_register_hold(origin, line, false);

	if (hold == SF_REGISTER_HELD)
		LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	else if (hold == SF_REGISTER_GONE)
		reopen(line, origin);
	return hold;
}

void
sf_ceiling_release(SfLine *line, RepOriginId origin)
{
	LWLockRelease(&line->lock);
	sf_register_release(origin);
}

bool
sf_ceiling_raise(SfLine *line, uint64 seen, TimestampTz now)
{
	RepOriginId origin = sf_line_origin(line);
	SfRegisterHold hold = sf_ceiling_hold(line, origin);

	if (hold == SF_REGISTER_HELD)
	{
		raise_locked(line, origin, seen, now);
		sf_ceiling_release(line, origin);
	}
	return hold != SF_REGISTER_BUSY;
}

static void
report_no_raise(SfLine *line, uint64 ceiling)
{
	ereport(LOG,
			errmsg("no more %s IDs can be reserved: their register is missing", sf_line_name(line)),
			errdetail("This server goes on until its IDs reach %s.",
					  timestamptz_to_str(sf_line_time(line, ceiling))),
			errhint("Make it anew by \"SELECT snowflake_make_register()\"."),
			errhidestmt(true), errhidecontext(true));
}

/* While somebody else raises, a backend need not try again with each lease. */
#define RETRY_AFTER		10000	/* us */

void
sf_ceiling_raise_early(SfLine *line, uint64 seen, TimestampTz now)
{
	static TimestampTz tried[SF_LINE_COUNT] = {0};
	RepOriginId origin = sf_line_origin(line);

	if (origin == InvalidRepOriginId ||
		(seen >= pg_atomic_read_u64(&line->span_end) && !sf_line_doubts_register(line)) ||
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

/*
 * Where the line is to begin, by what the register holds.  It is above that already if the
 * register was made anew in this run, and then others may be moving it; what the server
 * knows of timelines stands then.
 */
static void
start_at_state(SfLine *line, const SfTimelineState *state)
{
	bool		timeline = state->drifts & 1;
	uint64		start = sf_cursor(timeline, sf_position(&line->layout, state->ceiling_tick, 0));
	uint64		cursor = pg_atomic_read_u64(&line->cursor);

	if (cursor == 0)
	{
		pg_atomic_write_u64(&line->wall_safe, state->wall_safe);
		pg_atomic_write_u32(&line->drifts, state->drifts);
	}
	else if (sf_line_timeline_of(line, cursor) != timeline)
		return;
	while (cursor < start && !pg_atomic_compare_exchange_u64(&line->cursor, &cursor, start))
		;
}

/*
 * The register is held, and the lock is taken.  The cursor is not below the register from
 * here on, nor below the span, and nothing is reserved.
 *
 * If the line was open before in this run, the register may hold less than was issued: then
 * that is written first.  If it was not, only the register knows what was issued, and one
 * that has lost its value does not: then false is returned.
 */
static bool
open_locked(SfLine *line, RepOriginId origin)
{
	bool		was_open = sf_line_was_opened(line);
	SfTimelineState state;
	uint64		position;

	if (!sf_line_state_read(line, origin, &state) && !was_open)
		return false;
	start_at_state(line, &state);
	sf_line_start_at(line, pg_atomic_read_u64(&line->span_start));
	position = sf_line_position(line);
	if (was_open)
		sf_line_state_write(line, origin, sf_line_time(line, position) + line->layout.tick_length,
							pg_atomic_read_u64(&line->wall_safe), pg_atomic_read_u32(&line->drifts), false);
	pg_atomic_write_u64(&line->opened, pg_atomic_read_u64(&line->cursor));
	pg_atomic_write_u64(&line->ceiling, position);
	pg_atomic_write_u64(&line->floor, (uint64) sf_line_time(line, position));
	pg_atomic_write_u32(&line->register_doubtful, 0);
	if (line->leased)
		sf_kept_put_opened(line->kind);
	pg_write_barrier();			/* cursor and ceiling come before it */
	pg_atomic_write_u32(&line->origin, origin);
	return true;
}

static void
log_opened(SfLine *line, uint32 machine_id)
{
	const char *floor = timestamptz_to_str((TimestampTz) pg_atomic_read_u64(&line->floor));

	ereport(LOG,
			sf_line_has_timelines(line) ?
			errmsg("issuing IDs of type sno in partition %u, from %s on", machine_id, floor) :
			errmsg("issuing Snowflake IDs with machine ID %u in the layout \"%s\", from %s on",
				   machine_id == SF_MACHINE_ID_NOT_PINNED ? 0 : machine_id, line->layout_text, floor),
			errhidestmt(true), errhidecontext(true));
}

bool
sf_ceiling_open(SfLine *line)
{
	uint32		machine_id = pg_atomic_read_u32(&line->machine_id);
	RepOriginId origin;
	bool		wanted;
	bool		opened = false;

	if (likely(sf_line_origin(line) != InvalidRepOriginId))
	{
		pg_read_barrier();		/* pairs with the one in open_locked */
		return true;
	}
	if (sf_register_find(line, false, &origin) == SF_REGISTER_BUSY)
		return false;
	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	wanted = sf_line_origin(line) == InvalidRepOriginId && !sf_line_is_closed(line);
	if (wanted)
		opened = open_locked(line, origin);
	sf_ceiling_release(line, origin);
	if (wanted && !opened)
		sf_register_report_lost(line->kind);
	if (opened)
		log_opened(line, machine_id);
	return true;
}
