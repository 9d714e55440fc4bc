/*
 * encode.c
 *	  SQL functions that compute IDs, and bounds of IDs, from times.
 *
 * As in decode.c, each C function implements one SQL function for the server's layout
 * and one for a layout that is given as an argument.
 */
#include "postgres.h"

#include "common/int.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "utils/timestamp.h"

#include "functions/arguments.h"

PG_FUNCTION_INFO_V1(snowflake_encode);
PG_FUNCTION_INFO_V1(snowflake_boundary);
PG_FUNCTION_INFO_V1(snowflake_next_instant);
PG_FUNCTION_INFO_V1(snowflake_width);

/* The number of the layout argument of snowflake_encode. */
#define ENCODE_LAYOUT	3

/* The int4 argument number argno, as the value of a field with this name and width in bits. */
static uint32
field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int bits)
{
	int32		value = PG_GETARG_INT32(argno);
	int32		max = (int32) sf_field_max(bits);

	if (value < 0 || value > max)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s %d is out of range for the Snowflake layout", name, value),
				bits == 0 ?
				errdetail("The layout has no bits for this field, which must be 0.") :
				errdetail("The layout has %d bits for this field, which allow 0 to %d.", bits, max),
				sf_layout_errhint(fcinfo, ENCODE_LAYOUT));
	return (uint32) value;
}

Datum
snowflake_encode(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, ENCODE_LAYOUT);
	SfFields	fields;

	fields.tick = sf_tick_argument(fcinfo, 0, layout, ENCODE_LAYOUT);
	fields.machine = field_argument(fcinfo, 1, "machine ID", layout->machine_bits);
	fields.sequence = field_argument(fcinfo, 2, "sequence", layout->sequence_bits);
	PG_RETURN_INT64(sf_layout_compose(layout, fields));
}

Datum
snowflake_boundary(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);

	PG_RETURN_INT64(sf_layout_boundary(layout, PG_GETARG_TIMESTAMPTZ(0)));
}

/* The instant after the last value of timestamptz is infinity. */
Datum
snowflake_next_instant(PG_FUNCTION_ARGS)
{
	TimestampTz next = sf_instant_after(PG_GETARG_TIMESTAMPTZ(0));

	if (!IS_VALID_TIMESTAMP(next) && !TIMESTAMP_NOT_FINITE(next))
		TIMESTAMP_NOEND(next);
	PG_RETURN_TIMESTAMPTZ(next);
}

Datum
snowflake_width(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);
	Interval   *interval = PG_GETARG_INTERVAL_P(0);
	int64		duration;
	int64		width;
	char		tick[SF_INSTANT_TEXT_SIZE];

	/*
	 * Months differ in length.  An infinite interval is refused here as well,
	 * because its number of months is the greatest or least one.
	 */
	if (interval->month != 0)
		ereport(ERROR,
				errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot compute the width of an interval with months or years"),
				errdetail("Months differ in length."),
				errhint("Use days, or subtract two results of snowflake_boundary()."));
	if (pg_mul_s64_overflow(interval->day, USECS_PER_DAY, &duration) ||
		pg_add_s64_overflow(duration, interval->time, &duration) ||
		!sf_layout_width(layout, duration, &width))
		ereport(ERROR,
				errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW),
				errmsg("interval is out of range for the Snowflake layout"),
				errdetail("The interval must be at least 0, and less than %llu ticks of %s.",
						  (unsigned long long) sf_layout_last_tick(layout) + 1,
						  sf_duration_describe(layout->tick_length, tick)),
				sf_layout_errhint(fcinfo, 1));
	PG_RETURN_INT64(width);
}
