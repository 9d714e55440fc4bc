/*
 * generator_state.c
 *	  The state of a generator, in shared memory.
 *
 * sf_stop_issuing and sf_resume_issuing are here, below all files that use them; change.c
 * explains the protocol.
 */
#include "postgres.h"

#include "core/reserved_time.h"
#include "state/generator_state.h"

/* Whether no cache line contains parts of two fields, wherever the struct is in memory. */
#define ON_OTHER_LINES(one, other) \
	(offsetof(SfGenerator, other) - \
	 (offsetof(SfGenerator, one) + sizeof(((SfGenerator *) NULL)->one)) >= PG_CACHE_LINE_SIZE)

StaticAssertDecl(ON_OTHER_LINES(layout_text, latest_clock), "read with each ID, and written often");
StaticAssertDecl(ON_OTHER_LINES(reservation_logged, cursor), "written often, and with each batch");
StaticAssertDecl(ON_OTHER_LINES(yield_until, stats), "read with each batch, and written only");
StaticAssertDecl(sizeof(SfGenerator) - offsetof(SfGenerator, pad_next) >= PG_CACHE_LINE_SIZE,
				 "the other generator begins on another line than the counters");

void
sf_generator_init(SfGenerator *generator, SfGeneratorKind kind, const SfLayout *layout,
				  const char *layout_text, SfSequenceRange range, bool leased)
{
	memset(generator, 0, sizeof(*generator));
	generator->kind = kind;
	generator->layout = *layout;
	generator->range = range;
	if (strlcpy(generator->layout_text, layout_text, sizeof(generator->layout_text)) >=
		sizeof(generator->layout_text))
		sf_layout_format(layout, generator->layout_text);
	sf_lock_init(&generator->lock, SF_WAIT_RESERVATION);
	generator->leased = leased;
	pg_atomic_init_u32(&generator->machine_id, SF_MACHINE_ID_NOT_PINNED);
	pg_atomic_init_u32(&generator->generation, 0);
	pg_atomic_init_u64(&generator->latest_clock, SF_CLOCK_NOT_SEEN);
	pg_atomic_init_u32(&generator->max_ahead, 0);
	pg_atomic_init_u64(&generator->floor, 0);
	pg_atomic_init_u64(&generator->floor_set, 0);
	pg_atomic_init_u64(&generator->overflow_begin, 0);
	pg_atomic_init_u64(&generator->overflow_ticks, 0);
	pg_atomic_init_u64(&generator->regression_logged, 0);
	pg_atomic_init_u64(&generator->overflow_logged, 0);
	pg_atomic_init_u64(&generator->reservation_logged, 0);
	pg_atomic_init_u64(&generator->reserved_until, 0);
	pg_atomic_init_u64(&generator->pending.until, 0);
	pg_atomic_init_u32(&generator->write_time, 0);
	pg_atomic_init_u64(&generator->lease_start, 0);
	pg_atomic_init_u64(&generator->lease_end, leased ? 0 : PG_UINT64_MAX);
	pg_atomic_init_u64(&generator->wall_safe, 0);
	pg_atomic_init_u32(&generator->drifts, 0);
	pg_atomic_init_u64(&generator->opened, 0);
	pg_atomic_init_u64(&generator->cursor, 0);
	pg_atomic_init_u64(&generator->yield_until, 0);
	for (int i = 0; i < SF_COUNTER_COUNT; i++)
		pg_atomic_init_u64(&generator->stats.numbers[i], 0);
	pg_atomic_init_u64(&generator->stats.since, (uint64) GetCurrentTimestamp());
}

void
sf_generator_set_lease(SfGenerator *generator, uint32 machine_id,
					   TimestampTz from, TimestampTz until)
{
	pg_atomic_write_u32(&generator->machine_id, machine_id);
	pg_atomic_write_u64(&generator->lease_start, sf_position_at(&generator->layout, from));
	pg_atomic_write_u64(&generator->lease_end, sf_position_at(&generator->layout, until));
}

void
sf_generator_move_cursor(SfGenerator *generator, uint64 position, bool back)
{
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);
	uint64		moved;

	Assert(sf_lock_is_mine(&generator->lock));
	do
	{
		moved = sf_cursor(sf_generator_phase_of(generator, cursor), position);
		if (!back && cursor >= moved)
			return;
	} while (!pg_atomic_compare_exchange_u64(&generator->cursor, &cursor, moved));
	pg_atomic_write_u64(&generator->opened, moved);
}

void
sf_generator_leave_tick(SfGenerator *generator)
{
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);
	uint64		moved;

	Assert(sf_lock_is_mine(&generator->lock));
	do
		moved = sf_cursor(sf_generator_phase_of(generator, cursor),
						  sf_position_next_tick(&generator->layout,
												sf_generator_position_of(generator, cursor)));
	while (!pg_atomic_compare_exchange_u64(&generator->cursor, &cursor, moved));
	pg_atomic_write_u64(&generator->opened, moved);
}

void
sf_generator_skip_position(SfGenerator *generator)
{
	uint64		cursor = pg_atomic_read_u64(&generator->cursor);

	Assert(sf_lock_is_mine(&generator->lock));
	while (!pg_atomic_compare_exchange_u64(&generator->cursor, &cursor, cursor + 1))
		;
	if (pg_atomic_read_u64(&generator->opened) == cursor)
		pg_atomic_write_u64(&generator->opened, cursor + 1);
}

void
sf_generator_start_at(SfGenerator *generator, uint64 position)
{
	uint64		before = sf_generator_tick_before(generator, position);

	Assert(sf_lock_is_mine(&generator->lock));
	if (pg_atomic_read_u64(&generator->wall_safe) < before)
		pg_atomic_write_u64(&generator->wall_safe, before);
	sf_generator_move_cursor(generator, position, false);
}

uint64
sf_stop_issuing(SfGenerator *generator)
{
	uint64		reserved_until = pg_atomic_read_u64(&generator->reserved_until);

	Assert(sf_lock_is_mine(&generator->lock));
	pg_atomic_write_u64(&generator->pending.until, 0);
	pg_atomic_write_u64(&generator->reserved_until, 0);
	pg_memory_barrier();
	return reserved_until;
}

void
sf_resume_issuing(SfGenerator *generator, uint64 reserved_until)
{
	uint64		lease_end;

	Assert(sf_lock_is_mine(&generator->lock));
	Assert(pg_atomic_read_u64(&generator->reserved_until) == 0);
	lease_end = pg_atomic_read_u64(&generator->lease_end);
	pg_atomic_fetch_add_u32(&generator->generation, 1);
	pg_write_barrier();
	pg_atomic_write_u64(&generator->reserved_until, Min(reserved_until, lease_end));
}
