/*
 * session_end.c
 *	  The end of a session that has issued IDs.
 *
 * When the server is stopped in mode fast, its sessions are terminated, and return the time that is
 * reserved and not used, so that the server does not wait for it after its next start.  No other
 * end of a session does that, because it costs a flush of WAL, and because a server without room
 * for WAL would crash.  A session cannot tell why it was terminated, but the postmaster writes into
 * its PID file that the server is being stopped, before it signals any process.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "storage/fd.h"
#include "storage/pmsignal.h"
#include "utils/pidfile.h"

#include "generator/session_end.h"
#include "state/change.h"
#include "state/shared.h"

/* Whether the PID file, in the data directory, says so; false if it cannot be read. */
static bool
server_is_stopping(void)
{
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	char		line[MAXPGPATH];
	bool		stopping = false;

	if (file == NULL)
		return false;
	for (int i = 1; i <= LOCK_FILE_LINE_PM_STATUS && fgets(line, sizeof(line), file); i++)
		stopping = i == LOCK_FILE_LINE_PM_STATUS &&
			strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
	FreeFile(file);
	return stopping;
}

/*
 * The session can be in the middle of anything, so its transaction is ended first.  A walsender can
 * end after the checkpoint of the stop, when no WAL may be written.  Without a postmaster nothing
 * ends a wait for a process that was killed.
 */
void
sf_session_end(int code, Datum argument)
{
	SfShared   *shared = sf_shared();

	if (code == 0 || shared == NULL || am_walsender || !PostmasterIsAlive() ||
		!server_is_stopping())
		return;
	AbortOutOfAnyTransaction();
	for (int kind = 0; kind < SF_GENERATOR_COUNT; kind++)
		sf_change_return(&shared->generators[kind]);
}
