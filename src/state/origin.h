/*
 * origin.h
 *	  The replication origin in which PostgreSQL keeps the durable state of a generator.
 */
#ifndef SF_ORIGIN_H
#define SF_ORIGIN_H

#include "postgres.h"

#include "replication/origin.h"

#include "compat.h"
#include "state/generator_state.h"

/*
 * The number of an origin that was created and not written since.  It is not 0: PostgreSQL sets
 * the number to 0 when an origin is dropped, even if the drop is rolled back.
 */
#define SF_ORIGIN_NEW		UINT64CONST(1)

/* The number in the origin; 0 if it was lost. */
extern uint64 sf_origin_read(ReplOriginId origin);

typedef enum SfOriginHold
{
	SF_ORIGIN_HELD,
	SF_ORIGIN_BUSY,				/* another session is changing it */
	SF_ORIGIN_GONE,				/* it is no longer the one that sf_origin_find
								 * returned */
} SfOriginHold;

/*
 * Find the origin of a generator, whose name must contain its layout, and hold it.  Returns
 * SF_ORIGIN_HELD, or, only if wait is false, SF_ORIGIN_BUSY.
 *
 * Raises object_not_in_prerequisite_state if there is no origin, if it has another layout, or if
 * the current transaction created or renamed it.  Needs a transaction.
 */
extern SfOriginHold sf_origin_find(const SfGenerator *generator, bool wait, ReplOriginId *origin);

/*
 * Keep the origin from being dropped or renamed until sf_origin_release or
 * the end of the transaction.  Never returns SF_ORIGIN_BUSY if wait is true.
 */
extern SfOriginHold sf_origin_hold(ReplOriginId origin, const SfGenerator *generator, bool wait);

/*
 * The same without a wait, and without a look at the catalog: the origin may have been dropped, or
 * be another one.  For a process that exits, which can be in the middle of anything, and which
 * would wait for locks without end.  Returns false if another session is changing it.
 */
extern bool sf_origin_hold_unseen(ReplOriginId origin);

extern void sf_origin_release(ReplOriginId origin);

#ifdef USE_ASSERT_CHECKING
extern bool sf_origin_is_held(ReplOriginId origin);
#endif

/*
 * Write a number to WAL; returns the end of its record, which the caller flushes.  An origin that
 * holds a greater number keeps it, unless back is true.  The origin is held.
 *
 * Raises object_in_use when a session has acquired the origin, and
 * configuration_limit_exceeded when there is no slot for it.
 */
extern XLogRecPtr sf_origin_log(ReplOriginId origin, uint64 number, bool back);

/* The same, and return when the record is on disk. */
extern void sf_origin_write(ReplOriginId origin, uint64 number, bool back);

/*
 * Raise object_not_in_prerequisite_state: the origin is missing, or has lost its number
 * (configuration_limit_exceeded if that is because there are no slots).
 */
pg_noreturn extern void sf_origin_report_missing(SfGeneratorKind kind);
pg_noreturn extern void sf_origin_report_lost(SfGeneratorKind kind);

/*
 * Raise object_not_in_prerequisite_state if the recorded layout, in which this cluster issues
 * bigint IDs, is another one, or if none is recorded.  Needs a transaction.
 */
extern void sf_origin_check_layout(const SfLayout *layout);

/* Whether each kind of generator has an origin, of any layout. */
extern bool sf_origins_exist(void);

/*
 * Create the origin of a kind of generator if there is none, and write SF_ORIGIN_NEW to it.  If
 * there is one with another layout, and accept is true, rename it to this layout.  Returns whether
 * anything was changed; *before is the previous layout, or NULL if there was no origin.
 *
 * Raises configuration_limit_exceeded when there is no slot for it, and
 * object_not_in_prerequisite_state when the current transaction has dropped it.
 */
extern bool sf_origin_create(SfGeneratorKind kind, const SfLayout *layout,
							 bool accept, char **before);

#endif							/* SF_ORIGIN_H */
