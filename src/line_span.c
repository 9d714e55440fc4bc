/*
 * line_span.c
 *	  The span of a line: it begins, is extended, and is closed.
 *
 * Neither the cursor nor a change over goes below the start of the span, and the ceiling is
 * never above its end.
 */
#include "postgres.h"

#include "core/reserve.h"
#include "kept.h"
#include "line_span.h"

/* A position, or, if its tick has been begun, the next tick. */
static uint64
whole_tick(const SfLine *line, uint64 position)
{
	const SfLayout *layout = &line->layout;

	if (sf_position_sequence(layout, position) == 0)
		return position;
	return sf_position_next_tick(layout, position);
}

/*
 * A ceiling of 0 refuses leases while the span changes, and the generation tells backends
 * that have read anything of before, as in line_move.c.  They read generation, machine ID,
 * cursor and ceiling, in this order, swap the cursor, and read the generation again.
 *
 * The first barrier pairs with the one before the ceiling in generator.c: a backend that has read
 * the new machine ID does not read the old ceiling.  (Where a line that was closed gets its
 * cursor back, it also lets the generation of the close be seen before that.)  The second pairs
 * with the one after the swap: a backend that has read the new ceiling reads the new generation
 * then.  So one that has read the old machine ID and keeps its lease has swapped a cursor
 * from before the change under a ceiling from before the change, within the old span.
 *
 * IDs of another machine ID may be smaller than those of this one within a tick: the cursor
 * leaves its tick, so that those of a session increase.  It does also where nothing of the tick
 * was leased, lest a backend that has read the old machine ID and this cursor still swaps
 * it; and while the register is missing, since the cursor stays where it is then.
 *
 * A line that was not opened yet starts within the span when it is.  One that was closed
 * goes on: the registrar was told to end, and the server was not.
 */
void
sf_line_begin_span(SfLine *line, uint32 machine_id, SfInstant from, SfInstant until)
{
	uint32		before = pg_atomic_read_u32(&line->machine_id);
	uint64		ceiling;

	LWLockAcquire(&line->lock, LW_EXCLUSIVE);
	ceiling = pg_atomic_read_u64(&line->ceiling);
	pg_atomic_write_u64(&line->ceiling, 0);
	pg_write_barrier();
	if (sf_line_is_closed(line))
		pg_atomic_write_u64(&line->cursor, pg_atomic_read_u64(&line->closed_at));
	sf_line_set_span(line, machine_id, from, until);
	if (sf_line_was_opened(line))
	{
		if (before != machine_id)
			sf_line_leave_tick(line);
		sf_line_start_at(line, pg_atomic_read_u64(&line->span_start));
	}
	pg_atomic_fetch_add_u32(&line->generation, 1);
	pg_write_barrier();
	pg_atomic_write_u64(&line->ceiling, Min(ceiling, pg_atomic_read_u64(&line->span_end)));
	LWLockRelease(&line->lock);
}

/* Raises of the ceiling are bound by it, under the lock: nothing else has to know. */
void
sf_line_extend_span(SfLine *line, SfInstant until)
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
 * keeps those out who would set another.  No barrier is needed: all who swap the cursor swap
 * it before or after the exchange.  What is in hand of leases may still be issued.
 * Should the line be opened again, it has the cursor of before, so that a backend that has
 * slept since it read it can swap it: then the generation is another one.
 *
 * A line that is not open has issued nothing, unless it was open before all processes were
 * restarted: then nobody knows up to where.
 */
SfInstant
sf_line_close(SfLine *line)
{
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
	return Max(sf_line_time(line, whole_tick(line, sf_line_position_of(line, cursor))),
			   sf_layout_tick_start(&line->layout, pg_atomic_read_u64(&line->wall_safe) + 1));
}
