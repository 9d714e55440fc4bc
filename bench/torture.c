/*
 * torture.c
 *	  Determines whether an ID was ever seen before, for bench/torture.
 *
 *	torture FILE START
 *
 * Reads the binary COPY of one column of type bigint or sno.  FILE has four counters, and then a bit for
 * each ID from START on, in seconds since 1970: of the layout "twitter", or of type sno with sequence
 * numbers up to 4095.  It is mapped by all readers.  Bits are set and sums added by atomic operations, so an ID that two readers have is
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

#define BIGINT_EPOCH	INT64_C(1288834974657)	/* ms */
#define SNO_EPOCH		INT64_C(1262304000000)
#define SNO_TICK		4		/* ms */
#define IDS_PER_TICK	INT64_C(4096)
#define HEADER_SIZE		19		/* of a binary COPY */

typedef struct Seen
{
	int64_t		checked;
	int64_t		duplicates;
	int64_t		disordered;		/* not after the one before, of the same line */
	int64_t		outside;		/* outside of the period of the file */
	unsigned char bits[];
} Seen;

static Seen *seen;
static int64_t start;			/* ms since 1970 */
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

/* The number whose bytes are given, the high one first. */
static int64_t
number(const unsigned char *bytes, int size)
{
	uint64_t	result = 0;

	for (int i = 0; i < size; i++)
		result = result << 8 | bytes[i];
	return (int64_t) result;
}

/* Position of an ID among all of its server: time, line and sequence.  An ID of type bigint has line 0. */
static int64_t
position_of_bigint(const unsigned char *bytes, int *line)
{
	int64_t		id = number(bytes, 8);

	*line = 0;
	return ((id >> 22) + BIGINT_EPOCH - start) * IDS_PER_TICK + (id & (IDS_PER_TICK - 1));
}

static int64_t
position_of_sno(const unsigned char *bytes, int *line)
{
	int64_t		units = number(bytes, 5) >> 1;
	int64_t		tick = units + (SNO_EPOCH - start) / SNO_TICK;
	int64_t		sequence = number(bytes + 8, 2);

	*line = bytes[4] & 1;
	return sequence < IDS_PER_TICK ? (tick * 2 + *line) * IDS_PER_TICK + sequence : -1;
}

static void
check(int64_t bit, int64_t *last)
{
	unsigned char mask = (unsigned char) (1 << (bit & 7));

	if (bit < 0 || bit >= ids)
		__atomic_fetch_add(&seen->outside, 1, __ATOMIC_RELAXED);
	else if (__atomic_fetch_or(&seen->bits[bit / 8], mask, __ATOMIC_RELAXED) & mask)
		__atomic_fetch_add(&seen->duplicates, 1, __ATOMIC_RELAXED);
	if (bit <= *last)
		__atomic_fetch_add(&seen->disordered, 1, __ATOMIC_RELAXED);
	*last = bit;
}

/*
 * A row: number of columns, 1, and length, 8 or 10, and the ID.  Returns whether there was a header of
 * a COPY.
 */
static bool
read_ids(void)
{
	unsigned char header[HEADER_SIZE];
	unsigned char row[6];
	unsigned char id[10];
	int64_t		count = 0;
	int64_t		last[2] = {-1, -1};

	if (fread(header, 1, HEADER_SIZE, stdin) < HEADER_SIZE)
		return false;
	while (fread(row, 1, sizeof(row), stdin) == sizeof(row))
	{
		size_t		size = row[5];
		int			line;
		int64_t		bit;

		if ((size != 8 && size != 10) || fread(id, 1, size, stdin) < size)
			break;
		bit = size == 8 ? position_of_bigint(id, &line) : position_of_sno(id, &line);
		check(bit, &last[line]);
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
	start = atoll(argv[2]) * 1000;
	return read_ids() ? 0 : 1;
}
