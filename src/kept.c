/*
 * kept.c
 *	  What this run of the postmaster keeps over a restart of all its processes.
 *
 * When a process crashes, the postmaster ends all others, makes shared memory anew,
 * and starts them again.  The span that a registry leased to this server is still
 * this server's, and must not be lost with shared memory: the registry may be out of
 * reach just then.  But it must not outlive the postmaster: whatever is in the data
 * directory can be in a copy of it as well, and be started twice.
 *
 * So it is in memory that the postmaster shares with its children by fork alone, and
 * that no restart of them touches.  The same holds for the token, by which the registry
 * knows the holder of a span.
 *
 * A process that has run wild may have written into this memory, and the registrar may
 * have been killed while it did: a checksum tells.  Then there is no span, and another
 * token, until the registry has been asked.
 *
 * A token is drawn anew when a span is given back: a message of before that is still
 * under way cannot then give back what was claimed since.
 *
 * Lines that have been opened are noted here, too, because a line that shared memory has
 * lost says nothing of what it had issued.
 *
 * Without a registry it is the machine ID that is kept: it is fixed by its first use until the
 * server is restarted, and a crash of one process is no restart.  Otherwise, if two servers
 * exchange their numbers and one of them has such a crash before it is restarted, both
 * would use the same number.  Backends fix it by compare-and-swap.  It is stored with its
 * complement, by which a number that a process has overwritten is noticed.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "port/pg_crc32c.h"

#include "kept.h"

typedef struct Kept
{
	pg_uuid_t	token;
	SfSpan		span;
	pg_crc32c	checksum;		/* of the above */

	/* Each is written by backends, always to true. */
	bool		opened[SF_LINE_COUNT];

	/* See encode_pinned; 0 for none. */
	pg_atomic_uint64 machine_ids[SF_LINE_COUNT];
} Kept;

#define CHECKED	offsetof(Kept, checksum)

static Kept *kept = NULL;

static pg_crc32c
checksum(const Kept *memory)
{
	pg_crc32c	sum;

	INIT_CRC32C(sum);
	COMP_CRC32C(sum, memory, CHECKED);
	FIN_CRC32C(sum);
	return sum;
}

/* Write what the checksum is of. */
static void
put(const pg_uuid_t *token, const SfSpan *span)
{
	Kept		next;

	memset(&next, 0, sizeof(next));
	memcpy(&next.token, token, sizeof(*token));
	memcpy(&next.span, span, sizeof(*span));
	next.checksum = checksum(&next);
	memcpy(kept, &next, CHECKED + sizeof(next.checksum));
}

void
sf_kept_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	kept = mmap(NULL, sizeof(Kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kept == MAP_FAILED)
		ereport(ERROR,
				errcode(ERRCODE_OUT_OF_MEMORY),
				errmsg("could not map anonymous shared memory: %m"));
	sf_kept_forget();
	for (int i = 0; i < SF_LINE_COUNT; i++)
		pg_atomic_init_u64(&kept->machine_ids[i], 0);
}

void
sf_kept_forget(void)
{
	static const SfSpan none = {0};
	pg_uuid_t	token;

	if (!pg_strong_random(&token, sizeof(token)))
		ereport(ERROR,
				errcode(ERRCODE_INTERNAL_ERROR),
				errmsg("could not generate random values"));
	put(&token, &none);
}

/* A copy of what is kept, which is sound. */
static Kept
get(void)
{
	Kept		copy;

	if (kept->checksum != checksum(kept))
		sf_kept_forget();
	memcpy(&copy, kept, sizeof(copy));
	return copy;
}

pg_uuid_t
sf_kept_token(void)
{
	return get().token;
}

void
sf_kept_put_span(const SfSpan *span)
{
	pg_uuid_t	token = sf_kept_token();

	put(&token, span);
}

SfSpan
sf_kept_span(void)
{
	return get().span;
}

void
sf_kept_put_opened(SfLineKind kind)
{
	kept->opened[kind] = true;
}

bool
sf_kept_opened(SfLineKind kind)
{
	return kept->opened[kind];
}

static uint64
encode_pinned(uint32 machine_id)
{
	return (uint64) ~machine_id << 32 | machine_id;
}

/* SF_MACHINE_ID_NOT_PINNED for 0, and for what encode_pinned does not return. */
static uint32
decode_pinned(uint64 number)
{
	uint32		machine_id = (uint32) number;

	return number == encode_pinned(machine_id) ? machine_id : SF_MACHINE_ID_NOT_PINNED;
}

uint32
sf_kept_pin_machine_id(SfLineKind kind, uint32 machine_id)
{
	uint64		found = 0;

	if (kept == NULL)
		return machine_id;
	while (!pg_atomic_compare_exchange_u64(&kept->machine_ids[kind], &found, encode_pinned(machine_id)))
	{
		if (decode_pinned(found) != SF_MACHINE_ID_NOT_PINNED)
			return decode_pinned(found);
	}
	return machine_id;
}

uint32
sf_kept_machine_id(SfLineKind kind)
{
	return kept ? decode_pinned(pg_atomic_read_u64(&kept->machine_ids[kind])) : SF_MACHINE_ID_NOT_PINNED;
}
