/*
 * client.h
 *	  Calls of the registry's functions, over libpq.
 */
#ifndef SF_REGISTRY_CLIENT_H
#define SF_REGISTRY_CLIENT_H

#include "postgres.h"

#include "clocks.h"
#include "registry/answer.h"

/* A connection to the registry. */
typedef struct SfConnection
{
	struct pg_conn *libpq;
	bool		leaving;		/* opened after the process was told to exit */
	SfStopwatch since;
	int64		received;		/* bytes; see sf_registry_wait */
} SfConnection;

/* The time that a process that is to exit has for its calls, including the connection. */
#define SF_LEAVING_TIMEOUT	1000	/* ms */

/*
 * Open a connection.  Returns false, and sets *answer, if that fails.  It takes up to
 * connect_timeout for each address of each host: 5 seconds, unless the connection string has
 * another value.
 *
 * No function here raises an error.  The wait for an answer lasts some seconds at most.  All waits
 * end when the process is told to exit.  A connection that is opened after that uses the address of
 * the last connection, and has SF_LEAVING_TIMEOUT for all of its calls.
 */
extern bool sf_registry_connect(SfConnection *connection, const char *conninfo, SfAnswer *answer);
extern void sf_registry_disconnect(SfConnection *connection);

/*
 * Ask for the identity of the registry: answer->identity, SF_NO_IDENTITY if it is of version 1.0.
 * Returns false, and sets answer->error, if the registry did not answer.
 */
extern bool sf_registry_identity(SfConnection *connection, SfAnswer *answer);

/* Claim a lease.  held is the lease that this server had last, with number 0 if it had none. */
extern void sf_registry_claim(SfConnection *connection, const SfClaim *claim,
							  const SfLease *held, SfAnswer *answer);

/* Renew the lease that is held. */
extern void sf_registry_renew(SfConnection *connection, const SfClaim *claim,
							  const SfLease *held, SfAnswer *answer);

/*
 * Release the lease that is held under a token.  The times of all issued IDs are before
 * used_until.  Returns false, and sets answer->error, if the release failed.
 */
extern bool sf_registry_release(SfConnection *connection, const pg_uuid_t *token,
								TimestampTz used_until, const SfLease *held, SfAnswer *answer);

/*
 * Whether a connection string can be parsed.  If not, *error is libpq's message, which the
 * caller frees by free(), or NULL if memory is exhausted.
 */
extern bool sf_registry_conninfo_is_valid(const char *conninfo, char **error);

/*
 * For the files of this directory only.  sf_registry_wait waits for an event of the socket.  It
 * returns false if none occurs within a number of ms after an instant, or if the registry has sent
 * more than an answer can have; then sf_registry_no_answer keeps the reason.
 */
extern bool sf_registry_wait(SfConnection *connection, int event, SfStopwatch since,
							 int64 timeout);
extern void sf_registry_no_answer(const SfConnection *connection, SfAnswer *answer);

#endif							/* SF_REGISTRY_CLIENT_H */
