/*
 * client.h
 *	  Calls of the registry's functions, over libpq.
 */
#ifndef SF_REGISTRY_CLIENT_H
#define SF_REGISTRY_CLIENT_H

#include "postgres.h"

#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "state/lease.h"

typedef enum SfAnswerStatus
{
	SF_ANSWER_GRANTED,
	SF_ANSWER_REFUSED,
	SF_ANSWER_NONE,				/* the registry was not reached */
} SfAnswerStatus;

typedef struct SfAnswer
{
	SfAnswerStatus status;
	bool		connected;		/* the connection was opened */
	SfLease		lease;			/* if granted */
	int64		skew;			/* us; if granted */
	TimestampTz free_at;		/* if refused: the time to try again, or
								 * DT_NOEND */
	char		error[256];		/* if not granted */
} SfAnswer;

/* What a server asks for, and its description of itself. */
typedef struct SfClaim
{
	const pg_uuid_t *token;
	const char *layout;
	int			machine_bits;
	int			wanted;			/* machine ID, or SF_MACHINE_ID_UNSET for any */
	int			seconds;		/* s */
	const char *holder;
} SfClaim;

/*
 * Claim a lease.  held is the lease that this server had last, with number 0 if it had none.
 *
 * The wait for the answer takes some seconds at most, and ends when the process is told to
 * exit.  Opening the connection cannot be interrupted.  It takes up to connect_timeout for
 * each address of each host: 5 seconds, unless the connection string has another value.
 *
 * Raises nothing.
 */
extern void sf_registry_claim(const char *conninfo, const SfClaim *claim, const SfLease *held,
							  SfAnswer *answer);

/* Renew the lease that is held.  It waits as sf_registry_claim does, and raises nothing. */
extern void sf_registry_renew(const char *conninfo, const SfClaim *claim, const SfLease *held,
							  SfAnswer *answer);

/*
 * Release the lease that is held under a token.  The times of all issued IDs are before
 * used_until.  Returns false, and sets answer->error, if the release failed.
 */
extern bool sf_registry_release(const char *conninfo, const pg_uuid_t *token,
								TimestampTz used_until, const SfLease *held, SfAnswer *answer);

/*
 * Whether a connection string can be parsed.  If not, *error is libpq's message, which the
 * caller frees by free(), or NULL if memory is exhausted.
 */
extern bool sf_registry_conninfo_is_valid(const char *conninfo, char **error);

#endif							/* SF_REGISTRY_CLIENT_H */
