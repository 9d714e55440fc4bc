/*
 * nextval.c
 *	  SQL functions that issue IDs, of types bigint and sno; snowflake_currval(), and the commands
 *	  that clear its value.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/utility.h"

#include "core/hot.h"
#include "functions/arguments.h"
#include "functions/functions.h"
#include "functions/sno_type.h"
#include "issue/generator.h"
#include "issue/lease_error.h"
#include "issue/machine_id.h"

PG_FUNCTION_INFO_V1(snowflake_nextval);
PG_FUNCTION_INFO_V1(snowflake_nextvals);
PG_FUNCTION_INFO_V1(sno_nextval);
PG_FUNCTION_INFO_V1(sno_nextvals);
PG_FUNCTION_INFO_V1(sno_at);
PG_FUNCTION_INFO_V1(snowflake_currval);

static ProcessUtility_hook_type prev_process_utility = NULL;

SF_HOT Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(sf_next_id());
}

/* The last argument is the metabyte; without arguments it is 0. */
SF_HOT Datum
sno_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_SNO(sf_next_sno(PG_NARGS() == 0 ? 0 : sf_metabyte_argument(fcinfo, PG_NARGS() - 1)));
}

/*
 * The body of a set-returning function.  Its first argument, an int4, is the number of IDs
 * to return.  Each call returns one ID, so a select list streams any number of them in
 * constant memory.  The function next issues one ID; it gets the arguments of the call.
 */
static Datum
nextval_set(FunctionCallInfo fcinfo, PGFunction next)
{
	FuncCallContext *context;

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = PG_GETARG_INT32(0);

		if (count < 0)
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("argument \"count\" must be at least 0"),
					errdetail("The argument is %d.", count));
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
	return nextval_set(fcinfo, snowflake_nextval);
}

Datum
sno_nextvals(PG_FUNCTION_ARGS)
{
	return nextval_set(fcinfo, sno_nextval);
}

/*
 * Returns an ID with the time that the caller gives.  The session counts the sequence number,
 * within the server's range; the clock and other sessions have no influence.  The partition is the
 * same as for sno_nextval(), and this function fixes it as well.
 */
Datum
sno_at(PG_FUNCTION_ARGS)
{
	static uint32 counter = 0;
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator = &shared->generators[SF_GENERATOR_SNO];
	SfSequenceRange range = generator->range;
	SfSnoFields fields;
	uint32		partition;

	PreventCommandDuringRecovery("sno_at()");
	fields.units = sf_tick_argument(fcinfo, &sf_sno_layout);
	fields.metabyte = sf_metabyte_argument(fcinfo, 1);
	fields.tick_tock = false;
	partition = sf_machine_id(shared, SF_GENERATOR_SNO);
	if (partition == SF_MACHINE_ID_NOT_PINNED)
		sf_lease_report_none(&shared->lease, sf_generator_name(generator));
	fields.partition = (uint16) partition;
	fields.sequence = (uint16) (range.min + counter++ % (range.max - range.min + 1));
	PG_RETURN_SNO(sf_sno_compose(fields));
}

Datum
snowflake_currval(PG_FUNCTION_ARGS)
{
	int64		id;

	if (!sf_last_id(&id))
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("snowflake_currval is not yet defined in this session"),
				errhint("Call snowflake_id() first."));
	PG_RETURN_INT64(id);
}

/*
 * A connection pooler runs DISCARD ALL before it gives a session to another client.  After
 * that currval() is undefined, so snowflake_currval() must be undefined as well.
 */
static bool
discards_sequences(Node *statement)
{
	const DiscardStmt *discard = (const DiscardStmt *) statement;

	return IsA(statement, DiscardStmt) &&
		(discard->target == DISCARD_ALL || discard->target == DISCARD_SEQUENCES);
}

static void
process_utility(PlannedStmt *statement, const char *query_string, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo parameters,
				QueryEnvironment *environment, DestReceiver *destination,
				QueryCompletion *completion)
{
	bool		discards = discards_sequences(statement->utilityStmt);

	(prev_process_utility ? prev_process_utility : standard_ProcessUtility)
		(statement, query_string, read_only_tree, context, parameters, environment, destination,
		 completion);
	if (discards)
		sf_forget_last_id();
}

void
sf_discard_init(void)
{
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
