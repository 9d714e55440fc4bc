/*
 * registry.c
 *	  Simulated servers that call a registry, for bench/registry.
 *
 *	registry wave CALL FILE SERVERS CONNECTIONS RETRIES SEED CONNINFO LIMIT
 *
 * All servers make one call at once: "claim", "renew" or "release".  If that fails, a server tries
 * again.  SERVERS is their number, or "7/10" for the first 7 of 10.  CONNECTIONS is the most that
 * are open at once, 0 for no limit; if it is negative, its absolute value is the number of
 * connections that stay open and are used by all servers.  RETRIES is
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
 *
 * The two kinds of runs are in registry_wave.c and registry_day.c.  registry_loop.c begins the
 * attempts of the servers when they are due, registry_attempt.c has the stages of an attempt, and
 * registry_call.c the queries.  This file has the arguments and the file of leases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "registry.h"

void
fail(const char *what)
{
	fprintf(stderr, "registry: %s\n", what);
	exit(2);
}

void *
allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

/*
 * The leases of the servers in a file
 */

static void
load(Fleet *fleet, const char *path)
{
	size_t		count = (size_t) fleet->stored_count;
	FILE	   *file = fopen(path, "rb");

	if (file == NULL)
		fail("cannot read the file of the servers");
	if (fread(fleet->servers, sizeof(Server), count, file) != count)
		fail("the file has fewer servers");
	fclose(file);
}

static void
save(const Fleet *fleet, const char *path)
{
	size_t		count = (size_t) fleet->stored_count;
	FILE	   *file = fopen(path, "wb");

	if (file == NULL || fwrite(fleet->servers, sizeof(Server), count, file) != count ||
		fclose(file) != 0)
		fail("cannot write the file");
}

/*
 * Arguments
 */

/* Read "7/10" or "10". */
static void
set_count(Fleet *fleet, const char *text)
{
	const char *stored = strchr(text, '/');

	fleet->server_count = atoi(text);
	fleet->stored_count = stored ? atoi(stored + 1) : fleet->server_count;
	if (fleet->server_count <= 0 || fleet->stored_count < fleet->server_count)
		fail("invalid number of servers");
	fleet->servers = allocate((size_t) fleet->stored_count, sizeof(Server));
	fleet->heap = allocate((size_t) fleet->server_count, sizeof(Server *));
	for (int i = 0; i < fleet->stored_count; i++)
		fleet->servers[i].index = i;
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

/* As many files as the system allows: each connection is one. */
static void
allow_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void
begin(Fleet *fleet, const char *seed, const char *conninfo, int connections)
{
	seed_random(strtoull(seed, NULL, 10));
	fleet->conninfo = conninfo;
	fleet->attempt_count = connections == 0 ? fleet->server_count : abs(connections);
	fleet->attempts = allocate((size_t) fleet->attempt_count, sizeof(Attempt));
	fleet->poll_set = epoll_create1(0);
	allow_files();
	if (connections < 0)
		open_connections(fleet);
	start_clock();
}

static void
wave(Fleet *fleet, char **arguments)
{
	Action		action = find_action(arguments[0]);

	set_count(fleet, arguments[2]);
	if (action != CLAIM || fleet->stored_count > fleet->server_count)
		load(fleet, arguments[1]);
	begin(fleet, arguments[5], arguments[6], atoi(arguments[3]));
	run_wave(fleet, action, arguments[4], atof(arguments[7]));
	save(fleet, arguments[1]);
}

static void
day(Fleet *fleet, char **arguments)
{
	set_count(fleet, arguments[1]);
	load(fleet, arguments[0]);
	map_wall_clock(arguments[5]);
	begin(fleet, arguments[3], arguments[4], -1);
	run_day(fleet, atof(arguments[2]));
	save(fleet, arguments[0]);
}

static void
show_totals(const Totals *totals)
{
	printf("attempts\t%ld\nnot connected\t%ld\ntimeouts\t%ld\nrefused\t%ld\nerrors\t%ld\n",
		   totals->attempts, totals->not_connected, totals->timeouts, totals->refused,
		   totals->errors);
}

int
main(int argc, char **argv)
{
	Fleet		fleet = {0};

	if (argc == 10 && strcmp(argv[1], "wave") == 0)
		wave(&fleet, &argv[2]);
	else if (argc == 8 && strcmp(argv[1], "day") == 0)
		day(&fleet, &argv[2]);
	else
		fail("see the head of bench/registry.c");
	show_totals(&fleet.totals);
	return 0;
}
