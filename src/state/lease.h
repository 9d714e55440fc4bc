/*
 * lease.h
 *	  The lease of this server, and the state of its communication with the
 *	  registry.
 */
#ifndef SF_LEASE_H
#define SF_LEASE_H

#include "postgres.h"

#include "storage/latch.h"
#include "utils/timestamp.h"

#include "clocks.h"
#include "state/postmaster_memory.h"

typedef enum SfLeaseStatus
{
	SF_LEASE_CLAIMING,			/* no attempt has ended yet */
	SF_LEASE_HELD,				/* the last attempt was granted */
	SF_LEASE_REFUSED,			/* the last attempt was refused */
	SF_LEASE_UNREACHABLE,		/* the last attempt did not reach the registry */
	SF_LEASE_RELEASED,			/* the server is being stopped */
	SF_LEASE_EXPIRED,			/* the last attempt was granted, and the lease
								 * has ended since; not stored */
} SfLeaseStatus;

/* The result of an attempt: held, refused, or unreachable. */
typedef struct SfAnswer
{
	SfLeaseStatus state;
	SfLease		lease;			/* the lease of this server from then on, with
								 * number 0 if it has none */
	bool		skew_known;
	int64		skew;			/* us that this server's clock is ahead of the
								 * registry's */
	TimestampTz free_at;		/* if refused: when a lease might be granted,
								 * or infinity */
	int64		other_identity; /* if refused because the registry is not the
								 * previous one: its identity; otherwise 0 */
	char		error[1024];	/* empty if held */
} SfAnswer;

/*
 * Keep the reason, as a format, for which an attempt leads to a state: refused if the registry said
 * so, and unreachable if it sent no answer or an invalid one.
 */
extern void sf_answer_fail(SfAnswer *answer, SfLeaseStatus state, const char *format,...)
			pg_attribute_printf(3, 4);

/* The requests for the next attempt, in ascending order of urgency. */
typedef enum SfLeaseRequest
{
	SF_REQUEST_NONE,
	SF_REQUEST_SOON,			/* calls fail because there is no lease */
	SF_REQUEST_NOW,
} SfLeaseRequest;

/* In shared memory; the lock protects all of it. */
typedef struct SfLeaseState
{
	SfLock		lock;
	SfAnswer	last;			/* of the last attempt; it can also be
								 * claiming or released */
	TimestampTz since;			/* of the current state */
	SfLeaseRequest request;		/* for the next attempt */
	Latch	   *worker;			/* NULL if the worker does not run */
} SfLeaseState;

/* Make the state, in new memory, with the lease from before the crash of a process, if any. */
extern void sf_lease_init(SfLeaseState *registry);

/* A copy of the state as it is now. */
extern SfLeaseState sf_lease_state(SfLeaseState *registry);

/* The name of a state in the view. */
extern const char *sf_lease_state_name(SfLeaseStatus state);

/*
 * For the registry worker alone: record the result of an attempt.  Returns the previous state.  The
 * caller passes a lease to the generators.
 */
extern SfLeaseStatus sf_lease_record(SfLeaseState *registry, const SfAnswer *answer);

/*
 * For the registry worker alone: the lease has ended; the next lease will have another token.  The
 * caller then closes the generators.
 */
extern void sf_lease_forget(SfLeaseState *registry);

/*
 * sf_lease_request requests an attempt and wakes the registry worker, which calls
 * sf_lease_request_taken when an attempt begins.
 */
extern void sf_lease_request(SfLeaseState *registry, SfLeaseRequest request);
extern void sf_lease_request_taken(SfLeaseState *registry);

/*
 * Wake the registry worker, for a session that waits for a lease; the worker lets some time pass
 * between attempts that fail.  Returns false if waiting is of no use: the last attempt has failed,
 * or the server is being stopped.
 */
extern bool sf_lease_hurry(SfLeaseState *registry);

#endif							/* SF_LEASE_H */
