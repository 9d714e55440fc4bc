/*
 * reservation.h
 *	  The time that the server has reserved, up to which it may issue IDs.
 */
#ifndef SF_RESERVATION_H
#define SF_RESERVATION_H

#include "state/generator_state.h"
#include "state/origin.h"

/*
 * Open the generator, if that has not been done in this run of the server: from now
 * on the cursor is at or above everything that was ever issued.  Returns false if
 * another session has locked the origin.
 *
 * Raises object_not_in_prerequisite_state if the origin does not allow it
 * (sf_origin_find) or has lost its value; and the errors of sf_origin_write.
 */
extern bool sf_generator_open(SfGenerator *generator);

/*
 * Extend the reservation, because a batch was refused.  The arguments are the end that the caller
 * has read, and a reading of the clock that was checked.  The caller then reads the state again.
 * Returns false if another session has locked the origin.
 *
 * Raises object_not_in_prerequisite_state if the origin is gone, and what
 * sf_origin_write raises.
 */
extern bool sf_reservation_extend(SfGenerator *generator, uint64 seen, TimestampTz now);

/*
 * Extend a reservation whose end is near, unless another session is doing so.  The end is not
 * reached yet, so this does not wait for a lock.  A reservation that the origin may have lost is
 * written again.  If the origin is gone, this is logged, once a minute at most.
 *
 * Raises the errors of sf_origin_write.
 */
extern void sf_reservation_extend_early(SfGenerator *generator, uint64 seen, TimestampTz now);

/* The end of an extended reservation, for the clock's time and the position of the cursor. */
extern uint64 sf_reservation_next_end(SfGenerator *generator, TimestampTz now, uint64 position);

/*
 * Hold the origin and take the lock, to write a reservation.  Both are held until
 * sf_reservation_release if SF_ORIGIN_HELD is returned, and neither otherwise.  If the origin is
 * gone, the function looks for another one and opens the generator with it.
 *
 * Raises the errors of sf_generator_open.
 */
extern SfOriginHold sf_reservation_hold(SfGenerator *generator, ReplOriginId origin);
extern void sf_reservation_release(SfGenerator *generator, ReplOriginId origin);

#endif							/* SF_RESERVATION_H */
