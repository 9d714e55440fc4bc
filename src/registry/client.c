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
 *
 * The address of snowflake.registry can lead to anything: to another database, to a function of the
 * same name, to a program that is no server.  No answer may do more than leave an error in the log.
 * So each value is read by read_number, which accepts a whole number within bounds and nothing
 * else, and all other code relies on these bounds: a machine ID fits the layout, a lease has begun
 * and not ended, and the arithmetic with its times does not overflow.
 *
 * A registry that lies within these bounds cannot be recognized here; see docs/security.md.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "libpq-fe.h"
#include "storage/latch.h"

#include "core/instant.h"
#include "core/layout.h"
#include "registry/client.h"
#include "settings.h"

#define ANSWER_TIMEOUT	5000	/* ms */

/* The columns of the row of a claim, a renewal or a release. */
#define MACHINE_ID		0
#define LEASE_FROM		1
#define LEASE_UNTIL		2
#define LEASE_NUMBER	3
#define SKEW			4
#define REFUSAL			5
#define FREE_AT			6
#define LEASE_COLUMNS	7

/*
 * Microseconds since 1970.  The earliest is the earliest time of the type timestamptz.  The latest
 * is within that type.
 */
#define EARLIEST		(MIN_TIMESTAMP - SF_UNIX_EPOCH)
#define LATEST			PG_INT64_MAX

/*
 * The limits of a registry are 365 days for a lease, and one day for the difference of clocks; a
 * lease can end later than the limits allow if the clocks were set back.
 */
#define LONGEST_LEASE	(INT64CONST(2) * 365 * USECS_PER_DAY)
#define GREATEST_SKEW	USECS_PER_DAY

#define INSTANT(parameter) \
	"timestamptz '1970-01-01 00:00:00Z' OPERATOR(pg_catalog.+) (" parameter \
	"::bigint OPERATOR(pg_catalog.*) interval '1 microsecond')"

/* The procedure commits before it returns the columns, which are its output arguments. */
#define COMMIT(answer) \
	"CALL snowflake_registry.commit(" answer ", NULL, NULL, NULL, NULL, NULL, NULL, NULL)"

/* Both end with the same parameters, see sf_registry_ask. */
#define LEASE_PARAMETERS \
	"$5::integer OPERATOR(pg_catalog.*) interval '1 second', " INSTANT("$6") ", $7, $8::bigint)"

#define CLAIM \
	COMMIT("snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, " LEASE_PARAMETERS)

#define RENEW \
	COMMIT("snowflake_registry.renew($1::uuid, $2::integer, " INSTANT("$3") ", " INSTANT("$4") \
		   ", " LEASE_PARAMETERS)

#define IDENTITY \
	"SELECT snowflake_registry.identity()"

/* The function returns void, which is an empty text. */
#define RELEASE \
	COMMIT("ROW(NULL, NULL, NULL, NULL, NULL, snowflake_registry.release($1::uuid, " \
		   INSTANT("$2") ", $3::bigint)::text, NULL)")

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
 * not answer in time.  If an error follows a row, the error is the result.
 */
