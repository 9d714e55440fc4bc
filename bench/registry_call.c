/*
 * registry_call.c
 *	  The calls of a server: the queries of src/registry/client.c, and their answers.
 *
 * A query is sent over a connection, and its result is read when it has arrived; registry_attempt.c
 * waits for it.  An answer that grants a lease is stored in the server.
 */
#include <stdio.h>
#include <stdlib.h>

#include "registry.h"

#define MACHINE_BITS	14
#define LAYOUT			"epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=14 sequence=8"

#define INSTANT(parameter) \
	"timestamptz '1970-01-01 00:00:00Z' + " parameter "::bigint * interval '1 microsecond'"

#define COLUMNS \
	"machine_id, (extract(epoch FROM lease_from) * 1000000)::bigint, " \
	"(extract(epoch FROM lease_until) * 1000000)::bigint, lease_number, " \
	"(extract(epoch FROM skew) * 1000000)::bigint, refusal, " \
	"(extract(epoch FROM free_at) * 1000000)::bigint "

/* The places of these columns. */
enum
{
	MACHINE_ID,
	LEASE_FROM,
	LEASE_UNTIL,
	LEASE_NUMBER,
	SKEW,
	REFUSAL,
	FREE_AT
};

static const char *const queries[ACTIONS] = {
	[CLAIM] = "SELECT " COLUMNS "FROM snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, "
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)",
	[RENEW] = "SELECT " COLUMNS "FROM snowflake_registry.renew($1::uuid, $2::integer, "
	INSTANT("$3") ", " INSTANT("$4") ", "
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)",
	[RELEASE] = "SELECT snowflake_registry.release($1::uuid, " INSTANT("$2") ", $3::bigint)",
};

const char *const action_names[ACTIONS] = {"claim", "renew", "release"};

/*
 * Queries
 */

typedef char Parameter[64];

static const char *
put_number(Parameter text, int64_t number)
{
	snprintf(text, sizeof(Parameter), "%lld", (long long) number);
	return text;
}

bool
send_identity_query(PGconn *connection)
{
	return PQsendQuery(connection, "SELECT snowflake_registry.identity()");
}

/* Claims and renewals have eight parameters, and the first and the last four of them in common. */
bool
send_call(PGconn *connection, const Server *server, Action action)
{
	Parameter	token,
				address,
				numbers[6];
	const char *parameters[8];
	int			count = 8;

	snprintf(token, sizeof(token), "%016llx%016llx",
			 (unsigned long long) server->token[0], (unsigned long long) server->token[1]);
	snprintf(address, sizeof(address), "server%d.example.com:5432", server->index);
	parameters[0] = token;
	parameters[4] = put_number(numbers[0], LEASE);
	parameters[5] = put_number(numbers[1], wall_clock());
	parameters[6] = address;
	parameters[7] = put_number(numbers[2], server->number);
	switch (action)
	{
		case RENEW:
			parameters[1] = put_number(numbers[3], server->machine_id);
			parameters[2] = put_number(numbers[4], server->from);
			parameters[3] = put_number(numbers[5], server->until);
			break;
		case RELEASE:
			count = 3;
			parameters[1] = parameters[5];
			parameters[2] = parameters[7];
			break;
		default:
			parameters[1] = LAYOUT;
			parameters[2] = put_number(numbers[3], MACHINE_BITS);
			parameters[3] = NULL;
	}
	return PQsendQueryParams(connection, queries[action], count, NULL, parameters, NULL, NULL, 0);
}

/*
 * Answers
 */

/* Only the first few errors and refusals are shown. */
static bool
is_to_show(void)
{
	static int	count;

	return count++ < 3;
}

static bool
has_failed(const PGresult *result)
{
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return false;
	if (is_to_show())
		fprintf(stderr, "registry: %s", PQresultErrorMessage(result));
	return true;
}

static Answer
read_lease(const PGresult *result, Server *server)
{
	if (!PQgetisnull(result, 0, REFUSAL))
	{
		if (is_to_show())
			fprintf(stderr, "registry: refused: %s\n", PQgetvalue(result, 0, REFUSAL));
		return REFUSED;
	}
	server->machine_id = atoi(PQgetvalue(result, 0, MACHINE_ID));
	server->from = atoll(PQgetvalue(result, 0, LEASE_FROM));
	server->until = atoll(PQgetvalue(result, 0, LEASE_UNTIL));
	server->number = atoll(PQgetvalue(result, 0, LEASE_NUMBER));
	return GRANTED;
}

Answer
read_identity(const PGresult *result)
{
	return has_failed(result) ? FAILED : GRANTED;
}

Answer
read_answer(const PGresult *result, Action action, Server *server)
{
	if (has_failed(result))
		return FAILED;
	return action == RELEASE ? GRANTED : read_lease(result, server);
}
