/*
 * change.h
 *	  Changes of a generator while sessions take batches from it.
 */
#ifndef SF_CHANGE_H
#define SF_CHANGE_H

#include "state/generator_state.h"
#include "state/origin.h"
#include "state/reservation.h"

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
 * instant.  The origin is held by the caller, and is written; raises the errors of sf_origin_write.
 * If later IDs can be below horizons that may have been returned, *horizon is an upper bound of
 * these horizons; otherwise it is SF_NO_ID.
 */
extern SfFloorChange sf_change_floor(SfGenerator *generator, ReplOriginId origin, SfInstant instant,
									 int64 *horizon);

/*
 * Whether the clock, which was read after the cursor, is so far behind the generator that a
 * generator with phases changes its phase, or has to wait.  SF_STEP_BACK_NONE for a generator
 * without phases.
 */
extern SfStepBack sf_judge_clock(SfGenerator *generator, uint64 cursor, TimestampTz now);

/*
 * Change to the other phase, at the time of the clock, if the cursor that was seen is still in
 * this phase and the clock is still behind; the caller reads the state again.  Raises what
 * sf_reservation_extend raises.
 */
extern SfObstacle sf_change_phase(SfGenerator *generator, uint64 seen);

/*
 * Begin another lease: from now on IDs have this machine ID, and times at or after from and before
 * until.
 */
extern void sf_change_lease(SfGenerator *generator, uint32 machine_id,
							SfInstant from, SfInstant until);

/*
 * Extend the lease to a later instant.  Issuing is not stopped, since only extensions of the
 * reservation use the end of the lease.  No lock is taken: the registry worker, which calls this,
 * is the only process that writes the end.
 */
extern void sf_extend_lease(SfGenerator *generator, SfInstant until);

/*
 * Stop issuing until another lease begins.  Returns an instant that is after the times of all
 * issued IDs, in either phase; infinity if no such instant is known, -infinity if no ID was issued.
 */
extern SfInstant sf_change_close(SfGenerator *generator);

/*
 * Return what is reserved and not used, so that the server does not wait for it after its next
 * start.  Does nothing if the origin is being changed or has gone, or if another process holds the
 * lock.  Reads no catalog.  Needs a
 * transaction.  Raises what sf_origin_write raises.
 */
extern void sf_change_return(SfGenerator *generator);

#endif							/* SF_CHANGE_H */
