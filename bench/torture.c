/*
 * torture.c
 *	  Determines whether an ID was ever seen before, for bench/torture.
 *
 *	torture FILE make SECONDS	makes FILE, for IDs of SECONDS seconds from
 *								a minute ago on
 *	torture FILE read			reads the binary COPY of one bigint column
 *	torture FILE report			prints the result so far
 *
 * FILE has a bit for each ID of the layout "twitter" in that period, and is
 * mapped by all readers.  Bits are set and sums added by atomic operations, so an
 * ID that two readers have is noticed by one of them, whenever they run.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EPOCH			INT64_C(1288834974657)	/* ms */
#define IDS_PER_MS		INT64_C(4096)
#define HEADER_SIZE		19		/* of a binary COPY */

typedef struct Seen
{
	int64_t		start;			/* ms since EPOCH */
	int64_t		ids;			/* number of bits */
	int64_t		checked;
	int64_t		duplicates;
	int64_t		disordered;		/* not greater than the one before */
	int64_t		outside;		/* outside of the period */
	unsigned char bits[];
} Seen;

static void
fail(const char *what)
{
	perror(what);
	exit(2);
}

static void
make_file(const char *path, int64_t seconds)
{
	struct timespec now;
	Seen		seen = {0};
	int			file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);

	clock_gettime(CLOCK_REALTIME, &now);
	seen.start = now.tv_sec * INT64_C(1000) - EPOCH - 60000;
	seen.ids = (seconds + 60) * 1000 * IDS_PER_MS;
	if (file < 0 || write(file, &seen, sizeof(seen)) != sizeof(seen) ||
		ftruncate(file, (off_t) sizeof(seen) + seen.ids / 8) != 0)
		fail(path);
	close(file);
}

static Seen *
map_file(const char *path)
{
	int			file = open(path, O_RDWR);
	struct stat info;
	void	   *map;

	if (file < 0 || fstat(file, &info) != 0)
		fail(path);
	map = mmap(NULL, (size_t) info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		fail(path);
	close(file);
	return map;
}

/* Position of an ID among all of its server: time and sequence. */
static int64_t
position(const Seen *seen, int64_t id)
{
	return ((id >> 22) - seen->start) * IDS_PER_MS + (id & (IDS_PER_MS - 1));
}

static void
check(Seen *seen, int64_t id, int64_t last)
{
	int64_t		bit = position(seen, id);
	unsigned char mask = (unsigned char) (1 << (bit & 7));

	if (bit < 0 || bit >= seen->ids)
		__atomic_fetch_add(&seen->outside, 1, __ATOMIC_RELAXED);
	else if (__atomic_fetch_or(&seen->bits[bit / 8], mask, __ATOMIC_RELAXED) & mask)
		__atomic_fetch_add(&seen->duplicates, 1, __ATOMIC_RELAXED);
	if (id <= last)
		__atomic_fetch_add(&seen->disordered, 1, __ATOMIC_RELAXED);
}

/* A row: number of columns, 1, and length, 8, and the number, high byte first. */
static void
read_ids(Seen *seen)
{
	static const unsigned char head[6] = {0, 1, 0, 0, 0, 8};
	unsigned char row[14];
	int64_t		count = 0;
	int64_t		last = 0;

	if (fread(row, 1, 14, stdin) < 14 || fread(row, 1, HEADER_SIZE - 14, stdin) < HEADER_SIZE - 14)
		return;
	while (fread(row, 1, 14, stdin) == 14 && memcmp(row, head, 6) == 0)
	{
		int64_t		id = 0;

		for (int i = 6; i < 14; i++)
			id = id << 8 | row[i];
		check(seen, id, last);
		last = id;
		if (++count % 10000 == 0)
			__atomic_fetch_add(&seen->checked, 10000, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&seen->checked, count % 10000, __ATOMIC_RELAXED);
}

static int
report(const Seen *seen)
{
	printf("%lld IDs checked, %lld duplicates, %lld out of order in a session, %lld with a wrong time\n",
		   (long long) seen->checked, (long long) seen->duplicates,
		   (long long) seen->disordered, (long long) seen->outside);
	return seen->duplicates || seen->disordered || seen->outside;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[2], "make") == 0)
		make_file(argv[1], atoll(argv[3]));
	else if (argc == 3 && strcmp(argv[2], "read") == 0)
		read_ids(map_file(argv[1]));
	else if (argc == 3 && strcmp(argv[2], "report") == 0)
		return report(map_file(argv[1]));
	else
	{
		fprintf(stderr, "usage: %s FILE make SECONDS | read | report\n", argv[0]);
		return 2;
	}
	return 0;
}
