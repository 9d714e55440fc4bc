/*
 * span.h
 *	  What a registry leases to this server: a machine ID, and a span of time.
 */
#ifndef SF_SPAN_H
#define SF_SPAN_H

#include "postgres.h"

#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "compat.h"

/* IDs with this machine ID may be issued with times from one instant to before another. */
typedef struct SfSpan
{
	uint32		machine_id;
	TimestampTz from;
	TimestampTz until;
	int64		grant;			/* the registry's number of it; 0: no span */
} SfSpan;

typedef enum SfRegistryState
{
	SF_REGISTRY_CLAIMING,		/* no attempt has come to an end yet */
	SF_REGISTRY_HELD,			/* the last attempt was granted */
	SF_REGISTRY_REFUSED,		/* the last attempt was refused */
	SF_REGISTRY_UNREACHABLE,	/* the last attempt did not reach the registry */
	SF_REGISTRY_RELEASED,		/* the server stops */
} SfRegistryState;

/* In shared memory; all of it under the lock. */
typedef struct SfRegistry
{
	LWLock		lock;
	SfSpan		span;
	SfRegistryState state;
	TimestampTz since;			/* of the state */
	bool		skew_known;
	int64		skew;			/* us that this server's clock is ahead of the
								 * registry's */
	char		error[256];		/* of the last attempt; empty if it was
								 * granted */
	TimestampTz free_at;		/* if that was refused: when there may be a
								 * span, or infinity */
	Latch	   *registrar;		/* NULL: it does not run */
} SfRegistry;

struct SfShared;
struct SfLine;

/* Make the state, in new memory, with the span of before the crash of a process, if any. */
extern void sf_span_init(struct SfShared *shared);

/* A copy of the state as it is now. */
extern SfRegistry sf_span_state(struct SfShared *shared);

/* What the view calls a state. */
extern const char *sf_span_state_name(SfRegistryState state);

/*
 * For the registrar alone: what an attempt came to.  A granted span is in force when
 * the function returns.  Returns the state of before.
 */
extern SfRegistryState sf_span_granted(struct SfShared *shared, const SfSpan *span, int64 skew);
extern SfRegistryState sf_span_not_granted(struct SfShared *shared, SfRegistryState state, const char *error,
										   TimestampTz free_at);

/*
 * For the registrar alone: issue nothing any more, in any line, until there is another
 * span, which will have another token.  Returns an instant that all IDs of the span are
 * before, infinity if none is known.
 */
extern TimestampTz sf_span_close(struct SfShared *shared);

/*
 * For a session that waits for a span: wakes up the registrar.  Raises
 * object_not_in_prerequisite_state, which says why, where waiting is of no use: the last
 * attempt has failed, or the server stops.
 */
extern void sf_span_hurry(struct SfShared *shared, const struct SfLine *line);

/* Raises object_not_in_prerequisite_state: there is no span. */
pg_noreturn extern void sf_span_report_none(struct SfShared *shared, const struct SfLine *line);

#endif							/* SF_SPAN_H */
