/*
 * identity.h
 *	  Which registry the leases of this server come from.
 */
#ifndef SF_IDENTITY_H
#define SF_IDENTITY_H

#include "postgres.h"

/* No registry is recorded. */
#define SF_NO_IDENTITY	INT64CONST(0)

/* The identity that is recorded, or SF_NO_IDENTITY. */
extern int64 sf_identity_recorded(void);

/*
 * Record an identity, in a process without transactions, and return when it is on disk.  Returns
 * false, with the message of the error, if that fails.
 */
extern bool sf_identity_record(int64 identity, char *error, Size size);

#endif							/* SF_IDENTITY_H */
