/*
 * ceiling.h
 *	  The durable end of what this server may issue.
 */
#ifndef SF_CEILING_H
#define SF_CEILING_H

#include "line.h"
#include "register.h"

/*
 * Open the line, if that has not been done in this run of the server: from here
 * on the cursor is at or above everything that was ever issued.  Returns false where
 * another session has locked the register.
 *
 * Raises object_not_in_prerequisite_state when the register does not allow it
 * (sf_register_find), or has lost its value; and what sf_register_write raises.
 */
extern bool sf_ceiling_open(SfLine *line);

/*
 * Try to raise the ceiling that a lease was refused for; the caller looks again.
 * The clock said now, and that was checked.  Returns false where somebody else
 * has locked the register, to drop it or another one.
 *
 * Raises object_not_in_prerequisite_state when the register is gone, and what
 * sf_register_write raises.
 */
extern bool sf_ceiling_raise(SfLine *line, uint64 seen, TimestampTz now);

/*
 * Raise a ceiling that is near, unless another session is doing so: there is time until
 * it is reached, so no lock is waited for.  A ceiling that the register may have lost is
 * written again.  Where the register is gone, that is logged, once a minute at most.
 *
 * Raises what sf_register_write raises.
 */
extern void sf_ceiling_raise_early(SfLine *line, uint64 seen, TimestampTz now);

/* The ceiling to raise to, where the clock says now and the cursor is at a position. */
extern uint64 sf_line_next_ceiling(SfLine *line, TimestampTz now, uint64 position);

/*
 * Hold the register and take the lock, until sf_ceiling_release, to write a ceiling: if
 * SF_REGISTER_HELD is returned, and not else.  A register that is gone is looked for again
 * instead, and the line is opened where it is found.
 *
 * Raises what sf_ceiling_open raises.
 */
extern SfRegisterHold sf_ceiling_hold(SfLine *line, RepOriginId origin);
extern void sf_ceiling_release(SfLine *line, RepOriginId origin);

#endif							/* SF_CEILING_H */
