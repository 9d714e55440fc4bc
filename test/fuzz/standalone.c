/*
 * standalone.c
 *	  Runs a fuzz target without libFuzzer, on texts of its corpus in which some characters
 *	  are changed, added or removed.  The texts are the same in each run.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>

#include "../unit/tap.h"
#include "fuzz.h"

#define RUNS		500000
#define MAX_SEEDS	500
#define MAX_LENGTH	200

static char seeds[MAX_SEEDS][MAX_LENGTH + 1];
static int	count = 0;

static void
read_seed(const char *name)
{
	char		path[500];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
	file = fopen(path, "r");
	check(file != NULL && count < MAX_SEEDS);
	seeds[count][fread(seeds[count], 1, MAX_LENGTH, file)] = '\0';
	count++;
	fclose(file);
}

static int
is_seed(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Reads them in the order of their names, so that each run is the same. */
static void
read_seeds(void)
{
	struct dirent **names;
	int			found = scandir(CORPUS, &names, is_seed, alphasort);

	for (int i = 0; i < found; i++)
	{
		read_seed(names[i]->d_name);
		free(names[i]);
	}
	if (found >= 0)
		free(names);
}

static size_t
below(size_t limit)
{
	return (size_t) (random_number() % limit);
}

/* A character of some seed, or any other one. */
static char
some_character(void)
{
	const char *seed = seeds[below((size_t) count)];
	size_t		length = strlen(seed);

	return length == 0 || below(4) == 0 ? (char) (1 + below(255)) : seed[below(length)];
}

/* Changes, adds or removes one character. */
static void
change(char *text)
{
	size_t		length = strlen(text);
	size_t		place = below(length + 1);

	switch (below(3))
	{
		case 0:
			if (place < length)
				text[place] = some_character();
			break;
		case 1:
			if (length < MAX_LENGTH)
			{
				memmove(text + place + 1, text + place, length - place + 1);
				text[place] = some_character();
			}
			break;
		case 2:
			if (place < length)
				memmove(text + place, text + place + 1, length - place);
			break;
	}
}

int
main(void)
{
	char		text[MAX_LENGTH + 1];

	read_seeds();
	if (!ok(count > 0, "%s has %d texts", CORPUS, count))
		return done_testing();
	for (int run = 0; run < RUNS; run++)
	{
		strcpy(text, seeds[below((size_t) count)]);
		for (size_t changes = below(4); changes > 0; changes--)
			change(text);
		fuzz_text(text);
	}
	ok(true, "%d texts", RUNS);
	return done_testing();
}
