/*
 * durable_state.h
 *	  The state of a generator that outlives the server, in its origin.
 */
#ifndef SF_DURABLE_STATE_H
#define SF_DURABLE_STATE_H

#include "state/generator_state.h"
#include "state/origin.h"

/*
 * Read the state that the origin of a generator holds; all 0 if it was never written.  Returns
 * false, and a state of all 0 as well, if the origin has lost its value.
 */
extern bool sf_durable_state_read(const SfGenerator *generator, ReplOriginId origin,
								  SfDurableState *state);

/*
 * Write a state to WAL: the instant up to which IDs may be issued, and, for a generator with
 * phases, the last tick of the other phase and the number of changes of the phase.  Returns the end
 * of the record, which is not flushed.  The origin is held, and so is the lock.  A state below the
 * stored one is written only if back is true.  Raises the errors of sf_origin_log.
 */
extern XLogRecPtr sf_durable_state_log(SfGenerator *generator, ReplOriginId origin,
									   SfInstant reserved_until, uint64 wall_safe,
									   uint32 drifts, bool back);

/*
 * Note that a state is on disk.  The times are in microseconds: for how long it was seen not to be;
 * how long this process has flushed it, or 0; and how long ago it was written.  The lock is held.
 */
extern void sf_durable_state_note_time(SfGenerator *generator, int64 taken, int64 flush,
									   int64 elapsed);

/* The same as sf_durable_state_log, and return when the record is on disk. */
extern void sf_durable_state_write(SfGenerator *generator, ReplOriginId origin,
								   SfInstant reserved_until, uint64 wall_safe,
								   uint32 drifts, bool back);

/*
 * Whether the origin holds what was last written in this run of the server.  The lock is held.  The
 * origin of a replication cannot hold that number, so this tells whether the origin is still the
 * generator's, without a look at the catalog.
 */
extern bool sf_durable_state_is_written(const SfGenerator *generator, ReplOriginId origin);

#endif							/* SF_DURABLE_STATE_H */
