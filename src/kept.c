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
 */
#include "postgres.h"

#include <sys/mman.h>

#include "port/pg_crc32c.h"

#include "kept.h"

typedef struct Kept
{
	pg_uuid_t	token;
	SfSpan		span;
	pg_crc32c	checksum;		/* of the above */

	/* Each is written by backends, always to true. */
	bool		opened[SF_LINE_COUNT];
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
	kept = mmap(NULL, sizeof(Kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kept == MAP_FAILED)
		ereport(ERROR,
				errcode(ERRCODE_OUT_OF_MEMORY),
				errmsg("could not map anonymous shared memory: %m"));
	sf_kept_forget();
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
