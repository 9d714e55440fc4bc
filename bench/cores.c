/*
 * cores.c
 *	  Simulates the sessions of a server that has many cores, for bench/cores.
 *
 *	cores [NAME=VALUE]...	runs one simulation, and prints a line "NAME VALUE" for each result
 *
 * A session runs on each core, and calls snowflake_nextval() in transactions.  The batches and their
 * sizes are computed by the functions of src/core.  The steps around them, with their accesses to
 * shared memory, are those of generator.c, wait.c, clock.c and overflow.c in src/generator, in
 * the same order.
 *
 * Time is simulated in nanoseconds.  A step takes a fixed time of the processor, or it accesses a
 * cache line that sessions share.  There are four such lines: LINE_CURSOR has the cursor and
 * yield_until, LINE_CLOCK the latest reading of the clock and the used-up ticks, LINE_COUNTERS the
 * counters of batches, IDs, waits and used-up ticks, and LINE_WAIT_TIME the counter of the time
 * waited.  The places follow from SfGenerator, in lines of 64 bytes.
 *
 * A processor that has the line, for a swap alone and for a read perhaps with others, accesses it
 * at once.  Otherwise its request is on the way for half of the time of a transfer, and the line is
 * transferred for the other half; in between, the request waits until the line is free.  While a
 * line is transferred and swapped, no other access to it begins.  So the processor that has a line
 * can use it until a request arrives, and it is served before waiting requests for some time
 * longer ("hold") if it accesses the line again at once.  The time of a transfer depends on whether
 * both processors belong to one group (cores with a cache in common), to one socket, or to two.
 * Waiting requests are served in the order in which they have arrived, or with "nearest=1" from the
 * nearest processor on.  Real hardware is between the two.
 *
 * The simulation leaves out everything that happens a few times a second: extensions of the
 * reservation, reloads, changes of the generator, and readers of the horizon.  A slot of the
 * horizon is written only by its own session, so it costs the barrier alone.  A session that
 * sleeps is woken late by a random time.  No other process runs.
 *
 * Each batch and each ID is checked: a batch must not begin below the end of any earlier one, nor
 * end outside of its tick; its time must not be too far ahead of the clock; and the tick of an ID
 * must not have passed.  With mutant=N, one rule is broken, and a check has to fail: 1, a swap
 * succeeds although the cursor has changed; 2, batches are taken one tick too early; 3, a batch is
 * used although its tick has passed.  The exit status is then 1.
 *
 * The same arguments give the same results.
 *
 * The machine is in cores_machine.c, and the steps of a session are in cores_session.c.  This file
 * has the parameters and the results.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"

Parameters	parameters = {
	.cores = 1,
	.max_ahead = 10000,
	.warmup = 100,
	.time = 1000,
	.seed = 1,
	.clock = 25,
	.call = 25,
	.batch = 20,
	.atomic = 10,
	.fence = 7,
	.backoff = 1000,
	.group = 23,
	.socket = 107,
	.far = 197,
	.hold = 35,
	.wake = 50000,
	.wake_random = 20000,
	.group_cores = 8,
	.socket_cores = 96,
};

static const char *layout_text = "twitter";

static const struct
{
	const char *name;
	int64_t    *value;
}			names[] = {
	{"cores", &parameters.cores},
	{"ids_min", &parameters.ids_min},
	{"ids_max", &parameters.ids_max},
	{"work", &parameters.work},
	{"end_work", &parameters.end_work},
	{"max_ahead", &parameters.max_ahead},
	{"warmup", &parameters.warmup},
	{"time", &parameters.time},
	{"seed", &parameters.seed},
	{"mutant", &parameters.mutant},
	{"nearest", &parameters.nearest},
	{"bare", &parameters.bare},
	{"backoff", &parameters.backoff},
	{"clock", &parameters.clock},
	{"call", &parameters.call},
	{"batch", &parameters.batch},
	{"atomic", &parameters.atomic},
	{"fence", &parameters.fence},
	{"group", &parameters.group},
	{"socket", &parameters.socket},
	{"far", &parameters.far},
	{"hold", &parameters.hold},
	{"wake", &parameters.wake},
	{"wake_random", &parameters.wake_random},
	{"group_cores", &parameters.group_cores},
	{"socket_cores", &parameters.socket_cores},
};

Session		sessions[MAX_CORES];
SfLayout	layout;
SfSequenceRange range;

/*
 * The times of calls, in ns: SUB buckets for each power of two.
 */
#define SUB			32
#define BUCKETS		(64 * SUB)

static int64_t latencies[BUCKETS];
static int64_t latency_count;
static int64_t latency_max;

static int
bucket_of(int64_t latency)
{
	int			power = 0;

	while (latency >> power >= 2 * SUB)
		power++;
	return power * SUB + (int) (latency >> power);
}

/* The middle of a bucket. */
static double
latency_of(int bucket)
{
	int			power = bucket < 2 * SUB ? 0 : bucket / SUB - 1;
	int64_t		low = (int64_t) (bucket - power * SUB) << power;

	return (double) low + (double) ((INT64_C(1) << power) - 1) / 2;
}

