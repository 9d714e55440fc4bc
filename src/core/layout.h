/*
 * layout.h
 *	  Layouts of Snowflake IDs: presets, text form, ticks, boundaries, and the form on disk.
 *
 * A Snowflake ID is a number of at most 63 bits, never negative.  It has three
 * fields.  The timestamp, a count of ticks since the layout's epoch, is in the
 * highest bits.  Below it, in either order, are the machine ID and a sequence
 * number, which distinguishes the IDs of one tick.  Because the timestamp comes
 * first, IDs sort by time, and a range of times is a range of IDs.
 *
 * The functions are pure.  A function that could overflow checks its arguments
 * and reports the overflow in its result, or its comment says why it cannot.
 */
#ifndef SF_LAYOUT_H
#define SF_LAYOUT_H

#include "instant.h"
#include "parse_error.h"

typedef struct SfLayout
{
	SfInstant	epoch;			/* the instant at which tick 0 begins */
	int32_t		tick_length;	/* 1 to 1 000 000 microseconds */

	/* Widths, 63 together at most: timestamp 1 to 63, others 0 to 31. */
	uint8_t		timestamp_bits;
	uint8_t		machine_bits;
	uint8_t		sequence_bits;

	/* The place of each field's lowest bit; follows from widths and order. */
	uint8_t		timestamp_shift;
	uint8_t		machine_shift;
	uint8_t		sequence_shift;
} SfLayout;

/* The fields of one ID. */
typedef struct SfFields
{
	uint64_t	tick;
	uint32_t	machine;
	uint32_t	sequence;
} SfFields;

typedef struct SfPreset
{
	const char *name;
	const char *definition;		/* as sf_layout_parse reads it */
} SfPreset;

extern const SfPreset sf_presets[];
extern const int sf_preset_count;

/* Room for any text that sf_layout_format writes. */
#define SF_LAYOUT_TEXT_SIZE 160

/*
 * Read a layout: the name of a preset, or a definition, which is a list of
 * key=value separated by white space:
 *
 *	epoch		an instant (sf_instant_parse)
 *	tick		a duration, 1us to 1s (sf_duration_parse)
 *	timestamp	bits of the timestamp
 *	machine		bits of the machine ID, none if left out
 *	sequence	bits of the sequence, none if left out
 *
 * The fields are placed from the highest bits to the lowest in the order of
 * their keys.  Returns false and fills *error if the text is not a layout;
 * *layout is then undefined.
 */
extern bool sf_layout_parse(const char *text, SfLayout *layout, SfParseError *error);

/*
 * Write the definition of a layout.  Equal layouts have the same text, and
 * sf_layout_parse reads it as the same layout.  buffer has SF_LAYOUT_TEXT_SIZE
 * bytes.
 */
extern void sf_layout_format(const SfLayout *layout, char *buffer);

extern bool sf_layout_equal(const SfLayout *a, const SfLayout *b);

/* The greatest value of a field of the given number of bits, 0 to 63. */
static inline uint64_t
sf_field_max(int bits)
{
	return (UINT64_C(1) << bits) - 1;
}

/* The greatest ID. */
static inline int64_t
sf_layout_last_id(const SfLayout *layout)
{
	return (int64_t) sf_field_max(layout->timestamp_bits + layout->timestamp_shift);
}

static inline uint64_t
sf_layout_last_tick(const SfLayout *layout)
{
	return sf_field_max(layout->timestamp_bits);
}

/* Whether a number is an ID of the layout: neither negative nor too large. */
static inline bool
sf_layout_holds(const SfLayout *layout, int64_t number)
{
	return number >= 0 && number <= sf_layout_last_id(layout);
}

/* The fields of an ID for which sf_layout_holds returns true. */
static inline SfFields
sf_layout_decompose(const SfLayout *layout, int64_t id)
{
	SfFields	fields;

	fields.tick = (uint64_t) id >> layout->timestamp_shift;
	fields.machine = (uint32_t)
		(((uint64_t) id >> layout->machine_shift) & sf_field_max(layout->machine_bits));
	fields.sequence = (uint32_t)
		(((uint64_t) id >> layout->sequence_shift) & sf_field_max(layout->sequence_bits));
	return fields;
}

/* The ID with the given fields, which must fit the layout. */
static inline int64_t
sf_layout_compose(const SfLayout *layout, SfFields fields)
{
	return (int64_t) (fields.tick << layout->timestamp_shift |
					  (uint64_t) fields.machine << layout->machine_shift |
					  (uint64_t) fields.sequence << layout->sequence_shift);
}

/*
 * The instant at which a tick begins, for ticks from 0 to one past the last.
 * It cannot overflow: the last tick of a layout begins before SF_INSTANT_END,
 * and a tick is at most a second.
 */
static inline SfInstant
sf_layout_tick_start(const SfLayout *layout, uint64_t tick)
{
	return (SfInstant) ((uint64_t) layout->epoch + tick * (uint64_t) layout->tick_length);
}

/*
 * The time of an ID for which sf_layout_holds returns true: the instant at which its tick begins.
 */
static inline SfInstant
sf_layout_instant(const SfLayout *layout, int64_t id)
{
	return sf_layout_tick_start(layout, (uint64_t) id >> layout->timestamp_shift);
}

/*
 * The tick in which an instant lies (floor), or the first tick that does not
 * begin before the instant (ceil).  Any instant is accepted.  Ticks before the
 * epoch are negative, ticks after the last one are greater than the last one,
 * and a result beyond int64 is INT64_MIN or INT64_MAX.
 */
extern int64_t sf_layout_tick_floor(const SfLayout *layout, SfInstant instant);
extern int64_t sf_layout_tick_ceil(const SfLayout *layout, SfInstant instant);

/*
 * The boundary of IDs at an instant: an ID is below the boundary if its time is
 * before the instant, and otherwise not.  Any instant is accepted.  An instant
 * at or before the epoch has the boundary 0.  An instant after the last tick has
 * the boundary last ID + 1.  If the last ID is INT64_MAX, the boundary is
 * INT64_MAX as well; that ID is the only one on the wrong side of any boundary.
 */
extern int64_t sf_layout_boundary(const SfLayout *layout, SfInstant instant);

/* A layout as two numbers, for the durable state of a server.  Neither is ever 0. */
typedef struct SfPackedLayout
{
	uint64_t	epoch;			/* microseconds since 0001-01-01, plus 1 */

	/*
	 * From the top: a checksum of 27 bits, the length of a tick less 1 (20
	 * bits), the widths of timestamp (6), machine ID (5) and sequence (5),
	 * and whether the machine ID is above the sequence (1).
	 */
	uint64_t	fields;
} SfPackedLayout;

/* Equal layouts have equal numbers. */
extern SfPackedLayout sf_layout_pack(const SfLayout *layout);

/* Returns false, and leaves *layout undefined, if the numbers do not describe a layout. */
extern bool sf_layout_unpack(SfPackedLayout packed, SfLayout *layout);

#endif							/* SF_LAYOUT_H */
