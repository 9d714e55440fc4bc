/*
 * commit_elsewhere.c
 *	  A library that imitates a distributed engine: when the transaction has committed, a callback
 *	  executes a statement in another session; before the transaction is prepared, one in this session.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "libpq-fe.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(commit_elsewhere);
PG_FUNCTION_INFO_V1(execute_at_prepare);

void		_PG_init(void);

static PGconn *connection = NULL;
static char *statement = NULL;
static char *statement_at_prepare = NULL;

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

static void
prepare_transaction(XactEvent event, void *argument)
{
	if (statement_at_prepare == NULL || event != XACT_EVENT_PRE_PREPARE)
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	SPI_execute(statement_at_prepare, false, 0);
	SPI_finish();
	PopActiveSnapshot();
	statement_at_prepare = NULL;
}

/* commit_elsewhere(connection text, statement text) returns void */
Datum
commit_elsewhere(PG_FUNCTION_ARGS)
{
	connection = PQconnectdb(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	statement = MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_VOID();
}

/* execute_at_prepare(statement text) returns void */
Datum
execute_at_prepare(PG_FUNCTION_ARGS)
{
	statement_at_prepare = MemoryContextStrdup(TopMemoryContext, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	RegisterXactCallback(prepare_transaction, NULL);
	RegisterXactCallback(end_transaction, NULL);
}
