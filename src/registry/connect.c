/*
 * connect.c
 *	  Connections to the registry.
 *
 * Libpq's blocking call applies connect_timeout to each address of each host, but cannot be
 * interrupted: a registry that does not answer would delay a stop of the server.  Libpq's other
 * calls can be interrupted, but have no timeout, and a host that accepts a connection and does not
 * answer keeps them from trying the next one.  So the hosts of the connection string are taken
 * apart here, and each is one connection of libpq with a timeout.  Libpq tries the addresses of a
 * host; an address that does not answer is given up by the system, after tcp_user_timeout.
 *
 * Looking up addresses cannot be interrupted.  A process that is to exit does not look up
 * addresses: it connects to the address to which it was connected last.
 */
#include "postgres.h"

#include <ctype.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "libpq-fe.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "clocks.h"
#include "registry/connect.h"
#include "settings.h"
#include "wait_event.h"

#define CONNECT_TIMEOUT	5		/* s, unless the connection string has another
								 * one */

/* The time that a process that is to exit has for its calls, including the connection. */
#define LEAVING_TIMEOUT	1000	/* ms */

/*
 * The most that is read from a connection.  The answers have less than 1 kB, errors and the start
 * of the connection some kB, and the certificates of TLS can have more.
 */
#define LONGEST_ANSWER	65536	/* bytes */

/* The address to connect to.  Empty values are taken from the connection string. */
typedef struct Address
{
	char		host[NI_MAXHOST];
	char		hostaddr[NI_MAXHOST];
	char		port[NI_MAXSERV];
} Address;

/* The address to which the process was connected last. */
static Address last_address;

/* Notices of the registry are not shown here; the registry can log them. */
static void
ignore_notice(void *argument, const char *message)
{
}

void
sf_connection_limit(SfConnection *connection, int64 timeout)
{
	if (connection->leaving)
		return;
	connection->since = sf_time_since_boot();
	connection->timeout = timeout;
}

/*
 * Count the bytes that libpq is about to read.  Returns false if they are too many.  Libpq itself
 * has no limit: it keeps all messages of a query in memory, and accepts a message of a gigabyte.
 * Bytes that arrive between this call and libpq's are not counted, and bytes that libpq leaves in
 * the socket are counted again.
 */
static bool
count_received(SfConnection *connection)
{
	int			bytes = 0;

	if (ioctl(PQsocket(connection->libpq), FIONREAD, &bytes) == 0)
		connection->received += bytes;
	return connection->received <= LONGEST_ANSWER;
}

const char *
sf_connection_no_answer(const SfConnection *connection)
{
	if (connection->received > LONGEST_ANSWER)
		return gettext_noop("the registry sent more than 64 kB");
	return gettext_noop("the registry did not answer in time");
}

/* Libpq may be called only after an event of the socket, and not after one of the latch. */
bool
sf_connection_wait(SfConnection *connection, int event)
{
	int			occurred = 0;

	while (!(occurred & event))
	{
		int64		left = connection->timeout - sf_time_since(connection->since) / 1000;

		if (left <= 0 || (ShutdownRequestPending && !connection->leaving))
			return false;
		occurred = WaitLatchOrSocket(MyLatch,
									 WL_LATCH_SET | event | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
									 PQsocket(connection->libpq), (long) Min(left, INT_MAX),
									 sf_wait_event(SF_WAIT_REGISTRY));
		if (occurred & WL_LATCH_SET)
			ResetLatch(MyLatch);
	}
	return event != WL_SOCKET_READABLE || count_received(connection);
}

/*
 * Wait for the end of an attempt to connect; returns whether the connection was opened.  The limit
 * begins again with each address of the host.
 */
static bool
complete_connection(SfConnection *connection)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;
	char		address[NI_MAXHOST] = "";

	if (PQstatus(connection->libpq) == CONNECTION_BAD)
		return false;
	while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		bool		reading = status == PGRES_POLLING_READING;

		if (strcmp(address, PQhostaddr(connection->libpq)) != 0)
			sf_connection_limit(connection, connection->connect_timeout);
		strlcpy(address, PQhostaddr(connection->libpq), sizeof(address));
		if (!sf_connection_wait(connection, reading ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE))
			return false;
		status = PQconnectPoll(connection->libpq);
	}
	return status == PGRES_POLLING_OK;
}

/*
 * Append the reason why a connection failed to the reasons of the previous hosts.  If the attempt
 * has not ended, libpq's message contains the address but no reason.
 */
static void
add_reason(const SfConnection *connection)
{
	SfAnswer   *answer = connection->answer;
	bool		ended = PQstatus(connection->libpq) == CONNECTION_BAD;

	sf_answer_fail(answer, SF_LEASE_UNREACHABLE, "%s%s%s%s", answer->error,
				   answer->error[0] ? "; " : "", PQerrorMessage(connection->libpq),
				   ended ? "" : sf_connection_no_answer(connection));
}

