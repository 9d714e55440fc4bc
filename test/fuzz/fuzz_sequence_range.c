/*
 * fuzz_sequence_range.c
 *	  The parsers of sequence ranges, against any text: what they take is in order and in
 *	  bounds; of what they refuse they say where.
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
		check(range.max <= SF_SNO_SEQUENCE_MAX && range.min + SF_SNO_SEQUENCE_COUNT - 1 <= range.max);
	else
		check_error(text, &error);
}
