/*
 * test_demand.c
 *	  Unit tests of core/demand.h: how many IDs a session takes for each one that it uses.
 */
#include "demand.h"
#include "tap.h"

/* A session under a clock of its own, whose calls take a number of nanoseconds each. */
typedef struct Session
{
	SfDemand	demand;
	uint32_t	size_max;
	int64_t		tick_length;	/* us */
	int64_t		call;			/* ns */
	int64_t		now;			/* ns */
	int64_t		taken_at;		/* us */
	uint32_t	left;
	uint64_t	used;
	uint64_t	taken;
	uint64_t	batches;
	bool		contended;
} Session;

static int64_t
microseconds(const Session *session)
{
	return session->now / 1000;
}

static bool
is_current(const Session *session)
{
	return session->taken_at / session->tick_length == microseconds(session) / session->tick_length;
}

static void
take_batch(Session *session)
{
	sf_demand_end_batch(&session->demand, session->left, microseconds(session) - session->taken_at,
						session->tick_length);
	session->left = sf_demand_size(&session->demand, session->size_max);
	sf_demand_add_batch(&session->demand, session->left, session->contended, false);
	session->taken += session->left;
	session->batches++;
	session->taken_at = microseconds(session);
}

/* A transaction that uses a number of IDs, and a pause of a number of nanoseconds after it. */
static void
use(Session *session, int count, int64_t pause)
{
	for (int i = 0; i < count; i++)
	{
		if (session->left == 0 || !is_current(session))
			take_batch(session);
		session->left--;
		session->now += session->call;
	}
	session->used += (uint64_t) count;
	sf_demand_end_transaction(&session->demand, session->left);
	session->left = 0;
	session->now += pause;
}

static double
taken_for_each_used(const Session *session)
{
	return (double) session->taken / (double) session->used;
}

static const int steady_sizes[] = {1, 2, 3, 5, 17, 63, 64, 65, 100, 129, 257, 1000, 4097, 10000};
#define STEADY_SIZES (sizeof(steady_sizes) / sizeof(steady_sizes[0]))

/* The greatest number of IDs taken for each used, of transactions that all use the same number. */
static double
worst_steady(const Session *session, int64_t pause)
{
	double		worst = 0;

	for (size_t i = 0; i < STEADY_SIZES; i++)
	{
		Session		steady = *session;

		for (int n = 0; n < 200; n++)
			use(&steady, steady_sizes[i], pause);
		steady.used = steady.taken = 0;
		for (int n = 0; n < 3000; n++)
			use(&steady, steady_sizes[i], pause);
		if (taken_for_each_used(&steady) > worst)
			worst = taken_for_each_used(&steady);
	}
	return worst;
}

/* Pseudorandom, from 1 to a number (the generator of the C standard's example). */
static int
draw(uint32_t *state, int most)
{
	*state = *state * 1103515245 + 12345;
	return (int) (*state / 65536 % 32768) % most + 1;
}

/* Layouts by the name of the service, and the number of IDs in a tick of this many microseconds. */
static const struct
{
	const char *name;
	uint32_t	sequence_numbers;
	int64_t		tick_length;
}			layouts[] = {
	{"twitter", 4096, 1000},
	{"instagram", 1024, 1000},
	{"sonyflake", 256, 10000},
	{"mastodon", 65536, 1000},
	{"sno", 65536, 4000},
	{"20 bits", 1 << 20, 1000},
};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* The largest batch of a range of sequence numbers. */
static uint32_t
largest(uint32_t min, uint32_t max)
{
	SfSequenceRange range = {min, max};

	return sf_demand_max(range);
}

static Session
session_of(size_t layout, int64_t call)
{
	Session		session = {0};

	session.tick_length = layouts[layout].tick_length;
	session.call = call;
	session.size_max = largest(0, layouts[layout].sequence_numbers - 1);
	return session;
}

static void
test_steady(void)
{
	for (size_t i = 0; i < LAYOUTS; i++)
	{
		Session		fast = session_of(i, 40);
		Session		slow = session_of(i, 5000);

		ok(worst_steady(&fast, 10000) <= 1.02, "%s: transactions of one size lose up to 2 %% (%.4f)",
		   layouts[i].name, worst_steady(&fast, 10000));
		ok(worst_steady(&slow, 100000) <= 1.02, "%s: of slow statements 2 %% (%.4f)",
		   layouts[i].name, worst_steady(&slow, 100000));
	}
}

