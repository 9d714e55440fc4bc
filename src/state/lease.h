/*
 * lease.h
 *	  The lease of this server, and the state of its dealings with the registry.
 */
#ifndef SF_LEASE_H
#define SF_LEASE_H

#include "postgres.h"

#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "core/lease.h"

typedef enum SfRegistryState
{
	SF_REGISTRY_CLAIMING,		/* no attempt has come to an end yet */
	SF_REGISTRY_HELD,			/* the last attempt was granted */
	SF_REGISTRY_REFUSED,		/* the last attempt was refused */
	SF_REGISTRY_UNREACHABLE,	/* the last attempt did not reach the registry */
	SF_REGISTRY_RELEASED,		/* the server stops */
} SfRegistryState;

/* When sessions want the next attempt, in ascending order of urgency. */
typedef enum SfLeaseRequest
{
	SF_REQUEST_NONE,
	SF_REQUEST_SOON,			/* calls fail because the registry was not
								 * reached */
	SF_REQUEST_NOW,
} SfLeaseRequest;

/* In shared memory; all of it under the lock. */
typedef struct SfRegistry
{
	LWLock		lock;
	SfLease		lease;
	SfRegistryState state;
	TimestampTz since;			/* of the state */
	bool		skew_known;
	int64		skew;			/* us that this server's clock is ahead of the
								 * registry's */
	char		error[1024];	/* of the last attempt; empty if it was
								 * granted */
	TimestampTz free_at;		/* if that was refused: when a lease might be
								 * granted, or infinity */
	bool		is_other;		/* if that was refused: because the registry
								 * is another one than before */
	int64		other_identity; /* then, its identity */
	SfLeaseRequest request;		/* for the next attempt */
	Latch	   *worker;			/* NULL: it does not run */
} SfRegistry;

/* Make the state, in new memory, with the lease from before the crash of a process, if any. */
extern void sf_lease_init(SfRegistry *registry);

/* A copy of the state as it is now. */
extern SfRegistry sf_registry_state(SfRegistry *registry);

/* What the view calls a state. */
extern const char *sf_registry_state_name(SfRegistryState state);

/*
 * For the registry worker alone: what an attempt came to.  Both return the state before.  A lease
 * that was granted is the same as before if only its end differs; the caller then gives it to
 * the generators.  other is the identity of the registry if it is another one than before, or NULL.
 */
extern SfRegistryState sf_lease_granted(SfRegistry *registry, const SfLease *lease,
										int64 skew, bool *same);
extern SfRegistryState sf_lease_not_granted(SfRegistry *registry, SfRegistryState state,
											const char *error, TimestampTz free_at,
											const int64 *other);

/*
 * For the registry worker alone: there is no lease any more; the next one will have another
 * token.  The caller then closes the generators.
 */
extern void sf_lease_forget(SfRegistry *registry);

/*
 * Request an attempt of the registry worker, which it is woken for; and, for the worker, the most
 * urgent request, and that an attempt begins, after which there is none.
 */
extern void sf_lease_request(SfRegistry *registry, SfLeaseRequest request);
extern SfLeaseRequest sf_lease_requested(SfRegistry *registry);
extern void sf_lease_attempt(SfRegistry *registry);

/*
 * For a session that waits for a lease, to issue an ID of the named kind: wakes the registry
 * worker, which lets some time pass between attempts that fail.  Raises
 * object_not_in_prerequisite_state, which says why, if waiting is of no use: the last attempt has
 * failed, or the server stops.
 */
extern void sf_lease_hurry(SfRegistry *registry, const char *name);

/*
 * Raises object_not_in_prerequisite_state: there is no lease for IDs of the named kind.  If the
 * registry was not reached, that is a request for another attempt.
 */
pg_noreturn extern void sf_lease_report_none(SfRegistry *registry, const char *name);

#endif							/* SF_LEASE_H */
