/*
 * line.c
 *	  A line of positions from which this server issues IDs, in shared memory.
 */
#include "postgres.h"

#include "core/reserve.h"
#include "line.h"
#include "settings.h"

void
sf_line_init(SfLine *line, SfLineKind kind, const SfLayout *layout,
			 const char *layout_text, SfSequenceRange range, bool leased, int tranche)
{
	memset(line, 0, sizeof(*line));
	line->kind = kind;
	line->layout = *layout;
	line->range = range;
	if (strlcpy(line->layout_text, layout_text, sizeof(line->layout_text)) >= sizeof(line->layout_text))
		sf_layout_format(layout, line->layout_text);
	LWLockInitialize(&line->lock, tranche);
	line->leased = leased;
	pg_atomic_init_u32(&line->machine_id, SF_MACHINE_ID_NOT_PINNED);
	pg_atomic_init_u32(&line->origin, InvalidRepOriginId);
	pg_atomic_init_u32(&line->register_doubtful, 0);
	pg_atomic_init_u32(&line->generation, 0);
	pg_atomic_init_u64(&line->latest_clock, SF_CLOCK_NOT_SEEN);
	pg_atomic_init_u32(&line->max_ahead, (uint32) sf_max_ahead * 1000);
	pg_atomic_init_u64(&line->floor, 0);
	pg_atomic_init_u64(&line->overflow_begin, 0);
	pg_atomic_init_u64(&line->overflow_ticks, 0);
	pg_atomic_init_u64(&line->regression_logged, 0);
	pg_atomic_init_u64(&line->overflow_logged, 0);
	pg_atomic_init_u64(&line->raise_logged, 0);
	pg_atomic_init_u64(&line->ceiling, 0);
	pg_atomic_init_u64(&line->span_start, 0);
	pg_atomic_init_u64(&line->span_end, leased ? 0 : PG_UINT64_MAX);
	pg_atomic_init_u64(&line->wall_safe, 0);
	pg_atomic_init_u32(&line->drifts, 0);
	pg_atomic_init_u64(&line->opened, 0);
	pg_atomic_init_u64(&line->closed_at, 0);
	pg_atomic_init_u64(&line->cursor, 0);
	pg_atomic_init_u64(&line->yield_until, 0);
	sf_stats_init(&line->stats);
}

void
sf_line_set_span(SfLine *line, uint32 machine_id, TimestampTz from, TimestampTz until)
{
	pg_atomic_write_u32(&line->machine_id, machine_id);
	pg_atomic_write_u64(&line->span_start, sf_position_at(&line->layout, from));
	pg_atomic_write_u64(&line->span_end, sf_position_at(&line->layout, until));
}

void
sf_line_move_cursor(SfLine *line, uint64 position, bool back)
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

void
sf_line_leave_tick(SfLine *line)
{
	uint64		cursor = pg_atomic_read_u64(&line->cursor);
	uint64		moved;

	do
		moved = sf_cursor(sf_line_timeline_of(line, cursor),
						  sf_position_next_tick(&line->layout, sf_line_position_of(line, cursor)));
	while (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, moved));
	pg_atomic_write_u64(&line->opened, moved);
}

void
sf_line_start_at(SfLine *line, uint64 position)
{
	uint64		before = sf_line_tick_before(line, position);

	if (pg_atomic_read_u64(&line->wall_safe) < before)
		pg_atomic_write_u64(&line->wall_safe, before);
	sf_line_move_cursor(line, position, false);
}
