/*
 * nextval.c
 *	  SQL functions that issue IDs.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"

#include "core/hot.h"
#include "generator/generator.h"
#include "functions/nextval.h"

PG_FUNCTION_INFO_V1(snowflake_nextval);
PG_FUNCTION_INFO_V1(snowflake_nextvals);
PG_FUNCTION_INFO_V1(snowflake_currval);

SF_HOT Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(sf_next_id());
}

Datum
sf_nextval_set(FunctionCallInfo fcinfo, PGFunction next)
{
	FuncCallContext *context;

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = PG_GETARG_INT32(0);

		if (count < 0)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("cannot generate %d IDs", count),
					errdetail("The count must be at least 0."));
		context = SRF_FIRSTCALL_INIT();
		context->max_calls = (uint64) count;
	}
	context = SRF_PERCALL_SETUP();
	if (context->call_cntr >= context->max_calls)
		SRF_RETURN_DONE(context);
	SRF_RETURN_NEXT(context, next(fcinfo));
}

Datum
snowflake_nextvals(PG_FUNCTION_ARGS)
{
	return sf_nextval_set(fcinfo, snowflake_nextval);
}

Datum
snowflake_currval(PG_FUNCTION_ARGS)
{
	int64		id;

	if (!sf_last_id(&id))
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("snowflake_currval is not yet defined in this session"),
				errhint("Call snowflake_nextval() first."));
	PG_RETURN_INT64(id);
}
