/*
 * commit_elsewhere.c
 *	  A library that imitates a distributed engine: when the transaction has committed, a callback
 *	  executes a statement in another session.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "libpq-fe.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(commit_elsewhere);

void		_PG_init(void);

static PGconn *connection = NULL;
static char *statement = NULL;

static void
end_transaction(XactEvent event, void *argument)
{
	PGresult   *result;
	bool		failed;

	if (statement == NULL || event != XACT_EVENT_COMMIT)
		return;
	result = PQexec(connection, statement);
	failed = PQresultStatus(result) == PGRES_FATAL_ERROR;
	PQclear(result);
	PQfinish(connection);
	statement = NULL;
	if (failed)
		elog(ERROR, "the statement failed");
}

/* commit_elsewhere(connection text, statement text) returns void */
Datum
commit_elsewhere(PG_FUNCTION_ARGS)
{
	connection = PQconnectdb(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	statement = MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	RegisterXactCallback(end_transaction, NULL);
}
