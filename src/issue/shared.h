/*
 * shared.h
 *	  The state that all backends of a server share.
 */
#ifndef SF_SHARED_H
#define SF_SHARED_H

#include "postgres.h"

#include "port/atomics.h"

#include "state/durable.h"
#include "state/generator_state.h"
#include "state/lease.h"

typedef struct SfShared
{
	/*
	 * The server's values of settings that a reload changes, published by the
	 * postmaster.  A session can see a reload late, for example in the middle
	 * of a long statement, so it never uses its own.  snowflake.max_ahead is
	 * in each generator.
	 */
	pg_atomic_uint32 configured_machine_id; /* an int */
	pg_atomic_uint32 configured_sno_partition;	/* an int */
	pg_atomic_uint32 max_clock_step;	/* ms; 0: no check */
	pg_atomic_uint32 sequence_jitter;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was accepted for all generators (clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	/* A copy of the durable numbers (durable.c). */
	pg_atomic_uint64 durable[SF_DURABLE_COUNT];

	SfLeaseState lease;
	SfGenerator generators[SF_GENERATOR_COUNT];
} SfShared;

/* Request shared memory.  For _PG_init, when the library is preloaded. */
extern void sf_shared_init(void);

/* The shared state; NULL if the library was not preloaded. */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state if there is none, with a hint that
 * shows which line to add to which file.
 */
extern SfShared *sf_shared_required(void);

/* Whether the settings of this process apply to all: it is the postmaster. */
extern bool sf_shared_is_mine(void);

/* Allow IDs to be max_ahead ms ahead of the clock from now on. */
extern void sf_shared_set_max_ahead(SfShared *shared, int max_ahead);

/* The layout of this server, and its text.  Raise the error of sf_shared_required. */
extern const SfLayout *sf_layout_in_force(void);
extern const char *sf_layout_in_force_text(void);

#endif							/* SF_SHARED_H */
