/*
 * decode.c
 *	  SQL functions that decode IDs.
 *
 * Each C function implements two SQL functions: f(id) for the server's layout, and
 * f(id, layout) for a layout that is given as an argument.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "functions/arguments.h"

PG_FUNCTION_INFO_V1(snowflake_decode);
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_machine_id);
PG_FUNCTION_INFO_V1(snowflake_sequence);

Datum
snowflake_decode(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);
	int64		id = sf_id_argument(fcinfo, 0, layout, 1);
	SfFields	fields = sf_layout_decompose(layout, id);
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	values[0] = TimestampTzGetDatum(sf_layout_instant(layout, id));
	values[1] = Int32GetDatum((int32) fields.machine);
	values[2] = Int32GetDatum((int32) fields.sequence);
	PG_RETURN_DATUM(sf_row(fcinfo, values, nulls));
}

Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);
	int64		id = sf_id_argument(fcinfo, 0, layout, 1);

	PG_RETURN_TIMESTAMPTZ(sf_layout_instant(layout, id));
}

Datum
snowflake_machine_id(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);
	int64		id = sf_id_argument(fcinfo, 0, layout, 1);

	PG_RETURN_INT32((int32) sf_layout_decompose(layout, id).machine);
}

Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);
	int64		id = sf_id_argument(fcinfo, 0, layout, 1);

	PG_RETURN_INT32((int32) sf_layout_decompose(layout, id).sequence);
}
