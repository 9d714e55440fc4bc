/*
 * registry_identity.h
 *	  Which registry the leases of this server come from.
 */
#ifndef SF_REGISTRY_IDENTITY_H
#define SF_REGISTRY_IDENTITY_H

#include "postgres.h"

/* No registry is recorded; or a registry of version 1.0, which has no identity. */
#define SF_NO_IDENTITY	INT64CONST(0)

/* The identity that is recorded, or SF_NO_IDENTITY. */
extern int64 sf_registry_identity_read(void);

/*
 * Record an identity, or SF_NO_IDENTITY, and return when its WAL record is on disk.  Needs no
 * transaction.  Raises the errors of sf_durable_set.
 */
extern void sf_registry_identity_write(int64 identity);

/*
 * As sf_registry_identity_write, for a process without transactions.  Returns false, with the
 * message of the error, if it fails.
 */
extern bool sf_registry_identity_try_write(int64 identity, char *error, Size size);

#endif							/* SF_REGISTRY_IDENTITY_H */
