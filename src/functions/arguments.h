/*
 * arguments.h
 *	  Arguments and result rows of SQL functions.
 */
#ifndef SF_ARGUMENTS_H
#define SF_ARGUMENTS_H

#include "postgres.h"
#include "fmgr.h"

#include "core/layout.h"

/*
 * The layout of a call: that of the text argument number argno, or the server's
 * layout if the function was declared without such an argument.  The result lives
 * as long as the call site, and is parsed again only if the text changes.
 *
 * Raises invalid_parameter_value if the text is not a layout.
 */
extern const SfLayout *sf_layout_argument(FunctionCallInfo fcinfo, int argno);

/*
 * For ereport, if an argument does not fit the layout that sf_layout_argument(fcinfo,
 * argno) returned: a hint that the layout is that of the setting, unless it was an
 * argument.
 */
extern int	sf_layout_errhint(FunctionCallInfo fcinfo, int argno);

/*
 * The bigint argument number argno, an ID of the given layout, which is that of
 * argument number layout_argno.
 *
 * Raises invalid_parameter_value if the number is negative or too large for the
 * layout.
 */
extern int64 sf_id_argument(FunctionCallInfo fcinfo, int argno,
							const SfLayout *layout, int layout_argno);

/*
 * The tick of the timestamptz argument number argno, in a layout as above, or in sf_sno_layout.
 *
 * Raises datetime_field_overflow if the time is before the first tick or after the last one.
 */
extern uint64 sf_tick_argument(FunctionCallInfo fcinfo, int argno,
							   const SfLayout *layout, int layout_argno);

/*
 * The int4 argument number argno, as the value of a field of a sno with this name.  Raises
 * invalid_parameter_value if the value is not within 0 and max.
 */
extern uint32 sf_sno_field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int max);

static inline uint8
sf_metabyte_argument(FunctionCallInfo fcinfo, int argno)
{
	return (uint8) sf_sno_field_argument(fcinfo, argno, "metabyte", PG_UINT8_MAX);
}

/* A row of the composite type that the function returns, with one value for each column. */
extern Datum sf_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

/* Raises invalid_parameter_value for a negative number, which is not a Snowflake ID. */
static inline void
sf_check_not_negative(int64 number)
{
	if (unlikely(number < 0))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%lld is not a Snowflake ID", (long long) number),
				errdetail("Snowflake IDs are not negative."));
}

#endif							/* SF_ARGUMENTS_H */
