/*
 * test_attempt.c
 *	  When a server asks its registry: the bounds of the random times, and how far they spread.
 */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "attempt.h"

#define SERVERS	10000

static uint32_t
draw(void)
{
	return (uint32_t) (random_number() >> 32);
}

/* A lease is renewed at half of it at the latest, and never before three eighths of it. */
static void
test_renewal(int64_t lease)
{
	int64_t		half = lease / 2;
	int			wrong = 0;

	for (int i = 0; i < 100000; i++)
	{
		int64_t		advance = sf_renewal_advance(half, draw());

		wrong += advance < 0 || advance > half / 4;
	}
	is_int(wrong, 0, "renewals after half of the lease, or before three eighths");
	is_int(sf_renewal_advance(half, 0), 0, "a draw of 0 moves nothing");
	ok(sf_renewal_advance(half, UINT32_MAX) >= half / 4 - 1, "the greatest draw moves a quarter of half of %d ms", (int) lease);
}

static void
test_delays(int64_t lease, const int *expected)
{
	int64_t		delay = 0;

	for (int i = 0; i < 12; i++)
	{
		delay = sf_retry_delay(delay, lease);
		is_int(delay, expected[i], "delay after a failure");
	}
}

/* Nothing is later than without a draw, and nothing more than twice as frequent. */
static void
test_wait(int64_t delay)
{
	int			wrong = 0;

	for (int i = 0; i < 100000; i++)
	{
		int64_t		wait = sf_retry_wait(delay, draw());

		wrong += wait > delay || wait < delay - delay / 2;
	}
	is_int(wrong, 0, "waits outside of half of the delay to all of it");
	is_int(sf_retry_wait(delay, 0), delay, "a draw of 0 waits for all of it");
}

static void
test_when_free(int64_t delay, int64_t spread)
{
	int			wrong = 0;
	int64_t		last = 0;

	for (int i = 0; i < 100000; i++)
	{
		int64_t		wait = sf_retry_when_free(5000, delay, draw());

		wrong += wait < 5000 || wait >= 5000 + spread;
		last = wait > last ? wait : last;
	}
	is_int(wrong, 0, "attempts before the time that the registry has named, or long after it");
	ok(last >= 5000 + spread * 9 / 10, "they are spread over %d ms", (int) spread);
	is_int(sf_retry_when_free(5000, delay, 0), 5000, "a draw of 0 is on time");
}

/*
 * The renewals in the busiest second of a half lease, of servers that all began at once, by
 * the number of renewals since then.
 */
static int
busiest_second(int renewals, int jitter)
{
	static int	in_second[3600];
	int			most = 0;

	memset(in_second, 0, sizeof(in_second));
	for (int i = 0; i < SERVERS; i++)
	{
		int64_t		time = 0;

		for (int j = 0; j < renewals; j++)
			time += 1800000 - sf_renewal_advance(1800000, jitter ? draw() : 0);
		in_second[time / 1000 % 3600]++;
	}
	for (int i = 0; i < 3600; i++)
		most = in_second[i] > most ? in_second[i] : most;
	return most;
}

int
main(void)
{
	static const int of_an_hour[] = {250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000, 60000};
	static const int of_a_minute[] = {250, 500, 1000, 2000, 4000, 7500, 7500, 7500, 7500, 7500, 7500, 7500};
	static const int of_a_second[] = {250, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500};

	test_renewal(3600000);
	test_renewal(86400000);
	test_renewal(1000);
	test_delays(3600000, of_an_hour);
	test_delays(60000, of_a_minute);
	test_delays(1000, of_a_second);
	test_wait(SF_FIRST_RETRY);
	test_wait(SF_REQUESTED_RETRY);
	test_wait(SF_LAST_RETRY);
	test_when_free(SF_FIRST_RETRY, SF_FIRST_RETRY);
	test_when_free(SF_LAST_RETRY, SF_REQUESTED_RETRY);
	is_int(busiest_second(1, 0), SERVERS, "without draws, all renew at the same moment");
	ok(busiest_second(1, 1) < 50, "the first renewals are spread over the last quarter");
	ok(busiest_second(4, 1) < 40, "and later ones over more");
	return done_testing();
}
