/*
 * durable.c
 *	  The numbers that a server must not forget.
 *
 * PostgreSQL keeps a 64-bit number for each replication origin: its progress.  It is logged in WAL,
 * saved by checkpoints, replayed by recovery and standbys, and copied by base backups.  So the
 * extension needs no file, no checksum and no type of WAL record of its own.
 *
 * The catalog has no row for these origins, since a row would be transactional while the progress
 * is not.  A number is written outside of transactions, in any process, and a rollback leaves it as
 * it is.  The SQL functions for origins find them by name, so they cannot change or drop these.
 * PostgreSQL assigns the lowest number that is free to an origin, and would come to these only if
 * 65529 others existed.
 *
 * pg_upgrade does not carry the progress of origins.  Afterwards all numbers are 0, and no ID is
 * issued until an administrator has set the floor.
 *
 * The end of the reservation is one number, so that one record of WAL writes it, and a crash leaves
 * either the old state or the new one.  The layout is two numbers: the first one is set to 0 before
 * the second one changes, and written last.
 *
 * A checkpoint can save a number whose record of WAL is not on disk yet.  If the record is lost in
 * a crash, the saved number remains, which is the safe direction for an end of the reservation;
 * open_locked (reservation.c) writes it again, for standbys.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/origin.h"

#include "clocks.h"
#include "compat.h"
#include "core/reserved_time.h"
#include "core/sno.h"
#include "state/durable.h"

StaticAssertDecl(SF_DURABLE_REGISTRY == DoNotReplicateId - 1, "the last number of an origin");
StaticAssertDecl(SF_DURABLE_REGISTRY - SF_DURABLE_LAYOUT == SF_DURABLE_COUNT - 1, "their count");

uint64
sf_durable_read(SfDurable number)
{
	return replorigin_get_progress((ReplOriginId) number, false);
}

static XLogRecPtr
write_record(SfDurable number, uint64 value, bool lower)
{
	replorigin_advance((ReplOriginId) number, (XLogRecPtr) value, InvalidXLogRecPtr, lower, true);
	return XactLastRecEnd;
}

void
sf_durable_raise(SfDurable number, uint64 value)
{
	XLogFlush(write_record(number, value, false));
}

void
sf_durable_set(SfDurable number, uint64 value)
{
	XLogFlush(write_record(number, value, true));
}

void
sf_durable_take_slots(void)
{
	XLogRecPtr	end = InvalidXLogRecPtr;

	for (int i = 0; i < SF_DURABLE_COUNT; i++)
		end = write_record((SfDurable) (SF_DURABLE_LAYOUT + i), 0, false);
	XLogFlush(end);
}

/*
 * The state of a generator
 */

static SfDurable
number_of(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? SF_DURABLE_SNO : SF_DURABLE_BIGINT;
}

/*
 * An end at the Unix epoch is rounded up, since 0 means that the state is lost.  A lease or a clock
 * can be outside of the range of type sno.
 */
static uint64
to_number(SfGeneratorKind kind, SfInstant reserved_until, uint64 wall_safe, uint32 drifts)
{
	int64		tick = sf_layout_tick_ceil(&sf_sno_layout, reserved_until);
	SfDurableState state = {
		.reserved_tick = (uint64) Min(Max(tick, 1), (int64) SF_PHASE_TICKS),
		.wall_safe = Min(wall_safe, SF_PHASE_TICKS),
		.drifts = drifts,
	};

	if (kind == SF_GENERATOR_BIGINT)
		return Max((uint64) reserved_until - (uint64) SF_UNIX_EPOCH, 1);
	return sf_phase_pack(state);
}

/* An end after the last tick is that of another layout.  Nothing is issued above it. */
bool
sf_durable_state_read(const SfGenerator *generator, SfDurableState *state)
{
	uint64		number = sf_durable_read(number_of(generator->kind));
	uint64		last = (uint64) SF_INSTANT_END - (uint64) SF_UNIX_EPOCH;
	SfInstant	end = (SfInstant) (Min(number, last) + (uint64) SF_UNIX_EPOCH);

	memset(state, 0, sizeof(*state));
	if (number != 0 && sf_generator_has_phases(generator))
		*state = sf_phase_unpack(number);
	else if (number != 0)
		state->reserved_tick = sf_position_tick(&generator->layout,
												sf_position_at(&generator->layout, end));
	return number != 0;
}

bool
sf_durable_end(SfGeneratorKind kind, SfInstant *end)
{
	uint64		number = sf_durable_read(number_of(kind));

	if (kind == SF_GENERATOR_SNO)
		*end = sf_layout_tick_start(&sf_sno_layout, sf_phase_unpack(number).reserved_tick);
	else
		*end = (SfInstant) (number + (uint64) SF_UNIX_EPOCH);
	return number != 0;
}

XLogRecPtr
sf_durable_state_log(SfGenerator *generator, SfInstant reserved_until,
					 uint64 wall_safe, uint32 drifts, bool lower)
{
	Assert(sf_lock_is_mine(&generator->lock));
	return write_record(number_of(generator->kind),
						to_number(generator->kind, reserved_until, wall_safe, drifts), lower);
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
sf_durable_state_write(SfGenerator *generator, SfInstant reserved_until,
					   uint64 wall_safe, uint32 drifts)
{
	int64		before = sf_time_since_boot();
	int64		taken;

	XLogFlush(sf_durable_state_log(generator, reserved_until, wall_safe, drifts, true));
	taken = sf_time_since(before);
	sf_durable_state_note_time(generator, taken, taken, taken);
}

/* The state of sno is rounded down, so that the first ID does not wait. */
void
sf_durable_state_begin(SfGeneratorKind kind, SfInstant instant)
{
	if (kind == SF_GENERATOR_SNO)
		instant -= (SF_PHASE_RESERVED_TICKS - 1) * (int64) sf_sno_layout.tick_length;
	instant = Max(instant, SF_UNIX_EPOCH);
	if (sf_durable_read(number_of(kind)) == 0)
		sf_durable_raise(number_of(kind), to_number(kind, instant, 0, 0));
}

/*
 * The layout of IDs of type bigint
 */

SfOpening
sf_durable_layout_read(SfLayout *layout)
{
	SfPackedLayout packed = {
		.epoch = sf_durable_read(SF_DURABLE_EPOCH),
		.fields = sf_durable_read(SF_DURABLE_LAYOUT),
	};

	if (packed.fields == 0)
		return SF_OPENING_LOST;
	return sf_layout_unpack(packed, layout) ? SF_OPENING_DONE : SF_OPENING_INVALID;
}

void
sf_durable_layout_write(const SfLayout *layout)
{
	SfPackedLayout packed = sf_layout_pack(layout);

	sf_durable_set(SF_DURABLE_LAYOUT, 0);
	sf_durable_set(SF_DURABLE_EPOCH, packed.epoch);
	sf_durable_set(SF_DURABLE_LAYOUT, packed.fields);
}
