/*
 * generator_state.c
 *	  The state of a generator, in shared memory.
 *
 * sf_begin_change and sf_end_change are here, below all files that use them; change.c explains the
 * protocol.
 */
#include "postgres.h"

#include "atomic.h"
#include "clocks.h"
#include "state/generator_state.h"

/* Whether no cache line contains parts of two fields, wherever the struct is in memory. */
#define ON_OTHER_LINES(one, other) \
	(offsetof(SfGenerator, other) - \
	 (offsetof(SfGenerator, one) + sizeof(((SfGenerator *) NULL)->one)) >= PG_CACHE_LINE_SIZE)

StaticAssertDecl(ON_OTHER_LINES(layout_text, latest_clock), "read with each ID, and written often");
StaticAssertDecl(ON_OTHER_LINES(overflow_logged, cursor), "written often, and with each batch");
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
	generator->range = sf_sequence_range_within(layout, range);
	strlcpy(generator->layout_text, layout_text, sizeof(generator->layout_text));
	sf_lock_init(&generator->lock, kind == SF_GENERATOR_SNO ? SF_LOCK_SNO : SF_LOCK_BIGINT,
				 SF_WAIT_RESERVATION);
	generator->leased = leased;
	pg_atomic_init_u32(&generator->machine_id, SF_MACHINE_ID_NOT_PINNED);
	pg_atomic_init_u32(&generator->generation, SF_GENERATION_UNOPENED);
	pg_atomic_init_u32(&generator->switches, 0);
	pg_atomic_init_u32(&generator->moved_back, 0);
	pg_atomic_init_u64(&generator->latest_clock, SF_CLOCK_NOT_SEEN);
	pg_atomic_init_u64(&generator->clock_difference,
					   (uint64) sf_clock_difference(GetCurrentTimestamp()));
	pg_atomic_init_u32(&generator->max_ahead, 0);
	pg_atomic_init_u64(&generator->began, 0);
	pg_atomic_init_u64(&generator->floor, 0);
	pg_atomic_init_u64(&generator->overflow_begin, 0);
	pg_atomic_init_u64(&generator->overflow_ticks, 0);
	pg_atomic_init_u64(&generator->regression_logged, 0);
	pg_atomic_init_u64(&generator->overflow_logged, 0);
	pg_atomic_init_u64(&generator->lease_start, 0);
	pg_atomic_init_u64(&generator->lease_end, leased ? 0 : PG_UINT64_MAX);
	pg_atomic_init_u64(&generator->yield_until, 0);
	for (int line = 0; line < SF_LINES; line++)
	{
		pg_atomic_init_u64(&generator->reserved_until[line], 0);
		pg_atomic_init_u64(&generator->cursor[line], 0);
	}
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
	if (pg_atomic_read_u32(&generator->moved_back) == 0)
		pg_atomic_write_u64(&generator->lease_end, sf_position_at(&generator->layout, until));
}

uint64
sf_generator_end(SfGenerator *generator)
{
	uint64		end = 0;

	for (int line = 0; line < sf_generator_lines(generator); line++)
	{
		uint64		cursor = pg_atomic_read_u64(&generator->cursor[line]);

		end = Max(end, cursor);
	}
	return end;
}

void
sf_generator_raise_cursor(SfGenerator *generator, int line, uint64 position)
{
	Assert(sf_lock_is_mine(&generator->lock));
	sf_atomic_raise(&generator->cursor[line], position);
}

void
sf_generator_leave_tick(SfGenerator *generator)
{
	Assert(sf_lock_is_mine(&generator->lock));
	for (int line = 0; line < sf_generator_lines(generator); line++)
	{
		uint64		cursor = pg_atomic_read_u64(&generator->cursor[line]);

		while (!pg_atomic_compare_exchange_u64(&generator->cursor[line], &cursor,
											   sf_position_next_tick(&generator->layout, cursor)))
			;
	}
}

void
sf_begin_change(SfGenerator *generator)
{
	Assert(sf_lock_is_mine(&generator->lock));
	Assert(pg_atomic_read_u32(&generator->generation) % 2 == 0);
	generator->pending.until = 0;
	pg_atomic_fetch_add_u32(&generator->generation, 1);
	pg_memory_barrier();
}

void
sf_end_change(SfGenerator *generator)
{
	Assert(sf_lock_is_mine(&generator->lock));
	Assert(pg_atomic_read_u32(&generator->generation) % 2 == 1);
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&generator->generation, 1);
}

static void
assert_generator(SfGenerator *generator)
{
#ifdef USE_ASSERT_CHECKING
	bool		open = sf_generator_is_open(generator);
	uint64		lease_end = pg_atomic_read_u64(&generator->lease_end);

	Assert(!open || pg_atomic_read_u32(&generator->generation) % 2 == 0);
	Assert(pg_atomic_read_u32(&generator->moved_back) == 0 || lease_end == 0);
	Assert(generator->pending.until == 0 || generator->pending.until <= lease_end);
	for (int line = 0; line < SF_LINES; line++)
	{
		bool		used = open && line < sf_generator_lines(generator);

		Assert(used == (pg_atomic_read_u64(&generator->cursor[line]) > 0));
		Assert(!used || pg_atomic_read_u64(&generator->cursor[line]) >=
			   pg_atomic_read_u64(&generator->lease_start));
		Assert(used || pg_atomic_read_u64(&generator->reserved_until[line]) == 0);
		Assert(pg_atomic_read_u64(&generator->reserved_until[line]) <= lease_end);
	}
#endif
}

void
sf_generator_unlock(SfGenerator *generator)
{
	assert_generator(generator);
	sf_lock_release(&generator->lock);
}
