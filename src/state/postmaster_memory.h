/*
 * postmaster_memory.h
 *	  Memory that survives when the postmaster restarts all its processes after a crash.
 */
#ifndef SF_POSTMASTER_MEMORY_H
#define SF_POSTMASTER_MEMORY_H

#include "postgres.h"

#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "state/generator_state.h"

/*
 * A machine ID and a span of ID time, which a registry grants to a server: IDs of this machine ID
 * can be issued with times at or after from and before until.
 */
typedef struct SfLease
{
	uint32		machine_id;
	TimestampTz from;
	TimestampTz until;
	int64		number;			/* the lease number; 0: no lease */
} SfLease;

/*
 * Create the memory, in the postmaster, when it preloads the library.  All functions except the
 * functions for machine IDs and the durable state are for servers with a registry, and for the
 * registry worker alone unless another process is named.
 */
extern void sf_postmaster_memory_init(void);

/*
 * The token under which leases are held.  It is random, and belongs to this run of the postmaster
 * alone.
 */
extern pg_uuid_t sf_postmaster_token(void);

/*
 * Keep a lease; and return the lease that is kept, which has number 0 if there is none.  The
 * postmaster calls the second one as well.
 */
extern void sf_postmaster_keep_lease(const SfLease *lease);
extern SfLease sf_postmaster_lease(void);

/* Forget the lease, and generate another token. */
extern void sf_postmaster_forget_lease(void);

/* Note, under the lock of a generator, that it was opened; and return whether it ever was. */
extern void sf_postmaster_note_opened(SfGeneratorKind kind);
extern bool sf_postmaster_was_opened(SfGeneratorKind kind);

/* The same of whether it was moved back. */
extern void sf_postmaster_note_moved_back(SfGeneratorKind kind);
extern bool sf_postmaster_was_moved_back(SfGeneratorKind kind);

/*
 * Note that the durable state is dropped; and return whether it was, in this run of the postmaster.
 */
extern void sf_postmaster_note_state_dropped(void);
extern bool sf_postmaster_state_dropped(void);

/*
 * Fix the machine ID of a generator for this run of the postmaster.  Of several callers the first
 * one decides; returns the number that is fixed.
 */
extern uint32 sf_postmaster_pin_machine_id(SfGeneratorKind kind, uint32 machine_id);

/* The number that was fixed, or SF_MACHINE_ID_NOT_PINNED. */
extern uint32 sf_postmaster_machine_id(SfGeneratorKind kind);

#endif							/* SF_POSTMASTER_MEMORY_H */
