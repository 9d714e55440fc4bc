/*
 * currval.c
 *	  snowflake_currval(), and the commands that clear its value.
 *
 * A connection pooler runs DISCARD ALL before it gives a session to another client.  After
 * that currval() is undefined, so snowflake_currval() must be undefined as well.
 */
#include "postgres.h"

#include "fmgr.h"
#include "tcop/utility.h"

#include "functions/functions.h"
#include "generator/generator.h"

PG_FUNCTION_INFO_V1(snowflake_currval);

static ProcessUtility_hook_type prev_process_utility = NULL;

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

static bool
discards_sequences(Node *statement)
{
	DiscardMode target;

	if (!IsA(statement, DiscardStmt))
		return false;
	target = ((DiscardStmt *) statement)->target;
	return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
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
