/*
 * wait.h
 *	  Waits for the clock, for a reservation, and for the registry.
 */
#ifndef SF_WAIT_H
#define SF_WAIT_H

#include "postgres.h"

#include "utils/timestamp.h"

#include "issue/shared.h"

/* The wait of one ID; all zero before it begins. */
typedef struct SfWait
{
	bool		counted;		/* in the statistics */
	bool		slept;			/* for the clock */
	int64		since;			/* when it began, by the boot clock */
	TimestampTz yield_until;	/* the value that this wait has set; 0 if none */
} SfWait;

/*
 * How far the ID may be ahead of the clock, whose reading is now, in microseconds: max_ahead if the
 * ID has waited; half of it if it has not, while another session waits.
 */
extern int64 sf_wait_allowance(SfGenerator *generator, const SfWait *wait, TimestampTz now);

/*
 * Wait until the clock is likely to have reached an instant, or for a part of
 * that time: the caller reads the clock again and repeats the call.  Interrupts
 * are served, and no lock may be held.
 *
 * Raises configuration_limit_exceeded when this ID has waited for
 * snowflake.max_wait already.
 */
extern void sf_wait_for_clock(SfGenerator *generator, SfWait *wait, TimestampTz instant);

/* End the wait, and withdraw its request to other sessions. */
extern void sf_wait_end(SfGenerator *generator, const SfWait *wait);

/*
 * Let a moment pass after a swap of the cursor that failed because another session was faster.
 * failed is the number of such swaps for this ID, at least 1.  The moment ends by itself: no
 * session waits for another one.
 */
extern void sf_back_off(uint32 failed);

/* Begin the wait, if it has not begun. */
extern void sf_wait_begin(SfWait *wait);

/* Raise configuration_limit_exceeded if snowflake.max_wait has passed since the wait began. */
extern void sf_wait_limit(SfGenerator *generator, const SfWait *wait);

/*
 * Wait for the process that holds the lock of the generator, on the same terms; the caller tries
 * again.
 */
extern void sf_wait_for_writer(SfGenerator *generator, SfWait *wait);

/* Take the lock of the generator, after such waits. */
extern void sf_wait_and_lock(SfGenerator *generator);

/*
 * Wait a moment for a lease that covers the ID, on the same terms; the caller reads the state
 * again.  Raises object_not_in_prerequisite_state when this ID has waited for snowflake.max_wait
 * already, when the registry does not lease one now, or when the generator was moved back.
 */
extern void sf_wait_for_lease(SfShared *shared, SfGenerator *generator, SfWait *wait);

/*
 * Count a tick, all of whose sequence numbers have been allocated, so that later calls wait, and
 * log, once a minute at most, if nearly all ticks of a second are used up.
 */
extern void sf_wait_note_used_up(SfGenerator *generator, uint64 tick);

#endif							/* SF_WAIT_H */
