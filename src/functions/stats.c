/*
 * stats.c
 *	  The rows of the views pg_stat_snowflake, pg_stat_snowflake_horizon and snowflake_layouts, and
 *	  SQL functions that describe this server.
 *
 * The numbers of a generator are read one after the other, without a lock.  Sessions can
 * change them meanwhile, so they need not be exactly consistent.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "functions/arguments.h"
#include "functions/refusal.h"
#include "horizon/horizon.h"
#include "issue/machine_id.h"
#include "issue/shared.h"
#include "settings.h"
#include "state/durable.h"

PG_FUNCTION_INFO_V1(pg_stat_snowflake);
PG_FUNCTION_INFO_V1(pg_stat_snowflake_reset);
PG_FUNCTION_INFO_V1(pg_stat_snowflake_horizon);
PG_FUNCTION_INFO_V1(snowflake_layouts);
PG_FUNCTION_INFO_V1(snowflake_server_machine_id);
PG_FUNCTION_INFO_V1(sno_snapshot);

/* A row of the type that the function returns, filled column by column. */
typedef struct Row
{
	TupleDesc	type;
	int			columns;
	Datum	   *values;
	bool	   *nulls;
} Row;

static Row
new_row(FunctionCallInfo fcinfo)
{
	TupleDesc	type = sf_row_type(fcinfo);
	Row			row = {type, 0, palloc(type->natts * sizeof(Datum)), palloc(type->natts)};

	return row;
}

/* The value is null unless it is known. */
static void
add_column_if(Row *row, bool known, Datum value)
{
	if (row->columns < row->type->natts)
	{
		row->nulls[row->columns] = !known;
		row->values[row->columns] = value;
	}
	row->columns++;
}

static void
add_column(Row *row, Datum value)
{
	add_column_if(row, true, value);
}

static HeapTuple
tuple_of(const Row *row)
{
	if (row->columns != row->type->natts)
		elog(ERROR, "a row has %d columns, and its type %d", row->columns, row->type->natts);
	return heap_form_tuple(row->type, row->values, row->nulls);
}

static void
put_row(FunctionCallInfo fcinfo, const Row *row)
{
	tuplestore_puttuple(((ReturnSetInfo *) fcinfo->resultinfo)->setResult, tuple_of(row));
}

/*
 * pg_stat_snowflake, a row for each generator
 */

static int64
read_counter(SfCounters *stats, SfCounter stat)
{
	return (int64) pg_atomic_read_u64(&stats->numbers[stat]);
}

static void
add_count(Row *row, SfCounters *stats, SfCounter stat)
{
	add_column(row, Int64GetDatum(read_counter(stats, stat)));
}

/* Milliseconds, as in core's views. */
static void
add_time(Row *row, SfCounters *stats, SfCounter stat)
{
	add_column(row, Float8GetDatum((double) read_counter(stats, stat) / 1000.0));
}

static void
add_machine_id(Row *row, SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);

	add_column_if(row, machine_id != SF_MACHINE_ID_NOT_PINNED, Int32GetDatum((int32) machine_id));
}

/* The later one of the durable ends of all lines; false if one of them is lost. */
static bool
durable_end(const SfGenerator *generator, SfInstant *end)
{
	bool		known = true;

	*end = SF_UNIX_EPOCH;
	for (int line = 0; line < sf_generator_lines(generator); line++)
	{
		SfInstant	its_end;

		known &= sf_durable_end(generator->kind, line, &its_end);
		*end = Max(*end, its_end);
	}
	return known;
}

/*
 * The position of the generator; NULL until the first ID in this run of the server, except for the
 * reservation: the reservation of the previous run is shown, which a floor must not be below.  No
 * reservation is known while the generator changes, or has no lease.
 */
static void
add_position(Row *row, SfGenerator *generator)
{
	bool		opened = sf_generator_is_open(generator);
	TimestampTz next = sf_generator_time(generator, sf_generator_position(generator));
	int64		ahead = next - GetCurrentTimestamp();
	int			line = sf_generator_line(generator);
	uint64		reserved_until = pg_atomic_read_u64(&generator->reserved_until[line]);
	SfInstant	end = sf_generator_time(generator, reserved_until);
	bool		known = opened ? reserved_until != 0 : durable_end(generator, &end);

	add_column_if(row, opened, sf_interval(Max(ahead, 0)));
	add_column_if(row, known, TimestampTzGetDatum(end));
	add_column_if(row, opened,
				  TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&generator->began)));
}

/*
 * The lease of this server and the state of the registry; NULL if no registry is set.  A standby
 * that leases nothing before its promotion has the state claiming.
 */
