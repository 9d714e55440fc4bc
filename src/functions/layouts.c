/*
 * layouts.c
 *	  The presets, as rows for the view snowflake_layouts.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "core/layout.h"
#include "functions/interval.h"

PG_FUNCTION_INFO_V1(snowflake_layouts);

#define LAYOUT_COLUMNS 10

static void
put_layout(ReturnSetInfo *result, const SfPreset *preset)
{
	SfLayout	layout;
	SfParseError error;
	SfInstant	end;
	char		definition[SF_LAYOUT_TEXT_SIZE];
	Datum		values[LAYOUT_COLUMNS];
	bool		nulls[LAYOUT_COLUMNS] = {false};

	if (!sf_layout_parse(preset->definition, &layout, &error))
		elog(ERROR, "preset \"%s\" is no layout: %s", preset->name, error.message);
	sf_layout_format(&layout, definition);
	end = sf_layout_tick_start(&layout, sf_layout_last_tick(&layout) + 1);

	values[0] = CStringGetTextDatum(preset->name);
	values[1] = TimestampTzGetDatum(layout.epoch);
	values[2] = sf_interval(layout.tick_length);
	values[3] = Int32GetDatum(layout.timestamp_bits);
	values[4] = Int32GetDatum(layout.machine_bits);
	values[5] = Int32GetDatum(layout.sequence_bits);
	values[6] = Int64GetDatum((int64) sf_field_max(layout.machine_bits) + 1);
	values[7] = Int64GetDatum(((int64) sf_field_max(layout.sequence_bits) + 1) *
							  USECS_PER_SEC / layout.tick_length);
	values[8] = TimestampTzGetDatum(end);
	values[9] = CStringGetTextDatum(definition);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < SF_PRESET_COUNT; i++)
		put_layout(result, &sf_presets[i]);
	return (Datum) 0;
}
