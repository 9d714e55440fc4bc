/*
 * client.h
 *	  Calls of the registry's functions, over libpq.
 */
#ifndef SF_REGISTRY_CLIENT_H
#define SF_REGISTRY_CLIENT_H

#include "postgres.h"

#include "utils/uuid.h"

#include "registry/connect.h"
#include "state/lease.h"

/* The lease that a server requests, and its description of itself. */
typedef struct SfClaim
{
	const pg_uuid_t *token;
	const char *layout;
	int			machine_bits;
	int			wanted;			/* machine ID, or SF_MACHINE_ID_UNSET for any */
	int			seconds;		/* s */
	const char *holder;
	SfLease		held;			/* the lease that this server had last, with
								 * number 0 if it had none */
} SfClaim;

/*
 * No function here raises an error.  The wait for an answer lasts some seconds at most.  The
 * answer is stored with the connection; it is set by a call for a lease, and by any other call
 * that fails.
 *
 * Ask for the identity of the registry.  Returns false if that fails.
 */
extern bool sf_registry_identity(SfConnection *connection, int64 *identity);

/* Claim a lease, or renew the current one. */
extern void sf_registry_ask(SfConnection *connection, const SfClaim *claim, bool renewal);

/*
 * Release the lease with a number, which is held under a token.  The times of all issued IDs are
 * before used_until.  Returns false if that fails.
 */
extern bool sf_registry_release(SfConnection *connection, const pg_uuid_t *token,
								TimestampTz used_until, int64 number);

#endif							/* SF_REGISTRY_CLIENT_H */
