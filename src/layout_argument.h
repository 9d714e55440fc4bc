/*
 * layout_argument.h
 *	  The layout that a SQL function works with, and IDs that it may hold.
 */
#ifndef SF_LAYOUT_ARGUMENT_H
#define SF_LAYOUT_ARGUMENT_H

#include "postgres.h"
#include "fmgr.h"

#include "core/layout.h"

/*
 * The layout of a call: that of the text argument number argno, or the one in
 * force where the function was declared without such an argument.  It lives as
 * long as the call site and is parsed only when the text changes.
 *
 * Raises invalid_parameter_value when the text is no layout.
 */
extern const SfLayout *sf_layout_argument(FunctionCallInfo fcinfo, int argno);

/*
 * For ereport, when an argument does not fit the layout that
 * sf_layout_argument(fcinfo, argno) gave: the hint where that layout came from,
 * if from a setting.
 */
extern int	sf_layout_errhint(FunctionCallInfo fcinfo, int argno);

/*
 * The bigint argument number argno, an ID of the layout that is
 * argument number layout_argno.
 *
 * Raises invalid_parameter_value when it is negative or too large.
 */
extern int64 sf_id_argument(FunctionCallInfo fcinfo, int argno,
							const SfLayout *layout, int layout_argno);

/* Raises invalid_parameter_value for a number below 0, which is no Snowflake ID. */
static inline void
sf_check_not_negative(int64 number)
{
	if (unlikely(number < 0))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%lld is not a Snowflake ID", (long long) number),
				errdetail("Snowflake IDs are not negative."));
}

#endif							/* SF_LAYOUT_ARGUMENT_H */
