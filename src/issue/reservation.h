/*
 * reservation.h
 *	  The time that the server has reserved, up to which it may issue IDs.
 */
#ifndef SF_RESERVATION_H
#define SF_RESERVATION_H

#include "state/durable.h"

/*
 * Open the generator, if that has not been done in this run of the server: from now on the cursor
 * is at or above everything that was ever issued.  Returns false if another process holds the lock.
 * Raises the errors of sf_report_not_opened and of sf_durable_raise.
 */
extern bool sf_generator_open(SfGenerator *generator);

/*
 * Extend the reservation of a line, because a batch was refused, and return when the extension is
 * on disk.  The arguments are the end that the caller has read, and a reading of the clock that was
 * checked.  The caller then reads the state again.  Returns false if another process holds the
 * lock.
 *
 * Raises the errors of sf_durable_raise.
 */
extern bool sf_reservation_extend(SfGenerator *generator, int line, uint64 seen, TimestampTz now);

/*
 * Extend a reservation whose end is near, in steps: the first call writes the extension, and one of
 * the next ones publishes it, when it is on disk.  Waits for nothing.
 *
 * Raises the errors of sf_durable_raise.
 */
extern void sf_reservation_extend_early(SfGenerator *generator, int line, uint64 seen,
										TimestampTz now);

/*
 * How far a line that was not used since a start can be ahead of the clock, in microseconds,
 * although the clock has not stepped back: a crash leaves an unused reservation.
 */
extern int64 sf_reservation_tolerated(SfGenerator *generator);

/*
 * Where a line of a generator that is not open starts: neither below the durable end nor below the
 * lease.  Returns 0 if the durable end is lost.
 */
extern uint64 sf_opening_position(SfGenerator *generator, int line);

/*
 * Where the lines of a generator that is not open start, and the line that is active then; or why
 * it cannot be opened.  Changes nothing.
 */
extern SfOpening sf_opening_positions(SfGenerator *generator, uint64 positions[SF_LINES],
									  int *line);

#endif							/* SF_RESERVATION_H */
