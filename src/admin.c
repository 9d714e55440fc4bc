/*
 * admin.c
 *	  SQL functions by which an administrator changes what the server relies on.
 *
 * They are for superusers, unless granted, and the log tells what they did.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ceiling.h"
#include "clock.h"
#include "register.h"
#include "settings.h"
#include "shared.h"

PG_FUNCTION_INFO_V1(snowflake_make_register);
PG_FUNCTION_INFO_V1(snowflake_accept_clock);
PG_FUNCTION_INFO_V1(snowflake_accept_layout);
PG_FUNCTION_INFO_V1(snowflake_set_floor);

/* Called by CREATE EXTENSION; a cluster has one register for all databases. */
Datum
snowflake_make_register(PG_FUNCTION_ARGS)
{
	char	   *before;

	PreventCommandDuringRecovery("snowflake_make_register()");
	if (sf_register_make(sf_layout_in_force(), false, &before))
		ereport(LOG,
				errmsg("the register of Snowflake IDs was made, for the layout \"%s\"",
					   sf_settings_layout_text()));
	PG_RETURN_VOID();
}

Datum
snowflake_accept_layout(PG_FUNCTION_ARGS)
{
	char	   *before;

	PreventCommandDuringRecovery("snowflake_accept_layout()");
	if (sf_register_make(sf_layout_in_force(), true, &before))
		ereport(LOG,
				errmsg("the layout \"%s\" was accepted for Snowflake IDs",
					   sf_settings_layout_text()),
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
check_instant(const SfLayout *layout, TimestampTz instant)
{
	int64		tick = sf_layout_tick_ceil(layout, instant);

	if (TIMESTAMP_NOT_FINITE(instant) || tick < 0 || instant < SF_UNIX_EPOCH ||
		(uint64) tick > sf_layout_last_tick(layout))
		ereport(ERROR,
				errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				errmsg("the floor of Snowflake IDs must be within the layout"),
				errdetail("The layout is that of snowflake.layout, \"%s\".",
						  sf_settings_layout_text()));
}

Datum
snowflake_set_floor(PG_FUNCTION_ARGS)
{
	TimestampTz instant = PG_GETARG_TIMESTAMPTZ(0);
	SfLine	   *line = &sf_shared_required()->lines[SF_LINE_BIGINT];
	RepOriginId origin;
	bool		moved;

	PreventCommandDuringRecovery("snowflake_set_floor()");
	check_instant(&line->layout, instant);
	origin = sf_register_find(&line->layout);
	if (sf_register_hold(origin, &line->layout, true) != SF_REGISTER_HELD)
		sf_register_report_missing();
	moved = sf_ceiling_move(line, origin, instant);
	sf_register_release(origin);
	if (!moved)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("the line of Snowflake IDs is not ahead of %s by as much as a server reserves",
					   timestamptz_to_str(instant)),
				errdetail("A server reserves a second, or two ticks."));
	ereport(LOG,
			errmsg("the floor of Snowflake IDs was set to %s", timestamptz_to_str(instant)));
	PG_RETURN_VOID();
}
