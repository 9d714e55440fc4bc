/*
 * log_limit.h
 *	  A limit on log messages that could otherwise flood the server's log.
 */
#ifndef SF_LOG_LIMIT_H
#define SF_LOG_LIMIT_H

#include "postgres.h"

#include "port/atomics.h"

/*
 * The time at which a message was last logged: microseconds since the machine
 * booted, or 0 for never.  It is in shared memory, so the limit applies to the
 * whole server.
 */
typedef pg_atomic_uint64 SfLogLimit;

/*
 * Whether to log now.  Returns true at most once a minute, in all backends
 * together.  The caller that gets true has to log.
 */
extern bool sf_log_allowed(SfLogLimit *limit);

#endif							/* SF_LOG_LIMIT_H */
