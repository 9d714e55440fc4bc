/*
 * arguments.h
 *	  Arguments and result rows of SQL functions.
 */
#ifndef SF_ARGUMENTS_H
#define SF_ARGUMENTS_H

#include "postgres.h"
#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/timestamp.h"

#include "core/layout.h"

/*
 * The layout of a call: the text argument number argno, or the server's layout if the function was
 * declared without such an argument.  The result lives as long as the call site, and is parsed
 * again only if the text changes.
 *
 * Raises invalid_parameter_value if the text is not a layout.
 */
extern const SfLayout *sf_layout_argument(FunctionCallInfo fcinfo, int argno);

/*
 * For ereport, if an argument does not fit the layout: a hint that the setting determines the
 * layout, unless the layout was an argument.
 */
extern int	sf_layout_errhint(FunctionCallInfo fcinfo);

/*
 * The tick of the first argument, a timestamptz, in a layout that sf_layout_argument returned, or
 * in sf_sno_layout.  Raises datetime_field_overflow if the time is before the first tick or after
 * the last one.
 */
extern uint64 sf_tick_argument(FunctionCallInfo fcinfo, const SfLayout *layout);

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

/* The composite type that the function returns, and a row of it, with a value for each column. */
extern TupleDesc sf_row_type(FunctionCallInfo fcinfo);
#define sf_row(fcinfo, values, nulls) \
	HeapTupleGetDatum(heap_form_tuple(sf_row_type(fcinfo), values, nulls))

/* An interval of a number of microseconds. */
static inline Datum
sf_interval(int64 microseconds)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = microseconds;
	return IntervalPGetDatum(interval);
}

#endif							/* SF_ARGUMENTS_H */