bool
counts(void)
{
	return now_ns >= parameters.warmup * 1000000;
}

/* The time since an instant, without the part that does not count. */
int64_t
counted(int64_t since)
{
	int64_t		begin = parameters.warmup * 1000000;

	if (now_ns < begin)
		return 0;
	return now_ns - (since < begin ? begin : since);
}

void
note_latency(int64_t latency, int64_t calls)
{
	if (!counts())
		return;
	latencies[bucket_of(latency)] += calls;
	latency_count += calls;
	if (latency > latency_max)
		latency_max = latency;
}

static double
percentile(double part)
{
	int64_t		before = 0;
	int64_t		rank = (int64_t) (part * (double) latency_count);

	for (int i = 0; i < BUCKETS; i++)
	{
		before += latencies[i];
		if (before > rank)
			return latency_of(i);
	}
	return (double) latency_max;
}

static void
run(void)
{
	start_machine();
	start_sessions();
	run_until((parameters.warmup + parameters.time) * 1000000);
}

/*
 * Results
 */

static void
print(const char *name, double value)
{
	printf("%s %.6g\n", name, value);
}

static void
print_sum(const Session *sum)
{
	double		seconds = (double) parameters.time / 1000;
	double		limit = (double) (range.max - range.min + 1) * 1e6 / (double) tick_length();
	double		all_time = (double) parameters.cores * (double) parameters.time * 1e6;

	print("ids", (double) sum->ids / seconds);
	print("limit", limit);
	print("of_limit", 100 * (double) sum->ids / seconds / limit);
	print("transactions", (double) sum->transactions / seconds);
	print("swaps", (double) sum->batches / seconds);
	print("failed", 100 * (double) sum->failed / (double) (sum->failed + sum->batches));
	print("allocated", (double) sum->allocated / (double) sum->ids);
	print("waits", (double) sum->waits / seconds);
	print("waiting", 100 * (double) sum->wait_time / all_time);
	print("cpu", (all_time - (double) sum->sleep_time) / (double) sum->ids);
	print("lines", 100 * (double) sum->line_time / all_time);
}

/* Jain's index of the IDs of the sessions, and the least as a part of the greatest. */
static void
print_fairness(void)
{
	double		sum = 0;
	double		squares = 0;
	int64_t		least = INT64_MAX;
	int64_t		most = 0;

	for (int i = 0; i < parameters.cores; i++)
	{
		int64_t		ids = parameters.bare ? sessions[i].batches : sessions[i].ids;

		sum += (double) ids;
		squares += (double) ids * (double) ids;
		least = ids < least ? ids : least;
		most = ids > most ? ids : most;
	}
	print("jain", sum * sum / ((double) parameters.cores * squares));
	print("least", (double) least / (double) most);
}

static void
print_results(void)
{
	Session		sum = {0};

	for (int i = 0; i < parameters.cores; i++)
	{
		const Session *session = &sessions[i];

		sum.ids += session->ids;
		sum.transactions += session->transactions;
		sum.batches += session->batches;
		sum.allocated += session->allocated;
		sum.failed += session->failed;
		sum.waits += session->waits;
		sum.wait_time += session->wait_time;
		sum.line_time += session->line_time;
		sum.sleep_time += session->sleep_time;
		if (session->waits_since != NEVER)
			sum.wait_time += counted(session->waits_since);
		if (session->sleeps_since != NEVER)
			sum.sleep_time += counted(session->sleeps_since);
	}
	print_sum(&sum);
	print_fairness();
	print("p50", percentile(0.5) / 1000);
	print("p99", percentile(0.99) / 1000);
	print("p999", percentile(0.999) / 1000);
	print("max", (double) latency_max / 1000);
}

static void
usage(const char *argument)
{
	fprintf(stderr, "cores: unknown or wrong argument \"%s\"\n", argument);
	exit(2);
}

static void
set_parameter(const char *argument)
{
	size_t		length = strcspn(argument, "=");

	if (argument[length] == '\0')
		usage(argument);
	if (strncmp(argument, "layout=", 7) == 0)
	{
		layout_text = argument + 7;
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strlen(names[i].name) == length && strncmp(names[i].name, argument, length) == 0)
		{
			*names[i].value = strtoll(argument + length + 1, NULL, 10);
			return;
		}
	}
	usage(argument);
}

int
main(int argc, char **argv)
{
	SfSequenceRange all = {0, SF_SEQUENCE_MAX};
	SfParseError error;

	for (int i = 1; i < argc; i++)
		set_parameter(argv[i]);
	if (!sf_layout_parse(layout_text, &layout, &error))
		usage(layout_text);
	if (parameters.cores < 1 || parameters.cores > MAX_CORES || parameters.time < 1 ||
		parameters.ids_max < parameters.ids_min)
		usage("cores, time or ids_max");
	range = sf_sequence_range_within(&layout, all);
	run();
	print_results();
	return 0;
}
