/*
 * registry.c
 *	  Simulated servers that call a registry, for bench/registry.
 *
 *	registry wave CALL FILE SERVERS CONNECTIONS RETRIES SEED CONNINFO LIMIT
 *
 * All servers make one call at once: "claim", "renew" or "release".  As the registry worker does
 * (src/registry/worker.c), a server opens a connection for each attempt, asks for the identity of
 * the registry, calls, and closes the connection.  If that fails, it tries again.  SERVERS is
 * their number, or "7/10" for the first 7 of 10.  CONNECTIONS is the most that are open at once, 0
 * for no limit; if it is negative, so many stay open and are used by all servers.  RETRIES is
 *
 *	jitter		as servers retry (src/core/attempt.h)
 *	back-off	the same without random numbers
 *	fixed		once a second, without random numbers
 *
 * The wave ends when all calls were answered, or after LIMIT seconds.
 *
 *	registry day FILE SERVERS HOURS SEED CONNINFO CLOCK
 *
 * The calls of a number of hours, one after the other, as fast as possible, over a connection that
 * stays open: renewals; each server is stopped and started again twice a day, and crashes every
 * fourth day.  The registry's clock (t/lib/clock.c; CLOCK is its file) is set forward to the
 * time of each call.
 *
 * FILE has the leases of the servers, for the next run.  Results are lines "NAME<TAB>VALUE", and
 * "at<TAB>SECONDS<TAB>COUNT": when that many calls had been answered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "attempt.h"

#define LEASE			3600	/* s */
#define MACHINE_BITS	14
#define LAYOUT			"epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=14 sequence=8"
#define TIMEOUT			5.0		/* s, to connect and for each answer, as in
								 * src/registry */
#define DAY				86400.0

typedef enum Action
{
	CLAIM,
	RENEW,
	RELEASE,
	ACTIONS
} Action;

static const char *const action_names[] = {"claim", "renew", "release"};

/* A simulated server, and the lease that it holds; number is 0 if it holds none. */
typedef struct Server
{
	uint64_t	token[2];
	int			machine_id;
	int64_t		from;			/* us since 1970, as the next two */
	int64_t		until;
	int64_t		number;
	double		due;			/* s; of the next attempt */
	int64_t		delay;			/* ms; see sf_retry_delay */
	bool		answered;		/* in this wave */
	Action		action;
} Server;

typedef enum Stage
{
	CONNECTING,
	ASKING,						/* for the identity */
	CALLING
} Stage;

/* An attempt: a connection that is open, or, in a day, one that stays open. */
typedef struct Attempt
{
	PGconn	   *connection;
	Server	   *server;			/* NULL: unused */
	Stage		stage;
	Action		action;
	double		began;			/* of the stage */
	double		call_began;
	bool		granted;
	char		refusal[200];
} Attempt;

typedef struct Totals
{
	long		attempts;
	long		not_connected;
	long		timeouts;
	long		refused;
	long		errors;
	long		calls[ACTIONS];
} Totals;

static Server *servers;
static int	server_count;
static int	stored_count;		/* servers in the file, at least as many */
static Attempt *attempts;
static int	attempt_count;
static int	poll_set;
static const char *conninfo;
static const char *retries = "jitter";
static Totals totals;
static uint64_t random_state;
static double start;
static bool keep_open;

static void
fail(const char *what)
{
	fprintf(stderr, "registry: %s\n", what);
	exit(2);
}

static void *
allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

/* xorshift64*, as in test/unit/tap.h */
static uint64_t
random_number(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717);
}

static uint32_t
draw(void)
{
	if (strcmp(retries, "back-off") == 0 || strcmp(retries, "fixed") == 0)
		return 0;
	return (uint32_t) (random_number() >> 32);
}

/* Time until an event that occurs at random, every so many seconds. */
static double
random_time(double mean)
{
	return -mean * log(((double) (random_number() >> 11) + 1) / 9007199254740993.0);
}

static double
monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec + (double) time.tv_nsec / 1e9 - start;
}

/* The heap of servers, by the time of their next attempts. */

static Server **heap;
static int	heap_size;

