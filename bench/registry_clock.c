/*
 * registry_clock.c
 *	  The clocks of a run.
 *
 * The times of attempts and the timeouts are those of a monotonic clock.  The times of leases are
 * those of the wall clock, which the servers and the registry share: in a day, it is ahead of the
 * system clock by the number of ns in a file.  This program maps the file, and the registry reads
 * it by t/lib/clock.c.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "registry.h"

static double start;
static volatile int64_t *offset;	/* NULL: the system clock */

double
monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec + (double) time.tv_nsec / 1e9 - start;
}

void
start_clock(void)
{
	start += monotonic();
}

void
map_wall_clock(const char *path)
{
	int			file = open(path, O_RDWR);

	if (file < 0)
		fail("cannot open the file of the clock");
	offset = mmap(NULL, sizeof(*offset), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (offset == MAP_FAILED)
		fail("cannot map the file of the clock");
}

int64_t
wall_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000 + (offset ? *offset / 1000 : 0);
}

/* Set the clock, whose file is mapped.  It only moves forward. */
void
set_wall_clock(int64_t time)
{
	int64_t		ahead = time - wall_clock();

	if (ahead > 0)
		*offset += ahead * 1000;
}
