/*
 * layout.c
 *	  Layouts of Snowflake IDs: presets, text form, ticks, boundaries, and the form on disk.
 */
#include "layout.h"
#include "hot.h"

#include <stdio.h>

/*
 * Sources: Twitter's snowflake (IdWorker.scala: twepoch 1288834974657); the
 * Discord developer documentation, "Snowflakes"; Instagram Engineering,
 * "Sharding & IDs at Instagram"; sonyflake v1; Mastodon (id timestamp_id, its
 * 16 low bits a hash there); pgEdge snowflake 1.2
 * to 2.6 (snowflake.c).  If a service uses a 64th bit, the
 * preset has only 63, because a bigint has a sign.
 *
 * script/layouts writes the copies of this table for other programs and for the docs.
 */
const SfPreset sf_presets[] = {
	{"twitter", "epoch=1288834974657ms tick=1ms timestamp=41 machine=10 sequence=12"},
	{"discord", "epoch=1420070400000ms tick=1ms timestamp=41 machine=10 sequence=12"},
	{"instagram", "epoch=1314220021721ms tick=1ms timestamp=40 machine=13 sequence=10"},
	{"sonyflake", "epoch=2014-09-01 tick=10ms timestamp=39 sequence=8 machine=16"},
	{"mastodon", "epoch=1970-01-01 tick=1ms timestamp=47 sequence=16"},
	{"pgedge", "epoch=2023-01-01 tick=1ms timestamp=41 machine=10 sequence=12"},
	{"javascript", "epoch=2020-01-01 tick=1ms timestamp=41 machine=5 sequence=7"},
};

const int	sf_preset_count = sizeof(sf_presets) / sizeof(sf_presets[0]);

bool
sf_layout_equal(const SfLayout *a, const SfLayout *b)
{
	return a->epoch == b->epoch &&
		a->tick_length == b->tick_length &&
		a->timestamp_bits == b->timestamp_bits &&
		a->machine_bits == b->machine_bits &&
		a->sequence_bits == b->sequence_bits &&
		a->timestamp_shift == b->timestamp_shift &&
		a->machine_shift == b->machine_shift &&
		a->sequence_shift == b->sequence_shift;
}

void
sf_layout_format(const SfLayout *layout, char *buffer)
{
	char		epoch[SF_INSTANT_TEXT_SIZE];
	char		tick[SF_INSTANT_TEXT_SIZE];
	char		machine[16] = "";
	char		sequence[16] = "";
	bool		machine_first = layout->machine_shift > 0;

	sf_instant_format(layout->epoch, epoch);
	sf_duration_format(layout->tick_length, tick);
	if (layout->machine_bits > 0)
		snprintf(machine, sizeof(machine), " machine=%d", layout->machine_bits);
	if (layout->sequence_bits > 0)
		snprintf(sequence, sizeof(sequence), " sequence=%d", layout->sequence_bits);
	snprintf(buffer, SF_LAYOUT_TEXT_SIZE, "epoch=%s tick=%s timestamp=%d%s%s",
			 epoch, tick, layout->timestamp_bits,
			 machine_first ? machine : sequence,
			 machine_first ? sequence : machine);
}

/*
 * The ticks from the epoch to an instant, rounded up or down.  Instants are compared before they
 * are subtracted, and subtracted as unsigned numbers: the distance of two int64 always fits a
 * uint64.
 */
static inline int64_t
ticks_from_epoch(const SfLayout *layout, SfInstant instant, bool up)
{
	bool		before = instant < layout->epoch;
	uint64_t	length = (uint64_t) layout->tick_length;
	uint64_t	distance = before ? (uint64_t) layout->epoch - (uint64_t) instant :
	(uint64_t) instant - (uint64_t) layout->epoch;
	uint64_t	ticks = distance / length + (before != up && distance % length != 0);

	if (ticks > INT64_MAX)
		return before ? INT64_MIN : INT64_MAX;
	return before ? -(int64_t) ticks : (int64_t) ticks;
}

SF_HOT int64_t
sf_layout_tick_floor(const SfLayout *layout, SfInstant instant)
{
	return ticks_from_epoch(layout, instant, false);
}

int64_t
sf_layout_tick_ceil(const SfLayout *layout, SfInstant instant)
{
	return ticks_from_epoch(layout, instant, true);
}

int64_t
sf_layout_boundary(const SfLayout *layout, SfInstant instant)
{
	int64_t		tick = sf_layout_tick_ceil(layout, instant);
	int64_t		last_id = sf_layout_last_id(layout);

	if (tick <= 0)
		return 0;
	if ((uint64_t) tick > sf_layout_last_tick(layout))
		return last_id == INT64_MAX ? INT64_MAX : last_id + 1;
	return (int64_t) ((uint64_t) tick << layout->timestamp_shift);
}

/* 0001-01-01, the earliest epoch of a layout. */
#define FIRST_EPOCH		(-INT64_C(63082281600000000))

#define FIELD_BITS		37

/* A checksum of 27 bits: the top bits of a product (Fibonacci hashing). */
static uint64_t
packed_checksum(uint64_t epoch, uint64_t fields)
{
	return (epoch ^ fields << 27) * UINT64_C(0x9E3779B97F4A7C15) >> FIELD_BITS;
}

SfPackedLayout
sf_layout_pack(const SfLayout *layout)
{
	SfPackedLayout packed;

	packed.epoch = (uint64_t) (layout->epoch - FIRST_EPOCH) + 1;
	packed.fields = (uint64_t) (layout->tick_length - 1) << 17 |
		(uint64_t) layout->timestamp_bits << 11 | (uint64_t) layout->machine_bits << 6 |
		(uint64_t) layout->sequence_bits << 1 | (layout->machine_shift > 0);
	packed.fields |= packed_checksum(packed.epoch, packed.fields) << FIELD_BITS;
	return packed;
}

bool
sf_layout_unpack(SfPackedLayout packed, SfLayout *layout)
{
	uint64_t	fields = packed.fields & sf_field_max(FIELD_BITS);

	if (packed.fields == 0 || packed.fields >> FIELD_BITS != packed_checksum(packed.epoch, fields))
		return false;
	layout->epoch = (SfInstant) (packed.epoch - 1) + FIRST_EPOCH;
	layout->tick_length = (int32_t) (fields >> 17) + 1;
	layout->timestamp_bits = fields >> 11 & 63;
	layout->machine_bits = fields >> 6 & 31;
	layout->sequence_bits = fields >> 1 & 31;
	layout->timestamp_shift = layout->machine_bits + layout->sequence_bits;
	layout->machine_shift = fields & 1 ? layout->sequence_bits : 0;
	layout->sequence_shift = fields & 1 || layout->sequence_bits == 0 ? 0 : layout->machine_bits;
	return true;
}
