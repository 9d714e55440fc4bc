/*
 * swap.c
 *	  Costs of shared memory on this machine, for bench/cores.
 *
 *	swap [MILLISECONDS]		prints a line "NAME VALUE" for each cost
 *
 * Each cost is measured for MILLISECONDS, 500 unless given, in windows of WINDOW.  The tenth
 * percentile of the windows is printed, since other processes of the machine can only add to it.  With
 * two threads, a window counts only if both threads have run in it: the slower one must have done a
 * fifth of the work.  Costs are in nanoseconds.
 *
 *	clock		a reading of the wall clock
 *	atomic		a compare-and-swap of a line that is in the processor's own cache
 *	fence		a store and a full barrier
 *	swap1		one thread reads a number and swaps it, in a loop
 *	transfer	a line is passed from one processor to another and swapped there
 *	swap2		as swap1, but two threads on one number: time for one successful swap
 *	failed2		the percentage of these swaps that failed
 *	add2		two threads add to one number: time for one addition
 *
 * If the process has one processor, the costs of two threads are not printed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WINDOW	200e-6			/* seconds */
#define WINDOWS	65536			/* at most */
#define CHUNK	64				/* operations between two looks at the time */

typedef struct Line
{
	_Alignas(128) uint64_t number;
} Line;

static Line shared;
static Line begun;
static Line ended;

static int	milliseconds = 500;
static int	processors[2];

/* Written by its own thread, and read by the first one. */
typedef struct Worker
{
	_Alignas(128) uint64_t done;	/* operations that succeeded */
	uint64_t	failed;
	void		(*work) (struct Worker *worker);
	int			which;
	int			threads;
} Worker;

static Worker workers[2];

/* The windows of one cost. */
typedef struct Window
{
	double		cost;			/* ns of an operation that succeeded */
	double		failed;			/* percentage */
} Window;

static Window windows[WINDOWS];
static int	window_count;

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static bool
is_over(void)
{
	return __atomic_load_n(&ended.number, __ATOMIC_RELAXED) != 0;
}

static void
read_clock(Worker *worker)
{
	struct timespec now;

	for (int i = 0; i < CHUNK; i++)
		clock_gettime(CLOCK_REALTIME, &now);
	worker->done += CHUNK;
}

