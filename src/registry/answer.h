/*
 * answer.h
 *	  The answers of the registry, and their checks.
 */
#ifndef SF_REGISTRY_ANSWER_H
#define SF_REGISTRY_ANSWER_H

#include "postgres.h"

#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "state/lease.h"

typedef enum SfAnswerStatus
{
	SF_ANSWER_GRANTED,
	SF_ANSWER_REFUSED,
	SF_ANSWER_NONE,				/* no registry was reached */
} SfAnswerStatus;

typedef struct SfAnswer
{
	SfAnswerStatus status;
	SfLease		lease;			/* if granted */
	int64		skew;			/* us; if granted */
	TimestampTz free_at;		/* if refused: the time to try again, or
								 * DT_NOEND */
	int64		identity;		/* of the registry */
	bool		other;			/* refused, because the registry is not the
								 * previous one */
	char		error[1024];	/* if not granted */
	bool		no_function;	/* the registry does not have the function
								 * that was called */
} SfAnswer;

/* The lease that a server requests, and its description of itself. */
typedef struct SfClaim
{
	const pg_uuid_t *token;
	const char *layout;
	int			machine_bits;
	int			wanted;			/* machine ID, or SF_MACHINE_ID_UNSET for any */
	int			seconds;		/* s */
	const char *holder;
} SfClaim;

#define SF_IDENTITY_COLUMNS	1
#define SF_LEASE_COLUMNS	7
#define SF_RELEASE_COLUMNS	1

struct pg_result;

/* Whether a result is one row with that many columns. */
extern bool sf_answer_is_row(const struct pg_result *result, int columns);

/*
 * Read a row with the columns of the query.  Returns false, and sets answer->status and
 * answer->error, if a value is missing, malformed or out of bounds.  sf_answer_read_lease reads the
 * row of a claim, or of a renewal of the lease renewed; a refusal is a valid row.
 */
extern bool sf_answer_read_identity(const struct pg_result *row, SfAnswer *answer);
extern bool sf_answer_read_lease(const struct pg_result *row, const SfClaim *claim,
								 const SfLease *renewed, SfAnswer *answer);

/*
 * Keep a message, and the status with it.  sf_registry_reject keeps that of an answer that is not
 * from a registry, as a format.
 */
extern void sf_registry_keep_error(SfAnswer *answer, SfAnswerStatus status, const char *message);
extern void sf_registry_reject(SfAnswer *answer, const char *format,...) pg_attribute_printf(2, 3);

#endif							/* SF_REGISTRY_ANSWER_H */
