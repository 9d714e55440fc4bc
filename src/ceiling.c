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
write_register(SfShared *shared, RepOriginId origin, SfInstant instant, bool back)
{
	instr_time	begin;
	instr_time	time;

	INSTR_TIME_SET_CURRENT(begin);
	sf_register_write(origin, instant, back);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, begin);
	sf_stats_add(&shared->stats, SF_STAT_REGISTER_WRITES, 1);
	sf_stats_add(&shared->stats, SF_STAT_REGISTER_WRITE_TIME,
				 (int64) INSTR_TIME_GET_MICROSEC(time));
}

static RepOriginId
origin_of(SfShared *shared)
{
	return (RepOriginId) pg_atomic_read_u32(&shared->origin);
}

/*
 * The register is held, and the lock is taken.  A reading of the clock that was
 * checked is used, though it may be old by now: one that was not could be wrong.
 */
static void
raise_locked(SfShared *shared, RepOriginId origin, uint64 seen, TimestampTz now)
{
	const SfLayout *layout = &shared->layout;
	uint64		ceiling;

	if (pg_atomic_read_u64(&shared->ceiling) != seen || origin_of(shared) != origin)
		return;
	ceiling = sf_ceiling_next(layout, now, pg_atomic_read_u64(&shared->cursor));
	if (ceiling <= seen)
		return;
	write_register(shared, origin, ceiling_instant(layout, ceiling), false);
	pg_write_barrier();
	pg_atomic_write_u64(&shared->ceiling, ceiling);
}

/*
 * The register was dropped, and perhaps made anew: open the line again, from
 * where it is.  Until then nothing is issued.
 */
static void
reopen(SfShared *shared, RepOriginId gone, uint32 machine_id)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (origin_of(shared) == gone)
	{
		pg_atomic_write_u64(&shared->ceiling, 0);
		pg_atomic_fetch_add_u32(&shared->generation, 1);
		pg_atomic_write_u32(&shared->origin, InvalidRepOriginId);
	}
	LWLockRelease(shared->lock);
	sf_ceiling_open(shared, machine_id);
}

bool
sf_ceiling_raise(SfShared *shared, uint32 machine_id, uint64 seen, TimestampTz now)
{
	RepOriginId origin = origin_of(shared);

	switch (sf_register_hold(origin, &shared->layout, false))
	{
		case SF_REGISTER_HELD:
			break;
		case SF_REGISTER_BUSY:
			return false;
		case SF_REGISTER_GONE:
			reopen(shared, origin, machine_id);
			return true;
	}
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	raise_locked(shared, origin, seen, now);
	LWLockRelease(shared->lock);
	sf_register_release(origin);
	return true;
}

static void
report_no_raise(SfShared *shared, uint64 ceiling)
{
	ereport(LOG,
			errmsg("no more Snowflake IDs can be reserved: their register is missing"),
			errdetail("This server goes on until its IDs reach %s.",
					  timestamptz_to_str(ceiling_instant(&shared->layout, ceiling))),
			errhint("Make it anew by \"SELECT snowflake_make_register()\"."),
			errhidestmt(true));
}

/* While somebody else raises, a backend need not try again with each lease. */
#define RETRY_AFTER		10000	/* us */

void
sf_ceiling_raise_early(SfShared *shared, uint64 seen, TimestampTz now)
{
	static TimestampTz tried = 0;
	RepOriginId origin = origin_of(shared);

	if (now >= tried && now < tried + RETRY_AFTER)
		return;
	tried = now;
	switch (sf_register_hold(origin, &shared->layout, false))
	{
		case SF_REGISTER_HELD:
			break;
		case SF_REGISTER_BUSY:
			return;
		case SF_REGISTER_GONE:
			if (sf_log_allowed(&shared->raise_logged))
				report_no_raise(shared, seen);
			return;
	}
	if (LWLockConditionalAcquire(shared->lock, LW_EXCLUSIVE))
	{
		raise_locked(shared, origin, seen, now);
		LWLockRelease(shared->lock);
	}
	sf_register_release(origin);
}

