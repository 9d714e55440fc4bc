/*
 * pack.c
 *	  A layout that was packed is unpacked as itself, and one changed bit is noticed.
 *
 * Any layout, and any bit of the two numbers.  The code has no loop.
 */
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	SfPackedLayout packed = sf_layout_pack(&layout);
	SfPackedLayout damaged = packed;
	SfLayout	unpacked;
	uint8_t		bit = nondet_uint8();

	always(packed.epoch != 0 && packed.fields != 0);
	always(sf_layout_unpack(packed, &unpacked));
	always(sf_layout_equal(&unpacked, &layout));

#ifdef LAYOUT
	assume(bit < 128);
	if (bit < 64)
		damaged.epoch ^= UINT64_C(1) << bit;
	else
		damaged.fields ^= UINT64_C(1) << (bit - 64);
	always(!sf_layout_unpack(damaged, &unpacked));
#endif
	sometimes(layout.epoch > 0);
}
