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

/*
 * The numbers; their values are the numbers of the origins.  A number that was never written is 0.
 */
typedef enum SfDurable
{
	SF_DURABLE_PROMISE = 65528, /* the last promise to other servers, an ID;
								 * see horizon/README.md */
	SF_DURABLE_TOCK,			/* the end of the reservation of the second
								 * line of sno */
	SF_DURABLE_LAYOUT,			/* SfPackedLayout.fields */
	SF_DURABLE_EPOCH,			/* SfPackedLayout.epoch */
	SF_DURABLE_TICK,			/* the end of the first line of sno */
	SF_DURABLE_BIGINT,			/* the end of the reservation of bigint, in
								 * microseconds since 1970, as those of sno */
	SF_DURABLE_REGISTRY,		/* the identity of the registry */
} SfDurable;

#define SF_DURABLE_FIRST	SF_DURABLE_PROMISE
#define SF_DURABLE_COUNT	(SF_DURABLE_REGISTRY - SF_DURABLE_FIRST + 1)

/* Use a copy of the numbers in shared memory: SF_DURABLE_COUNT numbers, of which none was read. */
extern void sf_durable_init(pg_atomic_uint64 *copy);
extern void sf_durable_attach(pg_atomic_uint64 *copy);

/*
 * The number in memory.  It is on disk, except for the end of a reservation, which need not be on
 * disk yet.
 */
extern uint64 sf_durable_read(SfDurable number);

/*
 * Write a number, and return when it is on disk.  sf_durable_raise leaves a greater one as it is,
 * also where the record is replayed.  sf_durable_set may lower it: the caller excludes other
 * writers.
 *
 * Raise configuration_limit_exceeded if no slot is free (max_replication_slots; 18 and later:
 * max_active_replication_origins), and the error of sf_durable_refuse_dropped.
 */
extern void sf_durable_raise(SfDurable number, uint64 value);
extern void sf_durable_set(SfDurable number, uint64 value);

/* Take a slot for each number, and return when that is on disk.  Raises the same errors. */
extern void sf_durable_take_slots(void);

/*
 * Raise object_not_in_prerequisite_state if the numbers were dropped in this run of the server.
 * After a note in postmaster_memory.h, a process that writes a number under a lock has raised this,
 * or has written the number, when another process has had the lock.
 */
extern void sf_durable_refuse_dropped(void);

/*
 * The end of the reservation of a line: the instant up to which IDs may have been issued in it,
 * also before the generator is opened
 */

/* Read the end.  Returns false if it was never written, or was lost. */
extern bool sf_durable_end(SfGeneratorKind kind, int line, SfInstant *end);

/* The end as a position, at least 1; 0 if it was never written, or was lost. */
extern uint64 sf_durable_position(const SfGenerator *generator, int line);

/*
 * Write a later end; an earlier one than before changes nothing.  Returns the end of the record in
 * WAL, which is not flushed.  The lock is held.  Raises the errors of sf_durable_raise.
 */
extern XLogRecPtr sf_durable_raise_end(SfGenerator *generator, int line, SfInstant end);

/* Write an earlier end, and return when it is on disk, on the same terms. */
extern void sf_durable_lower_end(SfGenerator *generator, int line, SfInstant end);

/* Write the end of a server that has issued nothing, unless it has one already. */
extern void sf_durable_begin(SfGeneratorKind kind, int line, SfInstant end);

/*
 * The layout of IDs of type bigint
 */

/* The result of opening a generator, or of a part of it. */
typedef enum SfOpening
{
	SF_OPENING_DONE,			/* now or before */
	SF_OPENING_LOST,			/* the durable state or the layout was never
								 * written, or is lost */
	SF_OPENING_INVALID,			/* the recorded numbers do not describe a
								 * layout */
	SF_OPENING_OTHER_LAYOUT,	/* another layout is recorded */
	SF_OPENING_MOVED_BACK,		/* closed until the next start */
} SfOpening;

/* The recorded layout.  Returns SF_OPENING_DONE, SF_OPENING_LOST or SF_OPENING_INVALID. */
extern SfOpening sf_durable_layout_read(SfLayout *layout);

/* Whether the layout of the generator is the recorded one; if it is, SF_OPENING_DONE. */
extern SfOpening sf_durable_layout_check(const SfGenerator *generator);

/*
 * Record a layout, and return when it is on disk.  A crash in between leaves none.  The lock of the
 * generator is held, or no other process can write the layout.
 */
extern void sf_durable_layout_write(const SfLayout *layout);

#endif							/* SF_DURABLE_H */
