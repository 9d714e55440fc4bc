/*
 * fuzz_sequence_range.c
 *	  The parsers of sequence ranges, with any text.  A range that is read is in order and
 *	  within its limits.  An error has a place.
 */
#include "fuzz.h"
#include "sequence_range.h"

void
fuzz_text(const char *text)
{
	SfSequenceRange range;
	SfParseError error;

	if (sf_sequence_range_parse(text, &range, &error))
		check(range.min <= range.max && range.max <= SF_SEQUENCE_MAX);
	else
		check_error(text, &error);
	if (sf_sno_sequence_range_parse(text, &range, &error))
		check(range.max <= SF_SNO_SEQUENCE_MAX &&
			  range.min + SF_SNO_SEQUENCE_COUNT - 1 <= range.max);
	else
		check_error(text, &error);
}
