/*
 * connect.h
 *	  Connections to the registry.
 */
#ifndef SF_REGISTRY_CONNECT_H
#define SF_REGISTRY_CONNECT_H

#include "postgres.h"

#include "state/lease.h"

/* A connection to the registry. */
typedef struct SfConnection
{
	struct pg_conn *libpq;
	SfAnswer   *answer;			/* of all calls */
	int64		connect_timeout;	/* ms, for each address */
	bool		leaving;		/* opened after the process was told to exit */
	int64		since;			/* of the timeout */
	int64		timeout;		/* ms */
	int64		received;		/* bytes; see sf_connection_wait */
} SfConnection;

/*
 * Open a connection to snowflake.registry, whose calls set *answer.  Returns false if that fails.
 * It takes up to connect_timeout for each address of each host: 5 seconds, unless the connection
 * string has another value.
 *
 * No function here raises an error.  All waits end when the process is told to exit.  A connection
 * that is opened after that uses the address of the last connection, and has one second for all of
 * its waits.
 */
extern bool sf_connect(SfConnection *connection, SfAnswer *answer);
extern void sf_disconnect(SfConnection *connection);

/* Limit the waits that follow, together, to a number of ms. */
extern void sf_connection_limit(SfConnection *connection, int64 timeout);

/*
 * Wait for an event of the socket.  Returns false if none occurs within the limit, or if the
 * registry has sent more than an answer can have; sf_connection_no_answer says which.
 */
extern bool sf_connection_wait(SfConnection *connection, int event);
extern const char *sf_connection_no_answer(const SfConnection *connection);

#endif							/* SF_REGISTRY_CONNECT_H */
