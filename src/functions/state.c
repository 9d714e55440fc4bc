/*
 * state.c
 *	  The mark that a server has had a durable state; and the function that drops state and mark.
 *
 * The mark is in the catalog of privileges of parameters: a grant of a privilege that all roles
 * have anyway.
 *
 * snowflake_drop_state() is for a server that the extension leaves.  It closes both generators, and
 * drops the origins whose progress the durable numbers are, and the mark.  Like a write, the drop
 * of a number is not transactional.  The mark ends with the commit.  If a call fails, is rolled
 * back, or ends in a crash, the generators stay closed to the next start.  That finds the whole
 * state, or one that is lost: the numbers without which neither generator is opened are dropped
 * first.  CREATE EXTENSION finds the mark, and creates no new state.  Another call drops the rest.
 *
 * No process writes a number between the call and the next start: see sf_durable_refuse_dropped.
 * CREATE EXTENSION reads the mark first, and keeps its lock of that catalog to the end of the
 * transaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_parameter_acl.h"
#include "catalog/pg_replication_origin.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "replication/origin.h"
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "functions/slots.h"
#include "issue/change.h"
#include "issue/opening_error.h"
#include "issue/shared.h"
#include "issue/wait.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"

PG_FUNCTION_INFO_V1(snowflake_leave_mark);
PG_FUNCTION_INFO_V1(snowflake_drop_state);

static void
run_utility(const char *statement)
{
	int			result;

	SPI_connect();
	result = SPI_execute(statement, false, 0);
	if (result != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\": %s", statement, SPI_result_code_string(result));
	SPI_finish();
}

/*
 * The script of the extension calls this.  The mark is the server's, not the extension's, so it is
 * not recorded in pg_init_privs, where DROP EXTENSION would leave it.  After an error PostgreSQL
 * resets the variable itself.
 */
Datum
snowflake_leave_mark(PG_FUNCTION_ARGS)
{
	bool		before = creating_extension;

	creating_extension = false;
	run_utility("GRANT SET ON PARAMETER snowflake.max_wait TO PUBLIC");
	creating_extension = before;
	PG_RETURN_VOID();
}

/*
 * A process that writes a number holds one of the locks that are taken here.  It has written the
 * number before, or it sees the note, or for sno that the generator is closed.  A call that fails
 * while it waits for the second lock leaves sno closed; another call can follow.
 */
static void
close_generators(SfShared *shared)
{
	LockRelationOid(ParameterAclRelationId, AccessExclusiveLock);
	for (int i = SF_GENERATOR_COUNT - 1; i >= 0; i--)
	{
		sf_wait_and_lock(&shared->generators[i]);
		if (i == 0)
			sf_postmaster_note_state_dropped();
		sf_change_stop(&shared->generators[i]);
		sf_generator_unlock(&shared->generators[i]);
	}
	sf_lock_acquire(&shared->lease.lock);
	sf_lock_release(&shared->lease.lock);
}

/*
 * The first two leave neither generator with a state.  The registry and the promise bind a server
 * that has one, so they are dropped last.
 */
static void
drop_numbers(void)
{
	for (int number = SF_DURABLE_TOCK; number <= SF_DURABLE_REGISTRY; number++)
		sf_slot_give_back((SfDurable) number);
	sf_slot_give_back(SF_DURABLE_PROMISE);
}

/* The latest of the ends of the reservations; -infinity if the state was lost. */
static SfInstant
last_end(SfShared *shared)
{
	SfInstant	last = DT_NOBEGIN;

	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		for (int line = 0; line < sf_generator_lines(&shared->generators[i]); line++)
		{
			SfInstant	end;

			if (sf_durable_end(shared->generators[i].kind, line, &end))
				last = Max(last, end);
		}
	return last;
}

static void
report_dropped(SfInstant last)
{
	const char *until = timestamptz_to_str(last);
	bool		known = last != DT_NOBEGIN;

	ereport(LOG,
			errmsg("the durable state of Snowflake IDs was dropped"),
			known ? errdetail("IDs with times up to %s might have been issued.", until) : 0);
	ereport(NOTICE,
			errmsg("no IDs are issued in any database until the server is restarted"),
			known ? errdetail("IDs with times up to %s might have been issued.  The server no longer has a record of them.",
							  until) : 0,
			errhint("Drop the extension in each database, remove it from \"shared_preload_libraries\", and restart the server."));
}

Datum
snowflake_drop_state(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfInstant	last;

	PreventCommandDuringRecovery("snowflake_drop_state()");
	if (!superuser())
		ereport(ERROR,
				errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				errmsg("must be superuser to drop the durable state of Snowflake IDs"));
	if (sf_max_origins() == 0)
		sf_report_not_opened(&shared->generators[SF_GENERATOR_BIGINT], SF_OPENING_LOST);
	close_generators(shared);
	last = last_end(shared);
	drop_numbers();
	run_utility("REVOKE SET ON PARAMETER snowflake.max_wait FROM PUBLIC");
	ForceSyncCommit();
	report_dropped(last);
	PG_RETURN_VOID();
}