static void
remember_address(PGconn *libpq)
{
	strlcpy(last_address.host, PQhost(libpq), sizeof(last_address.host));
	strlcpy(last_address.hostaddr, PQhostaddr(libpq), sizeof(last_address.hostaddr));
	strlcpy(last_address.port, PQport(libpq), sizeof(last_address.port));
}

/*
 * Keywords that follow the connection string (dbname) have precedence over it.  tcp_user_timeout is
 * shorter than the limit, so that libpq has time to try the next address.
 */
static bool
connect_host(SfConnection *connection, const Address *address)
{
	char		patience[16];
	const char *const keywords[] = {"fallback_application_name", "tcp_user_timeout", "dbname",
	"host", "hostaddr", "port", NULL};
	const char *const values[] = {"snowflake registry worker", patience, sf_settings_registry,
	address->host, address->hostaddr, address->port, NULL};

	snprintf(patience, sizeof(patience), "%d",
			 (int) Min(connection->connect_timeout / 8 * 7, INT_MAX));
	connection->received = 0;
	sf_connection_limit(connection, connection->connect_timeout);
	connection->libpq = PQconnectStartParams(keywords, values, true);
	PQsetNoticeProcessor(connection->libpq, ignore_notice, NULL);
	if (complete_connection(connection))
	{
		remember_address(connection->libpq);
		return true;
	}
	add_reason(connection);
	sf_disconnect(connection);
	return false;
}

/*
 * The options of the connection string, of a service that it can name, and of the environment.  One
 * option is invalid, so that libpq only reads the others, and does not connect.
 */
static PQconninfoOption *
get_options(void)
{
	const char *const keywords[] = {"dbname", "sslmode", NULL};
	const char *const values[] = {sf_settings_registry, "none", NULL};
	PGconn	   *libpq = PQconnectStartParams(keywords, values, true);
	PQconninfoOption *options = PQconninfo(libpq);

	PQfinish(libpq);
	return options;
}

/* The value of an option; empty if it is not set, or if the options could not be read. */
static const char *
option_value(PQconninfoOption *options, const char *keyword)
{
	for (; options && options->keyword; options++)
	{
		if (strcmp(options->keyword, keyword) == 0 && options->val)
			return options->val;
	}
	return "";
}

/* Copy an item of a list, given by its number from 0 on; or the last one if the list is shorter. */
static void
get_item(const char *list, int number, char *item, size_t size)
{
	for (; number > 0 && strchr(list, ','); number--)
		list = strchr(list, ',') + 1;
	strlcpy(item, list, Min(strcspn(list, ",") + 1, size));
}

/* If a port is empty, it is the default one. */
static bool
connect_hosts(SfConnection *connection, PQconninfoOption *options)
{
	const char *hosts = option_value(options, "host");
	const char *hostaddrs = option_value(options, "hostaddr");
	Address		address;
	int			count = 1;

	for (const char *c = hostaddrs[0] ? hostaddrs : hosts; *c; c++)
		count += *c == ',';
	for (int i = 0; i < count && !ShutdownRequestPending; i++)
	{
		get_item(hosts, i, address.host, sizeof(address.host));
		get_item(hostaddrs, i, address.hostaddr, sizeof(address.hostaddr));
		get_item(option_value(options, "port"), i, address.port, sizeof(address.port));
		if (!address.port[0])
			strlcpy(address.port, DEF_PGPORT_STR, sizeof(address.port));
		if (connect_host(connection, &address))
			return true;
	}
	return false;
}

/*
 * Libpq applies connect_timeout only in its blocking call.  There 0 and negative values mean no
 * limit.
 */
static bool
set_timeout(SfConnection *connection, const char *text)
{
	int			seconds = CONNECT_TIMEOUT;

	if (text[0] && !parse_int(text, &seconds, 0, NULL))
	{
		sf_answer_fail(connection->answer, SF_LEASE_UNREACHABLE,
					   "invalid integer value \"%s\" for connection option \"connect_timeout\"",
					   text);
		return false;
	}
	connection->connect_timeout = seconds > 0 ? seconds * INT64CONST(1000) : PG_INT64_MAX / 2;
	return true;
}

bool
sf_connect(SfConnection *connection, SfAnswer *answer)
{
	PQconninfoOption *options;
	bool		connected;

	memset(connection, 0, sizeof(*connection));
	connection->answer = answer;
	sf_connection_limit(connection, LEAVING_TIMEOUT);
	connection->leaving = ShutdownRequestPending;
	answer->error[0] = '\0';
	answer->state = SF_LEASE_UNREACHABLE;
	if (connection->leaving)
		return connect_host(connection, &last_address);
	options = get_options();
	connected = set_timeout(connection, option_value(options, "connect_timeout")) &&
		connect_hosts(connection, options);
	PQconninfoFree(options);
	return connected;
}

void
sf_disconnect(SfConnection *connection)
{
	PQfinish(connection->libpq);
	connection->libpq = NULL;
}
