/*
 * sno.c
 *	  IDs of 80 bits: their fields, order and text.
 *
 * Half of an ID, 40 bits, is written as 8 characters of 5 bits.  The 8 characters are
 * converted at once, as the bytes of one 64-bit number, without a branch.
 */
#include "sno.h"

#define EACH_BYTE(value)	(UINT64_C(0x0101010101010101) * (value))

#define HALF_SIZE	(SF_SNO_SIZE / 2)

const SfLayout sf_sno_layout = {
	.epoch = INT64_C(315619200000000),	/* 2010-01-01 */
	.tick_length = 4000,
	.timestamp_bits = 39,
	.sequence_bits = 16,
	.timestamp_shift = 16,
};

SfSno
sf_sno_boundary(SfInstant instant)
{
	int64_t		units = sf_layout_tick_ceil(&sf_sno_layout, instant);

	if (units < 0)
		units = 0;
	if ((uint64_t) units > sf_layout_last_tick(&sf_sno_layout))
		return sf_sno_of(UINT64_MAX, UINT16_MAX);
	return sf_sno_of((uint64_t) units << 25, 0);
}

/* Spread eight groups of five bits over eight bytes. */
static uint64_t
spread_characters(uint64_t bits)
{
	bits = (bits & UINT64_C(0xfffff00000)) << 12 | (bits & UINT64_C(0xfffff));
	bits = (bits & UINT64_C(0x000ffc00000ffc00)) << 6 | (bits & UINT64_C(0x000003ff000003ff));
	return (bits & UINT64_C(0x03e003e003e003e0)) << 3 | (bits & UINT64_C(0x001f001f001f001f));
}

/* Gather the five lower bits of eight bytes: the inverse of
 * spread_characters. */
static uint64_t
gather_characters(uint64_t bytes)
{
	bytes = (bytes & UINT64_C(0x1f001f001f001f00)) >> 3 | (bytes & UINT64_C(0x001f001f001f001f));
	bytes = (bytes & UINT64_C(0x03ff000003ff0000)) >> 6 | (bytes & UINT64_C(0x000003ff000003ff));
	return (bytes & UINT64_C(0x000fffff00000000)) >> 12 | (bytes & UINT64_C(0xfffff));
}

/*
 * The characters of values from 0 to 31: '2' to '9', then 'a' to 'x'.  In ASCII 'a' is
 * 40 above '9', so 39 is added to a value that is a letter.  Adding 120 to a value sets
 * the byte's top bit if the value is 8 or more, a letter.
 */
static uint64_t
characters_of(uint64_t values)
{
	uint64_t	is_letter = (values + EACH_BYTE(120)) >> 7 & EACH_BYTE(1);

	return values + EACH_BYTE('2') + is_letter * 39;
}

/*
 * The values of characters; arbitrary values for characters outside of the alphabet.
 * The top bit that is set in each byte keeps the subtraction from borrowing from the
 * next byte.
 */
static uint64_t
values_of(uint64_t characters)
{
	uint64_t	is_letter = characters >> 6 & EACH_BYTE(1);

	return ((characters | EACH_BYTE(128)) - EACH_BYTE('2') - is_letter * 39) & EACH_BYTE(31);
}

static uint64_t
load_bytes(const unsigned char *bytes, int count)
{
	uint64_t	number = 0;

	for (int i = 0; i < count; i++)
		number = number << 8 | bytes[i];
	return number;
}

static void
store_bytes(uint64_t number, unsigned char *bytes, int count)
{
	for (int i = count - 1; i >= 0; i--)
	{
		bytes[i] = (unsigned char) number;
		number >>= 8;
	}
}

void
sf_sno_to_text(const SfSno *id, char *text)
{
	uint64_t	first = load_bytes(id->bytes, HALF_SIZE);
	uint64_t	second = load_bytes(id->bytes + HALF_SIZE, HALF_SIZE);

	store_bytes(characters_of(spread_characters(first)), (unsigned char *) text, 8);
	store_bytes(characters_of(spread_characters(second)), (unsigned char *) text + 8, 8);
}

/*
 * A character outside of the alphabet is found by writing its value again: the result is
 * a character of the alphabet, and so differs from the original.
 */
bool
sf_sno_from_text(const char *text, SfSno *id)
{
	uint64_t	first = load_bytes((const unsigned char *) text, 8);
	uint64_t	second = load_bytes((const unsigned char *) text + 8, 8);
	uint64_t	first_values = values_of(first);
	uint64_t	second_values = values_of(second);

	store_bytes(gather_characters(first_values), id->bytes, HALF_SIZE);
	store_bytes(gather_characters(second_values), id->bytes + HALF_SIZE, HALF_SIZE);
	return ((characters_of(first_values) ^ first) | (characters_of(second_values) ^ second)) == 0;
}
