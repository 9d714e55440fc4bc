/*
 * shared.h
 *	  The state that all backends of a server share.
 */
#ifndef SF_SHARED_H
#define SF_SHARED_H

#include "postgres.h"

#include "port/atomics.h"

#include "line.h"

typedef struct SfShared
{
	/*
	 * What the postmaster has for snowflake.machine_id, as an int.  Sessions
	 * see a reload one by one, and some late; the postmaster is the first.
	 */
	pg_atomic_uint32 configured_machine_id;

	/*
	 * The machine ID in use, or SF_MACHINE_ID_NOT_PINNED.  Changes once, from
	 * that to a number, by compare-and-swap.
	 */
	pg_atomic_uint32 machine_id;

	/* The same for snowflake.sno_partition, and the partition. */
	pg_atomic_uint32 configured_sno_partition;
	pg_atomic_uint32 sno_partition;

	/*
	 * The greatest difference, in microseconds, of wall clock and boot clock
	 * that was believed (clock.c), an int64.
	 */
	pg_atomic_uint64 clock_difference;

	SfLine		lines[SF_LINE_COUNT];
} SfShared;

#define SF_MACHINE_ID_NOT_PINNED	PG_UINT32_MAX

/* Ask for shared memory, when loaded by shared_preload_libraries. */
extern void sf_shared_init(void);

/* The shared state, or NULL where the library was not preloaded. */
extern SfShared *sf_shared(void);

/*
 * The shared state.  Raises object_not_in_prerequisite_state where the library
 * was not preloaded, with a hint that says which line to add to which file.
 */
extern SfShared *sf_shared_required(void);

/* The layout of this server: the shared one, else what the setting says. */
extern const SfLayout *sf_layout_in_force(void);

#endif							/* SF_SHARED_H */