static void
swap_own(Worker *worker)
{
	static Line own;

	for (int i = 0; i < CHUNK; i++)
	{
		uint64_t	old = own.number;

		(void) __atomic_compare_exchange_n(&own.number, &old, old + 1, false,
										   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	worker->done += CHUNK;
}

static void
store_and_fence(Worker *worker)
{
	static Line own;

	for (int i = 0; i < CHUNK; i++)
	{
		__atomic_store_n(&own.number, (uint64_t) i, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	worker->done += CHUNK;
}

/*
 * The threads take turns: each swaps in its number if the other thread's is there.  So each
 * transfer passes the line for a swap, as in most published measurements.
 */
static void
pass_line(Worker *worker)
{
	for (int i = 0; i < CHUNK; i++)
	{
		uint64_t	old = (uint64_t) worker->which;

		if (__atomic_compare_exchange_n(&shared.number, &old, 1 - (uint64_t) worker->which, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			worker->done++;
	}
}

static void
swap_shared(Worker *worker)
{
	for (int i = 0; i < CHUNK; i++)
	{
		uint64_t	old = __atomic_load_n(&shared.number, __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(&shared.number, &old, old + 1, false,
										__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			worker->done++;
		else
			worker->failed++;
	}
}

static void
add_shared(Worker *worker)
{
	for (int i = 0; i < CHUNK; i++)
		(void) __atomic_fetch_add(&shared.number, 1, __ATOMIC_SEQ_CST);
	worker->done += CHUNK;
}

static void
pin(int which)
{
	cpu_set_t	set;

	CPU_ZERO(&set);
	CPU_SET(processors[which], &set);
	(void) sched_setaffinity(0, sizeof(set), &set);
}

static int
compare_windows(const void *a, const void *b)
{
	const Window *left = a;
	const Window *right = b;

	return left->cost < right->cost ? -1 : left->cost > right->cost;
}

/* Keep a window, in which each of the threads has done that many operations. */
static void
note_window(double seconds, int threads, const uint64_t *done, const uint64_t *failed)
{
	uint64_t	all = done[0] + done[1];
	uint64_t	all_failed = failed[0] + failed[1];

	if (window_count == WINDOWS || all == 0 ||
		(threads == 2 && (done[0] < all / 5 || done[1] < all / 5)))
		return;
	windows[window_count].cost = seconds * 1e9 / (double) all;
	windows[window_count++].failed = 100.0 * (double) all_failed / (double) (all + all_failed);
}

static void
read_progress(uint64_t *done, uint64_t *failed)
{
	for (int i = 0; i < 2; i++)
	{
		done[i] = __atomic_load_n(&workers[i].done, __ATOMIC_RELAXED);
		failed[i] = __atomic_load_n(&workers[i].failed, __ATOMIC_RELAXED);
	}
}

/* The first thread works, and notes the windows of both. */
static void
work_and_watch(Worker *worker)
{
	double		start = seconds_now();
	double		begin = start;
	double		now = start;
	uint64_t	done[2];
	uint64_t	failed[2];

	read_progress(done, failed);
	while (now - start < milliseconds / 1000.0)
	{
		worker->work(worker);
		now = seconds_now();
		if (now - begin >= WINDOW)
		{
			uint64_t	more[2];
			uint64_t	more_failed[2];

			read_progress(more, more_failed);
			for (int i = 0; i < 2; i++)
			{
				done[i] = more[i] - done[i];
				failed[i] = more_failed[i] - failed[i];
			}
			note_window(now - begin, worker->threads, done, failed);
			read_progress(done, failed);
			begin = seconds_now();
		}
	}
	__atomic_store_n(&ended.number, 1, __ATOMIC_RELAXED);
}

static void *
run_worker(void *argument)
{
	Worker	   *worker = argument;

	pin(worker->which);
	__atomic_fetch_add(&begun.number, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&begun.number, __ATOMIC_RELAXED) < (uint64_t) worker->threads)
		;
	if (worker->which == 0)
		work_and_watch(worker);
	else
		while (!is_over())
			worker->work(worker);
	return NULL;
}

static void
measure(const char *name, void (*work) (Worker *worker), int threads, const char *failed_name)
{
	pthread_t	ids[2];

	shared.number = begun.number = ended.number = 0;
	window_count = 0;
	for (int i = 0; i < 2; i++)
		workers[i] = (Worker)
	{
		.work = work,.which = i,.threads = threads
	};
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run_worker, &workers[i]) != 0)
			exit(2);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	if (window_count == 0)
		return;
	qsort(windows, (size_t) window_count, sizeof(Window), compare_windows);
	printf("%s %.1f\n", name, windows[window_count / 10].cost);
	if (failed_name != NULL)
		printf("%s %.1f\n", failed_name, windows[window_count / 10].failed);
}

/* Two processors on which this process may run. */
static int
find_processors(void)
{
	cpu_set_t	set;
	int			count = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
		if (CPU_ISSET(i, &set))
			processors[count++] = i;
	return count;
}

int
main(int argc, char **argv)
{
	int			count = find_processors();

	if (argc > 1)
		milliseconds = atoi(argv[1]);
	measure("clock", read_clock, 1, NULL);
	measure("atomic", swap_own, 1, NULL);
	measure("fence", store_and_fence, 1, NULL);
	measure("swap1", swap_shared, 1, NULL);
	if (count < 2)
		return 0;
	measure("transfer", pass_line, 2, NULL);
	measure("swap2", swap_shared, 2, "failed2");
	measure("add2", add_shared, 2, NULL);
	return 0;
}
