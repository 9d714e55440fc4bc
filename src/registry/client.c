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

#include "libpq-fe.h"
#include "storage/latch.h"

#include "core/instant.h"
#include "registry/answer.h"
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

/* Whether libpq is in a COPY, which is no answer.  PQgetResult would return it again and again. */
static bool
is_copy(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH;
}

/*
 * The result of the query that was sent, which is empty if the registry sends none; NULL if it does
 * not answer in time.  The registry sends the
 * row before it commits.  If the commit fails, an error follows the row, and that error is the
 * result.
 */
static PGresult *
get_result(SfConnection *connection)
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
			return result ? result : PQmakeEmptyPGresult(connection->libpq, PGRES_EMPTY_QUERY);
		PQclear(result);
		result = next;
		if (is_copy(result))
			return result;
	}
}

/*
 * Keep the reason for which a call failed.  An error that the registry raised is a refusal.  After
 * any other failure the registry counts as unreachable.
 */
static void
keep_failure(SfAnswer *answer, const SfConnection *connection, const PGresult *result, int columns)
{
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	char		message[sizeof(answer->error)];

	answer->no_function = sqlstate && strcmp(sqlstate, UNDEFINED_FUNCTION) == 0;
	if (primary && PQstatus(connection->libpq) == CONNECTION_OK)
	{
		snprintf(message, sizeof(message), detail ? "%s: %s" : "%s", primary, detail);
		sf_registry_keep_error(answer, SF_ANSWER_REFUSED, message);
	}
	else if (PQerrorMessage(connection->libpq)[0])
		sf_registry_keep_error(answer, SF_ANSWER_NONE, PQerrorMessage(connection->libpq));
	else if (result)
		sf_registry_reject(answer,
						   "the registry sent an invalid answer: %d rows and %d columns instead of one row and %d columns",
						   PQntuples(result), PQnfields(result), columns);
	else
		sf_registry_no_answer(connection, answer);
}

/* The row that a query returns, of a number of columns, or NULL; then the reason is kept. */
static PGresult *
run_query(SfConnection *connection, const char *query, int count,
		  const char *const *parameters, int columns, SfAnswer *answer)
{
	PGresult   *result = NULL;

	if (PQsendQueryParams(connection->libpq, query, count, NULL, parameters, NULL, NULL, 0))
		result = get_result(connection);
	if (sf_answer_is_row(result, columns))
		return result;
	keep_failure(answer, connection, result, columns);
	PQclear(result);
	return NULL;
}

/* A registry whose SQL is of version 1.0 does not have the function. */
bool
sf_registry_identity(SfConnection *connection, SfAnswer *answer)
{
	PGresult   *row;
	bool		read;

	answer->no_function = false;
	row = run_query(connection, IDENTITY, 0, NULL, SF_IDENTITY_COLUMNS, answer);
	read = row && sf_answer_read_identity(row, answer);
	PQclear(row);
	if (!read)
		answer->identity = SF_NO_IDENTITY;
	return read || answer->no_function;
}

static void
ask_for_lease(SfConnection *connection, const char *query, int count,
			  const char *const *parameters, const SfClaim *claim, const SfLease *renewed,
			  SfAnswer *answer)
{
	PGresult   *row = run_query(connection, query, count, parameters, SF_LEASE_COLUMNS, answer);

	if (row)
		sf_answer_read_lease(row, claim, renewed, answer);
	PQclear(row);
}

/*
 * The registry compares the time that it receives with its own clock, so the time is read
 * after the connection has been opened.
 */
void
sf_registry_claim(SfConnection *connection, const SfClaim *claim, const SfLease *held,
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
	ask_for_lease(connection, CLAIM, lengthof(parameters), parameters, claim, NULL, answer);
}

void
sf_registry_renew(SfConnection *connection, const SfClaim *claim, const SfLease *held,
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
	ask_for_lease(connection, RENEW, lengthof(parameters), parameters, claim, held, answer);
}

bool
sf_registry_release(SfConnection *connection, const pg_uuid_t *token, TimestampTz used_until,
					const SfLease *held, SfAnswer *answer)
{
	Parameter	texts[3];
	const char *parameters[3];
	PGresult   *row;

	parameters[0] = put_uuid(texts[0], token);
	parameters[1] = put_instant(texts[1], used_until);
	parameters[2] = put_number(texts[2], held->number);
	row = run_query(connection, RELEASE, lengthof(parameters), parameters, SF_RELEASE_COLUMNS,
					answer);
	PQclear(row);
	return row != NULL;
}

bool
sf_registry_conninfo_is_valid(const char *conninfo, char **error)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, error);

	PQconninfoFree(options);
	return options != NULL;
}
