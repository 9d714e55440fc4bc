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
#include "utils/memutils.h"

#include "functions/call_site.h"

/*
 * The composite type that the function returns.  It is looked up once for each call site, because
 * the look-up in the catalogs takes longer than all else that the functions do.
 */
static inline TupleDesc
sf_row_descriptor(FunctionCallInfo fcinfo)
{
	SfCallSite *site = sf_call_site(fcinfo);

	if (site->row == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		TupleDesc	descriptor;

		if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		site->row = BlessTupleDesc(descriptor);
		MemoryContextSwitchTo(old);
	}
	return site->row;
}

/* A row of that type, with one value for each column. */
static inline Datum
sf_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	return HeapTupleGetDatum(heap_form_tuple(sf_row_descriptor(fcinfo), values, nulls));
}

#endif							/* SF_RESULT_ROW_H */
