/*
 * test_vectors.c
 *	  IDs that others published, in test/vectors, taken apart and composed again.
 *
 * Runs in the top directory of the project.
 */
#include <stdlib.h>

#include "layout.h"
#include "tap.h"

#define MAX_COLUMNS 8

/* Cuts a line at its commas; returns how many columns it has. */
static int
split(char *line, char *columns[MAX_COLUMNS])
{
	int			count = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (count < MAX_COLUMNS)
	{
		columns[count++] = line;
		line = strchr(line, ',');
		if (line == NULL)
			break;
		*line++ = '\0';
	}
	return count;
}

static void
check(const char *layout_name, int64_t id, const char *time, uint32_t machine, uint32_t sequence)
{
	SfLayout	layout;
	SfParseError error;
	SfInstant	instant = 0;
	SfFields	fields;

	if (!ok(sf_layout_parse(layout_name, &layout, &error), "layout %s", layout_name))
		return;
	ok(sf_instant_parse(time, strlen(time), &instant), "%s is an instant", time);
	ok(sf_layout_holds(&layout, id), "%" PRId64 " is a %s ID", id, layout_name);
	is_int(sf_layout_instant(&layout, id), instant, time);
	fields = sf_layout_decompose(&layout, id);
	is_int(fields.machine, machine, "machine");
	is_int(fields.sequence, sequence, "sequence");

	fields.tick = (uint64_t) sf_layout_tick_floor(&layout, instant);
	fields.machine = machine;
	fields.sequence = sequence;
	is_int(sf_layout_compose(&layout, fields), id, "the ID composed again");
}

/* Calls check_row for each row behind the header; returns their number. */
static int
for_each_row(const char *path, void (*check_row) (char *columns[MAX_COLUMNS]))
{
	FILE	   *file = fopen(path, "r");
	char		line[1024];
	char	   *columns[MAX_COLUMNS];
	int			rows = 0;

	if (!ok(file != NULL, "%s opens", path))
		return 0;
	if (fgets(line, sizeof(line), file) == NULL)
		ok(false, "%s has a header", path);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		if (ok(split(line, columns) >= 5, "row %d of %s", ++rows, path))
			check_row(columns);
	}
	fclose(file);
	return rows;
}

/* system,id,time,machine,sequence,source */
static void
check_known_id(char *columns[MAX_COLUMNS])
{
	check(columns[0], strtoll(columns[1], NULL, 10), columns[2],
		  (uint32_t) strtoul(columns[3], NULL, 10), (uint32_t) strtoul(columns[4], NULL, 10));
}

/* id,ticks,sequence,machine,time */
static void
check_sonyflake(char *columns[MAX_COLUMNS])
{
	check("sonyflake", strtoll(columns[0], NULL, 10), columns[4],
		  (uint32_t) strtoul(columns[3], NULL, 10), (uint32_t) strtoul(columns[2], NULL, 10));
}

int
main(void)
{
	is_int(for_each_row("test/vectors/known_ids.csv", check_known_id), 5, "known IDs");
	is_int(for_each_row("test/vectors/sonyflake.csv", check_sonyflake), 41, "Sonyflake IDs");
	return done_testing();
}