/*
 * The cursor is not below the register from here on, and nothing is reserved.
 * It is already above it where the register was made anew in this run, and then
 * others may be moving it.  Returns the time from which on IDs are issued.
 */
static SfInstant
open_locked(SfShared *shared, RepOriginId origin)
{
	const SfLayout *layout = &shared->layout;
	uint64		position = sf_position_at(layout, sf_register_read(origin));
	uint64		cursor = pg_atomic_read_u64(&shared->cursor);

	while (cursor < position &&
		   !pg_atomic_compare_exchange_u64(&shared->cursor, &cursor, position))
		;
	position = Max(cursor, position);
	pg_atomic_write_u64(&shared->ceiling, position);
	pg_atomic_write_u64(&shared->floor, (uint64) ceiling_instant(layout, position));
	pg_write_barrier();
	pg_atomic_write_u32(&shared->origin, origin);
	return ceiling_instant(layout, position);
}

void
sf_ceiling_open(SfShared *shared, uint32 machine_id)
{
	RepOriginId origin;
	SfInstant	floor = 0;
	bool		opened = false;

	if (likely(origin_of(shared) != InvalidRepOriginId))
	{
		pg_read_barrier();		/* cursor and ceiling were written before it */
		return;
	}
	origin = sf_register_find(&shared->layout);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (origin_of(shared) == InvalidRepOriginId)
	{
		floor = open_locked(shared, origin);
		opened = true;
	}
	LWLockRelease(shared->lock);
	if (opened)
		ereport(LOG,
				errmsg("issuing Snowflake IDs with machine ID %u in the layout \"%s\", from %s on",
					   machine_id, sf_settings_layout_text(), timestamptz_to_str(floor)),
				errhidestmt(true));
}

/*
 * The durable ceiling comes first, then the cursor, which others may be moving,
 * then the generation, by which leases of before are dropped, then the ceiling that
 * they see.  If that is above the instant it is written again: the register may
 * have been made anew since.
 */
static void
move_forth(SfShared *shared, RepOriginId origin, SfInstant instant, uint64 position)
{
	uint64		cursor = pg_atomic_read_u64(&shared->cursor);
	SfInstant	reserved = ceiling_instant(&shared->layout, pg_atomic_read_u64(&shared->ceiling));

	write_register(shared, origin, Max(instant, reserved), false);
	while (cursor < position &&
		   !pg_atomic_compare_exchange_u64(&shared->cursor, &cursor, position))
		;
	pg_atomic_fetch_add_u32(&shared->generation, 1);
	if (pg_atomic_read_u64(&shared->ceiling) < position)
		pg_atomic_write_u64(&shared->ceiling, position);
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
move_back(SfShared *shared, RepOriginId origin, SfInstant instant, uint64 position)
{
	const SfLayout *layout = &shared->layout;
	uint64		cursor = pg_atomic_read_u64(&shared->cursor);

	if (ceiling_instant(layout, cursor) - instant <= sf_ceiling_reserve(layout))
		return false;
	write_register(shared, origin, instant, true);
	pg_atomic_write_u64(&shared->ceiling, 0);
	pg_memory_barrier();
	while (!pg_atomic_compare_exchange_u64(&shared->cursor, &cursor, position))
		;
	pg_atomic_fetch_add_u32(&shared->generation, 1);
	pg_atomic_write_u64(&shared->ceiling, position);
	return true;
}

bool
sf_ceiling_move(SfShared *shared, RepOriginId origin, SfInstant instant)
{
	uint64		position = sf_position_at(&shared->layout, instant);
	uint64		cursor;
	bool		moved = true;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	cursor = pg_atomic_read_u64(&shared->cursor);
	if (cursor == 0 && origin_of(shared) == InvalidRepOriginId) /* not opened yet */
		write_register(shared, origin, instant, true);
	else if (position > cursor)
		move_forth(shared, origin, instant, position);
	else
		moved = move_back(shared, origin, instant, position);
	if (moved)
		pg_atomic_write_u64(&shared->floor, (uint64) ceiling_instant(&shared->layout, position));
	LWLockRelease(shared->lock);
	return moved;
}
