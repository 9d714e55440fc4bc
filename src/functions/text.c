/*
 * text.c
 *	  SQL functions for IDs as text.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "compat.h"
#include "core/base32.h"
#include "functions/arguments.h"

PG_FUNCTION_INFO_V1(snowflake_to_base32);
PG_FUNCTION_INFO_V1(snowflake_from_base32);

Datum
snowflake_to_base32(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	text	   *result;

	sf_check_not_negative(id);
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
		int			position = before + 1;

		ereport(ERROR,
				errcode(overflow ?
						ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE : ERRCODE_INVALID_TEXT_REPRESENTATION),
				errmsg("\"%s\" is not a Snowflake ID in base 32", text_to_cstring(argument)),
				errdetail("At character %d, %s.", position, error.message),
				errhint("The digits are 0 to 9 and the letters except i, l, o and u.  The greatest ID is \"7zzzzzzzzzzzz\"."));
	}
	PG_RETURN_INT64(id);
}
