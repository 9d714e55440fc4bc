/*
 * clock.c
 *	  The cost of reading the clocks by which the age of a batch could be judged; see bench/clock.
 *
 * Prints, for each way, the nanoseconds of a reading: the median of the rounds, the least and the
 * greatest.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define ROUNDS		31
#define READINGS	1000000

typedef struct Way
{
	const char *name;
	uint64_t	(*read) (void);
} Way;

static inline uint64_t
nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static uint64_t
nothing(void)
{
	return 0;
}

static uint64_t
wall_clock(void)
{
	return nanoseconds(CLOCK_REALTIME);
}

#ifdef CLOCK_REALTIME_COARSE
static uint64_t
coarse_wall_clock(void)
{
	return nanoseconds(CLOCK_REALTIME_COARSE);
}
#endif

#if defined(__x86_64__)
static uint64_t
time_stamp_counter(void)
{
	return __rdtsc();
}
#endif

static const Way ways[] = {
	{"wall clock", wall_clock},
#ifdef CLOCK_REALTIME_COARSE
	{"coarse wall clock", coarse_wall_clock},
#endif
#if defined(__x86_64__)
	{"time stamp counter", time_stamp_counter},
#endif
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static volatile uint64_t sink;

static double
cost(uint64_t (*read) (void))
{
	uint64_t	began = nanoseconds(CLOCK_MONOTONIC);

	for (int i = 0; i < READINGS; i++)
		sink = read();
	return (double) (nanoseconds(CLOCK_MONOTONIC) - began) / READINGS;
}

static int
compare(const void *a, const void *b)
{
	double		difference = *(const double *) a - *(const double *) b;

	return difference < 0 ? -1 : difference > 0;
}

int
main(void)
{
	static double costs[WAYS][ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		for (size_t way = 0; way < WAYS; way++)
			costs[way][round] = cost(ways[way].read) - cost(nothing);
	for (size_t way = 0; way < WAYS; way++)
	{
		qsort(costs[way], ROUNDS, sizeof(double), compare);
		printf("%-20s %6.1f ns  (%.1f to %.1f)\n", ways[way].name, costs[way][ROUNDS / 2],
			   costs[way][0], costs[way][ROUNDS - 1]);
	}
#ifdef CLOCK_REALTIME_COARSE
	{
		struct timespec step;

		clock_getres(CLOCK_REALTIME_COARSE, &step);
		printf("the coarse wall clock advances every %ld us\n", step.tv_nsec / 1000);
	}
#endif
	return 0;
}
