/*
 * sessions.c
 *	  What sessions do: transactions of a few statements, each of which calls the extension.
 */
#include "oracles.h"

#include "access/parallel.h"
#include "commands/trigger.h"
#include "utils/rel.h"

#include "horizon/horizon.h"
#include "issue/generator.h"

extern Datum snowflake_horizon(PG_FUNCTION_ARGS);
extern Datum snowflake_propose_horizon(PG_FUNCTION_ARGS);
extern Datum snowflake_promise_horizon(PG_FUNCTION_ARGS);
extern Datum snowflake_feed_guard(PG_FUNCTION_ARGS);
extern Datum snowflake_set_floor(PG_FUNCTION_ARGS);
extern Datum snowflake_move_back(PG_FUNCTION_ARGS);
extern Datum snowflake_accept_clock(PG_FUNCTION_ARGS);
extern Datum snowflake_accept_layout(PG_FUNCTION_ARGS);
extern Datum snowflake_create_state(PG_FUNCTION_ARGS);
extern Datum sno_set_floor(PG_FUNCTION_ARGS);
extern Datum sno_move_back(PG_FUNCTION_ARGS);

int			operations[SESSIONS];
static int	retries;

/* Call a function with an argument of type bigint or timestamptz. */
static int64
call_function(PGFunction function, int64 argument)
{
	LOCAL_FCINFO(fcinfo, 1);

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = Int64GetDatum(argument);
	fcinfo->args[0].isnull = false;
	return DatumGetInt64(function(fcinfo));
}

static void
take_bigint(bool is_row)
{
	(void) oracle_begin(SF_GENERATOR_BIGINT, true);
	oracle_bigint(sf_next_id(), is_row);
}

static void
take_sno(void)
{
	SfSno		id;

	(void) oracle_begin(SF_GENERATOR_SNO, true);
	id = sf_next_sno(0);
	oracle_sno(&id);
}

/*
 * Rows with IDs that were not issued in the transaction
 */

/* A row of one column, whose attribute is at offset 0. */
typedef struct Row
{
	HeapTupleHeaderData header;
	char		data[64];
} Row;

static HeapTupleData
make_row(Row *row, int64 id)
{
	HeapTupleData tuple = {.t_data = &row->header};

	memset(row, 0, sizeof(*row));
	row->header.t_hoff = MAXALIGN(SizeofHeapTupleHeader);
	row->header.t_infomask2 = 1;
	memcpy((char *) row + row->header.t_hoff, &id, sizeof(id));
	return tuple;
}

static TupleDesc
row_type(void)
{
	static char memory[sizeof(TupleDescData) + 2 * sizeof(FormData_pg_attribute)] __attribute__((aligned(8)));
	TupleDesc	type = (TupleDesc) memory;

	type->natts = 1;
#if PG_VERSION_NUM >= 180000
	TupleDescCompactAttr(type, 0)->attlen = 8;
	TupleDescCompactAttr(type, 0)->attbyval = true;
#else
	type->attrs[0].attlen = 8;
	type->attrs[0].attbyval = true;
#endif
	return type;
}

/* Call the trigger of a table with a guard; before is the ID of a row that is updated. */
static void
call_guard(int64 id, int64 before, bool update)
{
	LOCAL_FCINFO(fcinfo, 0);
	static char *arguments[] = {"id"};
	Row			rows[2];
	HeapTupleData new = make_row(&rows[0], id);
	HeapTupleData old = make_row(&rows[1], before);
	TriggerData data = {.type = T_TriggerData};
	Trigger		trigger = {.tgnargs = 1,.tgargs = arguments};
	RelationData relation = {.rd_att = row_type()};
	FmgrInfo	function = {0};

	trace("guard                        %lld%s", (long long) id, update ? ", of an UPDATE" : "");
	PreventCommandDuringRecovery("INSERT");
	data.tg_event = TRIGGER_EVENT_ROW | TRIGGER_EVENT_BEFORE |
		(update ? TRIGGER_EVENT_UPDATE : TRIGGER_EVENT_INSERT);
	data.tg_relation = &relation;
	data.tg_trigger = &trigger;
	data.tg_trigtuple = update ? &old : &new;
	data.tg_newtuple = &new;
	InitFunctionCallInfoData(*fcinfo, &function, 0, InvalidOid, (Node *) &data, NULL);
	(void) snowflake_feed_guard(fcinfo);
}

static void
insert_row(int64 id)
{
	oracle_begin(SF_GENERATOR_BIGINT, false)->id = id;
	call_guard(id, chance(2) ? id - 1 : id + 1, chance(2));
	(void) add_row(id);
}

