/*
 * registry_day.c
 *	  A day: the calls of a number of hours, one after the other.
 *
 * A server renews its lease, or is stopped, or crashes, whichever is first.  A stopped server
 * releases its lease and starts a minute later; a server that has crashed starts at once.  A server
 * that starts claims a machine ID, with a new token.
 *
 * Time is simulated: the next call is made at once, and the clock of the registry is set to its
 * time.
 */
#include <math.h>
#include <stdio.h>

#include "attempt.h"
#include "registry.h"

#define HOUR			3600.0	/* s */
#define DAY				(24 * HOUR)
#define MEAN_STOP		(DAY / 2)	/* from one stop of a server to the next */
#define MEAN_CRASH		(4 * DAY)	/* from one crash to the next */
#define RESTART			60.0	/* s, from a stop or a failed call to the next
								 * claim */

static double day_now;			/* s of the day; of the last call */

/* The time until an event that occurs at random, by the mean of this time. */
static double
random_time(double mean)
{
	return -mean * log(((double) (random_number() >> 11) + 1) / 9007199254740993.0);
}

/* A server that starts has another token, and knows of no lease. */
static void
forget_lease(Server *server)
{
	server->token[0] = random_number();
	server->number = 0;
}

static void
plan_call(Server *server, Action action, double wait)
{
	server->action = action;
	server->due = day_now + wait;
}

/* Plan the next call of a server that holds a lease. */
static void
plan(Server *server)
{
	double		renewal = LEASE / 2.0 - (double) sf_renewal_advance(LEASE * 500, random_draw()) / 1000;
	double		stop = random_time(MEAN_STOP);
	double		crash = random_time(MEAN_CRASH);

	if (stop < renewal && stop < crash)
		plan_call(server, RELEASE, stop);
	else if (crash < renewal)
	{
		plan_call(server, CLAIM, crash);
		forget_lease(server);
	}
	else
		plan_call(server, RENEW, renewal);
}

static void
day_attempt_ended(Fleet *fleet, Server *server, bool granted)
{
	bool		stopped = server->action == RELEASE;

	if (granted && !stopped)
		plan(server);
	else
		plan_call(server, CLAIM, RESTART);
	if (granted && stopped)
		forget_lease(server);
	push(fleet, server);
}

/*
 * Plan the first calls.  The leases are already of different ages: each call is made after a random
 * part of the planned time.
 */
static void
plan_all(Fleet *fleet)
{
	for (int i = 0; i < fleet->server_count; i++)
	{
		plan(&fleet->servers[i]);
		fleet->servers[i].due *= (double) (random_number() >> 40) / (1 << 24);
		push(fleet, &fleet->servers[i]);
	}
}

static void
show_results(const Totals *totals)
{
	printf("seconds\t%.3f\n", monotonic());
	for (int i = 0; i < ACTIONS; i++)
		printf("%s\t%ld\n", action_names[i], totals->calls[i]);
}

void
run_day(Fleet *fleet, double hours)
{
	double		length = hours * HOUR;
	int64_t		began = wall_clock();
	int			open = 0;

	fleet->attempt_ended = day_attempt_ended;
	plan_all(fleet);
	while (day_now < length || open > 0)
	{
		while (day_now < length && open < fleet->attempt_count && fleet->heap_size > 0)
		{
			day_now = fleet->heap[0]->due > day_now ? fleet->heap[0]->due : day_now;
			set_wall_clock(began + (int64_t) (day_now * 1e6));
			open = begin_due(fleet, day_now);
		}
		wait_for_events(fleet, day_now);
		open = begin_due(fleet, -1);
	}
	show_results(&fleet->totals);
}
