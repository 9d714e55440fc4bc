/*
 * stats.c
 *	  What the generator has done, as rows of the view pg_stat_snowflake.
 *
 * A row shows a generator as it is when it is looked at: numbers that change
 * meanwhile may not fit each other to the last ID.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "interval.h"
#include "shared.h"
#include "stats.h"

PG_FUNCTION_INFO_V1(pg_stat_snowflake);
PG_FUNCTION_INFO_V1(pg_stat_snowflake_reset);

#define STAT_COLUMNS 22

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
number(SfStats *stats, SfStat stat)
{
	return (int64) pg_atomic_read_u64(&stats->numbers[stat]);
}

static void
add_count(StatRow *row, SfStats *stats, SfStat stat)
{
	add(row, Int64GetDatum(number(stats, stat)));
}

/* Milliseconds, as in core's views. */
static void
add_time(StatRow *row, SfStats *stats, SfStat stat)
{
	add(row, Float8GetDatum((double) number(stats, stat) / 1000.0));
}

static void
add_machine_id(StatRow *row, SfLine *line)
{
	uint32		machine_id = pg_atomic_read_u32(&line->machine_id);

	if (machine_id == SF_MACHINE_ID_NOT_PINNED)
		add_null(row);
	else
		add(row, Int32GetDatum((int32) machine_id));
}

/* Where the line is: nowhere, until the first ID in this run of the server. */
static void
add_line(StatRow *row, SfLine *line)
{
	int64		ahead;

	if (pg_atomic_read_u32(&line->origin) == 0)
	{
		add_null(row);
		add_null(row);
		add_null(row);
		return;
	}
	pg_read_barrier();			/* written before it */
	ahead = sf_line_time(line, sf_line_position(line)) - GetCurrentTimestamp();
	add(row, sf_interval(Max(ahead, 0)));
	add(row, TimestampTzGetDatum(sf_line_time(line, pg_atomic_read_u64(&line->ceiling))));
	add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&line->floor)));
}

/* What a registry has leased to this server, if there is one. */
static void
add_lease(StatRow *row, SfShared *shared, const SfLine *line)
{
	SfRegistry	registry;

	if (!line->leased)
	{
		for (int i = 0; i < 5; i++)
			add_null(row);
		return;
	}
	registry = sf_span_state(shared);
	if (registry.span.grant == 0)
	{
		add_null(row);
		add_null(row);
	}
	else
	{
		add(row, TimestampTzGetDatum(registry.span.from));
		add(row, TimestampTzGetDatum(registry.span.until));
	}
	add(row, CStringGetTextDatum(RecoveryInProgress() ? "standby" : sf_span_state_name(registry.state)));
	if (registry.error[0])
		add(row, CStringGetTextDatum(registry.error));
	else
		add_null(row);
	if (registry.skew_known)
		add(row, sf_interval(registry.skew));
	else
		add_null(row);
}

static void
fill_row(StatRow *row, SfShared *shared, SfLine *line)
{
	SfStats    *stats = &line->stats;

	add(row, CStringGetTextDatum(line->kind == SF_LINE_SNO ? "sno" : "bigint"));
	add_machine_id(row, line);
	add(row, CStringGetTextDatum(line->layout_text));
	add_count(row, stats, SF_STAT_LEASES);
	add_count(row, stats, SF_STAT_IDS_LEASED);
	add_count(row, stats, SF_STAT_OVERFLOW_TICKS);
	add_count(row, stats, SF_STAT_WAITS);
	add_time(row, stats, SF_STAT_WAIT_TIME);
	add_count(row, stats, SF_STAT_CLOCK_REGRESSIONS);
	add(row, sf_interval(number(stats, SF_STAT_MAX_REGRESSION)));
	add_line(row, line);
	add_count(row, stats, SF_STAT_REGISTER_WRITES);
	add_time(row, stats, SF_STAT_REGISTER_WRITE_TIME);
	add(row, TimestampTzGetDatum(sf_layout_tick_start(&line->layout, sf_line_last_tick(line) + 1)));
	add_lease(row, shared, line);
	add(row, TimestampTzGetDatum((TimestampTz) pg_atomic_read_u64(&stats->since)));
}

Datum
pg_stat_snowflake(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < SF_LINE_COUNT; i++)
	{
		StatRow		row = {0};

		fill_row(&row, shared, &shared->lines[i]);
		tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}

Datum
pg_stat_snowflake_reset(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();

	for (int k = 0; k < SF_LINE_COUNT; k++)
	{
		SfStats    *stats = &shared->lines[k].stats;

		for (int i = 0; i < SF_STAT_COUNT; i++)
			pg_atomic_write_u64(&stats->numbers[i], 0);
		pg_atomic_write_u64(&stats->since, (uint64) GetCurrentTimestamp());
	}
	PG_RETURN_VOID();
}