static void
add_lease(Row *row, SfShared *shared, const SfGenerator *generator)
{
	SfLeaseState registry = sf_lease_state(&shared->lease);
	SfAnswer   *last = &registry.last;
	bool		granted = last->lease.number != 0;
	bool		is_healthy = last->state == SF_LEASE_HELD || last->state == SF_LEASE_CLAIMING;

	add_column_if(row, granted, TimestampTzGetDatum(last->lease.from));
	add_column_if(row, granted, TimestampTzGetDatum(last->lease.until));
	add_column_if(row, generator->leased, CStringGetTextDatum(is_healthy && RecoveryInProgress() ?
															  "standby" : sf_lease_state_name(last->state)));
	add_column_if(row, last->error[0] != '\0', CStringGetTextDatum(last->error));
	add_column_if(row, last->skew_known, sf_interval(last->skew));
}

/*
 * The time of the least horizon of all databases, and for how long transactions hold it back;
 * NULL for sno, and until the first ID in this run of the server.
 */
static void
add_horizon(Row *row, SfGenerator *generator)
{
	bool		known = generator->kind == SF_GENERATOR_BIGINT && sf_generator_is_open(generator);
	TimestampTz now = GetCurrentTimestamp();
	int64		first = known ? sf_horizon_least() : SF_NO_ID;
	TimestampTz time = first != SF_NO_ID && sf_layout_holds(&generator->layout, first) ?
	sf_layout_instant(&generator->layout, first) :
	sf_generator_time(generator, sf_generator_position(generator));

	add_column_if(row, known, TimestampTzGetDatum(time));
	add_column_if(row, known, sf_interval(first == SF_NO_ID ? 0 : Max(now - time, 0)));
}

static void
add_refusal(Row *row, SfShared *shared, SfGenerator *generator)
{
	const char *refusal = sf_refusal(shared, generator);

	add_column_if(row, refusal != NULL, refusal ? CStringGetTextDatum(refusal) : (Datum) 0);
}

static void
fill_row(Row *row, SfShared *shared, SfGenerator *generator)
{
	SfCounters *stats = &generator->stats;
	uint64		end = sf_layout_last_tick(&generator->layout) + 1;

	add_column(row, CStringGetTextDatum(generator->kind == SF_GENERATOR_SNO ? "sno" : "bigint"));
	add_machine_id(row, generator);
	add_column(row, CStringGetTextDatum(generator->layout_text));
	add_count(row, stats, SF_COUNTER_BATCHES);
	add_count(row, stats, SF_COUNTER_IDS_ALLOCATED);
	add_count(row, stats, SF_COUNTER_OVERFLOW_TICKS);
	add_count(row, stats, SF_COUNTER_WAITS);
	add_time(row, stats, SF_COUNTER_WAIT_TIME);
	add_count(row, stats, SF_COUNTER_CLOCK_REGRESSIONS);
	add_column(row, sf_interval(read_counter(stats, SF_COUNTER_MAX_REGRESSION)));
	add_position(row, generator);
	add_count(row, stats, SF_COUNTER_RESERVATION_WRITES);
	add_time(row, stats, SF_COUNTER_RESERVATION_WRITE_TIME);
	add_column(row, TimestampTzGetDatum(sf_layout_tick_start(&generator->layout, end)));
	add_lease(row, shared, generator);
	add_horizon(row, generator);
	add_refusal(row, shared, generator);
	add_column(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&stats->since)));
}

Datum
pg_stat_snowflake(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		Row			row = new_row(fcinfo);

		fill_row(&row, shared, &shared->generators[i]);
		put_row(fcinfo, &row);
	}
	return (Datum) 0;
}

Datum
pg_stat_snowflake_reset(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();

	for (int k = 0; k < SF_GENERATOR_COUNT; k++)
	{
		SfCounters *stats = &shared->generators[k].stats;

		for (int i = 0; i < SF_COUNTER_COUNT; i++)
			pg_atomic_write_u64(&stats->numbers[i], 0);
		pg_atomic_write_u64(&stats->since, (uint64) GetCurrentTimestamp());
	}
	PG_RETURN_VOID();
}

/*
 * pg_stat_snowflake_horizon, a row for each transaction that holds a horizon back
 */

/*
 * As in pg_stat_activity: a role sees its own sessions, and the sessions of others only with a
 * privilege.  A session sees itself after SET ROLE, too, as snowflake_currval() shows its IDs.
 */