static void
push(Server *server)
{
	int			i = heap_size++;

	for (; i > 0 && heap[(i - 1) / 2]->due > server->due; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = server;
}

static Server *
pop(void)
{
	Server	   *first = heap[0];
	Server	   *last = heap[--heap_size];
	int			i = 0;

	for (int child = 1; child < heap_size; child = 2 * i + 1)
	{
		if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due)
			child++;
		if (heap[child]->due >= last->due)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* The clock of the servers and of the registry: it can be ahead, by the number of ns in a file. */

static volatile int64_t *offset;

static int64_t
wall_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000 + (offset ? *offset / 1000 : 0);
}

static void
map_clock(const char *path)
{
	int			file = open(path, O_RDWR);

	if (file < 0)
		fail("cannot open the file of the clock");
	offset = mmap(NULL, sizeof(*offset), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (offset == MAP_FAILED)
		fail("cannot map the file of the clock");
}

/* Calls: the queries of src/registry/client.c */

#define INSTANT(parameter) \
	"timestamptz '1970-01-01 00:00:00Z' + " parameter "::bigint * interval '1 microsecond'"

#define COLUMNS \
	"machine_id, (extract(epoch FROM lease_from) * 1000000)::bigint, " \
	"(extract(epoch FROM lease_until) * 1000000)::bigint, lease_number, " \
	"(extract(epoch FROM skew) * 1000000)::bigint, refusal, " \
	"(extract(epoch FROM free_at) * 1000000)::bigint "

static const char *const queries[ACTIONS] = {
	[CLAIM] = "SELECT " COLUMNS "FROM snowflake_registry.claim($1::uuid, $2, $3::integer, $4::integer, "
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)",
	[RENEW] = "SELECT " COLUMNS "FROM snowflake_registry.renew($1::uuid, $2::integer, "
	INSTANT("$3") ", " INSTANT("$4") ", "
	"$5::integer * interval '1 second', " INSTANT("$6") ", $7, $8::bigint)",
	[RELEASE] = "SELECT snowflake_registry.release($1::uuid, " INSTANT("$2") ", $3::bigint)",
};

typedef char Parameter[64];

static const char *
put_number(Parameter text, int64_t number)
{
	snprintf(text, sizeof(Parameter), "%lld", (long long) number);
	return text;
}

static bool
send_call(Attempt *attempt)
{
	const Server *server = attempt->server;
	Parameter	token,
				texts[7];
	const char *parameters[8];
	int			count = 8;

	snprintf(token, sizeof(token), "%016llx%016llx",
			 (unsigned long long) server->token[0], (unsigned long long) server->token[1]);
	parameters[0] = token;
	parameters[4] = put_number(texts[0], LEASE);
	parameters[5] = put_number(texts[1], wall_clock());
	snprintf(texts[2], sizeof(Parameter), "server%d.example.com:5432", (int) (server - servers));
	parameters[6] = texts[2];
	parameters[7] = put_number(texts[3], server->number);
	switch (attempt->action)
	{
		case RENEW:
			parameters[1] = put_number(texts[4], server->machine_id);
			parameters[2] = put_number(texts[5], server->from);
			parameters[3] = put_number(texts[6], server->until);
			break;
		case RELEASE:
			count = 3;
			parameters[1] = put_number(texts[4], wall_clock());
			parameters[2] = parameters[7];
			break;
		default:
			parameters[1] = LAYOUT;
			parameters[2] = put_number(texts[4], MACHINE_BITS);
			parameters[3] = NULL;
	}
	return PQsendQueryParams(attempt->connection, queries[attempt->action], count, NULL,
							 parameters, NULL, NULL, 0);
}

/* Read the answer of a call; errors and refusals are counted, and the first ones are shown. */
static void
read_answer(Attempt *attempt, const PGresult *result)
{
	Server	   *server = attempt->server;
	static int	shown;

	attempt->granted = false;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		totals.errors++;
		if (shown++ < 3)
			fprintf(stderr, "registry: %s", PQresultErrorMessage(result));
		return;
	}
	if (attempt->stage == ASKING || attempt->action == RELEASE)
	{
		attempt->granted = true;
		return;
	}
	if (!PQgetisnull(result, 0, 5))
	{
		totals.refused++;
		if (shown++ < 3)
			fprintf(stderr, "registry: refused: %s\n", PQgetvalue(result, 0, 5));
		return;
	}
	attempt->granted = true;
	server->machine_id = atoi(PQgetvalue(result, 0, 0));
	server->from = atoll(PQgetvalue(result, 0, 1));
	server->until = atoll(PQgetvalue(result, 0, 2));
	server->number = atoll(PQgetvalue(result, 0, 3));
}

