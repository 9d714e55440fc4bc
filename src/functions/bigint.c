/*
 * bigint.c
 *	  SQL functions that decode and compute IDs of type bigint, and IDs as text.
 *
 * Most C functions implement two SQL functions: f(id) for the server's layout, and f(id, layout)
 * for a layout that is given as an argument.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "core/base32.h"
#include "functions/arguments.h"

PG_FUNCTION_INFO_V1(snowflake_decode);
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_machine_id);
PG_FUNCTION_INFO_V1(snowflake_sequence);
PG_FUNCTION_INFO_V1(snowflake_encode);
PG_FUNCTION_INFO_V1(snowflake_boundary);
PG_FUNCTION_INFO_V1(snowflake_later);
PG_FUNCTION_INFO_V1(snowflake_to_base32);
PG_FUNCTION_INFO_V1(snowflake_from_base32);
PG_FUNCTION_INFO_V1(snowflake_base32_id);

static void
check_not_negative(int64 number)
{
	if (unlikely(number < 0))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%lld is not a Snowflake ID", (long long) number),
				errdetail("Snowflake IDs are not negative."));
}

/*
 * The first argument, an ID.  The second argument is its layout; without it, the layout is the
 * server's.
 */
static int64
id_argument(FunctionCallInfo fcinfo, const SfLayout **layout)
{
	int64		number = PG_GETARG_INT64(0);

	*layout = sf_layout_argument(fcinfo, 1);
	check_not_negative(number);
	if (unlikely(!sf_layout_holds(*layout, number)))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%lld is not a Snowflake ID", (long long) number),
				errdetail("The greatest ID of the layout is %lld.",
						  (long long) sf_layout_last_id(*layout)),
				sf_layout_errhint(fcinfo));
	return number;
}

Datum
snowflake_decode(PG_FUNCTION_ARGS)
{
	const SfLayout *layout;
	int64		id = id_argument(fcinfo, &layout);
	SfFields	fields = sf_layout_decompose(layout, id);
	bool		nulls[3] = {false};
	Datum		values[3] = {
		TimestampTzGetDatum(sf_layout_instant(layout, id)),
		Int32GetDatum((int32) fields.machine),
		Int32GetDatum((int32) fields.sequence),
	};

	PG_RETURN_DATUM(sf_row(fcinfo, values, nulls));
}

Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	const SfLayout *layout;
	int64		id = id_argument(fcinfo, &layout);

	PG_RETURN_TIMESTAMPTZ(sf_layout_instant(layout, id));
}

Datum
snowflake_machine_id(PG_FUNCTION_ARGS)
{
	const SfLayout *layout;
	int64		id = id_argument(fcinfo, &layout);

	PG_RETURN_INT32((int32) sf_layout_decompose(layout, id).machine);
}

Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	const SfLayout *layout;
	int64		id = id_argument(fcinfo, &layout);

	PG_RETURN_INT32((int32) sf_layout_decompose(layout, id).sequence);
}

/* The int4 argument with this number and name, as the value of a field with this width in bits. */
static uint32
field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int bits)
{
	int32		value = PG_GETARG_INT32(argno);
	int32		max = (int32) sf_field_max(bits);

	if (value < 0 || value > max)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("argument \"%s\" is out of range for the Snowflake layout", name),
				bits == 0 ?
				errdetail("The argument is %d.  The layout has no bits for this field, which must be 0.",
						  value) :
				errdetail("The argument is %d.  The layout has %d bits for this field, which allow 0 to %d.",
						  value, bits, max),
				sf_layout_errhint(fcinfo));
	return (uint32) value;
}

Datum
snowflake_encode(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 3);
	SfFields	fields;

	fields.tick = sf_tick_argument(fcinfo, layout);
	fields.machine = field_argument(fcinfo, 1, "machine_id", layout->machine_bits);
	fields.sequence = field_argument(fcinfo, 2, "sequence", layout->sequence_bits);
	PG_RETURN_INT64(sf_layout_compose(layout, fields));
}

Datum
snowflake_boundary(PG_FUNCTION_ARGS)
{
	const SfLayout *layout = sf_layout_argument(fcinfo, 1);

	PG_RETURN_INT64(sf_layout_boundary(layout, PG_GETARG_TIMESTAMPTZ(0)));
}

/* Instants beyond the range of timestamptz are infinity, or -infinity. */
Datum
snowflake_later(PG_FUNCTION_ARGS)
{
	TimestampTz later = sf_instant_later(PG_GETARG_TIMESTAMPTZ(0), PG_GETARG_INT64(1));

	if (!IS_VALID_TIMESTAMP(later) && !TIMESTAMP_NOT_FINITE(later))
		later = later < 0 ? DT_NOBEGIN : DT_NOEND;
	PG_RETURN_TIMESTAMPTZ(later);
}

Datum
snowflake_to_base32(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	text	   *result;

	check_not_negative(id);
	result = palloc(VARHDRSZ + SF_BASE32_LENGTH);
	SET_VARSIZE(result, VARHDRSZ + SF_BASE32_LENGTH);
	sf_base32_encode(id, VARDATA(result));
	PG_RETURN_TEXT_P(result);
}

Datum
snowflake_from_base32(PG_FUNCTION_ARGS)
{
	text	   *argument = PG_GETARG_TEXT_PP(0);
	int64		id;
	bool		overflow;
	SfParseError error;

	if (!sf_base32_decode(VARDATA_ANY(argument), VARSIZE_ANY_EXHDR(argument),
						  &id, &overflow, &error))
	{
		int			before = pg_mbstrlen_with_len(VARDATA_ANY(argument), (int) error.position - 1);

		ereport(ERROR,
				errcode(overflow ?
						ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE : ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("\"%s\" is not a Snowflake ID in base 32", text_to_cstring(argument)),
				errdetail("At character %d, %s.", before + 1, error.message),
				errhint("The digits are 0 to 9 and the letters except i, l, o and u.  The greatest ID is \"7zzzzzzzzzzzz\"."));
	}
	PG_RETURN_INT64(id);
}

/* The ID whose text form is the argument, byte for byte; null if there is none. */
Datum
snowflake_base32_id(PG_FUNCTION_ARGS)
{
	text	   *argument = PG_GETARG_TEXT_PP(0);
	char	   *bytes = VARDATA_ANY(argument);
	size_t		length = VARSIZE_ANY_EXHDR(argument);
	int64		id;
	bool		overflow;
	SfParseError error;

	if (!sf_base32_decode(bytes, length, &id, &overflow, &error) ||
		!sf_base32_is_text_of(bytes, length, id))
		PG_RETURN_NULL();
	PG_RETURN_INT64(id);
}
