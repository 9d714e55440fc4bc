/*
 * log_limit.h
 *	  Messages to the server's log that could otherwise flood it.
 */
#ifndef SF_LOG_LIMIT_H
#define SF_LOG_LIMIT_H

#include "postgres.h"

#include "port/atomics.h"

/*
 * When a kind of message was last logged: microseconds on the monotonic clock,
 * or 0 for never.  In shared memory, so that the limit is the server's.
 */
typedef pg_atomic_uint64 SfLogLimit;

/*
 * Whether to log now: true for one caller a minute, of all backends.  That one
 * has to log.
 */
extern bool sf_log_allowed(SfLogLimit *limit);

#endif							/* SF_LOG_LIMIT_H */
