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

bool
sf_base32_is_text_of(const char *text, size_t length, int64_t number)
{
	char		expected[SF_BASE32_LENGTH];

	sf_base32_encode(number, expected);
	return length == SF_BASE32_LENGTH && memcmp(text, expected, length) == 0;
}

/* The value of the least digit that is not below a character; NO_DIGIT if all are below it. */
static unsigned
digit_from(char character)
{
	unsigned	value = 0;

	while (value < NO_DIGIT && (unsigned char) digits[value] < (unsigned char) character)
		value++;
	return value;
}

bool
sf_base32_bound(const char *text, size_t length, int64_t *bound)
{
	uint64_t	value = 0;		/* of the digits so far */
	bool		equal = true;	/* whether they are the beginning of the text */

	for (size_t i = 0; i < SF_BASE32_LENGTH; i++)
	{
		unsigned	digit = equal && i < length ? digit_from(text[i]) : 0;

		if (digit == NO_DIGIT)	/* the digits before this one have to be above
								 * the text */
		{
			value++;
			digit = 0;
			equal = false;
		}
		else
			equal = equal && i < length && digits[digit] == text[i];
		value = value << BITS | digit;
		if (value >> (63 - BITS * (SF_BASE32_LENGTH - 1 - i)) != 0)
			return false;
	}
	if (equal && length > SF_BASE32_LENGTH && value++ == INT64_MAX)
		return false;
	*bound = (int64_t) value;
	return true;
}
