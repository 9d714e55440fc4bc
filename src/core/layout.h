/*
 * layout.h
 *	  How the bits of a Snowflake ID are laid out, and what follows from it.
 *
 * A Snowflake ID is a number of at most 63 bits, never negative, made of three
 * fields: the timestamp, a count of ticks since the layout's epoch, in the
 * highest bits; and below it, in either order, the ID of the machine and a
 * sequence number that tells apart the IDs of one tick.  Because the timestamp
 * comes first, numbers sort by time and a span of time is a span of numbers.
 *
 * The functions are pure.  What can overflow is checked, and said by the
 * result; what cannot says why.
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

	/* Where each field's lowest bit stands; follows from widths and order. */
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

#define SF_PRESET_COUNT 7

extern const SfPreset sf_presets[SF_PRESET_COUNT];

/* Room for any text that sf_layout_format writes. */
#define SF_LAYOUT_TEXT_SIZE 160

/*
 * Read a layout: the name of a preset, or a definition, which is a list of
 * key=value separated by white space:
 *
 *	epoch		an instant (sf_instant_parse)
 *	tick		a span, 1us to 1s (sf_duration_parse)
 *	timestamp	bits of the timestamp
 *	machine		bits of the machine ID, none if left out
 *	sequence	bits of the sequence, none if left out
 *
 * The fields' bits are laid out from high to low in the order of their keys.
 * Returns false and fills *error when the text is no layout; *layout is then
 * undefined.
 */
extern bool sf_layout_parse(const char *text, SfLayout *layout, SfParseError *error);

/*
 * Write the definition of a layout, the same text for equal layouts, which
 * sf_layout_parse turns into the same layout.  buffer has SF_LAYOUT_TEXT_SIZE
 * bytes.
 */
extern void sf_layout_format(const SfLayout *layout, char *buffer);

extern bool sf_layout_equal(const SfLayout *a, const SfLayout *b);

/* The greatest value of a field of so many bits, 0 to 63. */
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

/* The fields of an ID that the layout holds. */
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

/* The ID of fields that fit. */
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

/* The time of an ID that the layout holds: when its tick begins. */
static inline SfInstant
sf_layout_instant(const SfLayout *layout, int64_t id)
{
	return sf_layout_tick_start(layout, (uint64_t) id >> layout->timestamp_shift);
}

/*
 * The tick in which an instant lies, or (ceil) the first one that does not
 * begin before it.  Any instant is taken; ticks before the epoch are negative,
 * ticks after the last one are greater than it, and what is beyond int64 is
 * INT64_MIN or INT64_MAX.
 */
extern int64_t sf_layout_tick_floor(const SfLayout *layout, SfInstant instant);
extern int64_t sf_layout_tick_ceil(const SfLayout *layout, SfInstant instant);

/*
 * The number that divides IDs at an instant: IDs whose time is before the
 * instant are below it, all others are not.  Any instant is taken.  One at or
 * before the epoch gives 0; one after the last tick gives the last ID + 1, or
 * INT64_MAX itself where the last ID is INT64_MAX, the only ID on the wrong
 * side of any boundary.
 */
extern int64_t sf_layout_boundary(const SfLayout *layout, SfInstant instant);

/*
 * How many numbers a span of time covers: boundary(t + span) - boundary(t) for
 * a span of whole ticks.  A part of a tick counts as a whole one.  Returns
 * false, *width untouched, when the span is negative or as long as all ticks of
 * the layout, or longer.
 */
extern bool sf_layout_width(const SfLayout *layout, int64_t span, int64_t *width);

#endif							/* SF_LAYOUT_H */
