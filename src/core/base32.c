/*
 * base32.c
 *	  IDs as text of 13 characters.
 */
#include "base32.h"

#include <string.h>

#define BITS	5				/* of a digit */
#define NO_DIGIT	32

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* 13 digits have 65 bits and a number has 63, so the first digit is at most 7. */
#define MAX_FIRST_DIGIT	7

void
sf_base32_encode(int64_t number, char *text)
{
	for (int i = SF_BASE32_LENGTH - 1; i >= 0; i--)
	{
		text[i] = digits[number & 31];
		number >>= BITS;
	}
}

/* The value of a character as a digit; NO_DIGIT if it is not one. */
static unsigned
digit_value(char character)
{
	const char *found;

	if (character >= 'A' && character <= 'Z')
		character = (char) (character - 'A' + 'a');
	if (character == 'o')
		character = '0';
	if (character == 'i' || character == 'l')
		character = '1';
	found = character == '\0' ? NULL : strchr(digits, character);
	return found ? (unsigned) (found - digits) : NO_DIGIT;
}

bool
sf_base32_decode(const char *text, size_t length, int64_t *number,
				 bool *overflow, SfParseError *error)
{
	uint64_t	value = 0;

	*overflow = false;
	for (size_t i = 0; i < length && i < SF_BASE32_LENGTH; i++)
	{
		unsigned	digit = digit_value(text[i]);

		if (digit == NO_DIGIT)
			return sf_parse_fail(error, i, "there is no digit of base 32");
		value = value << BITS | digit;
	}
	if (length < SF_BASE32_LENGTH)
		return sf_parse_fail(error, length, "the text ends before its 13th digit");
	if (length > SF_BASE32_LENGTH)
		return sf_parse_fail(error, SF_BASE32_LENGTH, "there are more than 13 digits");
	if (digit_value(text[0]) > MAX_FIRST_DIGIT)
	{
		*overflow = true;
		return sf_parse_fail(error, 0, "the first digit is above 7");
	}
	*number = (int64_t) value;
	return true;
}
