/*
 * atomic.h
 *	  An atomic operation that PostgreSQL lacks.
 */
#ifndef SF_ATOMIC_H
#define SF_ATOMIC_H

#include "postgres.h"

#include "port/atomics.h"

/* Set a number, which other processes may be raising, to a value if the value is greater. */
static inline void
sf_atomic_raise(pg_atomic_uint64 *number, uint64 value)
{
	uint64		before = pg_atomic_read_u64(number);

	while (before < value && !pg_atomic_compare_exchange_u64(number, &before, value))
		;
}

#endif							/* SF_ATOMIC_H */