/* After a savepoint, to which an error returns; then the client tries again. */
static void
insert_after_savepoint(int64 id)
{
	sigjmp_buf *outer = PG_exception_stack;
	sigjmp_buf	handler;
	int			level = sigsetjmp(handler, 0);

	if (level == 0)
	{
		PG_exception_stack = &handler;
		insert_row(id);
	}
	PG_exception_stack = outer;
	if (level == FATAL)
		siglongjmp(*outer, level);
	if (level == 0)
		return;
	oracle_error();
	release_lwlocks();
	end_subtransaction();
	insert_row(id);
}

static void
insert_other_id(void)
{
	(config.subtransactions ? insert_after_savepoint : insert_row) (oracle_some_id());
}

/*
 * Readers
 */

/*
 * The snapshots of cursors, of queries that call the function late, and of a REPEATABLE READ
 * transaction.  They live until the end of the transaction.
 */
#define HELD	3

static OF_PROCESS HeldSnapshot held[HELD] = {0};
static OF_PROCESS bool is_held[HELD] = {0};

/* The horizons that were returned in this transaction, by what the snapshots see. */
#define RETURNED	16

static OF_PROCESS struct
{
	int64		ends;
	int64		horizon;
}			horizons[RETURNED] = {0};
static OF_PROCESS int horizon_count = 0;

static void
forget_snapshots(void)
{
	memset(is_held, 0, sizeof(is_held));
	horizon_count = 0;
}

/* The horizon of the snapshots that see the same; 0 if none was returned. */
static int64
horizon_before(const HeldSnapshot *snapshot)
{
	for (int i = 0; i < horizon_count; i++)
		if (horizons[i].ends == snapshot->ends)
			return horizons[i].horizon;
	return 0;
}

static void
call_horizon(HeldSnapshot *snapshot, bool is_new)
{
	int64		before = horizon_before(snapshot);
	int64		horizon;

	oracle_reader_begins();
	push_snapshot(snapshot);
	horizon = call_function(snowflake_horizon, 0);
	oracle_horizon(horizon, snapshot, is_new && before == 0);
	if (before != 0 && before != horizon)
		fail("P8: two horizons of a snapshot, %lld and %lld", (long long) before,
			 (long long) horizon);
	if (horizon_count < RETURNED)
	{
		horizons[horizon_count].ends = snapshot->ends;
		horizons[horizon_count++].horizon = horizon;
	}
}

static void
read_horizon(void)
{
	int64		i = config.old_snapshots ? below(HELD) : 0;
	bool		is_new = !is_held[i] || !config.old_snapshots || chance(2);
	Call	   *begun = oracle_begin(SF_GENERATOR_BIGINT, false);

	if (is_new)
	{
		take_snapshot(&held[i]);
		is_held[i] = true;
		if (config.old_snapshots && chance(2))
			sleep_until(now + below(chance(2) ? 300 : 20000));
		if (config.old_snapshots && chance(3))
			return;				/* a cursor from which no row is fetched yet */
	}
	begun->unknown = held[i].data.takenDuringRecovery || held[i].lists_recovered;
	call_horizon(&held[i], is_new);
}

/* As snowflake_wait() does.  The horizon belongs to the next snapshot. */
static void
wait_for_rows(void)
{
	int64		next_id = chance(4) ? oracle_some_id() : oracle_position();
	HeldSnapshot snapshot;
	SfGenerator *generator;
	int64		horizon;

	if (sf_horizon_first() <= next_id)
		return;
	(void) oracle_begin(SF_GENERATOR_BIGINT, false);
	PreventCommandDuringRecovery("snowflake_wait()");
	oracle_reader_begins();
	generator = sf_await_open(sf_shared_required());
	oracle_slept(true);
	horizon = sf_horizon_await(generator, MyDatabaseId, next_id, below(2500000));
	current->wakes_others = false;
	take_snapshot(&snapshot);
	trace("waited                       for %lld", (long long) next_id);
	oracle_horizon(horizon, &snapshot, true);
	oracle_waited(next_id, horizon);
}

/* As many sessions, each in a database of its own. */
static void
read_many_horizons(void)
{
	Oid			database = MyDatabaseId;
	int64		first = below(DATABASES);

	for (int64 i = 0; i < DATABASES - below(40); i++)
	{
		MyDatabaseId = (Oid) (1 + (first + i) % DATABASES);
		read_horizon();
		commit_transaction();
		forget_snapshots();
	}
	MyDatabaseId = database;
}

