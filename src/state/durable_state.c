/*
 * durable_state.c
 *	  The state of a generator that outlives the server, in its origin.
 *
 * The state is one number, so that one record of WAL writes it, and a crash leaves all of
 * the old state or all of the new one: the end of the reservation as microseconds since the Unix
 * epoch, or, for a generator with phases, the whole state, packed (core/phase.h).  An end at the
 * epoch is rounded up, since 0 and SF_ORIGIN_NEW mean that nothing is reserved.
 */
#include "postgres.h"

#include "access/xlog.h"

#include "core/reservation.h"
#include "state/durable_state.h"
#include "clocks.h"

static uint64
to_number(const SfGenerator *generator, SfInstant reserved_until, uint64 wall_safe, uint32 drifts)
{
	SfDurableState state;

	if (!sf_generator_has_phases(generator))
		return Max((uint64) (reserved_until - SF_UNIX_EPOCH), SF_ORIGIN_NEW + 1);
	state.reserved_tick = Max((uint64) sf_layout_tick_ceil(&generator->layout, reserved_until), 1);
	state.wall_safe = wall_safe;
	state.drifts = drifts;
	return sf_phase_pack(state);
}

bool
sf_durable_state_read(const SfGenerator *generator, ReplOriginId origin, SfDurableState *state)
{
	uint64		number = sf_origin_read(origin);

	memset(state, 0, sizeof(*state));
	if (number == 0 || number == SF_ORIGIN_NEW)
		return number != 0;
	if (sf_generator_has_phases(generator))
		*state = sf_phase_unpack(number);
	else
		state->reserved_tick = sf_position_tick(&generator->layout,
												sf_position_at(&generator->layout,
															   (SfInstant) number + SF_UNIX_EPOCH));
	return true;
}

XLogRecPtr
sf_durable_state_log(SfGenerator *generator, ReplOriginId origin,
					 SfInstant reserved_until, uint64 wall_safe, uint32 drifts, bool back)
{
	uint64		number = to_number(generator, reserved_until, wall_safe, drifts);
	XLogRecPtr	lsn;

	Assert(sf_origin_is_held(origin));
	Assert(sf_lock_is_mine(&generator->lock));
	lsn = sf_origin_log(origin, number, back);
	generator->written = number;
	return lsn;
}

void
sf_durable_state_note_time(SfGenerator *generator, int64 taken, int64 flush, int64 elapsed)
{
	uint32		before = pg_atomic_read_u32(&generator->write_time);

	Assert(sf_lock_is_mine(&generator->lock));
	pg_atomic_write_u32(&generator->write_time, sf_reservation_write_time(before, flush, elapsed));
	sf_counter_add(&generator->stats, SF_COUNTER_RESERVATION_WRITES, 1);
	sf_counter_add(&generator->stats, SF_COUNTER_RESERVATION_WRITE_TIME, taken);
}

void
sf_durable_state_write(SfGenerator *generator, ReplOriginId origin,
					   SfInstant reserved_until, uint64 wall_safe, uint32 drifts, bool back)
{
	SfStopwatch before = sf_start_stopwatch();
	int64		taken;

	XLogFlush(sf_durable_state_log(generator, origin, reserved_until, wall_safe, drifts, back));
	taken = sf_stopwatch(before);
	sf_durable_state_note_time(generator, taken, taken, taken);
}

bool
sf_durable_state_is_written(const SfGenerator *generator, ReplOriginId origin)
{
	return generator->written != 0 && sf_origin_read(origin) == generator->written;
}
