/*
 * change.h
 *	  Changes of a generator while sessions take batches from it.
 */
#ifndef SF_CHANGE_H
#define SF_CHANGE_H

#include "state/generator_state.h"
#include "state/reservation.h"

typedef enum SfFloorChange
{
	SF_FLOOR_CHANGED,
	SF_FLOOR_TOO_NEAR,			/* backward, by no more than a reservation's
								 * length */
	SF_FLOOR_BEFORE_LEASE,
	SF_FLOOR_OTHER_LAYOUT,		/* another layout is recorded */
} SfFloorChange;

/* What else a change of the floor has done. */
typedef struct SfFloorEffects
{
	int64		horizon;		/* if later IDs can be below horizons that may
								 * have been returned: an upper bound of these
								 * horizons; otherwise SF_NO_ID */
	bool		layout_recorded;	/* the layout was lost, and is now that of
									 * the generator */
} SfFloorEffects;

/*
 * Move the generator, forward or backward, to the first tick that does not begin before an instant.
 * A durable state that was lost is written.  The lock is held.  Raises the errors of
 * sf_durable_raise.
 */
extern SfFloorChange sf_change_floor(SfGenerator *generator, SfInstant instant,
									 SfFloorEffects *effects);

/*
 * Record the layout of a generator.  Returns false if it is recorded already.  *before is the
 * layout that was recorded, if any was.  The lock is held.
 */
extern bool sf_change_layout(SfGenerator *generator, SfLayout *before, bool *recorded);

/*
 * Whether the clock, which was read after the cursor, is so far behind the generator that a
 * generator with phases changes its phase, or has to wait.  SF_STEP_BACK_NONE for a generator
 * without phases.
 */
extern SfStepBack sf_judge_clock(SfGenerator *generator, uint64 cursor, TimestampTz now);

/*
 * Change to the other phase, at the time of the clock, if the cursor that was seen is still in
 * this phase and the clock is still behind; the caller reads the state again.  Returns false if
 * another process holds the lock.  Raises the errors of sf_durable_raise.
 */
extern bool sf_change_phase(SfGenerator *generator, uint64 seen);

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
 * A callback for before_shmem_exit: returns what is reserved and not used if the server is being
 * stopped, so that it does not wait for that after its next start.  A generator whose lock another
 * process holds is left as it is.
 */
extern void sf_session_end(int code, Datum argument);

#endif							/* SF_CHANGE_H */
