/*
 * sequence_range.c
 *	  The part of a tick's sequence numbers that one server may use.
 */
#include "sequence_range.h"

#include <inttypes.h>
#include <stdio.h>

static bool
fail(SfParseError *error, size_t offset, const char *message)
{
	error->position = offset + 1;
	snprintf(error->message, sizeof(error->message), "%s", message);
	return false;
}

/* One or more digits of *rest, which moves behind them. */
static bool
take_number(const char **rest, uint64_t *number)
{
	const char *start = *rest;

	*number = 0;
	for (; **rest >= '0' && **rest <= '9'; (*rest)++)
	{
		if (*number <= SF_SEQUENCE_MAX) /* more digits cannot mend it */
			*number = *number * 10 + (uint64_t) (**rest - '0');
	}
	return *rest > start;
}

bool
sf_sequence_range_parse(const char *text, SfSequenceRange *range, SfParseError *error)
{
	const char *rest = text;
	const char *max_start;
	uint64_t	min = 0;
	uint64_t	max = SF_SEQUENCE_MAX;

	if (*text != '\0')
	{
		if (!take_number(&rest, &min))
			return fail(error, 0, "the lowest sequence number is missing");
		if (*rest++ != '-')
			return fail(error, (size_t) (rest - 1 - text), "\"-\" is missing");
		max_start = rest;
		if (!take_number(&rest, &max))
			return fail(error, (size_t) (rest - text), "the highest sequence number is missing");
		if (*rest != '\0')
			return fail(error, (size_t) (rest - text), "there is more than min-max");
		if (min > SF_SEQUENCE_MAX)
			return fail(error, 0, "the lowest sequence number is over 2147483647");
		if (max > SF_SEQUENCE_MAX)
			return fail(error, (size_t) (max_start - text), "the highest sequence number is over 2147483647");
		if (min > max)
			return fail(error, 0, "the lowest sequence number is above the highest");
	}
	range->min = (uint32_t) min;
	range->max = (uint32_t) max;
	return true;
}