static void
test_changing(void)
{
	for (size_t i = 0; i < LAYOUTS; i++)
	{
		Session		drawn = session_of(i, 40);
		Session		alternating = session_of(i, 40);
		uint32_t	state = 1;

		for (int n = 0; n < 20000; n++)
		{
			use(&drawn, draw(&state, 100), 10000);
			use(&alternating, n % 2 ? 64 : 1, 10000);
		}
		ok(taken_for_each_used(&drawn) <= 1.11, "%s: sizes from 1 to 100 at random lose up to a tenth (%.3f)",
		   layouts[i].name, taken_for_each_used(&drawn));
		ok(taken_for_each_used(&alternating) <= 1.1, "%s: 1 and 64 in turn lose up to a tenth (%.3f)",
		   layouts[i].name, taken_for_each_used(&alternating));
	}
}

/* Sessions that contend for the cursor need few batches. */
static void
test_contended(void)
{
	Session		session = session_of(0, 40);
	uint32_t	state = 1;

	session.contended = true;
	for (int n = 0; n < 10000; n++)
		use(&session, draw(&state, 20), 10000);
	ok(session.batches <= 20000, "sizes from 1 to 20, contended: %.2f batches each",
	   (double) session.batches / 10000);
}

/* Large transactions need few batches, also after small ones. */
static void
test_batches(void)
{
	Session		session = session_of(0, 31);
	uint64_t	before;

	use(&session, 100000, 0);
	ok(session.batches < 100000 / 64 + 60, "a first transaction: %d batches of 100000 IDs", (int) session.batches);
	use(&session, 1, 0);
	before = session.batches;
	use(&session, 100000, 0);
	ok(session.batches - before < 100000 / 64 + 60, "one after a small one: %d batches",
	   (int) (session.batches - before));
}

static void
test_limits(void)
{
	SfDemand	demand = {0};

	is_int(largest(0, 4095), 64, "a 64th of a tick");
	is_int(largest(10, 20), 1, "at least one");
	is_int(largest(0, SF_SEQUENCE_MAX), 1 << 25, "of the widest sequence");
	is_int(sf_demand_size(&demand, 64), 1, "the first batch of a session has one ID");

	demand = (SfDemand)
	{
		.expected = 50,.previous = 80,.pace = 100
	};
	is_int(sf_demand_size(&demand, 64), 50, "what a transaction is expected to use");
	is_int(sf_demand_size(&demand, 40), 40, "but no more than the most");
	sf_demand_add_batch(&demand, 40, false, false);
	is_int(sf_demand_size(&demand, 64), 10, "what is missing from it");
	sf_demand_add_batch(&demand, 10, true, true);
	is_int(sf_demand_size(&demand, 64), 6, "an eighth beyond it, also if a swap failed ahead of the clock");
	sf_demand_add_batch(&demand, 6, true, false);
	is_int(sf_demand_size(&demand, 64), 24, "a swap failed behind the clock: what the previous one has used");
	sf_demand_add_batch(&demand, 24, true, false);
	is_int(sf_demand_size(&demand, 64), 64, "and as many as were used beyond it");
	demand.pace = 1;
	is_int(sf_demand_size(&demand, 64), 32, "within half a tick");
	sf_demand_add_batch(&demand, 32, false, false);
	is_int(sf_demand_size(&demand, 64), 1, "no more than the pace");

	demand = (SfDemand)
	{
		.used = 20,.size = 10,.pace = 8
	};
	sf_demand_end_batch(&demand, 0, 5, 640);
	is_int(demand.pace, 20, "used up within half of a 64th of a tick: the pace is twice the batch");
	sf_demand_end_batch(&demand, 0, 10, 640);
	is_int(demand.pace, 10, "in a 64th: the batch");
	sf_demand_end_batch(&demand, 0, 21, 640);
	is_int(demand.pace, 4, "in twice as long: half of it");
	sf_demand_end_batch(&demand, 0, -1, 640);
	is_int(demand.pace, 20, "under a clock that was set back: as if at once");
	sf_demand_end_batch(&demand, 4, 20, 640);
	is_int(demand.pace, 3, "those that are left are not counted");
	is_int((int64_t) demand.used, 16, "and they are not used");

	sf_demand_end_transaction(&demand, 2);
	ok(demand.previous == 14 && demand.expected == 1 && demand.used == 0, "the transaction has used 14");
	sf_demand_end_batch(&demand, 0, 1000, 640);
	is_int(demand.pace, 3, "the time between transactions does not count");
	sf_demand_end_transaction(&demand, 0);
	ok(demand.previous == 14 && demand.expected == 1, "nor does a transaction that takes no ID");
	demand.used = 33;
	sf_demand_end_transaction(&demand, 0);
	is_int((int64_t) demand.expected, 3, "more is expected, by a sixteenth of the difference");
	demand.used = 2;
	sf_demand_end_transaction(&demand, 0);
	is_int((int64_t) demand.expected, 2, "less at once");
}

int
main(void)
{
	test_limits();
	test_steady();
	test_changing();
	test_batches();
	test_contended();
	return done_testing();
}
