/*
 * client.c
 *	  Calls of the registry's functions, over libpq.
 *
 * Each attempt opens a connection of its own.  A server makes two or three attempts in the
 * length of a lease, and a registry of many servers should not have to hold an idle connection
 * for each.
 *
 * The wait for an answer has a timeout and uses the latch, so that the server can stop
 * meanwhile, as the wait for a connection does (connect.c).
 *
 * Times are sent and received as microseconds since 1970, which do not depend on DateStyle
 * and TimeZone of the registry.
 */
#include "postgres.h"

#include <ctype.h>

#include "libpq-fe.h"
#include "storage/latch.h"

#include "core/instant.h"
#include "registry/client.h"
#include "settings.h"
#include "state/registry_identity.h"
#include "clocks.h"

#define ANSWER_TIMEOUT	5000	/* ms */

#define UNDEFINED_FUNCTION	"42883"

#define COLUMNS \
	"machine_id, (extract(epoch FROM lease_from) * 1000000)::bigint, " \
	"(extract(epoch FROM lease_until) * 1000000)::bigint, lease_number, " \
	"(extract(epoch FROM skew) * 1000000)::bigint, refusal, " \
	"(extract(epoch FROM free_at) * 1000000)::bigint "

#define INSTANT(parameter) \
	"timestamptz '1970-01-01 00:00:00Z' + " parameter "::bigint * interval '1 microsecond'"

#define CLAIM \
	"SELECT " COLUMNS "FROM snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, " \
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)"

#define RENEW \
	"SELECT " COLUMNS "FROM snowflake_registry.renew($1::uuid, $2::integer, " \
	INSTANT("$3") ", " INSTANT("$4") ", " \
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)"

#define IDENTITY \
	"SELECT snowflake_registry.identity()"

#define RELEASE \
	"SELECT snowflake_registry.release($1::uuid, " INSTANT("$2") ", $3::bigint)"

/* A parameter of a query, as text. */
typedef char Parameter[48];

static const char *
put_number(Parameter text, int64 number)
{
	snprintf(text, sizeof(Parameter), INT64_FORMAT, number);
	return text;
}

static const char *
put_instant(Parameter text, TimestampTz instant)
{
	return put_number(text, instant - SF_UNIX_EPOCH);
}

static const char *
put_uuid(Parameter text, const pg_uuid_t *uuid)
{
	for (size_t i = 0; i < UUID_LEN; i++)
		snprintf(&text[2 * i], 3, "%02x", uuid->data[i]);
	return text;
}

/*
 * The message is made one line of ASCII.  libpq ends its messages with a newline.  The
 * message can be in any encoding, and a database with another one can show it, so
 * characters outside of ASCII are replaced.
 */
void
sf_registry_keep_error(SfAnswer *answer, SfAnswerStatus status, const char *message)
{
	size_t		length;

	answer->status = status;
	answer->free_at = DT_NOEND;
	strlcpy(answer->error, message, sizeof(answer->error));
	length = strlen(answer->error);
	while (length > 0 && answer->error[length - 1] == '\n')
		answer->error[--length] = '\0';
	for (char *c = answer->error; *c; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
		else if (iscntrl((unsigned char) *c))
			*c = ' ';
	}
}

/*
 * The result of the query that was sent; NULL if no result arrives in time.  The registry sends the
 * row before it commits.  If the commit fails, an error follows the row, and that error is the
 * result.
 */
static PGresult *
get_result(const SfConnection *connection)
{
	SfStopwatch asked = sf_start_stopwatch();
	PGresult   *result = NULL;
	PGresult   *next;

	for (;;)
	{
		while (PQisBusy(connection->libpq))
		{
			if (!sf_registry_wait(connection, WL_SOCKET_READABLE, asked, ANSWER_TIMEOUT) ||
				!PQconsumeInput(connection->libpq))
			{
				PQclear(result);
				return NULL;
			}
		}
		next = PQgetResult(connection->libpq);
		if (next == NULL)
			return result;
		PQclear(result);
		result = next;
	}
}

static bool
is_done(const PGresult *result)
{
	return result && PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
}

/*
 * Keep the reason for which a call failed.  An error that the registry raised is a refusal.  After
 * any other failure the registry counts as unreachable.
 */
static void
keep_failure(SfAnswer *answer, PGconn *connection, const PGresult *result)
{
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	char		message[sizeof(answer->error)];

	answer->no_function = sqlstate && strcmp(sqlstate, UNDEFINED_FUNCTION) == 0;
	if (primary && PQstatus(connection) == CONNECTION_OK)
	{
		snprintf(message, sizeof(message), detail ? "%s: %s" : "%s", primary, detail);
		sf_registry_keep_error(answer, SF_ANSWER_REFUSED, message);
	}
	else if (PQerrorMessage(connection)[0])
		sf_registry_keep_error(answer, SF_ANSWER_NONE, PQerrorMessage(connection));
	else
		sf_registry_keep_error(answer, SF_ANSWER_NONE, "the registry did not answer in time");
}

