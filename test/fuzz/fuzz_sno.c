/*
 * fuzz_sno.c
 *	  The parser of a sno's text, with any text of its length.  It accepts exactly the texts
 *	  that are written for an ID.
 */
#include "fuzz.h"
#include "sno.h"

void
fuzz_text(const char *text)
{
	static const char alphabet[] = "23456789abcdefghijklmnopqrstuvwx";
	char		written[SF_SNO_TEXT_LENGTH];
	bool		valid = true;
	SfSno		id;

	if (strlen(text) != SF_SNO_TEXT_LENGTH)
		return;
	for (int i = 0; i < SF_SNO_TEXT_LENGTH; i++)
		valid = valid && memchr(alphabet, text[i], sizeof(alphabet) - 1) != NULL;
	check(sf_sno_from_text(text, &id) == valid);
	if (!valid)
		return;
	sf_sno_to_text(&id, written);
	check(memcmp(text, written, SF_SNO_TEXT_LENGTH) == 0);
}
