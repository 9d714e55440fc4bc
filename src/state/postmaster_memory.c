/*
 * postmaster_memory.c
 *	  Memory that survives when the postmaster restarts all its processes after a crash.
 *
 * When a process crashes, the postmaster ends all others, makes shared memory again,
 * and starts them again.  The lease that a registry granted to this server is still
 * valid, and must not be lost with shared memory: the registry could be out of
 * reach at that moment.  But it must not outlive the postmaster, and so it is not kept in the data
 * directory: the directory can be copied, and both copies can be started.
 *
 * So the lease is in memory that the postmaster shares with its children by fork only, and that a
 * restart of the processes does not change.  The token, by which the registry recognizes the holder
 * of a lease, is in this memory as well.
 *
 * A faulty process may have overwritten this memory, and the registry worker may have been killed
 * while it wrote to it; a checksum detects both.  In that case there is no lease, and a new token,
 * until the registry has been asked.
 *
 * A new token is generated when a lease is released, so that a delayed message from before the
 * release cannot release a later lease.
 *
 * Generators that have been opened are noted here as well, because a generator that was lost with
 * shared memory does not show whether it had issued IDs.  So are generators that an administrator
 * has moved back, which issue no IDs until the server is restarted: a restart of the processes
 * does not count, as the administrator may still be deleting the rows with the later IDs.  That
 * the durable state was dropped is noted too: otherwise a process could write a number again after
 * a crash, before the server is stopped.
 *
 * Without a registry the machine ID is kept: its first use fixes it until the server is restarted,
 * and a restart of the processes after a crash does not count.  An administrator swaps two machine
 * IDs by reload, before both servers are restarted: if one of them had such a crash in between,
 * both would use the same machine ID.  Sessions fix the machine ID by compare-and-swap.  It is
 * stored with its complement, so that an overwritten number is recognized.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "port/pg_crc32c.h"
#include "portability/mem.h"

#include "state/postmaster_memory.h"

typedef struct PostmasterMemory
{
	pg_uuid_t	token;
	SfLease		lease;
	pg_crc32c	checksum;		/* of the above */

	/* Each is written by backends, always to true. */
	bool		opened[SF_GENERATOR_COUNT];
	bool		moved_back[SF_GENERATOR_COUNT];
	bool		state_dropped;

	/* See encode_pinned; 0 for none. */
	pg_atomic_uint64 machine_ids[SF_GENERATOR_COUNT];
} PostmasterMemory;

static PostmasterMemory *memory = NULL;

/* The checksum of the current contents. */
static pg_crc32c
memory_checksum(void)
{
	pg_crc32c	sum;

	INIT_CRC32C(sum);
	COMP_CRC32C(sum, memory, offsetof(PostmasterMemory, checksum));
	FIN_CRC32C(sum);
	return sum;
}

void
sf_postmaster_memory_init(void)
{
	memory = mmap(NULL, sizeof(PostmasterMemory), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		ereport(ERROR,
				errcode(ERRCODE_OUT_OF_MEMORY),
				errmsg("could not map anonymous shared memory: %m"));
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		pg_atomic_init_u64(&memory->machine_ids[i], 0);
	sf_postmaster_forget_lease();
}

void
sf_postmaster_forget_lease(void)
{
	pg_uuid_t	token;

	if (!pg_strong_random(&token, sizeof(token)))
		ereport(ERROR,
				errcode(ERRCODE_INTERNAL_ERROR),
				errmsg("could not generate random values"));
	memory->token = token;
	memset(&memory->lease, 0, sizeof(memory->lease));
	memory->checksum = memory_checksum();
}

/* A lease and a token whose checksum is wrong are replaced. */
static void
check_memory(void)
{
	if (memory->checksum != memory_checksum())
		sf_postmaster_forget_lease();
}

pg_uuid_t
sf_postmaster_token(void)
{
	check_memory();
	return memory->token;
}

void
sf_postmaster_keep_lease(const SfLease *lease)
{
	check_memory();
	memory->lease = *lease;
	memory->checksum = memory_checksum();
}

SfLease
sf_postmaster_lease(void)
{
	check_memory();
	return memory->lease;
}

void
sf_postmaster_note_opened(SfGeneratorKind kind)
{
	memory->opened[kind] = true;
}

bool
sf_postmaster_was_opened(SfGeneratorKind kind)
{
	return memory->opened[kind];
}

void
sf_postmaster_note_moved_back(SfGeneratorKind kind)
{
	memory->moved_back[kind] = true;
}

bool
sf_postmaster_was_moved_back(SfGeneratorKind kind)
{
	return memory->moved_back[kind];
}

void
sf_postmaster_note_state_dropped(void)
{
	memory->state_dropped = true;
}

bool
sf_postmaster_state_dropped(void)
{
	return memory->state_dropped;
}

static uint64
encode_pinned(uint32 machine_id)
{
	return (uint64) ~machine_id << 32 | machine_id;
}

/* SF_MACHINE_ID_NOT_PINNED for 0, and for a value that encode_pinned does not return. */
static uint32
decode_pinned(uint64 number)
{
	uint32		machine_id = (uint32) number;

	return number == encode_pinned(machine_id) ? machine_id : SF_MACHINE_ID_NOT_PINNED;
}

uint32
sf_postmaster_pin_machine_id(SfGeneratorKind kind, uint32 machine_id)
{
	uint64		found = 0;

	while (!pg_atomic_compare_exchange_u64(&memory->machine_ids[kind], &found,
										   encode_pinned(machine_id)))
	{
		if (decode_pinned(found) != SF_MACHINE_ID_NOT_PINNED)
			return decode_pinned(found);
	}
	return machine_id;
}

uint32
sf_postmaster_machine_id(SfGeneratorKind kind)
{
	return decode_pinned(pg_atomic_read_u64(&memory->machine_ids[kind]));
}
