/*
 * fuzz_base32.c
 *	  The parser of IDs as text, with any text.  A number that is read is written as the
 *	  same text, in lower case and without look-alikes.  An error has a message.
 */
#include "base32.h"
#include "fuzz.h"

/* The digit that a character stands for. */
static char
digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		c = (char) (c - 'A' + 'a');
	if (c == 'o')
		return '0';
	return c == 'i' || c == 'l' ? '1' : c;
}

void
fuzz_text(const char *text)
{
	int64_t		number;
	bool		overflow;
	SfParseError error;
	char		written[SF_BASE32_LENGTH];

	if (!sf_base32_decode(text, strlen(text), &number, &overflow, &error))
	{
		check(error.message[0] != '\0');
		return;
	}
	check(number >= 0 && strlen(text) == SF_BASE32_LENGTH);
	sf_base32_encode(number, written);
	for (int i = 0; i < SF_BASE32_LENGTH; i++)
		check(written[i] == digit(text[i]));
}