/* As the coordinator of several servers, whose other servers are behind or ahead. */
static void
promise_horizon(void)
{
	int64		proposal;
	int64		promise;

	(void) oracle_begin(SF_GENERATOR_BIGINT, false);
	oracle_promise_begins();
	proposal = call_function(snowflake_propose_horizon, 0);
	if (chance(4))
		proposal = Max(0, proposal) + below(40);
	else if (chance(3))
	{
		proposal -= below(40);
		proposal = Max(1, proposal);
	}
	if (proposal == 0)
		return;
	(void) oracle_begin(SF_GENERATOR_BIGINT, false);
	oracle_promise_begins();
	oracle_reader_begins();
	promise = call_function(snowflake_promise_horizon, proposal);
	oracle_promise(proposal, promise);
}

static void
end_promises(void)
{
	(void) oracle_begin(SF_GENERATOR_BIGINT, false);
	oracle_promises_end();
	(void) call_function(snowflake_promise_horizon, 0);
	trace("promises have ended");
	oracle_promises_end();
}

/*
 * Administrators
 */

static void
set_floor(SfGeneratorKind kind)
{
	const SfLayout *layout = &sf_shared()->generators[kind].layout;
	TimestampTz instant = wall() + below(chance(3) ? 1500000 : 30000) - 5000;

	if (chance(4))
		instant = wall() + (chance(4) ? 20000000 : 4000000);
	if (oracle_is_lost(kind))	/* past all IDs, as the documentation says */
		instant = Max(oracle_greatest_time() + layout->tick_length, wall());
	(void) oracle_begin(kind, false);
	oracle_floor_begins(kind, instant);
	PreventCommandDuringRecovery("set_floor");
	(void) call_function(kind == SF_GENERATOR_SNO ? sno_set_floor : snowflake_set_floor, instant);
	oracle_floor(kind, instant);
}

static void
move_back(SfGeneratorKind kind)
{
	TimestampTz instant = wall() - below(chance(2) ? 2000000 : 20000);

	(void) oracle_begin(kind, false);
	PreventCommandDuringRecovery("move_back");
	if (!oracle_move_back_begins(kind, instant))
		return;
	(void) call_function(kind == SF_GENERATOR_SNO ? sno_move_back : snowflake_move_back, instant);
	oracle_moved_back(kind, instant);
}

static SfGeneratorKind
some_kind(void)
{
	return config.sno && chance(2) ? SF_GENERATOR_SNO : SF_GENERATOR_BIGINT;
}

static void
restore_lost(void)
{
	for (SfGeneratorKind kind = 0; kind < SF_GENERATOR_COUNT; kind++)
		if (oracle_is_lost(kind))
			set_floor(kind);
}

/* postmaster.c, process_pm_reload_request, and the assign hooks of snowflake.c. */
static void
reload(void)
{
	config.machine_id = (int) below(config.machines);
	if (config.partition != SF_MACHINE_ID_UNSET)
		config.partition = (int) below(config.machines);
	oracle_configured();
	pg_atomic_write_u32(&sf_shared()->configured_machine_id, (uint32) config.machine_id);
	pg_atomic_write_u32(&sf_shared()->configured_sno_partition, (uint32) config.partition);
}

static void
administrate(void)
{
	if ((config.upgrade || quiet) && chance(2))
		restore_lost();
	else if (config.floor && chance(2))
		set_floor(some_kind());
	else if (config.move_back && chance(3))
		move_back(some_kind());
	else if (config.jump && chance(3))
	{
		(void) oracle_begin(SF_GENERATOR_BIGINT, false);
		oracle_acceptance_begins();
		(void) call_function(snowflake_accept_clock, 0);
		oracle_acceptance_ends();
	}
	else if (config.upgrade)
	{
		(void) oracle_begin(some_kind(), false);
		oracle_creation_begins();
		PreventCommandDuringRecovery("CREATE EXTENSION");
		(void) call_function(snowflake_create_state, false);
		oracle_created();
	}
	else if (config.relayout && chance(2))
	{
		(void) oracle_begin(SF_GENERATOR_BIGINT, false);
		PreventCommandDuringRecovery("accept_layout");
		oracle_layout_accepted();
		(void) call_function(snowflake_accept_layout, 0);
		oracle_layout_accepted();
	}
	else if (config.reload && chance(2))
		reload();
}

/*
 * Statements
 */

/* The worker is a new process, which has no batch. */
static void
take_in_parallel_worker(void)
{
	(void) oracle_begin(SF_GENERATOR_BIGINT, true);
	ParallelWorkerNumber = 0;
	if (chance(2))
		(void) sf_next_id();
	else
		(void) sf_next_sno(0);
	fail("P3: an ID was issued in a parallel worker");
}

