/*
 * sequence_range.c
 *	  The range of sequence numbers that one server may use.
 */
#include "sequence_range.h"

/* Read one or more digits of *rest and move *rest behind them. */
static bool
take_number(const char **rest, uint64_t *number)
{
	const char *start = *rest;

	*number = 0;
	for (; **rest >= '0' && **rest <= '9'; (*rest)++)
	{
		if (*number <= SF_SEQUENCE_MAX) /* otherwise it is too large already */
			*number = *number * 10 + (uint64_t) (**rest - '0');
	}
	return *rest > start;
}

/*
 * Read "first-last", where either number may be the greater one, or the empty text as
 * 0 and SF_SEQUENCE_MAX.
 */
static bool
parse_pair(const char *text, uint64_t *first, uint64_t *last, SfParseError *error)
{
	const char *rest = text;
	const char *last_start;

	*first = 0;
	*last = SF_SEQUENCE_MAX;
	if (*text == '\0')
		return true;
	if (!take_number(&rest, first))
		return sf_parse_fail(error, 0, "the lowest sequence number is missing");
	if (*rest++ != '-')
		return sf_parse_fail(error, (size_t) (rest - 1 - text), "\"-\" is missing");
	last_start = rest;
	if (!take_number(&rest, last))
		return sf_parse_fail(error, (size_t) (rest - text),
							 "the highest sequence number is missing");
	if (*rest != '\0')
		return sf_parse_fail(error, (size_t) (rest - text), "the range continues after the highest sequence number");
	if (*first > SF_SEQUENCE_MAX)
		return sf_parse_fail(error, 0, "the lowest sequence number is over 2147483647");
	if (*last > SF_SEQUENCE_MAX)
		return sf_parse_fail(error, (size_t) (last_start - text),
							 "the highest sequence number is over 2147483647");
	return true;
}

bool
sf_sequence_range_parse(const char *text, SfSequenceRange *range, SfParseError *error)
{
	uint64_t	min;
	uint64_t	max;

	if (!parse_pair(text, &min, &max, error))
		return false;
	if (min > max)
		return sf_parse_fail(error, 0, "the lowest sequence number is above the highest");
	range->min = (uint32_t) min;
	range->max = (uint32_t) max;
	return true;
}

bool
sf_sno_sequence_range_parse(const char *text, SfSequenceRange *range, SfParseError *error)
{
	uint64_t	first;
	uint64_t	last;

	if (!parse_pair(text, &first, &last, error))
		return false;
	if (*text == '\0')
		last = SF_SNO_SEQUENCE_MAX;
	if (first > SF_SNO_SEQUENCE_MAX || last > SF_SNO_SEQUENCE_MAX)
		return sf_parse_fail(error, 0, "a sequence number is over 65535");
	if ((first < last ? last - first : first - last) + 1 < SF_SNO_SEQUENCE_COUNT)
		return sf_parse_fail(error, 0, "there are fewer than 4 sequence numbers");
	range->min = (uint32_t) (first < last ? first : last);
	range->max = (uint32_t) (first < last ? last : first);
	return true;
}
