/*
 * stats.c
 *	  The rows of the view pg_stat_snowflake, one for each generator.
 *
 * The numbers of a row are read one after the other, without a lock.  Sessions can
 * change them meanwhile, so they need not be exactly consistent.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "functions/interval.h"
#include "state/horizon.h"
#include "state/shared.h"

PG_FUNCTION_INFO_V1(pg_stat_snowflake);
PG_FUNCTION_INFO_V1(pg_stat_snowflake_reset);

#define STAT_COLUMNS	24

/* A row, filled column by column. */
typedef struct StatRow
{
	int			columns;
	Datum		values[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS];
} StatRow;

static void
add(StatRow *row, Datum value)
{
	row->values[row->columns++] = value;
}

static void
add_null(StatRow *row)
{
	row->nulls[row->columns++] = true;
}

static int64
read_counter(SfCounters *stats, SfCounter stat)
{
	return (int64) pg_atomic_read_u64(&stats->numbers[stat]);
}

static void
add_count(StatRow *row, SfCounters *stats, SfCounter stat)
{
	add(row, Int64GetDatum(read_counter(stats, stat)));
}

/* Milliseconds, as in core's views. */
static void
add_time(StatRow *row, SfCounters *stats, SfCounter stat)
{
	add(row, Float8GetDatum((double) read_counter(stats, stat) / 1000.0));
}

static void
add_machine_id(StatRow *row, SfGenerator *generator)
{
	uint32		machine_id = pg_atomic_read_u32(&generator->machine_id);

	if (machine_id == SF_MACHINE_ID_NOT_PINNED)
		add_null(row);
	else
		add(row, Int32GetDatum((int32) machine_id));
}

/* The position of the generator; NULL until the first ID in this run of the server. */
static void
add_position(StatRow *row, SfGenerator *generator)
{
	uint64		reserved_until;
	int64		ahead;

	if (!sf_generator_is_open(generator))
	{
		add_null(row);
		add_null(row);
		add_null(row);
		return;
	}
	ahead = sf_generator_time(generator, sf_generator_position(generator)) - GetCurrentTimestamp();
	reserved_until = pg_atomic_read_u64(&generator->reserved_until);
	add(row, sf_interval(Max(ahead, 0)));
	if (reserved_until == 0)
		add_null(row);			/* the generator changes, or has no lease */
	else
		add(row, TimestampTzGetDatum(sf_generator_time(generator, reserved_until)));
	add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&generator->floor)));
}

/* The lease of this server and the state of the registry; NULL if no registry is set. */
static void
add_lease(StatRow *row, SfShared *shared, const SfGenerator *generator)
{
	SfRegistry	registry;

	if (!generator->leased)
	{
		for (int i = 0; i < 5; i++)
			add_null(row);
		return;
	}
	registry = sf_lease_state(&shared->registry);
	if (registry.lease.number == 0)
	{
		add_null(row);
		add_null(row);
	}
	else
	{
		add(row, TimestampTzGetDatum(registry.lease.from));
		add(row, TimestampTzGetDatum(registry.lease.until));
	}
	add(row, CStringGetTextDatum(RecoveryInProgress() ?
								 "standby" : sf_lease_state_name(registry.state)));
	if (registry.error[0])
		add(row, CStringGetTextDatum(registry.error));
	else
		add_null(row);
	if (registry.skew_known)
		add(row, sf_interval(registry.skew));
	else
		add_null(row);
}

/*
 * The time of the least horizon of all databases, and for how long transactions hold it back;
 * NULL for sno, and until the first ID in this run of the server.
 */
static void
add_horizon(StatRow *row, SfGenerator *generator)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz time;
	int64		first;

	if (generator->kind != SF_GENERATOR_BIGINT || !sf_generator_is_open(generator))
	{
		add_null(row);
		add_null(row);
		return;
	}
	first = sf_horizon_least();
	time = first != SF_NO_ID && sf_layout_holds(&generator->layout, first) ?
		sf_layout_instant(&generator->layout, first) :
		sf_generator_time(generator, sf_generator_position(generator));
	add(row, TimestampTzGetDatum(time));
	add(row, sf_interval(first == SF_NO_ID ? 0 : Max(now - time, 0)));
}

static void
fill_row(StatRow *row, SfShared *shared, SfGenerator *generator)
{
	SfCounters *stats = &generator->stats;
	uint64		end = sf_generator_last_tick(generator) + 1;

	add(row, CStringGetTextDatum(generator->kind == SF_GENERATOR_SNO ? "sno" : "bigint"));
	add_machine_id(row, generator);
	add(row, CStringGetTextDatum(generator->layout_text));
	add_count(row, stats, SF_COUNTER_BATCHES);
	add_count(row, stats, SF_COUNTER_IDS_ALLOCATED);
	add_count(row, stats, SF_COUNTER_OVERFLOW_TICKS);
	add_count(row, stats, SF_COUNTER_WAITS);
	add_time(row, stats, SF_COUNTER_WAIT_TIME);
	add_count(row, stats, SF_COUNTER_CLOCK_REGRESSIONS);
	add(row, sf_interval(read_counter(stats, SF_COUNTER_MAX_REGRESSION)));
	add_position(row, generator);
	add_count(row, stats, SF_COUNTER_RESERVATION_WRITES);
	add_time(row, stats, SF_COUNTER_RESERVATION_WRITE_TIME);
	add(row, TimestampTzGetDatum(sf_layout_tick_start(&generator->layout, end)));
	add_lease(row, shared, generator);
	add_horizon(row, generator);
	add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&stats->since)));
}

Datum
pg_stat_snowflake(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		StatRow		row = {0};

		fill_row(&row, shared, &shared->generators[i]);
		tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
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
