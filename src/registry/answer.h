/*
 * answer.h
 *	  The answers of the registry, and their checks.
 */
#ifndef SF_REGISTRY_ANSWER_H
#define SF_REGISTRY_ANSWER_H

#include "postgres.h"

#include "utils/uuid.h"

#include "state/lease.h"

/* The lease that a server requests, and its description of itself. */
typedef struct SfClaim
{
	const pg_uuid_t *token;
	const char *layout;
	int			machine_bits;
	int			wanted;			/* machine ID, or SF_MACHINE_ID_UNSET for any */
	int			seconds;		/* s */
	const char *holder;
	SfLease		held;			/* the lease that this server had last, with
								 * number 0 if it had none */
} SfClaim;

#define SF_LEASE_COLUMNS	7

struct pg_result;

/*
 * Read a row with the columns of the query.  Returns false, and sets answer->state and
 * answer->error, if a value is missing, malformed or out of bounds.  sf_answer_read_lease reads the
 * row of a claim, or of a renewal of the lease that is held; a refusal is a valid row.
 */
extern bool sf_answer_read_identity(const struct pg_result *row, int64 *identity, SfAnswer *answer);
extern bool sf_answer_read_lease(const struct pg_result *row, const SfClaim *claim, bool renewal,
								 SfAnswer *answer);

/*
 * Keep the reason, as a format, for which an attempt leads to a state: refused if the registry said
 * so, and unreachable if it sent no answer or an invalid one.
 */
extern void sf_answer_fail(SfAnswer *answer, SfRegistryState state, const char *format,...)
			pg_attribute_printf(3, 4);

#endif							/* SF_REGISTRY_ANSWER_H */
