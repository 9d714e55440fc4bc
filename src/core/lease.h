/*
 * lease.h
 *	  A lease: a machine ID and a span of ID time, which a registry grants to a server.
 */
#ifndef SF_CORE_LEASE_H
#define SF_CORE_LEASE_H

#include "instant.h"

/* IDs of this machine ID may be issued with times at or after from and before until. */
typedef struct SfLease
{
	uint32_t	machine_id;
	SfInstant	from;
	SfInstant	until;
	int64_t		number;			/* the lease number; 0: no lease */
} SfLease;

#endif							/* SF_CORE_LEASE_H */
