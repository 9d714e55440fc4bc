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
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "utils/timestamp.h"

#include "ceiling.h"
#include "core/reserve.h"
#include "register.h"
#include "settings.h"

static SfInstant
ceiling_instant(const SfLayout *layout, uint64 ceiling)
{
	return sf_layout_tick_start(layout, sf_position_tick(layout, ceiling));
}

static void
write_register(SfLine *line, RepOriginId origin, SfInstant instant, bool back)
{
	instr_time	begin;
	instr_time	time;

	INSTR_TIME_SET_CURRENT(begin);
	sf_register_write(origin, instant, back);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, begin);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITES, 1);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITE_TIME,
				 (int64) INSTR_TIME_GET_MICROSEC(time));
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
	const SfLayout *layout = &line->layout;
	uint64		ceiling;

	if (pg_atomic_read_u64(&line->ceiling) != seen || origin_of(line) != origin)
		return;
	ceiling = sf_ceiling_next(layout, now, pg_atomic_read_u64(&line->cursor));
	if (ceiling <= seen)
		return;
	write_register(line, origin, ceiling_instant(layout, ceiling), false);
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
	LWLockAcquire(line->lock, LW_EXCLUSIVE);
	if (origin_of(line) == gone)
	{
		pg_atomic_write_u64(&line->ceiling, 0);
		pg_atomic_fetch_add_u32(&line->generation, 1);
		pg_atomic_write_u32(&line->origin, InvalidRepOriginId);
	}
	LWLockRelease(line->lock);
	sf_ceiling_open(line, machine_id);
}

bool
sf_ceiling_raise(SfLine *line, uint32 machine_id, uint64 seen, TimestampTz now)
{
	RepOriginId origin = origin_of(line);

	switch (sf_register_hold(origin, &line->layout, false))
	{
		case SF_REGISTER_HELD:
			break;
		case SF_REGISTER_BUSY:
			return false;
		case SF_REGISTER_GONE:
			reopen(line, origin, machine_id);
			return true;
	}
	LWLockAcquire(line->lock, LW_EXCLUSIVE);
	raise_locked(line, origin, seen, now);
	LWLockRelease(line->lock);
	sf_register_release(origin);
	return true;
}

static void
report_no_raise(SfLine *line, uint64 ceiling)
{
	ereport(LOG,
			errmsg("no more Snowflake IDs can be reserved: their register is missing"),
			errdetail("This server goes on until its IDs reach %s.",
					  timestamptz_to_str(ceiling_instant(&line->layout, ceiling))),
			errhint("Make it anew by \"SELECT snowflake_make_register()\"."),
			errhidestmt(true));
}

/* While somebody else raises, a backend need not try again with each lease. */
#define RETRY_AFTER		10000	/* us */

void
sf_ceiling_raise_early(SfLine *line, uint64 seen, TimestampTz now)
{
	static TimestampTz tried = 0;
	RepOriginId origin = origin_of(line);

	if (now >= tried && now < tried + RETRY_AFTER)
		return;
	tried = now;
	switch (sf_register_hold(origin, &line->layout, false))
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
	if (LWLockConditionalAcquire(line->lock, LW_EXCLUSIVE))
	{
		raise_locked(line, origin, seen, now);
		LWLockRelease(line->lock);
	}
	sf_register_release(origin);
}

/*
 * The cursor is not below the register from here on, and nothing is reserved.
 * It is already above it where the register was made anew in this run, and then
 * others may be moving it.  Returns the time from which on IDs are issued.
 */
static SfInstant
open_locked(SfLine *line, RepOriginId origin)
{
	const SfLayout *layout = &line->layout;
	uint64		position = sf_position_at(layout, sf_register_read(origin));
	uint64		cursor = pg_atomic_read_u64(&line->cursor);

	while (cursor < position &&
		   !pg_atomic_compare_exchange_u64(&line->cursor, &cursor, position))
		;
	position = Max(cursor, position);
	pg_atomic_write_u64(&line->ceiling, position);
	pg_atomic_write_u64(&line->floor, (uint64) ceiling_instant(layout, position));
	pg_write_barrier();
	pg_atomic_write_u32(&line->origin, origin);
	return ceiling_instant(layout, position);
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
	origin = sf_register_find(&line->layout);
	LWLockAcquire(line->lock, LW_EXCLUSIVE);
	if (origin_of(line) == InvalidRepOriginId)
	{
		floor = open_locked(line, origin);
		opened = true;
	}
	LWLockRelease(line->lock);
	if (opened)
		ereport(LOG,
				errmsg("issuing Snowflake IDs with machine ID %u in the layout \"%s\", from %s on",
					   machine_id, sf_line_layout_text(line), timestamptz_to_str(floor)),
				errhidestmt(true));
}

/*
 * The durable ceiling comes first, then the cursor, which others may be moving,
 * then the generation, by which leases of before are dropped, then the ceiling that
 * they see.  If that is above the instant it is written again: the register may
 * have been made anew since.
 */
static void
move_forth(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	uint64		cursor = pg_atomic_read_u64(&line->cursor);
	SfInstant	reserved = ceiling_instant(&line->layout, pg_atomic_read_u64(&line->ceiling));

	write_register(line, origin, Max(instant, reserved), false);
	while (cursor < position &&
		   !pg_atomic_compare_exchange_u64(&line->cursor, &cursor, position))
		;
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
 */
static bool
move_back(SfLine *line, RepOriginId origin, SfInstant instant, uint64 position)
{
	const SfLayout *layout = &line->layout;
	uint64		cursor = pg_atomic_read_u64(&line->cursor);

	if (ceiling_instant(layout, cursor) - instant <= sf_ceiling_reserve(layout))
		return false;
	write_register(line, origin, instant, true);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_memory_barrier();
	while (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, position))
		;
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_atomic_write_u64(&line->ceiling, position);
	return true;
}

bool
sf_ceiling_move(SfLine *line, RepOriginId origin, SfInstant instant)
{
	uint64		position = sf_position_at(&line->layout, instant);
	uint64		cursor;
	bool		moved = true;

	LWLockAcquire(line->lock, LW_EXCLUSIVE);
	cursor = pg_atomic_read_u64(&line->cursor);
	if (cursor == 0 && origin_of(line) == InvalidRepOriginId)	/* not opened yet */
		write_register(line, origin, instant, true);
	else if (position > cursor)
		move_forth(line, origin, instant, position);
	else
		moved = move_back(line, origin, instant, position);
	if (moved)
		pg_atomic_write_u64(&line->floor, (uint64) ceiling_instant(&line->layout, position));
	LWLockRelease(line->lock);
	return moved;
}
