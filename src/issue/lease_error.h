/*
 * lease_error.h
 *	  Errors of calls that need an ID when this server has no lease.
 */
#ifndef SF_LEASE_ERROR_H
#define SF_LEASE_ERROR_H

#include "compat.h"
#include "state/lease.h"

/*
 * Raises object_not_in_prerequisite_state: there is no lease for IDs of the named kind.  If the
 * registry was not reached, another attempt is requested as well.
 */
pg_noreturn extern void sf_lease_report_none(SfLeaseState *registry, const char *name);

/* The same, without a request. */
pg_noreturn extern void sf_lease_refuse(SfLeaseState *registry, const char *name);

#endif							/* SF_LEASE_ERROR_H */