/* Attempts */

static void
watch(Attempt *attempt, uint32_t events)
{
	struct epoll_event event = {.events = events,.data.ptr = attempt};
	int			socket = PQsocket(attempt->connection);

	if (epoll_ctl(poll_set, EPOLL_CTL_MOD, socket, &event) != 0 &&
		epoll_ctl(poll_set, EPOLL_CTL_ADD, socket, &event) != 0)
		fail("epoll_ctl failed");
}

static void
enter_stage(Attempt *attempt, Stage stage)
{
	bool		sent;

	attempt->stage = stage;
	attempt->began = monotonic();
	if (stage == CONNECTING)
		return;
	if (stage == CALLING)
		attempt->call_began = attempt->began;
	sent = stage == ASKING ? PQsendQuery(attempt->connection, "SELECT snowflake_registry.identity()") :
		send_call(attempt);
	if (!sent)
		totals.errors++;
	watch(attempt, EPOLLIN);
}

/* What a server does after its attempt: set by the kind of the run. */
static void (*attempt_ended) (Server *server, Action action, bool granted);

static void
end_attempt(Attempt *attempt, bool granted)
{
	Server	   *server = attempt->server;

	attempt->server = NULL;
	if (!keep_open)
	{
		PQfinish(attempt->connection);
		attempt->connection = NULL;
	}
	attempt_ended(server, attempt->action, granted);
}

static void
begin_attempt(Attempt *attempt, Server *server)
{
	attempt->server = server;
	attempt->action = server->action;
	totals.attempts++;
	if (keep_open)
	{
		enter_stage(attempt, ASKING);
		return;
	}
	attempt->connection = PQconnectStart(conninfo);
	attempt->stage = CONNECTING;
	attempt->began = monotonic();
	if (attempt->connection == NULL || PQstatus(attempt->connection) == CONNECTION_BAD)
	{
		totals.not_connected++;
		end_attempt(attempt, false);
		return;
	}
	watch(attempt, EPOLLOUT);
}

