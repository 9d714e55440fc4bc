/*
 * change.h
 *	  Changes of a generator while sessions take batches from it.
 */
#ifndef SF_CHANGE_H
#define SF_CHANGE_H

#include "state/durable.h"

/*
 * Raise each line to the first tick that does not begin before an instant.  A durable end that was
 * lost is written, above the promise to other servers if there is one, and a layout that was lost
 * is recorded, see *layout_recorded.  No ID that is issued afterwards has a time before the
 * instant.  *raised is false if that was so before.  Returns SF_OPENING_DONE,
 * SF_OPENING_MOVED_BACK or SF_OPENING_OTHER_LAYOUT.  The lock is held.  Raises the errors of
 * sf_durable_raise.
 */
extern SfOpening sf_change_floor(SfGenerator *generator, SfInstant instant, bool *raised,
								 bool *layout_recorded);

/* Close the generator until the next start, even if it is not open.  The lock is held. */
extern void sf_change_stop(SfGenerator *generator);

/*
 * Close the generator until the next start, and let it begin at an instant then.  *before is a time
 * that no horizon was above.  *moved is false, and nothing changes, if the instant is not before
 * that time, or is before the lease.  Returns SF_OPENING_DONE, SF_OPENING_LOST or
 * SF_OPENING_MOVED_BACK.  The lock is held.  Raises the errors of sf_durable_raise; the generator
 * is closed then, and begins at an instant that it had reached.
 */
extern SfOpening sf_change_back(SfGenerator *generator, SfInstant instant, SfInstant *before,
								bool *moved);

/*
 * Write a later promise to other servers, or 0, which ends the promises (horizon/README.md).
 * Returns false if the generator was moved back.  The lock is held.  Raises the errors of
 * sf_durable_raise.
 */
extern bool sf_change_promise(SfGenerator *generator, int64 promise);

/*
 * Record the layout of a generator.  Returns false if it is recorded already.  *before is the
 * layout that was recorded, if any was.  The lock is held.
 */
extern bool sf_change_layout(SfGenerator *generator, SfLayout *before, bool *recorded);

/*
 * Use a lease: from now on IDs have this machine ID, and times at or after from and before until.
 * If it is the lease that is used, only its end moves; for that no lock is taken, and issuing is
 * not stopped.  A generator that was moved back stays closed.
 */
extern void sf_change_lease(SfGenerator *generator, uint32 machine_id,
							SfInstant from, SfInstant until);

/*
 * Stop issuing until another lease begins.  Returns an instant that is after the times of all
 * issued IDs; infinity if no such instant is known, -infinity if no ID was issued.
 */
extern SfInstant sf_change_close(SfGenerator *generator);

#endif							/* SF_CHANGE_H */