typedef void (*ReadRow) (const PGresult *result, SfAnswer *answer);

/* Run a query that returns one row, and read the row. */
static bool
run_query(const SfConnection *connection, const char *query, int count,
		  const char *const *parameters, ReadRow read_row, SfAnswer *answer)
{
	PGresult   *result = NULL;
	bool		done;

	if (PQsendQueryParams(connection->libpq, query, count, NULL, parameters, NULL, NULL, 0))
		result = get_result(connection);
	done = is_done(result);
	if (done)
		read_row(result, answer);
	else
		keep_failure(answer, connection->libpq, result);
	PQclear(result);
	return done;
}

static int64
get_number(const PGresult *result, int column)
{
	return (int64) strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

/* Read the row of a claim or a renewal: a lease, or a refusal. */
static void
read_lease(const PGresult *result, SfAnswer *answer)
{
	if (!PQgetisnull(result, 0, 5))
	{
		sf_registry_keep_error(answer, SF_ANSWER_REFUSED, PQgetvalue(result, 0, 5));
		if (!PQgetisnull(result, 0, 6))
			answer->free_at = get_number(result, 6) + SF_UNIX_EPOCH;
		return;
	}
	answer->status = SF_ANSWER_GRANTED;
	memset(&answer->lease, 0, sizeof(answer->lease));
	answer->lease.machine_id = (uint32) get_number(result, 0);
	answer->lease.from = get_number(result, 1) + SF_UNIX_EPOCH;
	answer->lease.until = get_number(result, 2) + SF_UNIX_EPOCH;
	answer->lease.number = get_number(result, 3);
	answer->skew = get_number(result, 4);
}

/* The row of a release has no values to read. */
static void
read_nothing(const PGresult *result, SfAnswer *answer)
{
}

static void
read_identity(const PGresult *result, SfAnswer *answer)
{
	answer->identity = get_number(result, 0);
}

/* A registry whose SQL is of version 1.0 does not have the function. */
bool
sf_registry_identity(const SfConnection *connection, SfAnswer *answer)
{
	answer->identity = SF_NO_IDENTITY;
	return run_query(connection, IDENTITY, 0, NULL, read_identity, answer) ||
		answer->no_function;
}

/*
 * The registry compares the time that it receives with its own clock, so the time is read
 * after the connection has been opened.
 */
void
sf_registry_claim(const SfConnection *connection, const SfClaim *claim, const SfLease *held,
				  SfAnswer *answer)
{
	Parameter	texts[6];
	const char *parameters[8];

	parameters[0] = put_uuid(texts[0], claim->token);
	parameters[1] = claim->layout;
	parameters[2] = put_number(texts[1], claim->machine_bits);
	parameters[3] = NULL;
	if (claim->wanted != SF_MACHINE_ID_UNSET)
		parameters[3] = put_number(texts[2], claim->wanted);
	parameters[4] = put_number(texts[3], claim->seconds);
	parameters[5] = put_instant(texts[4], GetCurrentTimestamp());
	parameters[6] = claim->holder;
	parameters[7] = put_number(texts[5], held->number);
	run_query(connection, CLAIM, lengthof(parameters), parameters, read_lease, answer);
}

void
sf_registry_renew(const SfConnection *connection, const SfClaim *claim, const SfLease *held,
				  SfAnswer *answer)
{
	Parameter	texts[7];
	const char *parameters[8];

	parameters[0] = put_uuid(texts[0], claim->token);
	parameters[1] = put_number(texts[1], held->machine_id);
	parameters[2] = put_instant(texts[2], held->from);
	parameters[3] = put_instant(texts[3], held->until);
	parameters[4] = put_number(texts[4], claim->seconds);
	parameters[5] = put_instant(texts[5], GetCurrentTimestamp());
	parameters[6] = claim->holder;
	parameters[7] = put_number(texts[6], held->number);
	run_query(connection, RENEW, lengthof(parameters), parameters, read_lease, answer);
}

bool
sf_registry_release(const SfConnection *connection, const pg_uuid_t *token, TimestampTz used_until,
					const SfLease *held, SfAnswer *answer)
{
	Parameter	texts[3];
	const char *parameters[3];

	parameters[0] = put_uuid(texts[0], token);
	parameters[1] = put_instant(texts[1], used_until);
	parameters[2] = put_number(texts[2], held->number);
	return run_query(connection, RELEASE, lengthof(parameters), parameters, read_nothing,
					 answer);
}

bool
sf_registry_conninfo_is_valid(const char *conninfo, char **error)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, error);

	PQconninfoFree(options);
	return options != NULL;
}
