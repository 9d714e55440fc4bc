/*
 * layout_pack.h
 *	  A layout as two numbers, for the durable state of a server.
 *
 * From the top, the second number has a checksum of 27 bits, the length of a tick less 1 (20 bits),
 * the widths of timestamp (6), machine ID (5) and sequence (5), and whether the machine ID is above
 * the sequence (1).  Neither number is ever 0.
 */
#ifndef SF_LAYOUT_PACK_H
#define SF_LAYOUT_PACK_H

#include "layout.h"

typedef struct SfPackedLayout
{
	uint64_t	epoch;			/* microseconds since 0001-01-01, plus 1 */
	uint64_t	fields;
} SfPackedLayout;

/* Equal layouts have equal numbers. */
extern SfPackedLayout sf_layout_pack(const SfLayout *layout);

/* Returns false, and leaves *layout undefined, if the numbers are not those of a layout. */
extern bool sf_layout_unpack(SfPackedLayout packed, SfLayout *layout);

#endif							/* SF_LAYOUT_PACK_H */
