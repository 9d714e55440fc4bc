/*
 * registry_client.h
 *	  Calls of the registry's functions, over libpq.
 */
#ifndef SF_REGISTRY_CLIENT_H
#define SF_REGISTRY_CLIENT_H

#include "postgres.h"

#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "span.h"

typedef enum SfAnswerStatus
{
	SF_ANSWER_GRANTED,
	SF_ANSWER_REFUSED,
	SF_ANSWER_NONE,				/* the registry was not reached */
} SfAnswerStatus;

typedef struct SfAnswer
{
	SfAnswerStatus status;
	bool		connected;		/* there was a connection, at least */
	SfSpan		span;			/* if granted */
	int64		skew;			/* us; if granted */
	TimestampTz free_at;		/* if refused: when to try again, or DT_NOEND */
	char		error[256];		/* if not granted */
} SfAnswer;

/* What a server says of itself. */
typedef struct SfClaim
{
	const pg_uuid_t *token;
	const char *layout;
	int			machine_bits;
	int			wanted;			/* machine ID, or SF_MACHINE_ID_UNSET for any */
	int			lease;			/* s */
	const char *holder;
} SfClaim;

/*
 * Claim a span, where held (grant 0: nothing) is what this server had last.  An answer is
 * waited for for some seconds at most, and not when the process is told to end.  To
 * connect takes as long as libpq takes: connect_timeout for each address of each host, 5
 * seconds if the connection string has none, and it cannot be interrupted.  Raises nothing.
 */
extern void sf_registry_claim(const char *conninfo, const SfClaim *claim, const SfSpan *held, SfAnswer *answer);

/* Renew a span, on the same terms. */
extern void sf_registry_renew(const char *conninfo, const SfClaim *claim, const SfSpan *held, SfAnswer *answer);

/*
 * Release what is held by a token.  All IDs are before an instant.  Returns false, with
 * answer->error, when that did not succeed.
 */
extern bool sf_registry_release(const char *conninfo, const pg_uuid_t *token, TimestampTz used_until,
								const SfSpan *held, SfAnswer *answer);

/* Whether a connection string can be parsed; *error is then what is wrong, to be freed by free(). */
extern bool sf_registry_conninfo_is_valid(const char *conninfo, char **error);

#endif							/* SF_REGISTRY_CLIENT_H */