static bool
may_see(const SfHorizonHolder *holder)
{
	return holder->pid == MyProcPid || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(holder->role) && has_privs_of_role(GetUserId(), holder->role));
}

static void
put_holder(FunctionCallInfo fcinfo, const SfHorizonHolder *holder)
{
	Row			row = new_row(fcinfo);

	add_column(&row, ObjectIdGetDatum(holder->database));
	add_column_if(&row, holder->pid != 0, Int32GetDatum(holder->pid));
	add_column_if(&row, FullTransactionIdIsValid(holder->xid),
				  TransactionIdGetDatum(XidFromFullTransactionId(holder->xid)));
	add_column_if(&row, may_see(holder), Int64GetDatum(holder->first));
	put_row(fcinfo, &row);
}

Datum
pg_stat_snowflake_horizon(PG_FUNCTION_ARGS)
{
	SfHorizonHolder *holders;
	int			count;

	(void) sf_shared_required();
	InitMaterializedSRF(fcinfo, 0);
	count = sf_horizon_holders(&holders);
	for (int i = 0; i < count; i++)
		put_holder(fcinfo, &holders[i]);
	return (Datum) 0;
}

/*
 * snowflake_layouts, a row for each preset
 */

static void
put_layout(FunctionCallInfo fcinfo, const SfPreset *preset)
{
	Row			row = new_row(fcinfo);
	SfLayout	layout;
	SfParseError error;
	TimestampTz end;
	char		definition[SF_LAYOUT_TEXT_SIZE];

	if (!sf_layout_parse(preset->definition, &layout, &error))
		elog(ERROR, "preset \"%s\" is no layout: %s", preset->name, error.message);
	sf_layout_format(&layout, definition);
	add_column(&row, CStringGetTextDatum(preset->name));
	add_column(&row, TimestampTzGetDatum(layout.epoch));
	add_column(&row, sf_interval(layout.tick_length));
	add_column(&row, Int32GetDatum(layout.timestamp_bits));
	add_column(&row, Int32GetDatum(layout.machine_bits));
	add_column(&row, Int32GetDatum(layout.sequence_bits));
	add_column(&row, Int64GetDatum((int64) sf_field_max(layout.machine_bits) + 1));
	add_column(&row, Int64GetDatum(((int64) sf_field_max(layout.sequence_bits) + 1) *
								   USECS_PER_SEC / layout.tick_length));
	end = sf_layout_tick_start(&layout, sf_layout_last_tick(&layout) + 1);
	add_column(&row, TimestampTzGetDatum(end));
	add_column(&row, CStringGetTextDatum(definition));
	put_row(fcinfo, &row);
}

Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < sf_preset_count; i++)
		put_layout(fcinfo, &sf_presets[i]);
	return (Datum) 0;
}

/* The number in IDs of type bigint.  Reading a configured number does not fix it. */
Datum
snowflake_server_machine_id(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator = &shared->generators[SF_GENERATOR_BIGINT];
	int			machine_id = sf_machine_id_in_use(shared, SF_GENERATOR_BIGINT);

	if (machine_id == SF_MACHINE_ID_UNSET && !generator->leased)
		machine_id = generator->layout.machine_bits == 0 ? 0 : sf_configured_machine_id(shared);
	if (machine_id == SF_MACHINE_ID_UNSET)
		PG_RETURN_NULL();
	PG_RETURN_INT32(machine_id);
}

Datum
sno_snapshot(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator = &shared->generators[SF_GENERATOR_SNO];
	SfLayout   *layout = &generator->layout;
	uint32		switches = pg_atomic_read_u32(&generator->switches);
	uint64		position = pg_atomic_read_u64(&generator->cursor[switches & 1]);
	uint64		other = pg_atomic_read_u64(&generator->cursor[~switches & 1]);
	Row			row = new_row(fcinfo);

	add_machine_id(&row, generator);
	add_column(&row, Int32GetDatum((int32) generator->range.min));
	add_column(&row, Int32GetDatum((int32) generator->range.max));
	add_column_if(&row, position != 0,
				  Int32GetDatum((int32) sf_position_sequence(layout, position - 1)));
	add_column(&row, TimestampTzGetDatum(GetCurrentTimestamp()));
	add_column_if(&row, position != 0,
				  TimestampTzGetDatum(sf_generator_time(generator, position - 1)));
	add_column_if(&row, other > sf_position_first(layout),
				  TimestampTzGetDatum(sf_generator_time(generator, other - 1)));
	add_column(&row, Int64GetDatum((int64) switches));
	PG_RETURN_DATUM(HeapTupleGetDatum(tuple_of(&row)));
}
