/*
 * clock.c
 *	  A wall clock that tests can step, and a disk that is full or slow, for LD_PRELOAD.
 *
 * The file that SNOWFLAKE_TEST_CLOCK names holds a signed 64-bit number of
 * nanoseconds by which the wall clock is off, a second one, the time since
 * 1970 at which it stands still, or 0 if it does not, and a third one by which
 * CLOCK_MONOTONIC is off.  It is mapped, so that a write to it steps the clock of
 * all processes at once, while they run.  The time since the machine booted stays
 * true.  Waits until an instant of CLOCK_MONOTONIC take as long as they would with a
 * correct clock, unless it is stepped meanwhile.  While a fourth number is not 0, writes to files of WAL fail as if the disk were full.
 * A fifth one is the time in nanoseconds by which each fdatasync() takes longer, which PostgreSQL
 * calls only for WAL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000

typedef struct Fault
{
	int64_t		offset;
	int64_t		frozen_at;
	int64_t		monotonic_offset;
	int64_t		wal_disk_full;
	int64_t		flush_time;
} Fault;

static const volatile Fault *fault;

/* The one of the C library makes no system call. */
static int	(*true_clock_gettime) (clockid_t clock, struct timespec *time);

__attribute__((constructor)) static void
map_fault(void)
{
	const char *path = getenv("SNOWFLAKE_TEST_CLOCK");
	int			file = path ? open(path, O_RDONLY) : -1;
	void	   *map;

	true_clock_gettime = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	if (file < 0)
		return;
	map = mmap(NULL, sizeof(Fault), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (map != MAP_FAILED)
		fault = map;
}

int
clock_gettime(clockid_t clock, struct timespec *time)
{
	int			result = true_clock_gettime ? true_clock_gettime(clock, time) :
	(int) syscall(SYS_clock_gettime, clock, time);

	if (result == 0 && fault && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
	{
		int64_t		now = time->tv_sec * (int64_t) NS_PER_SECOND + time->tv_nsec + fault->offset;
		int64_t		frozen_at = fault->frozen_at;

		if (frozen_at != 0)
			now = frozen_at;
		time->tv_sec = now / NS_PER_SECOND;
		time->tv_nsec = now % NS_PER_SECOND;
	}
	if (result == 0 && fault && clock == CLOCK_MONOTONIC)
	{
		int64_t		now = time->tv_sec * (int64_t) NS_PER_SECOND + time->tv_nsec + fault->monotonic_offset;

		time->tv_sec = now / NS_PER_SECOND;
		time->tv_nsec = now % NS_PER_SECOND;
	}
	return result;
}

int
gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	struct timespec now;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &now);
	time->tv_sec = now.tv_sec;
	time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *result)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (result)
		*result = now.tv_sec;
	return now.tv_sec;
}

/* An instant of the true CLOCK_MONOTONIC. */
static struct timespec
true_instant(const struct timespec *time)
{
	int64_t		instant = time->tv_sec * (int64_t) NS_PER_SECOND + time->tv_nsec - (fault ? fault->monotonic_offset : 0);
	struct timespec result = {0, 0};

	if (instant > 0)
	{
		result.tv_sec = instant / NS_PER_SECOND;
		result.tv_nsec = instant % NS_PER_SECOND;
	}
	return result;
}

/* The two waits of Python, for locks and for time.sleep(). */
int
sem_clockwait(sem_t * restrict semaphore, clockid_t clock, const struct timespec *restrict time)
{
	static int	(*true_sem_clockwait) (sem_t *, clockid_t, const struct timespec *);
	struct timespec until = clock == CLOCK_MONOTONIC ? true_instant(time) : *time;

	if (!true_sem_clockwait)
		true_sem_clockwait = (int (*) (sem_t *, clockid_t, const struct timespec *)) dlsym(RTLD_NEXT, "sem_clockwait");
	return true_sem_clockwait(semaphore, clock, &until);
}

int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	struct timespec until = clock == CLOCK_MONOTONIC && flags == TIMER_ABSTIME ? true_instant(time) : *time;

	return syscall(SYS_clock_nanosleep, clock, flags, &until, left) == 0 ? 0 : errno;
}

/* PostgreSQL writes WAL by pwrite. */
ssize_t
pwrite(int file, const void *data, size_t size, off_t offset)
{
	if (fault && fault->wal_disk_full)
	{
		char		link[64];
		char		path[4096];
		ssize_t		length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
		length = readlink(link, path, sizeof(path) - 1);
		path[length > 0 ? length : 0] = '\0';
		if (strstr(path, "/pg_wal/"))
		{
			errno = ENOSPC;
			return -1;
		}
	}
	return syscall(SYS_pwrite64, file, data, size, offset);
}

/* A signal does not end it, as it does not end a write to a disk; a lower number does. */
int
fdatasync(int file)
{
	static const struct timespec slice = {0, NS_PER_SECOND / 100};

	for (int64_t slept = 0; fault && slept < fault->flush_time; slept += slice.tv_nsec)
		nanosleep(&slice, NULL);
	return (int) syscall(SYS_fdatasync, file);
}
