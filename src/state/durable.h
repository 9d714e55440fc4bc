/*
 * durable.h
 *	  The numbers that a server must not forget.
 *
 * They are in WAL, in checkpoints and on standbys.  Each is the progress of a replication origin
 * with a fixed number, which needs no row in the catalog and no transaction.
 */
#ifndef SF_DURABLE_H
#define SF_DURABLE_H

#include "postgres.h"

#include "access/xlogdefs.h"

#include "state/generator_state.h"

/* The numbers; their values are those of the origins.  A number that was never written is 0. */
typedef enum SfDurable
{
	SF_DURABLE_LAYOUT = 65530,	/* SfPackedLayout.fields */
	SF_DURABLE_EPOCH,			/* SfPackedLayout.epoch */
	SF_DURABLE_SNO,				/* the state of the generator of sno */
	SF_DURABLE_BIGINT,			/* the end of the reservation of bigint, in
								 * microseconds since 1970 */
	SF_DURABLE_REGISTRY,		/* the identity of the registry */
} SfDurable;

#define SF_DURABLE_COUNT	5

/* The number in memory, which need not be on disk yet. */
extern uint64 sf_durable_read(SfDurable number);

/*
 * Write a number, and return when it is on disk.  sf_durable_raise leaves a greater one as it is,
 * also where the record is replayed.  sf_durable_set may lower it: the caller excludes other
 * writers.
 *
 * Raise configuration_limit_exceeded if no slot is free (max_replication_slots; 18 and later:
 * max_active_replication_origins).
 */
extern void sf_durable_raise(SfDurable number, uint64 value);
extern void sf_durable_set(SfDurable number, uint64 value);

/* Take a slot for each number, and return when that is on disk.  Raises the same error. */
extern void sf_durable_take_slots(void);

/*
 * The state of a generator
 */

/* Read the state.  Returns false, and a state of all 0, if it was never written, or was lost. */
extern bool sf_durable_state_read(const SfGenerator *generator, SfDurableState *state);

/*
 * The instant up to which the server may have issued IDs, also before the generator is opened.
 * Returns false if that was never written, or was lost.
 */
extern bool sf_durable_end(SfGeneratorKind kind, SfInstant *end);

/*
 * Write a state to WAL: the instant up to which IDs may be issued, and, for a generator with
 * phases, the last tick of the other phase and the number of changes of the phase.  The lock is
 * held.  Raises the errors of sf_durable_raise.
 *
 * sf_durable_state_log returns the end of the record, which is not flushed; a state below the
 * present one is written only if lower is true.  sf_durable_state_write writes any state, and
 * returns when it is on disk.
 */
extern XLogRecPtr sf_durable_state_log(SfGenerator *generator, SfInstant reserved_until,
									   uint64 wall_safe, uint32 drifts, bool lower);
extern void sf_durable_state_write(SfGenerator *generator, SfInstant reserved_until,
								   uint64 wall_safe, uint32 drifts);

/*
 * Note that a state is on disk.  The times are in microseconds: for how long it was seen not to be;
 * how long this process has flushed it, or 0; and how long ago it was written.  The lock is held.
 */
extern void sf_durable_state_note_time(SfGenerator *generator, int64 taken, int64 flush,
									   int64 elapsed);

/* Write that the server issues from an instant on, unless it has a state already. */
extern void sf_durable_state_begin(SfGeneratorKind kind, SfInstant instant);

/*
 * The layout of IDs of type bigint
 */

/* The result of opening a generator, or of a part of it. */
typedef enum SfOpening
{
	SF_OPENING_DONE,			/* now or before */
	SF_OPENING_BUSY,			/* another process holds the lock */
	SF_OPENING_LOST,			/* the durable state or the layout was never
								 * written, or is lost */
	SF_OPENING_INVALID,			/* the recorded numbers are not those of a
								 * layout */
	SF_OPENING_OTHER_LAYOUT,	/* another layout is recorded */
} SfOpening;

/* The recorded layout.  Returns SF_OPENING_DONE, SF_OPENING_LOST or SF_OPENING_INVALID. */
extern SfOpening sf_durable_layout_read(SfLayout *layout);

/*
 * Record a layout, and return when it is on disk.  A crash in between leaves none.  The lock of the
 * generator is held, or no other process can write the layout.
 */
extern void sf_durable_layout_write(const SfLayout *layout);

#endif							/* SF_DURABLE_H */
