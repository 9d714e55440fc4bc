/*
 * main.c
 *	  Runs, one for each seed; README.md lists the options.
 */
#include "oracles.h"

#include <time.h>
#include <unistd.h>

/* A phase with faults, and then one without, in which each session gets IDs. */
static const char *
execute_run(uint64 seed)
{
	const char *problem;

	begin_run(seed);
	problem = run_processes(config.rate || config.many_databases ? 40000 : 6000);
	if (problem)
		return problem;
	trace("the last phase, without faults");
	quiet = true;
	next_fault = PG_INT64_MAX;
	for (int i = 0; i < config.sessions; i++)
		operations[i] = 2;
	return run_processes(300000);
}

static double
seconds_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double) time.tv_sec + (double) time.tv_nsec / 1e9;
}

/* Of processor time, or a third of the time that has passed, on a machine that is busy. */
static double
seconds(void)
{
	static double began = 0;
	double		passed = seconds_of(CLOCK_MONOTONIC);

	if (began == 0)
		began = passed;
	return Max(seconds_of(CLOCK_PROCESS_CPUTIME_ID), (passed - began) / 3);
}

int
main(int argc, char **argv)
{
	uint64		first = 1,
				runs = PG_UINT64_MAX,
				n;
	double		limit = 1e9,
				began;
	bool		keep_going = false;
	int64		total_steps = 0;
	int			option,
				failed = 0;

	while ((option = getopt(argc, argv, "s:n:t:o:p:kvw")) != -1)
		switch (option)
		{
			case 's':
				first = strtoull(optarg, NULL, 10);
				break;
			case 'n':
				runs = strtoull(optarg, NULL, 10);
				break;
			case 't':
				limit = atof(optarg);
				break;
			case 'o':
				most_operations = atoi(optarg);
				break;
			case 'p':
				most_sessions = atoi(optarg);
				break;
			case 'k':
				keep_going = true;
				break;
			case 'v':
				tracing = true;
				break;
			case 'w':
				weak = true;
				break;
			default:
				return 2;
		}
	init_images();
	began = seconds();
	for (n = 0; n < runs && seconds() - began < limit && (failed == 0 || keep_going); n++)
	{
		const char *problem = execute_run(first + n);

		total_steps += steps;
		if (problem == NULL)
			continue;
		failed++;
		printf("seed %llu: %s (after %.2f s)\n", (unsigned long long) (first + n), problem,
			   seconds() - began);
		fflush(stdout);
	}
	printf("%llu runs, %d failed, %.0f runs/s, %.1f million steps/s, %.0f steps and %.0f IDs a run\n",
		   (unsigned long long) n, failed, (double) n / (seconds() - began),
		   (double) total_steps / (seconds() - began) / 1e6, (double) total_steps / (double) Max(n, 1),
		   (double) ids_issued / (double) Max(n, 1));
	return failed > 0;
}
