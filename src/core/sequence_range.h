/*
 * sequence_range.h
 *	  The part of a tick's sequence numbers that one server may use.
 *
 * Servers that share a machine ID stay apart by ranges that do not overlap.
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
 * The greatest max that sf_sequence_range_parse gives.  It stands for "all
 * there are" as well, so a user of a range takes the lesser of it and what the
 * layout has.
 */
#define SF_SEQUENCE_MAX UINT32_C(0x7fffffff)

/*
 * Read "min-max", both decimal and inclusive, or the empty text for all
 * sequence numbers, 0 to SF_SEQUENCE_MAX.  Returns false, fills *error and
 * leaves *range alone when the text is neither.
 */
extern bool sf_sequence_range_parse(const char *text, SfSequenceRange *range,
									SfParseError *error);

/* The least capacity of a sno's unit of 4 ms, and the greatest sequence number. */
#define SF_SNO_SEQUENCE_COUNT	4
#define SF_SNO_SEQUENCE_MAX		65535

/*
 * The same for IDs of type sno: at most SF_SNO_SEQUENCE_MAX, and no fewer than
 * SF_SNO_SEQUENCE_COUNT; the higher number may come first (as in github.com/muyo/sno).
 */
extern bool sf_sno_sequence_range_parse(const char *text, SfSequenceRange *range,
										SfParseError *error);

#endif							/* SF_SEQUENCE_RANGE_H */
