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
 * knows the holder of a span: the postmaster draws it when it starts.
 *
 * A process that has run wild may have written into this memory, and the registrar may
 * have been killed while it did: a checksum tells.  Then there is no span, until the
 * registry has been asked, who gives the same token the same span.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "port/pg_crc32c.h"

#include "kept.h"

typedef struct Kept
{
	SfSpan		span;
	pg_crc32c	checksum;
} Kept;

static Kept *kept = NULL;
static pg_uuid_t token;

static pg_crc32c
checksum(const SfSpan *span)
{
	pg_crc32c	sum;

	INIT_CRC32C(sum);
	COMP_CRC32C(sum, span, sizeof(*span));
	FIN_CRC32C(sum);
	return sum;
}

void
sf_kept_init(void)
{
	if (!pg_strong_random(&token, sizeof(token)))
		ereport(ERROR,
				errcode(ERRCODE_INTERNAL_ERROR),
				errmsg("could not generate random values"));
	kept = mmap(NULL, sizeof(Kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kept == MAP_FAILED)
		ereport(ERROR,
				errcode(ERRCODE_OUT_OF_MEMORY),
				errmsg("could not map anonymous shared memory: %m"));
}

const pg_uuid_t *
sf_kept_token(void)
{
	return &token;
}

void
sf_kept_put(const SfSpan *span)
{
	Kept		next;

	memset(&next, 0, sizeof(next));
	memcpy(&next.span, span, sizeof(*span));
	next.checksum = checksum(&next.span);
	memcpy(kept, &next, sizeof(next));
}

SfSpan
sf_kept_get(void)
{
	Kept		copy;

	memcpy(&copy, kept, sizeof(copy));
	if (copy.checksum != checksum(&copy.span))
		memset(&copy, 0, sizeof(copy));
	return copy.span;
}
