/*
 * layout_pack.c
 *	  A layout as two numbers, for the durable state of a server.
 */
#include "layout_pack.h"

/* 0001-01-01, the earliest epoch of a layout. */
#define FIRST_EPOCH		(-INT64_C(63082281600000000))

#define FIELD_BITS		37

/* A checksum of 27 bits: the top bits of a product (Fibonacci hashing). */
static uint64_t
checksum(uint64_t epoch, uint64_t fields)
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
	packed.fields |= checksum(packed.epoch, packed.fields) << FIELD_BITS;
	return packed;
}

bool
sf_layout_unpack(SfPackedLayout packed, SfLayout *layout)
{
	uint64_t	fields = packed.fields & sf_field_max(FIELD_BITS);

	if (packed.fields == 0 || packed.fields >> FIELD_BITS != checksum(packed.epoch, fields))
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