static void
take_bigints(void)
{
	int64		count = chance(4) ? below(config.bulk ? 40 : 10) : 1;

	if (config.rate)
		count = 40;
	else if (config.bulk && chance(2))	/* a pause in a transaction */
		sleep_until(now + below(3000000));
	for (; count > 0; count--)
	{
		take_bigint(!config.rate && !chance(8));
		if (config.guard && chance(4))
		{
			int64		id;

			(void) sf_last_id(&id);
			oracle_begin(SF_GENERATOR_BIGINT, false)->id = id;
			call_guard(id, 0, false);
		}
	}
}

static void
execute_statement(void)
{
	int64		drawn = config.rate ? 15 : below(15);

	if (drawn <= 1 && config.sno)
		for (int64 n = chance(3) ? below(12) : 1; n > 0; n--)
			take_sno();
	else if (drawn == 2 && config.many_databases)
		read_many_horizons();
	else if (drawn == 3 && config.promise)
	{
		if (chance(6))
			end_promises();
		else
			promise_horizon();
	}
	else if (drawn <= 3 && config.wait && !chance(4))
		wait_for_rows();
	else if (drawn <= 3 && drawn >= 2 && config.horizon)
		read_horizon();
	else if (drawn <= 5 && drawn >= 4 && config.guard)
		insert_other_id();
	else if (drawn == 6 || drawn == 7)
		administrate();
	else if (drawn >= 8)
		take_bigints();
	if (config.subtransactions && chance(2))
		end_subtransaction();
}

static void
execute_transaction(void)
{
	if (in_recovery && chance(2))	/* as the views do */
		(void) sf_durable_read((SfDurable) (SF_DURABLE_FIRST + below(SF_DURABLE_COUNT)));
	if (in_recovery && chance(2))
		(void) sf_horizon_least();
	oracle_transaction_begins();
	forget_snapshots();
	if (config.parallel && chance(4))
		take_in_parallel_worker();
	for (int64 n = 1 + below(3); n > 0; n--)
		execute_statement();
	if (chance(6))
		ereport(ERROR, errmsg("canceled"));
	else if (config.prepare && my_xid() != 0 && chance(3))
		prepare_transaction_of_session();
	else
		commit_transaction();
	if (config.prepare && chance(3) && !in_recovery)
		finish_prepared();
	if (config.think > 0 && chance(2))
		sleep_until(now + below(config.think));
}

/* More of them than a slot remembers. */
static void
execute_short_transactions(void)
{
	for (int64 n = below(12); n > 0; n--)
	{
		oracle_transaction_begins();
		take_bigint(true);
		commit_transaction();
	}
}

/* After the faults each session gets an ID. */
static void
execute_last_transaction(void)
{
	int64		began = now;

	oracle_transaction_begins();
	sf_settings_max_wait = -1;
	restore_lost();
	if (config.sno && chance(3))
		take_sno();
	else
		take_bigint(true);
	if (now - began > INT64CONST(120000000))
		fail("P6: a session waited for %lld ms", (long long) (now - began) / 1000);
	commit_transaction();
}

static void
recover_from_error(int level)
{
	bool		no_lease = strstr(current->error, "lease") != NULL;

	oracle_error();
	ParallelWorkerNumber = -1;
	MyDatabaseId = MyProc->databaseId;
	abort_transaction();
	if (level == FATAL)
	{
		leave_process();
		restart_process(session_main);
	}
	if (quiet && no_lease && retries++ < 400)
	{
		operations[current->number]++;
		sleep_until(now + 50000);
	}
}

void
session_main(void)
{
	sigjmp_buf	handler;
	int			level = sigsetjmp(handler, 0);

	PG_exception_stack = &handler;
	if (level != 0)
		recover_from_error(level);
	for (;;)
	{
		while (operations[current->number] <= 0)
			sleep_until(now + 1000000);
		operations[current->number]--;
		if (config.spin && !quiet && current->number > 0)
			sf_settings_max_wait = 0;
		if (quiet)
			execute_last_transaction();
		else if (config.old_snapshots && chance(4))
			execute_short_transactions();
		else
			execute_transaction();
		if (chance(8))
		{
			leave_process();	/* a client disconnects */
			restart_process(session_main);
		}
	}
}

void
sessions_begin(void)
{
	retries = 0;
	for (int i = 0; i < SESSIONS; i++)
		operations[i] = i < config.sessions ? config.operations : 0;
}

bool
scenario_is_over(void)
{
	for (int i = 0; i < config.sessions; i++)
		if (operations[i] > 0 || !processes[i].alive || processes[i].waits_for != TIME)
			return false;
	return !in_recovery && !transactions_open();
}
