/*
 * reservation.h
 *	  The time that the server has reserved, up to which it may issue IDs.
 */
#ifndef SF_RESERVATION_H
#define SF_RESERVATION_H

#include "state/generator_state.h"
#include "state/origin.h"

/* What a session has to wait for before it tries again. */
typedef enum SfObstacle
{
	SF_OBSTACLE_NONE,			/* nothing */
	SF_OBSTACLE_ORIGIN,			/* another session has locked the origin */
	SF_OBSTACLE_WRITER,			/* another process holds the lock of the
								 * generator */
} SfObstacle;

/*
 * Open the generator, if that has not been done in this run of the server: from now
 * on the cursor is at or above everything that was ever issued.
 *
 * Raises object_not_in_prerequisite_state if the origin does not allow it
 * (sf_origin_find) or has lost its value; and the errors of sf_origin_write.
 */
extern SfObstacle sf_generator_open(SfGenerator *generator);

/*
 * Extend the reservation, because a batch was refused, and return when the extension is on disk.
 * The arguments are the end that the caller has read, and a reading of the clock that was checked.
 * The caller then reads the state again.
 *
 * Raises object_not_in_prerequisite_state if the origin is gone, and what
 * sf_origin_write raises.
 */
extern SfObstacle sf_reservation_extend(SfGenerator *generator, uint64 seen, TimestampTz now);

/*
 * Extend a reservation whose end is near, in steps: the first call writes the extension, and one of
 * the next ones publishes it, when it is on disk.  Waits for nothing.  A reservation that the
 * origin may have lost is written again.  If the origin is gone, this is logged, once a minute at
 * most.
 *
 * Raises the errors of sf_origin_log.
 */
extern void sf_reservation_extend_early(SfGenerator *generator, uint64 seen, TimestampTz now);

/* The end of an extended reservation, for the clock's time and the position of the cursor. */
extern uint64 sf_reservation_next_end(SfGenerator *generator, TimestampTz now, uint64 position);

/*
 * Hold the origin and take the lock, to write a reservation, and return true.  Both are held until
 * sf_reservation_release.  If one of them cannot be had now, neither is held, and *obstacle is what
 * to wait for.  If the origin is gone, the function looks for another one and opens the generator
 * with it.
 *
 * Raises the errors of sf_generator_open.
 */
extern bool sf_reservation_hold(SfGenerator *generator, ReplOriginId origin, SfObstacle *obstacle);
extern void sf_reservation_release(SfGenerator *generator, ReplOriginId origin);

#endif							/* SF_RESERVATION_H */
