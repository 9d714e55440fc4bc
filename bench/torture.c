/*
 * torture.c
 *	  Determines whether an ID was ever seen before, for bench/torture.
 *
 *	torture FILE START
 *
 * Reads the binary COPY of one bigint column.  FILE has four counters, and then a bit for each ID of
 * the layout "twitter" from START on, in seconds since 1970; it is mapped by all
 * readers.  Bits are set and sums added by atomic operations, so an ID that two readers have is
 * noticed by one of them, whenever they run.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EPOCH			INT64_C(1288834974657)	/* ms */
#define IDS_PER_MS		INT64_C(4096)
#define HEADER_SIZE		19		/* of a binary COPY */

typedef struct Seen
{
	int64_t		checked;
	int64_t		duplicates;
	int64_t		disordered;		/* not greater than the one before */
	int64_t		outside;		/* outside of the period of the file */
	unsigned char bits[];
} Seen;

static Seen *seen;
static int64_t start;			/* ms since EPOCH */
static int64_t ids;				/* number of bits */

static void
map_file(const char *path)
{
	int			file = open(path, O_RDWR);
	struct stat info;

	if (file >= 0 && fstat(file, &info) == 0)
		seen = mmap(NULL, (size_t) info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (seen == NULL || seen == MAP_FAILED)
	{
		perror(path);
		exit(2);
	}
	ids = (info.st_size - (off_t) sizeof(Seen)) * 8;
}

/* Position of an ID among all of its server: time and sequence. */
static int64_t
position(int64_t id)
{
	return ((id >> 22) - start) * IDS_PER_MS + (id & (IDS_PER_MS - 1));
}

static void
check(int64_t id, int64_t last)
{
	int64_t		bit = position(id);
	unsigned char mask = (unsigned char) (1 << (bit & 7));

	if (bit < 0 || bit >= ids)
		__atomic_fetch_add(&seen->outside, 1, __ATOMIC_RELAXED);
	else if (__atomic_fetch_or(&seen->bits[bit / 8], mask, __ATOMIC_RELAXED) & mask)
		__atomic_fetch_add(&seen->duplicates, 1, __ATOMIC_RELAXED);
	if (id <= last)
		__atomic_fetch_add(&seen->disordered, 1, __ATOMIC_RELAXED);
}

/*
 * A row: number of columns, 1, and length, 8, and the number, high byte first.  Returns whether there
 * was a header of a COPY.
 */
static bool
read_ids(void)
{
	static const unsigned char head[6] = {0, 1, 0, 0, 0, 8};
	unsigned char row[14];
	int64_t		count = 0;
	int64_t		last = 0;

	if (fread(row, 1, 14, stdin) < 14 || fread(row, 1, HEADER_SIZE - 14, stdin) < HEADER_SIZE - 14)
		return false;
	while (fread(row, 1, 14, stdin) == 14 && memcmp(row, head, 6) == 0)
	{
		int64_t		id = 0;

		for (int i = 6; i < 14; i++)
			id = id << 8 | row[i];
		check(id, last);
		last = id;
		if (++count % 10000 == 0)
			__atomic_fetch_add(&seen->checked, 10000, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&seen->checked, count % 10000, __ATOMIC_RELAXED);
	return true;
}

int
main(int argc, char **argv)
{
	if (argc != 3)
	{
		fprintf(stderr, "usage: %s FILE START\n", argv[0]);
		return 2;
	}
	map_file(argv[1]);
	start = atoll(argv[2]) * 1000 - EPOCH;
	return read_ids() ? 0 : 1;
}
