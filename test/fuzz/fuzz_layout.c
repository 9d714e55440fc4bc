/*
 * fuzz_layout.c
 *	  The parser of layouts, with any text.  A layout that is read is written as a text of
 *	  the same layout, and its last ID is decoded and composed again.  An error has a place.
 */
#include "fuzz.h"
#include "layout.h"

void
fuzz_text(const char *text)
{
	SfLayout	layout;
	SfLayout	again;
	SfParseError error;
	char		written[SF_LAYOUT_TEXT_SIZE];
	SfFields	fields;

	if (!sf_layout_parse(text, &layout, &error))
	{
		check_error(text, &error);
		return;
	}
	sf_layout_format(&layout, written);
	check(strlen(written) < SF_LAYOUT_TEXT_SIZE);
	check(sf_layout_parse(written, &again, &error));
	check(sf_layout_equal(&layout, &again));
	fields = sf_layout_decompose(&layout, sf_layout_last_id(&layout));
	check(fields.tick == sf_layout_last_tick(&layout) &&
		  fields.machine == sf_field_max(layout.machine_bits) &&
		  fields.sequence == sf_field_max(layout.sequence_bits));
	check(sf_layout_compose(&layout, fields) == sf_layout_last_id(&layout));
	check(sf_layout_tick_floor(&layout, sf_layout_tick_start(&layout, fields.tick)) ==
		  (int64_t) fields.tick);
}
