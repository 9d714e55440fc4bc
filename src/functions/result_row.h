/*
 * result_row.h
 *	  The row that a SQL function returns.
 */
#ifndef SF_RESULT_ROW_H
#define SF_RESULT_ROW_H

#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"

/* A row of the composite type that the function returns, with one value for each column. */
static inline Datum
sf_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

#endif							/* SF_RESULT_ROW_H */
