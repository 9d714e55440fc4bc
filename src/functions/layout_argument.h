/*
 * layout_argument.h
 *	  Arguments of SQL functions that are layouts, or IDs of a layout.
 */
#ifndef SF_LAYOUT_ARGUMENT_H
#define SF_LAYOUT_ARGUMENT_H

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

#endif							/* SF_LAYOUT_ARGUMENT_H */
