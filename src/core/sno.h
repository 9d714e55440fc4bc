/*
 * sno.h
 *	  IDs of 80 bits: their fields, order and text.
 *
 * The format is defined by github.com/muyo/sno.  From the top:
 *
 *	39 bits		units: 4 ms each, since 2010-01-01T00:00:00Z
 *	 1 bit		tick-tock: which of two lines, see line.h
 *	 8 bits		metabyte: its meaning is the caller's
 *	16 bits		partition: of the server that issued it
 *	16 bits		sequence: within the unit
 *
 * An ID is ten bytes, the highest first, so the order of bytes, of texts and of
 * times is the same.
 */
#ifndef SF_SNO_H
#define SF_SNO_H

#include "layout.h"

#define SF_SNO_SIZE			10
#define SF_SNO_TEXT_LENGTH	16

typedef struct SfSno
{
	unsigned char bytes[SF_SNO_SIZE];
} SfSno;

typedef struct SfSnoFields
{
	uint64_t	units;			/* 39 bits */
	bool		tick_tock;
	uint8_t		metabyte;
	uint16_t	partition;
	uint16_t	sequence;
} SfSnoFields;

/*
 * Units and sequence numbers as a layout, for the functions of ticks and positions.
 */
extern const SfLayout sf_sno_layout;

/* The upper 64 bits: all fields except the sequence. */
static inline uint64_t
sf_sno_upper(const SfSno *id)
{
	const unsigned char *b = id->bytes;

	return (uint64_t) b[0] << 56 | (uint64_t) b[1] << 48 |
		(uint64_t) b[2] << 40 | (uint64_t) b[3] << 32 |
		(uint64_t) b[4] << 24 | (uint64_t) b[5] << 16 |
		(uint64_t) b[6] << 8 | (uint64_t) b[7];
}

/* The lower 16 bits. */
static inline uint16_t
sf_sno_sequence(const SfSno *id)
{
	return (uint16_t) (id->bytes[8] << 8 | id->bytes[9]);
}

static inline SfSno
sf_sno_of(uint64_t upper, uint16_t sequence)
{
	SfSno		id;

	for (int i = 0; i < 8; i++)
		id.bytes[i] = (unsigned char) (upper >> (56 - 8 * i));
	id.bytes[8] = (unsigned char) (sequence >> 8);
	id.bytes[9] = (unsigned char) sequence;
	return id;
}

/* The ID with the given fields; units must have at most 39 bits. */
static inline SfSno
sf_sno_compose(SfSnoFields fields)
{
	return sf_sno_of(fields.units << 25 | (uint64_t) fields.tick_tock << 24 |
					 (uint64_t) fields.metabyte << 16 | fields.partition, fields.sequence);
}

static inline SfSnoFields
sf_sno_decompose(const SfSno *id)
{
	uint64_t	upper = sf_sno_upper(id);
	SfSnoFields fields;

	fields.units = upper >> 25;
	fields.tick_tock = (upper >> 24 & 1) != 0;
	fields.metabyte = (uint8_t) (upper >> 16);
	fields.partition = (uint16_t) upper;
	fields.sequence = sf_sno_sequence(id);
	return fields;
}

/* The time of an ID: the instant at which its unit begins. */
static inline SfInstant
sf_sno_instant(const SfSno *id)
{
	return sf_layout_tick_start(&sf_sno_layout, sf_sno_upper(id) >> 25);
}

/* Less than, equal to or greater than 0 if a is less than, equal to or greater than b. */
static inline int
sf_sno_compare(const SfSno *a, const SfSno *b)
{
	uint64_t	upper_a = sf_sno_upper(a);
	uint64_t	upper_b = sf_sno_upper(b);

	if (upper_a != upper_b)
		return upper_a < upper_b ? -1 : 1;
	return (int) sf_sno_sequence(a) - (int) sf_sno_sequence(b);
}

/*
 * The boundary of IDs at an instant: an ID is below the boundary if its time is
 * before the instant, and otherwise not.  Any instant is accepted.  An instant at
 * or before the epoch has the least ID as boundary.  An instant after the last
 * unit has the greatest ID, which is the only ID on the wrong side of any boundary.
 */
extern SfSno sf_sno_boundary(SfInstant instant);

/* Write the text of an ID: SF_SNO_TEXT_LENGTH characters, without a terminating zero. */
extern void sf_sno_to_text(const SfSno *id, char *text);

/*
 * Read such a text.  Returns false if a character is not one of 2 to 9 and a to x, in
 * lower case; *id is then undefined.
 */
extern bool sf_sno_from_text(const char *text, SfSno *id);

/*
 * A key of 64 bits to sort by.  Keys are in the order of their IDs, but different IDs
 * can have equal keys.
 *
 * The upper 64 bits of the ID would be such a key, but up to 65 536 IDs issued in quick succession
 * differ in the sequence alone.  Most of these IDs have the same metabyte and partition.
 * Therefore the key is made with a reference, such as the first ID of a sort.  The upper 40 bits
 * of the key are the upper 40 bits of the ID: time and line.  The lower 24 bits are the rank of
 * metabyte and partition, halved.  In the middle of these ranks, 65 536 are inserted: the sequence
 * numbers of IDs that have the metabyte and partition of the reference.
 */
static inline uint64_t
sf_sno_sort_key(const SfSno *id, const SfSno *reference)
{
	uint64_t	upper = sf_sno_upper(id);
	uint32_t	rank = (uint32_t) upper & 0xffffff;
	uint32_t	rank_of_reference = (uint32_t) sf_sno_upper(reference) & 0xffffff;
	uint32_t	first = (rank_of_reference >> 1) + 1;
	uint32_t	low;

	if (rank == rank_of_reference)
		low = first + sf_sno_sequence(id);
	else if (rank < rank_of_reference)
		low = rank >> 1;
	else
		low = first + 65536 + ((rank - rank_of_reference - 1) >> 1);
	return (upper & ~UINT64_C(0xffffff)) | low;
}

#endif							/* SF_SNO_H */
