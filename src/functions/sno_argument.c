/*
 * sno_argument.c
 *	  Arguments of SQL functions that are fields of a sno.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "core/sno.h"
#include "functions/sno_argument.h"

uint64
sf_units_argument(FunctionCallInfo fcinfo, int argno)
{
	TimestampTz created_at = PG_GETARG_TIMESTAMPTZ(argno);
	int64		units = sf_layout_tick_floor(&sf_sno_layout, created_at);
	uint64		last = sf_layout_last_tick(&sf_sno_layout);

	if (units < 0 || (uint64) units > last)
	{
		/* timestamptz_to_str has one buffer, so its result is copied */
		char	   *start = pstrdup(timestamptz_to_str(sf_sno_layout.epoch));
		char	   *end = pstrdup(timestamptz_to_str(sf_layout_tick_start(&sf_sno_layout, last)));

		ereport(ERROR,
				errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				errmsg("timestamp %s is out of range for type sno",
					   timestamptz_to_str(created_at)),
				errdetail("The range is from %s to %s.", start, end));
	}
	return (uint64) units;
}

uint32
sf_sno_field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int max)
{
	int32		value = PG_GETARG_INT32(argno);

	if (value < 0 || value > max)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%s %d is out of range for type sno", name, value),
				errdetail("The range is from 0 to %d.", max));
	return (uint32) value;
}
