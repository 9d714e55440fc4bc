/*
 * phase.h
 *	  The two phases of type sno, which let a generator issue when the clock steps back.
 *
 * A generator without phases waits when the clock steps back.  A generator with
 * two phases ("tick-tock", github.com/muyo/sno) continues at once: it issues at
 * the time of the clock, in the other phase.  One bit of each ID is its phase.
 *
 * A period in which both phases have issued is used up.  Therefore the generator
 * keeps wall_safe, the greatest tick in which it had issued when it last changed
 * its phase.  A change of phase is allowed only to a tick above wall_safe.  So a
 * generator that returns to a phase is above wall_safe, and thus above all
 * positions that it has issued in that phase: no position of a phase is issued
 * twice.
 *
 * The shared cursor has the phase in its top bit, above the position.  Therefore
 * the cursor never has the same value twice either, though positions move
 * backward.
 */
#ifndef SF_PHASE_H
#define SF_PHASE_H

#include "batch.h"

#define SF_PHASE_BIT	(UINT64_C(1) << 63)

static inline uint64_t
sf_cursor_position(uint64_t cursor)
{
	return cursor & ~SF_PHASE_BIT;
}

static inline bool
sf_cursor_phase(uint64_t cursor)
{
	return (cursor & SF_PHASE_BIT) != 0;
}

static inline uint64_t
sf_cursor(bool phase, uint64_t position)
{
	return (phase ? SF_PHASE_BIT : 0) | position;
}

typedef enum SfStepBack
{
	SF_STEP_BACK_NONE,			/* the clock is not behind */
	SF_STEP_BACK_CHANGE,		/* change to the other phase */
	SF_STEP_BACK_WAIT,			/* wait until the clock is past wall_safe, or
								 * not behind */
} SfStepBack;

/*
 * Decide what a generator does when the clock is in tick now.  wall_hi is the greatest
 * tick in which it has issued, and allowed the last tick in which it may issue: the tick
 * of the clock's time plus max_ahead, rounded once.
 *
 * If the cursor is ahead only because a tick is used up, the clock is not behind: the cursor is
 * then in the tick after wall_hi.
 */
static inline SfStepBack
sf_phase_judge(uint64_t wall_hi, uint64_t wall_safe, int64_t now, int64_t allowed)
{
	if (now < 0)
		return SF_STEP_BACK_WAIT;
	if ((uint64_t) allowed >= wall_hi)
		return SF_STEP_BACK_NONE;
	return (uint64_t) now > wall_safe ? SF_STEP_BACK_CHANGE : SF_STEP_BACK_WAIT;
}

/*
 * The durable state of a generator with phases.  drifts counts the changes of phase; its
 * lowest bit is the phase.
 */
typedef struct SfDurableState
{
	uint64_t	reserved_tick;	/* ticks at or above it are not reserved */
	uint64_t	wall_safe;
	uint32_t	drifts;
} SfDurableState;

/*
 * The state as one number, so that one WAL record writes it, and a crash leaves either
 * the whole old state or the whole new one.  From the top, 33 bits are the end of the
 * reservation, 29 bits wall_safe and 2 bits drifts.  To fit these widths, ticks of 39
 * bits are rounded up to a multiple of 64 and of 1024, respectively.  The last 1024
 * ticks do not fit once they are rounded up, so no ID is issued in them.
 */
#define SF_PHASE_RESERVED_TICKS	64
#define SF_PHASE_SAFE_TICKS		1024
#define SF_PHASE_TICKS			((UINT64_C(1) << 39) - SF_PHASE_SAFE_TICKS)

/* Round a number up to a multiple of to, which is a power of two. */
static inline uint64_t
sf_round_up(uint64_t number, uint64_t to)
{
	return (number + to - 1) & ~(to - 1);
}

/* The number of a state, whose ticks must be at most SF_PHASE_TICKS. */
static inline uint64_t
sf_phase_pack(SfDurableState state)
{
	uint64_t	reserved = sf_round_up(state.reserved_tick, SF_PHASE_RESERVED_TICKS);
	uint64_t	safe = sf_round_up(state.wall_safe, SF_PHASE_SAFE_TICKS);

	return reserved / SF_PHASE_RESERVED_TICKS << 31 | safe / SF_PHASE_SAFE_TICKS << 2 |
		(state.drifts & 3);
}

static inline SfDurableState
sf_phase_unpack(uint64_t number)
{
	SfDurableState state;

	state.reserved_tick = (number >> 31) * SF_PHASE_RESERVED_TICKS;
	state.wall_safe = (number >> 2 & sf_field_max(29)) * SF_PHASE_SAFE_TICKS;
	state.drifts = (uint32_t) (number & 3);
	return state;
}

#endif							/* SF_PHASE_H */