static void
advance_connection(Attempt *attempt)
{
	switch (PQconnectPoll(attempt->connection))
	{
		case PGRES_POLLING_OK:
			enter_stage(attempt, ASKING);
			break;
		case PGRES_POLLING_READING:
			watch(attempt, EPOLLIN);
			break;
		case PGRES_POLLING_WRITING:
			watch(attempt, EPOLLOUT);
			break;
		default:
			totals.not_connected++;
			end_attempt(attempt, false);
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

static void
advance(Attempt *attempt)
{
	PGresult   *result;

	if (attempt->stage == CONNECTING)
	{
		advance_connection(attempt);
		return;
	}
	if (!PQconsumeInput(attempt->connection))
	{
		totals.errors++;
		end_attempt(attempt, false);
		return;
	}
	result = get_result(attempt->connection);
	if (result == NULL)
		return;
	read_answer(attempt, result);
	PQclear(result);
	if (attempt->stage == ASKING && attempt->granted)
		enter_stage(attempt, CALLING);
	else if (attempt->action == RENEW && !attempt->granted && attempt->stage == CALLING)
	{
		attempt->action = CLAIM;	/* as the worker does */
		enter_stage(attempt, CALLING);
	}
	else
	{
		totals.calls[attempt->action] += attempt->granted;
		end_attempt(attempt, attempt->granted);
	}
}

static void
end_timeouts(double now)
{
	static double last;

	if (keep_open || now - last < 0.1)
		return;
	last = now;
	for (int i = 0; i < attempt_count; i++)
	{
		if (attempts[i].server && now - attempts[i].began > TIMEOUT)
		{
			totals.timeouts++;
			end_attempt(&attempts[i], false);
		}
	}
}

/* Begin the attempts that are due.  Returns the number of attempts that are not over. */
static int
begin_due(double now)
{
	static int	next;
	int			open = 0;

	for (int i = 0; i < attempt_count; i++)
		open += attempts[i].server != NULL;
	while (heap_size > 0 && heap[0]->due <= now && open < attempt_count)
	{
		while (attempts[next].server)
			next = (next + 1) % attempt_count;
		begin_attempt(&attempts[next], pop());
		open += attempts[next].server != NULL;
	}
	return open;
}

static void
wait_for_events(double now)
{
	static struct epoll_event events[1024];
	double		due = heap_size > 0 ? heap[0]->due - now : 0.1;
	int			timeout = due < 0.1 ? (int) (due * 1000) + 1 : 100;
	int			count = epoll_wait(poll_set, events, 1024, timeout > 0 ? timeout : 1);

	for (int i = 0; i < count; i++)
	{
		Attempt    *attempt = events[i].data.ptr;

		if (attempt->server)
			advance(attempt);
	}
}

static void
open_connections(void)
{
	keep_open = true;
	for (int i = 0; i < attempt_count; i++)
	{
		attempts[i].connection = PQconnectdb(conninfo);
		if (PQstatus(attempts[i].connection) != CONNECTION_OK)
			fail(PQerrorMessage(attempts[i].connection));
		PQsetnonblocking(attempts[i].connection, 1);
		watch(&attempts[i], EPOLLIN);
	}
}

/* A wave: all servers at once */

static int	answered;
static double *answered_at;
static double shown_at;

static void
show_progress(double now)
{
	printf("at\t%.3f\t%d\n", now, answered);
	shown_at = now;
}

static void
wave_attempt_ended(Server *server, Action action, bool granted)
{
	double		now = monotonic();
	uint32_t	drawn = draw();
	int64_t		wait;

	(void) action;
	if (granted)
	{
		answered_at[answered++] = now;
		server->answered = true;
		server->due = now + LEASE / 2.0 - (double) sf_renewal_advance(LEASE * 500, drawn) / 1000;
		return;
	}
	server->delay = sf_retry_delay(server->delay, LEASE * 1000);
	wait = server->delay;
	if (strcmp(retries, "fixed") == 0)
		wait = 1000;
	server->due = now + (double) sf_retry_wait(wait, drawn) / 1000;
	push(server);
}

/* The renewals in the busiest second, half a lease later. */
static int
busiest_second(void)
{
	static int	seconds[LEASE];
	int			most = 0;

	for (int i = 0; i < server_count; i++)
	{
		int		   *second = &seconds[(int) servers[i].due % LEASE];

		if (servers[i].answered && ++*second > most)
			most = *second;
	}
	return most;
}

static void
run_wave(Action action, double limit)
{
	double		now = 0;

	answered_at = allocate((size_t) server_count, sizeof(double));
	attempt_ended = wave_attempt_ended;
	for (int i = 0; i < server_count; i++)
	{
		servers[i].action = action;
		servers[i].due = 0;
		servers[i].delay = 0;
		servers[i].answered = false;
		if (action == CLAIM)
		{
			servers[i].token[0] = random_number();
			servers[i].token[1] = random_number();
			servers[i].number = 0;
		}
		push(&servers[i]);
	}
	while (answered < server_count && now < limit)
	{
		begin_due(now);
		wait_for_events(now);
		now = monotonic();
		end_timeouts(now);
		if (now - shown_at >= 0.1)
			show_progress(now);
	}
	show_progress(now);
	printf("answered\t%d\n", answered);
	printf("seconds\t%.3f\n", now);
	printf("rate\t%.1f\n", answered / now);
	printf("half\t%.3f\n", answered > server_count / 2 ? answered_at[server_count / 2] : now);
	if (action != RELEASE)
		printf("busiest\t%d\n", busiest_second());
}

/* A day */

static double day_now;			/* s of the day; of the last call */
static double day_length;
static int64_t day_began;		/* us since 1970 */

/* Plan the next call of a server that holds a lease, or of one that was stopped. */
static void
plan(Server *server)
{
	double		renewal = LEASE / 2.0 - (double) sf_renewal_advance(LEASE * 500, draw()) / 1000;
	double		stop = random_time(DAY / 2);
	double		crash = random_time(4 * DAY);

	server->action = RENEW;
	server->due = day_now + renewal;
	if (stop < renewal && stop < crash)
	{
		server->action = RELEASE;
		server->due = day_now + stop;
	}
	else if (crash < renewal)
	{
		server->action = CLAIM;
		server->due = day_now + crash;
		server->token[0] = random_number();
		server->number = 0;
	}
}

static void
day_attempt_ended(Server *server, Action action, bool granted)
{
	if (action == RELEASE && granted)
	{
		server->action = CLAIM;
		server->due = day_now + 60;
		server->token[0] = random_number();
		server->number = 0;
	}
	else if (granted)
		plan(server);
	else
	{
		server->action = CLAIM;
		server->due = day_now + 60;
	}
	push(server);
}

/* The clock only moves forward. */
static void
set_clock(void)
{
	int64_t		ahead = day_began + (int64_t) (day_now * 1e6) - wall_clock();

	if (ahead > 0)
		*offset += ahead * 1000;
}

static void
run_day(double hours)
{
	int			open = 0;

	attempt_ended = day_attempt_ended;
	open_connections();
	day_length = hours * 3600;
	day_began = wall_clock();
	for (int i = 0; i < server_count; i++)
	{
		plan(&servers[i]);
		servers[i].due *= (double) (random_number() >> 40) / (1 << 24);
		push(&servers[i]);
	}
	while (day_now < day_length || open > 0)
	{
		while (day_now < day_length && open < attempt_count && heap_size > 0)
		{
			day_now = heap[0]->due > day_now ? heap[0]->due : day_now;
			set_clock();
			open = begin_due(day_now);
		}
		wait_for_events(day_now);
		open = begin_due(-1);
	}
	printf("seconds\t%.3f\n", monotonic());
	for (int i = 0; i < ACTIONS; i++)
		printf("%s\t%ld\n", action_names[i], totals.calls[i]);
}

/* The leases of the servers in a file */

static void
load(const char *path)
{
	FILE	   *file = fopen(path, "rb");

	if (file == NULL)
		fail("cannot read the file of the servers");
	if (fread(servers, sizeof(Server), (size_t) stored_count, file) != (size_t) stored_count)
		fail("the file has fewer servers");
	fclose(file);
}

static void
save(const char *path)
{
	FILE	   *file = fopen(path, "wb");

	if (file == NULL || fwrite(servers, sizeof(Server), (size_t) stored_count, file) != (size_t) stored_count || fclose(file) != 0)
		fail("cannot write the file");
}

static void
allow_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Read "7/10" or "10". */
static void
set_count(const char *text)
{
	const char *stored = strchr(text, '/');

	server_count = atoi(text);
	stored_count = stored ? atoi(stored + 1) : server_count;
	if (server_count <= 0 || stored_count < server_count)
		fail("invalid number of servers");
	servers = allocate((size_t) stored_count, sizeof(Server));
	heap = allocate((size_t) server_count, sizeof(Server *));
}

static Action
find_action(const char *name)
{
	for (Action action = CLAIM; action < ACTIONS; action++)
	{
		if (strcmp(action_names[action], name) == 0)
			return action;
	}
	fail("there is no such call");
	return CLAIM;
}

static void
begin(const char *seed, int connections)
{
	random_state = strtoull(seed, NULL, 10) * UINT64_C(2685821657736338717) + 1;
	attempt_count = connections == 0 ? server_count : abs(connections);
	attempts = allocate((size_t) attempt_count, sizeof(Attempt));
	poll_set = epoll_create1(0);
	allow_files();
	if (connections < 0)
		open_connections();
	start = monotonic();
}

static void
wave(char **arguments)
{
	Action		action = find_action(arguments[0]);

	set_count(arguments[2]);
	if (action != CLAIM || stored_count > server_count)
		load(arguments[1]);
	retries = arguments[4];
	conninfo = arguments[6];
	begin(arguments[5], atoi(arguments[3]));
	run_wave(action, atof(arguments[7]));
	save(arguments[1]);
}

static void
day(char **arguments)
{
	set_count(arguments[1]);
	load(arguments[0]);
	conninfo = arguments[4];
	map_clock(arguments[5]);
	begin(arguments[3], -1);
	run_day(atof(arguments[2]));
	save(arguments[0]);
}

int
main(int argc, char **argv)
{
	if (argc == 10 && strcmp(argv[1], "wave") == 0)
		wave(&argv[2]);
	else if (argc == 8 && strcmp(argv[1], "day") == 0)
		day(&argv[2]);
	else
		fail("see the head of bench/registry.c");
	printf("attempts\t%ld\nnot connected\t%ld\ntimeouts\t%ld\nrefused\t%ld\nerrors\t%ld\n",
		   totals.attempts, totals.not_connected, totals.timeouts, totals.refused, totals.errors);
	return 0;
}
