/*
 * proof.h
 *	  What the proofs have in common: their claims, and the values that they are about.
 *
 * CBMC defines the functions nondet_...(): each returns any value of its type.  assume() leaves
 * out runs, and always() has to hold in all that are left.  A mistake in the assumptions could
 * leave out too many, so each proof also has cases that have to be among them: sometimes() is met
 * if its condition holds in some run.
 *
 * A proof is about any layout that sf_layout_parse could read.  If LAYOUT is defined, it is
 * about that one (layouts.c).
 */
#ifndef PROOF_H
#define PROOF_H

#include "layout.h"

#define assume(condition)		__CPROVER_assume(condition)
#ifdef SOMETIMES
#define always(condition)		((void) 0)
#define sometimes(condition)	__CPROVER_assert(!(condition), "sometimes " #condition)
#else
#define always(condition)		__CPROVER_assert(condition, "always " #condition)
#define sometimes(condition)	((void) 0)
#endif

extern bool nondet_bool(void);
extern uint8_t nondet_uint8(void);
extern uint16_t nondet_uint16(void);
extern int32_t nondet_int32(void);
extern uint32_t nondet_uint32(void);
extern int64_t nondet_int64(void);
extern uint64_t nondet_uint64(void);

/* The first instant of the year 1, and of the year 10000: epochs are between them. */
#define FIRST_EPOCH	(-INT64_C(63082281600000000))
#define EPOCHS_END	INT64_C(252455616000000000)

#ifdef LAYOUT

static inline SfLayout
any_layout(void)
{
	SfLayout	layout = LAYOUT;

	return layout;
}

#else

#ifndef MACHINE_BITS
#define MACHINE_BITS	nondet_uint8()
#endif
#ifndef SEQUENCE_BITS
#define SEQUENCE_BITS	nondet_uint8()
#endif
#ifndef MACHINE_FIRST
#define MACHINE_FIRST	nondet_bool()
#endif

/* The widths and shifts of a layout: what check_draft and build_layout permit and make. */
static inline SfLayout
any_layout(void)
{
	SfLayout	layout;
	bool		machine_first = MACHINE_FIRST;

	layout.epoch = nondet_int64();
	layout.tick_length = nondet_int32();
	layout.timestamp_bits = nondet_uint8();
	layout.machine_bits = MACHINE_BITS;
	layout.sequence_bits = SEQUENCE_BITS;
	assume(layout.epoch >= FIRST_EPOCH && layout.epoch < EPOCHS_END);
	assume(layout.tick_length >= 1 && layout.tick_length <= 1000000);
	assume(layout.timestamp_bits >= 1 && layout.timestamp_bits <= 63);
	assume(layout.machine_bits <= 31 && layout.sequence_bits <= 31);
	assume(layout.timestamp_bits + layout.machine_bits + layout.sequence_bits <= 63);
#ifdef EPOCHS_MATTER
	/* The last tick begins before SF_INSTANT_END. */
	assume((unsigned __int128) sf_field_max(layout.timestamp_bits) * (uint64_t) layout.tick_length <=
		   (uint64_t) (SF_INSTANT_END - 1) - (uint64_t) layout.epoch);
#endif
	layout.timestamp_shift = (uint8_t) (layout.machine_bits + layout.sequence_bits);
	layout.machine_shift = machine_first && layout.machine_bits > 0 ? layout.sequence_bits : 0;
	layout.sequence_shift = !machine_first && layout.sequence_bits > 0 ? layout.machine_bits : 0;
	return layout;
}

#endif							/* LAYOUT */

/* Any fields that fit a layout. */
static inline SfFields
any_fields(const SfLayout *layout)
{
	SfFields	fields = {.tick = nondet_uint64(),.machine = nondet_uint32(),.sequence = nondet_uint32()};

	assume(fields.tick <= sf_layout_last_tick(layout));
	assume(fields.machine <= sf_field_max(layout->machine_bits));
	assume(fields.sequence <= sf_field_max(layout->sequence_bits));
	return fields;
}

/*
 * Whether an instant is not after the start of a tick that int64 cannot exceed.  With 63 bits of
 * timestamp that is the last tick, from which sf_layout_tick_ceil does not tell later ones.
 */
static inline bool
is_within_int64(const SfLayout *layout, SfInstant instant)
{
	return layout->timestamp_bits < 63 || instant <= sf_layout_tick_start(layout, INT64_MAX);
}

#endif							/* PROOF_H */
