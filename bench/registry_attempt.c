/*
 * registry_attempt.c
 *	  The stages of an attempt.
 *
 * As the registry worker does (src/registry/worker.c), a server opens a connection for each
 * attempt, asks for the identity of the registry, calls, and closes the connection.  If a renewal
 * is not granted, the server claims a machine ID over the same connection.  With keep_open, the
 * connections are opened before the first attempt and stay open, and the first stage of an attempt
 * is the question for the identity.
 *
 * An attempt does not wait for the registry.  The poll set has the event for which its connection
 * waits, and registry_loop.c advances the attempt when the event occurs.
 */
#include <sys/epoll.h>

#include "registry.h"

static void
watch(const Fleet *fleet, Attempt *attempt, uint32_t events)
{
	struct epoll_event event = {.events = events,.data.ptr = attempt};
	int			socket = PQsocket(attempt->connection);

	if (epoll_ctl(fleet->poll_set, EPOLL_CTL_MOD, socket, &event) != 0 &&
		epoll_ctl(fleet->poll_set, EPOLL_CTL_ADD, socket, &event) != 0)
		fail("epoll_ctl failed");
}

void
open_connections(Fleet *fleet)
{
	fleet->keep_open = true;
	for (int i = 0; i < fleet->attempt_count; i++)
	{
		Attempt    *attempt = &fleet->attempts[i];

		attempt->connection = PQconnectdb(fleet->conninfo);
		if (PQstatus(attempt->connection) != CONNECTION_OK)
			fail(PQerrorMessage(attempt->connection));
		PQsetnonblocking(attempt->connection, 1);
		watch(fleet, attempt, EPOLLIN);
	}
}

/* Send the query of a stage. */
static void
enter_stage(Fleet *fleet, Attempt *attempt, Stage stage)
{
	bool		sent;

	attempt->stage = stage;
	attempt->began = monotonic();
	if (stage == ASKING)
		sent = send_identity_query(attempt->connection);
	else
		sent = send_call(attempt->connection, attempt->server, attempt->action);
	if (!sent)
		fleet->totals.errors++;
	watch(fleet, attempt, EPOLLIN);
}

void
end_attempt(Fleet *fleet, Attempt *attempt, bool granted)
{
	Server	   *server = attempt->server;

	attempt->server = NULL;
	if (!fleet->keep_open)
	{
		PQfinish(attempt->connection);
		attempt->connection = NULL;
	}
	fleet->attempt_ended(fleet, server, granted);
}

static void
begin_connecting(Fleet *fleet, Attempt *attempt)
{
	attempt->connection = PQconnectStart(fleet->conninfo);
	attempt->stage = CONNECTING;
	attempt->began = monotonic();
	if (attempt->connection == NULL || PQstatus(attempt->connection) == CONNECTION_BAD)
	{
		fleet->totals.not_connected++;
		end_attempt(fleet, attempt, false);
		return;
	}
	watch(fleet, attempt, EPOLLOUT);
}

void
begin_attempt(Fleet *fleet, Attempt *attempt, Server *server)
{
	attempt->server = server;
	attempt->action = server->action;
	fleet->totals.attempts++;
	if (fleet->keep_open)
		enter_stage(fleet, attempt, ASKING);
	else
		begin_connecting(fleet, attempt);
}

static void
advance_connection(Fleet *fleet, Attempt *attempt)
{
	switch (PQconnectPoll(attempt->connection))
	{
		case PGRES_POLLING_OK:
			enter_stage(fleet, attempt, ASKING);
			break;
		case PGRES_POLLING_READING:
			watch(fleet, attempt, EPOLLIN);
			break;
		case PGRES_POLLING_WRITING:
			watch(fleet, attempt, EPOLLOUT);
			break;
		default:
			fleet->totals.not_connected++;
			end_attempt(fleet, attempt, false);
	}
}

/* The result of a query, the last one if an error follows the row; NULL if it has not arrived. */
static PGresult *
get_result(PGconn *connection)
{
	PGresult   *result = NULL;
	PGresult   *next;

	if (PQisBusy(connection))
		return NULL;
	while ((next = PQgetResult(connection)) != NULL)
	{
		PQclear(result);
		result = next;
	}
	return result;
}

static bool
is_granted(Totals *totals, const Attempt *attempt, const PGresult *result)
{
	Answer		answer;

	if (attempt->stage == ASKING)
		answer = read_identity(result);
	else
		answer = read_answer(result, attempt->action, attempt->server);
	totals->refused += answer == REFUSED;
	totals->errors += answer == FAILED;
	return answer == GRANTED;
}

static void
use_result(Fleet *fleet, Attempt *attempt, const PGresult *result)
{
	bool		granted = is_granted(&fleet->totals, attempt, result);

	if (attempt->stage == ASKING && granted)
		enter_stage(fleet, attempt, CALLING);
	else if (attempt->stage == CALLING && attempt->action == RENEW && !granted)
	{
		attempt->action = CLAIM;
		enter_stage(fleet, attempt, CALLING);
	}
	else
	{
		fleet->totals.calls[attempt->action] += granted;
		end_attempt(fleet, attempt, granted);
	}
}

static void
advance_query(Fleet *fleet, Attempt *attempt)
{
	PGresult   *result;

	if (!PQconsumeInput(attempt->connection))
	{
		fleet->totals.errors++;
		end_attempt(fleet, attempt, false);
		return;
	}
	result = get_result(attempt->connection);
	if (result == NULL)
		return;
	use_result(fleet, attempt, result);
	PQclear(result);
}

/* The connection has the event that it waited for. */
void
advance_attempt(Fleet *fleet, Attempt *attempt)
{
	if (attempt->stage == CONNECTING)
		advance_connection(fleet, attempt);
	else
		advance_query(fleet, attempt);
}
