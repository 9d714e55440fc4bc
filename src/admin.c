/*
 * admin.c
 *	  SQL functions by which an administrator changes what the server relies on.
 *
 * They are for superusers, unless granted, and the log tells what they did.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "core/reserve.h"
#include "line_move.h"
#include "register.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(snowflake_accept_clock);
PG_FUNCTION_INFO_V1(snowflake_accept_layout);
PG_FUNCTION_INFO_V1(snowflake_set_floor);
PG_FUNCTION_INFO_V1(sno_set_floor);

Datum
snowflake_accept_layout(PG_FUNCTION_ARGS)
{
	char	   *before;

	PreventCommandDuringRecovery("snowflake_accept_layout()");
	if (sf_register_make(SF_LINE_BIGINT, sf_layout_in_force(), true, &before))
		ereport(LOG,
				errmsg("the layout \"%s\" was accepted for Snowflake IDs",
					   sf_layout_in_force_text()),
				before ? errdetail("The layout before was \"%s\".", before) : 0);
	PG_RETURN_VOID();
}

Datum
snowflake_accept_clock(PG_FUNCTION_ARGS)
{
	int64		jump = sf_clock_accept(sf_shared_required());

	ereport(LOG,
			errmsg("the clock was accepted for Snowflake IDs, after a jump of %lld ms",
				   (long long) (jump / 1000)));
	PG_RETURN_VOID();
}

/*
 * Raises datetime_field_overflow for an instant outside of the layout, or before
 * 1970, which the register cannot hold.
 */
static void
check_instant(SfLine *line, TimestampTz instant)
{
	int64		tick = sf_layout_tick_ceil(&line->layout, instant);

	if (TIMESTAMP_NOT_FINITE(instant) || tick < 0 || instant < SF_UNIX_EPOCH ||
		(uint64) tick > sf_line_last_tick(line))
		ereport(ERROR,
				errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				errmsg("the floor of %s IDs must be within the layout", sf_line_name(line)),
				line->kind == SF_LINE_BIGINT ?
				errdetail("The layout is that of snowflake.layout, \"%s\".", line->layout_text) : 0);
}

static void
report_not_moved(SfShared *shared, SfLine *line, TimestampTz instant, SfMove why)
{
	switch (why)
	{
		case SF_MOVED:
			break;
		case SF_MOVE_TOO_SHORT:
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("the line of %s IDs is not ahead of %s by more than a server reserves",
						   sf_line_name(line), timestamptz_to_str(instant)),
					errdetail("A server reserves a second, or two ticks."));
			break;
		case SF_MOVE_BEFORE_SPAN:
			ereport(ERROR,
					errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("the floor of %s IDs must not be before the span of time that is leased to this server",
						   sf_line_name(line)),
					errdetail("The span begins at %s.",
							  timestamptz_to_str(sf_line_time(line, pg_atomic_read_u64(&line->span_start)))));
			break;
		case SF_MOVE_CLOSED:
			sf_span_report_none(shared, line);
	}
}

static void
set_floor(SfLineKind kind, FunctionCallInfo fcinfo)
{
	TimestampTz instant;
	SfShared   *shared = sf_shared_required();
	SfLine	   *line = &shared->lines[kind];
	RepOriginId origin;
	SfMove		moved;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("argument \"%s\" must not be null", "instant"));
	instant = PG_GETARG_TIMESTAMPTZ(0);
	check_instant(line, instant);
	(void) sf_register_find(line, true, &origin);
	moved = sf_line_move(line, origin, instant);
	sf_register_release(origin);
	report_not_moved(shared, line, instant, moved);
	ereport(LOG,
			errmsg("the floor of %s IDs was set to %s", sf_line_name(line), timestamptz_to_str(instant)));
}

Datum
snowflake_set_floor(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("snowflake_set_floor()");
	set_floor(SF_LINE_BIGINT, fcinfo);
	PG_RETURN_VOID();
}

Datum
sno_set_floor(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("sno_set_floor()");
	set_floor(SF_LINE_SNO, fcinfo);
	PG_RETURN_VOID();
}
