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
	SF_FLOOR_RAISED,
	SF_FLOOR_KEPT,				/* the generator is past the instant */
	SF_FLOOR_MOVED_BACK,		/* it was moved back, and issues nothing */
	SF_FLOOR_OTHER_LAYOUT,		/* another layout is recorded */
} SfFloorChange;

/*
 * Raise each line to the first tick that does not begin before an instant.  A durable end that was
 * lost is written, and a layout that was lost is recorded, see *layout_recorded.  No ID that is
 * issued afterwards has a time before the instant.  The lock is held.  Raises the errors of
 * sf_durable_raise.
 */
extern SfFloorChange sf_change_floor(SfGenerator *generator, SfInstant instant,
									 bool *layout_recorded);

typedef enum SfBackChange
{
	SF_BACK_MOVED,
	SF_BACK_NOT_BACK,			/* the generator is not past the instant */
	SF_BACK_BEFORE_LEASE,
	SF_BACK_LOST,				/* the durable end is lost */
} SfBackChange;

/*
 * Close the generator until the next start, and let it begin at an instant then.  If it was closed
 * like this before, the instant can be any, and the last one counts.  *before is a time that no
 * horizon was above.  The lock is held.  Raises the errors of sf_durable_raise.
 */
extern SfBackChange sf_change_back(SfGenerator *generator, SfInstant instant, SfInstant *before);

/*
 * Record the layout of a generator.  Returns false if it is recorded already.  *before is the
 * layout that was recorded, if any was.  The lock is held.
 */
extern bool sf_change_layout(SfGenerator *generator, SfLayout *before, bool *recorded);

/*
 * Begin another lease: from now on IDs have this machine ID, and times at or after from and before
 * until.
 */
extern void sf_change_lease(SfGenerator *generator, uint32 machine_id,
							SfInstant from, SfInstant until);

/*
 * Extend the lease to a later instant, unless the generator is closed.  Issuing is not stopped,
 * since only extensions of the reservation use the end of the lease.  No lock is taken.
 */
extern void sf_extend_lease(SfGenerator *generator, SfInstant until);

/*
 * Stop issuing until another lease begins.  Returns an instant that is after the times of all
 * issued IDs; infinity if no such instant is known, -infinity if no ID was issued.
 */
extern SfInstant sf_change_close(SfGenerator *generator);

#endif							/* SF_CHANGE_H */
