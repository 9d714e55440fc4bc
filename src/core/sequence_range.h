/*
 * sequence_range.h
 *	  The range of sequence numbers that one server may use.
 *
 * Servers with ranges that do not overlap can share a machine ID.
 */
#ifndef SF_SEQUENCE_RANGE_H
#define SF_SEQUENCE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "parse_error.h"

typedef struct SfSequenceRange
{
	uint32_t	min;			/* both inclusive, min <= max <= 2^31 - 1 */
	uint32_t	max;
} SfSequenceRange;

/*
 * The greatest max that sf_sequence_range_parse returns.  It also stands for "all
 * sequence numbers", so callers use sf_sequence_range_within to limit a range to the
 * layout.
 */
#define SF_SEQUENCE_MAX UINT32_C(0x7fffffff)

/*
 * Read "min-max", both decimal and inclusive, or the empty text for all
 * sequence numbers, 0 to SF_SEQUENCE_MAX.  If the text is neither, returns false,
 * fills *error and leaves *range unchanged.
 */
extern bool sf_sequence_range_parse(const char *text, SfSequenceRange *range,
									SfParseError *error);

/*
 * For type sno, the least number of sequence numbers in a range, and the greatest
 * sequence number.
 */
#define SF_SNO_SEQUENCE_COUNT	4
#define SF_SNO_SEQUENCE_MAX		65535

/*
 * Read the range of type sno: numbers of at most SF_SNO_SEQUENCE_MAX, and at least
 * SF_SNO_SEQUENCE_COUNT of them.  The higher number may come first, as in
 * github.com/muyo/sno.  The results are as for sf_sequence_range_parse.
 */
extern bool sf_sno_sequence_range_parse(const char *text, SfSequenceRange *range,
										SfParseError *error);

#endif							/* SF_SEQUENCE_RANGE_H */
