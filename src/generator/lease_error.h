/*
 * lease_error.h
 *	  The errors of calls that need an ID for which this server has no lease.
 */
#ifndef SF_LEASE_ERROR_H
#define SF_LEASE_ERROR_H

#include "postgres.h"

#include "compat.h"
#include "state/lease.h"

/*
 * Raises object_not_in_prerequisite_state: there is no lease for IDs of the named kind.  If the
 * registry was not reached, another attempt is requested as well.
 */
pg_noreturn extern void sf_lease_report_none(SfRegistry *registry, const char *name);

/*
 * From now on, these errors are logged once a minute at most, on the whole server.  Each caller
 * still gets its error.
 */
extern void sf_lease_limit_log(void);

#endif							/* SF_LEASE_ERROR_H */
