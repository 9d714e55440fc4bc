/*
 * client.h
 *	  Calls of the registry's functions, over libpq.
 */
#ifndef SF_REGISTRY_CLIENT_H
#define SF_REGISTRY_CLIENT_H

#include "postgres.h"

#include "registry/answer.h"
#include "registry/connect.h"

/*
 * No function here raises an error.  The wait for an answer lasts some seconds at most.  The answer
 * is that of the connection; it is set by a call for a lease, and by any other call that fails.
 *
 * Ask for the identity of the registry.  Returns false if that fails.
 */
extern bool sf_registry_identity(SfConnection *connection, int64 *identity);

/* Claim a lease. */
extern void sf_registry_claim(SfConnection *connection, const SfClaim *claim);

/* Renew the lease that is held. */
extern void sf_registry_renew(SfConnection *connection, const SfClaim *claim);

/*
 * Release the lease with a number, which is held under a token.  The times of all issued IDs are
 * before used_until.  Returns false if that fails.
 */
extern bool sf_registry_release(SfConnection *connection, const pg_uuid_t *token,
								TimestampTz used_until, int64 number);

#endif							/* SF_REGISTRY_CLIENT_H */
