/*
 * change.h
 *	  Changes of a generator while sessions take batches from it.
 */
#ifndef SF_CHANGE_H
#define SF_CHANGE_H

#include "state/generator_state.h"
#include "state/origin.h"

typedef enum SfFloorChange
{
	SF_FLOOR_CHANGED,
	SF_FLOOR_TOO_NEAR,			/* backward, by no more than a reservation's
								 * length */
	SF_FLOOR_BEFORE_LEASE,
	SF_FLOOR_CLOSED,			/* the server has given its lease back */
} SfFloorChange;

/*
 * Move the generator, forward or backward, to the first tick that does not begin before an
 * instant.  The origin is held, and written; raises what sf_origin_write raises.  If IDs follow
 * that are below horizons that may have been returned, *horizon is a bound of these; otherwise
 * SF_NO_ID.
 */
extern SfFloorChange sf_change_floor(SfGenerator *generator, ReplOriginId origin, SfInstant instant,
									 int64 *horizon);

/*
 * Whether the clock, which was read after the cursor, is behind the generator by so much that a
 * generator with phases changes its phase, or has to wait.  SF_STEP_BACK_NONE for a generator
 * without phases.
 */
extern SfStepBack sf_judge_clock(SfGenerator *generator, uint64 cursor, TimestampTz now);

/*
 * Change to the other phase, at the time of the clock, if the cursor that was seen is still in
 * this phase and the clock is still behind; the caller reads the state again.  Returns false, and
 * raises, as sf_reservation_extend does.
 */
extern bool sf_change_phase(SfGenerator *generator, uint64 seen);

/*
 * Begin another lease: from now on IDs have this machine ID, and times from one instant to
 * before another.
 */
extern void sf_change_lease(SfGenerator *generator, uint32 machine_id,
							SfInstant from, SfInstant until);

/*
 * Extend the lease to a later instant.  This stops nothing: only extensions of the reservation use
 * it.
 */
extern void sf_extend_lease(SfGenerator *generator, SfInstant until);

/*
 * Let nothing be issued until there is another lease.  Returns an instant that all IDs, of
 * either phase, are before; infinity if none is known, -infinity if there are no IDs.
 */
extern SfInstant sf_change_close(SfGenerator *generator);

/*
 * Return what is reserved and not used, so that the server does not wait for it after its next
 * start.  Does nothing if the origin is being changed or has gone.  Reads no catalog.  Needs a
 * transaction.  Raises what sf_origin_write raises.
 */
extern void sf_change_return(SfGenerator *generator);

#endif							/* SF_CHANGE_H */