static PGresult *
get_result(SfConnection *connection)
{
	PGresult   *result = NULL;
	PGresult   *next;

	sf_connection_limit(connection, ANSWER_TIMEOUT);
	for (;;)
	{
		while (PQisBusy(connection->libpq))
		{
			if (!sf_connection_wait(connection, WL_SOCKET_READABLE) ||
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

static bool
is_row(const PGresult *result, int columns)
{
	return PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		PQnfields(result) == columns;
}

/*
 * Keep the reason for which a call failed.  An error that the registry raised is a refusal.  After
 * any other failure the registry counts as unreachable.
 */
static void
keep_failure(const SfConnection *connection, const PGresult *result, int columns)
{
	SfAnswer   *answer = connection->answer;
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	if (primary && PQstatus(connection->libpq) == CONNECTION_OK)
		sf_answer_fail(answer, SF_LEASE_REFUSED, detail ? "%s: %s" : "%s", primary, detail);
	else if (PQerrorMessage(connection->libpq)[0])
		sf_answer_fail(answer, SF_LEASE_UNREACHABLE, "%s", PQerrorMessage(connection->libpq));
	else if (result)
		sf_answer_fail(answer, SF_LEASE_UNREACHABLE,
					   "the registry sent an invalid answer: %d rows and %d columns instead of one row and %d columns",
					   PQntuples(result), PQnfields(result), columns);
	else
		sf_answer_fail(answer, SF_LEASE_UNREACHABLE, "%s",
					   sf_connection_no_answer(connection));
}

/*
 * The row that a query returns, of a number of columns, or NULL; then the reason is kept.
 *
 * A query with parameters is sent in several messages, and its transaction ends with the last one.
 * If the connection is cut before that, the session keeps its locks until TCP gives up, possibly
 * for hours.  So the procedure commits a call, and a query without parameters is one message.
 */
static PGresult *
run_query(SfConnection *connection, const char *query, int count,
		  const char *const *parameters, int columns)
{
	PGresult   *result = NULL;

	if (count > 0 ?
		PQsendQueryParams(connection->libpq, query, count, NULL, parameters, NULL, NULL, 0) :
		PQsendQuery(connection->libpq, query))
		result = get_result(connection);
	if (is_row(result, columns))
		return result;
	keep_failure(connection, result, columns);
	PQclear(result);
	return NULL;
}

static bool
read_number(const PGresult *row, int column, int64 least, int64 greatest, int64 *number,
			SfAnswer *answer)
{
	const char *text = PQgetisnull(row, 0, column) ? "null" : PQgetvalue(row, 0, column);
	char	   *end;

	errno = 0;
	*number = (int64) strtoll(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && *number >= least && *number <= greatest)
		return true;
	sf_answer_fail(answer, SF_LEASE_UNREACHABLE,
				   "the registry sent an invalid answer: column %d is \"%.40s\", and not a number from %lld to %lld",
				   column + 1, text, (long long) least, (long long) greatest);
	return false;
}

static void
read_refusal(const PGresult *row, SfAnswer *answer)
{
	TimestampTz free_at = DT_NOEND;
	int64		number;

	if (!PQgetisnull(row, 0, FREE_AT))
	{
		if (!read_number(row, FREE_AT, EARLIEST, LATEST, &number, answer))
			return;
		free_at = number + SF_UNIX_EPOCH;
	}
	if (!PQgetisnull(row, 0, SKEW))
		answer->skew_known = read_number(row, SKEW, -LATEST, LATEST, &answer->skew, answer);
	sf_answer_fail(answer, SF_LEASE_REFUSED, "%s", PQgetvalue(row, 0, REFUSAL));
	answer->free_at = free_at;
}

/*
 * Read the row of a claim, or of a renewal.  A renewal continues the lease.  A claim is for the
 * machine ID that was asked for, if any, and its lease has begun: the registry refuses a claim of
 * one that has not.  A lease is not empty, and has not ended.
 */
static void
read_lease(const PGresult *row, const SfClaim *claim, bool renewal, SfAnswer *answer)
{
	int64		now = GetCurrentTimestamp() - SF_UNIX_EPOCH;
	int64		held_from = claim->held.from - SF_UNIX_EPOCH;
	int64		wanted = renewal ? (int64) claim->held.machine_id : claim->wanted;
	bool		any = wanted == SF_MACHINE_ID_UNSET;
	int64		machine_id;
	int64		from;
	int64		until;
	int64		number;

	if (!PQgetisnull(row, 0, REFUSAL))
		read_refusal(row, answer);
	else if (read_number(row, MACHINE_ID, any ? 0 : wanted,
						 any ? (int64) sf_field_max(claim->machine_bits) : wanted,
						 &machine_id, answer) &&
			 read_number(row, LEASE_FROM, renewal ? held_from : EARLIEST,
						 renewal ? held_from : now, &from, answer) &&
			 read_number(row, LEASE_UNTIL, Max(from, now) + 1, now + LONGEST_LEASE,
						 &until, answer) &&
			 read_number(row, LEASE_NUMBER, 1, PG_INT64_MAX, &number, answer) &&
			 read_number(row, SKEW, -GREATEST_SKEW, GREATEST_SKEW, &answer->skew, answer))
	{
		answer->state = SF_LEASE_HELD;
		answer->skew_known = true;
		answer->error[0] = '\0';
		answer->lease.machine_id = (uint32) machine_id;
		answer->lease.from = from + SF_UNIX_EPOCH;
		answer->lease.until = until + SF_UNIX_EPOCH;
		answer->lease.number = number;
	}
}

bool
sf_registry_identity(SfConnection *connection, int64 *identity)
{
	PGresult   *row = run_query(connection, IDENTITY, 0, NULL, 1);
	bool		read = row && read_number(row, 0, 1, PG_INT64_MAX, identity, connection->answer);

	PQclear(row);
	return read;
}

/*
 * The registry compares the time that it receives with its own clock, so the time is read
 * after the connection has been opened.
 */
void
sf_registry_ask(SfConnection *connection, const SfClaim *claim, bool renewal)
{
	const SfLease *held = &claim->held;
	bool		any = claim->wanted == SF_MACHINE_ID_UNSET;
	Parameter	texts[7];
	const char *parameters[] = {
		put_uuid(texts[0], claim->token),
		renewal ? put_number(texts[1], held->machine_id) : claim->layout,
		renewal ? put_instant(texts[2], held->from) : put_number(texts[2], claim->machine_bits),
		renewal ? put_instant(texts[3], held->until) :
		any ? NULL : put_number(texts[3], claim->wanted),
		put_number(texts[4], claim->seconds), put_instant(texts[5], GetCurrentTimestamp()),
		claim->holder, put_number(texts[6], held->number),
	};
	PGresult   *row = run_query(connection, renewal ? RENEW : CLAIM, lengthof(parameters),
								parameters, LEASE_COLUMNS);

	if (row)
		read_lease(row, claim, renewal, connection->answer);
	PQclear(row);
}

bool
sf_registry_release(SfConnection *connection, const pg_uuid_t *token, TimestampTz used_until,
					int64 number)
{
	Parameter	texts[3];
	const char *parameters[] = {
		put_uuid(texts[0], token), put_instant(texts[1], used_until), put_number(texts[2], number),
	};
	PGresult   *row = run_query(connection, RELEASE, lengthof(parameters), parameters,
								LEASE_COLUMNS);
	bool		released = row != NULL;

	PQclear(row);
	return released;
}
