/*
 * registry_wave.c
 *	  A wave: all servers make one call at once, as after a failover of their registry.
 *
 * Each server repeats its attempt until it succeeds, after the waits of src/core/attempt.h.
 * Results are the progress of the wave, and how many of the renewals that follow half a lease later
 * are due in the same second.
 */
#include <stdio.h>
#include <string.h>

#include "attempt.h"
#include "registry.h"

static const char *retries;		/* see the head of registry.c */
static int	answered;
static double *answered_at;
static double shown_at;

static uint32_t
draw(void)
{
	if (strcmp(retries, "back-off") == 0 || strcmp(retries, "fixed") == 0)
		return 0;
	return random_draw();
}

/* A server that was answered is due for its renewal, which the wave does not make. */
static void
wave_attempt_ended(Fleet *fleet, Server *server, bool granted)
{
	double		now = monotonic();
	uint32_t	drawn = draw();
	int64_t		wait;

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
	push(fleet, server);
}

static void
push_all(Fleet *fleet, Action action)
{
	for (int i = 0; i < fleet->server_count; i++)
	{
		Server	   *server = &fleet->servers[i];

		server->action = action;
		server->due = 0;
		server->delay = 0;
		server->answered = false;
		if (action == CLAIM)
		{
			server->token[0] = random_number();
			server->token[1] = random_number();
			server->number = 0;
		}
		push(fleet, server);
	}
}

static void
show_progress(double now)
{
	printf("at\t%.3f\t%d\n", now, answered);
	shown_at = now;
}

/* The renewals in the busiest second, half a lease later. */
static int
busiest_second(const Fleet *fleet)
{
	static int	seconds[LEASE];
	int			most = 0;

	for (int i = 0; i < fleet->server_count; i++)
	{
		const Server *server = &fleet->servers[i];
		int		   *second = &seconds[(int) server->due % LEASE];

		if (server->answered && ++*second > most)
			most = *second;
	}
	return most;
}

static void
show_results(const Fleet *fleet, Action action, double now)
{
	int			half = fleet->server_count / 2;

	printf("answered\t%d\n", answered);
	printf("seconds\t%.3f\n", now);
	printf("rate\t%.1f\n", answered / now);
	printf("half\t%.3f\n", answered > half ? answered_at[half] : now);
	if (action != RELEASE)
		printf("busiest\t%d\n", busiest_second(fleet));
}

void
run_wave(Fleet *fleet, Action action, const char *retries_name, double limit)
{
	double		now = 0;

	retries = retries_name;
	answered_at = allocate((size_t) fleet->server_count, sizeof(double));
	fleet->attempt_ended = wave_attempt_ended;
	push_all(fleet, action);
	while (answered < fleet->server_count && now < limit)
	{
		begin_due(fleet, now);
		wait_for_events(fleet, now);
		now = monotonic();
		end_timeouts(fleet, now);
		if (now - shown_at >= 0.1)
			show_progress(now);
	}
	show_progress(now);
	show_results(fleet, action, now);
}
