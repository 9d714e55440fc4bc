/*
 * test_vectors.c
 *	  The published IDs in test/vectors, decoded and composed again.
 *
 * The test runs in the top directory of the project.
 */
#include <stdlib.h>

#include "csv.h"
#include "layout.h"

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
	is_int(for_each_row("test/vectors/known_ids.csv", 6, check_known_id), 5, "known IDs");
	is_int(for_each_row("test/vectors/sonyflake.csv", 5, check_sonyflake), 41, "Sonyflake IDs");
	return done_testing();
}
