/*
 * discard.c
 *	  DISCARD ALL and DISCARD SEQUENCES.
 *
 * A connection pooler runs DISCARD ALL before it gives a session to another client.  After
 * that currval() is undefined, so snowflake_currval() must be undefined as well.
 */
#include "postgres.h"

#include "tcop/utility.h"

#include "functions/discard.h"
#include "generator/generator.h"

static ProcessUtility_hook_type prev_process_utility = NULL;

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
