/*
 * admin.c
 *	  SQL functions for administrators: accept a clock, a layout or a registry, raise a generator
 *	  or move it back; and the durable state of a server, as CREATE EXTENSION creates it.
 *
 * By default only superusers may call the functions for administrators, except
 * snowflake_check_layout() and snowflake_check_clock().  Each other call is logged.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "duration.h"
#include "issue/change.h"
#include "issue/clock.h"
#include "issue/opening_error.h"
#include "issue/reservation.h"
#include "issue/shared.h"
#include "issue/wait.h"
#include "state/durable.h"

PG_FUNCTION_INFO_V1(snowflake_accept_clock);
PG_FUNCTION_INFO_V1(snowflake_accept_layout);
PG_FUNCTION_INFO_V1(snowflake_accept_registry);
PG_FUNCTION_INFO_V1(snowflake_check_clock);
PG_FUNCTION_INFO_V1(snowflake_check_layout);
PG_FUNCTION_INFO_V1(snowflake_set_floor);
PG_FUNCTION_INFO_V1(sno_set_floor);
PG_FUNCTION_INFO_V1(snowflake_move_back);
PG_FUNCTION_INFO_V1(sno_move_back);
PG_FUNCTION_INFO_V1(snowflake_create_state);

Datum
snowflake_accept_layout(PG_FUNCTION_ARGS)
{
	SfGenerator *generator = &sf_shared_required()->generators[SF_GENERATOR_BIGINT];
	char		text[SF_LAYOUT_TEXT_SIZE];
	SfLayout	before;
	bool		recorded;
	bool		changed;

	PreventCommandDuringRecovery("snowflake_accept_layout()");
	sf_wait_and_lock(generator);
	changed = sf_change_layout(generator, &before, &recorded);
	sf_generator_unlock(generator);
	if (!changed)
		PG_RETURN_VOID();
	if (recorded)
		sf_layout_format(&before, text);
	ereport(LOG,
			errmsg("the layout \"%s\" was accepted for Snowflake IDs", generator->layout_text),
			recorded ? errdetail("The previous layout was \"%s\".", text) : 0);
	PG_RETURN_VOID();
}

Datum
snowflake_check_layout(PG_FUNCTION_ARGS)
{
	SfGenerator *generator = &sf_shared_required()->generators[SF_GENERATOR_BIGINT];
	SfOpening	status = sf_durable_layout_check(generator);

	if (status != SF_OPENING_DONE)
		sf_report_not_opened(generator, status);
	PG_RETURN_VOID();
}

/* The generator is not opened. */
Datum
snowflake_check_clock(PG_FUNCTION_ARGS)
{
	sf_clock_check(&sf_shared_required()->generators[SF_GENERATOR_BIGINT], GetCurrentTimestamp());
	PG_RETURN_VOID();
}

Datum
snowflake_accept_clock(PG_FUNCTION_ARGS)
{
	int64		jump = sf_clock_accept(sf_shared_required());

	ereport(LOG,
			errmsg("the clock was accepted for Snowflake IDs after a jump of %s",
				   sf_duration_text(jump)));
	PG_RETURN_VOID();
}

/*
 * Accept only the registry that was refused, and not any other registry that is reached next.  A
 * registry is refused only if a number is recorded, and the worker writes the number only if none
 * is recorded (is_own_registry in registry/worker.c).  So only calls to this function write the
 * number here, and the lock excludes all but one of them.
 */
Datum
snowflake_accept_registry(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	int64		identity;

	PreventCommandDuringRecovery("snowflake_accept_registry()");
	sf_lock_acquire(&shared->lease.lock);
	identity = shared->lease.last.other_identity;
	if (identity != 0)
		sf_durable_set(SF_DURABLE_REGISTRY, (uint64) identity);
	sf_lock_release(&shared->lease.lock);
	if (identity == 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("no registry is waiting to be accepted"),
				errdetail("This server has not refused a registry."),
				errhint("Set \"snowflake.registry\" to the new registry first, and restart the server."));
	ereport(LOG,
			errmsg("the registry with identity %lld was accepted", (long long) identity));

	/* last, since this can be interrupted; the worker asks again in any case */
	sf_lease_request(&shared->lease, SF_REQUEST_NOW);
	PG_RETURN_VOID();
}

/* timestamptz_to_str has one buffer. */
static void
report_outside(const SfGenerator *generator)
{
	uint64		last_tick = sf_layout_last_tick(&generator->layout);
	char	   *first = pstrdup(timestamptz_to_str(Max(generator->layout.epoch, SF_UNIX_EPOCH)));
	const char *last = timestamptz_to_str(sf_layout_tick_start(&generator->layout, last_tick));

	ereport(ERROR,
			errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
			errmsg("the time of %s IDs must be within the layout",
				   sf_generator_name(generator)),
			generator->kind == SF_GENERATOR_BIGINT ?
			errdetail("The layout of \"snowflake.layout\" is \"%s\".  The time can be from %s to %s.",
					  generator->layout_text, first, last) :
			errdetail("The time can be from %s to %s.", first, last));
}

/*
 * The argument of a function that moves a generator.  Raises datetime_field_overflow for an instant
 * outside of the layout, and for one before 1970, which the durable state cannot hold.
 */
static TimestampTz
instant_argument(FunctionCallInfo fcinfo, SfGenerator *generator)
{
	TimestampTz instant;
	int64		tick;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("argument \"%s\" must not be null", "instant"));
	instant = PG_GETARG_TIMESTAMPTZ(0);
	tick = sf_layout_tick_ceil(&generator->layout, instant);
	if (TIMESTAMP_NOT_FINITE(instant) || tick < 0 || instant < SF_UNIX_EPOCH ||
		(uint64) tick > sf_layout_last_tick(&generator->layout))
		report_outside(generator);
	return instant;
}

static void
set_floor(SfGeneratorKind kind, FunctionCallInfo fcinfo)
{
	SfGenerator *generator = &sf_shared_required()->generators[kind];
	TimestampTz instant = instant_argument(fcinfo, generator);
	bool		raised;
	bool		layout_recorded;
	SfOpening	status;

	sf_wait_and_lock(generator);
	status = sf_change_floor(generator, instant, &raised, &layout_recorded);
	sf_generator_unlock(generator);
	if (layout_recorded)
		ereport(NOTICE,
				errmsg("the layout \"%s\" was recorded for Snowflake IDs", generator->layout_text));
	if (status != SF_OPENING_DONE)
		sf_report_not_opened(generator, status);
	if (raised)
		ereport(LOG,
				errmsg("the floor of %s IDs was set to %s",
					   sf_generator_name(generator), timestamptz_to_str(instant)));
	else
		ereport(NOTICE,
				errmsg("the floor of %s IDs was not changed", sf_generator_name(generator)),
				errdetail("All new IDs have later times anyway."));
}

/*
 * A reader whose position is above the instant misses the rows with the IDs issued between the
 * two.
 */
static void
warn_of_horizon(SfGenerator *generator, TimestampTz instant, TimestampTz before)
{
	int64		first = sf_layout_boundary(&generator->layout, instant);
	int64		returned = sf_layout_boundary(&generator->layout, before);

	ereport(WARNING,
			errmsg("readers that use snowflake_horizon() might miss rows"),
			errdetail("Horizons up to %lld might have been returned, but IDs are issued from %lld after the next start.",
					  (long long) returned, (long long) first),
			errhint("Lower each reader position above %lld to this number.  Otherwise, the reader misses rows.",
					(long long) first));
}

static void
report_not_moved_back(SfGenerator *generator, TimestampTz instant, TimestampTz before)
{
	uint64		lease_start = pg_atomic_read_u64(&generator->lease_start);

	if (instant >= before)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("cannot move the generator of %s IDs back to %s",
					   sf_generator_name(generator), timestamptz_to_str(instant)),
				errdetail("The time of the next ID is not later than that."),
				errhint("To issue IDs from a later time on, use %s().",
						sf_floor_function(generator->kind)));
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("cannot move the generator of %s IDs back to a time before the lease of this server",
				   sf_generator_name(generator)),
			errdetail("The lease begins at %s.",
					  timestamptz_to_str(sf_generator_time(generator, lease_start))));
}

static void
move_back(SfGeneratorKind kind, FunctionCallInfo fcinfo)
{
	SfGenerator *generator = &sf_shared_required()->generators[kind];
	TimestampTz instant = instant_argument(fcinfo, generator);
	TimestampTz before;
	bool		moved;
	SfOpening	status;

	sf_wait_and_lock(generator);
	status = sf_change_back(generator, instant, &before, &moved);
	sf_generator_unlock(generator);
	if (status != SF_OPENING_DONE)
		sf_report_not_opened(generator, status);
	if (!moved)
		report_not_moved_back(generator, instant, before);
	ereport(LOG,
			errmsg("the generator of %s IDs was moved back to %s",
				   sf_generator_name(generator), timestamptz_to_str(instant)));
	if (kind == SF_GENERATOR_BIGINT)
		warn_of_horizon(generator, instant, before);
	ereport(NOTICE,
			errmsg("no %s IDs are issued until the server is restarted",
				   sf_generator_name(generator)));
}

Datum
snowflake_set_floor(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("snowflake_set_floor()");
	set_floor(SF_GENERATOR_BIGINT, fcinfo);
	PG_RETURN_VOID();
}

Datum
sno_set_floor(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("sno_set_floor()");
	set_floor(SF_GENERATOR_SNO, fcinfo);
	PG_RETURN_VOID();
}

Datum
snowflake_move_back(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("snowflake_move_back()");
	move_back(SF_GENERATOR_BIGINT, fcinfo);
	PG_RETURN_VOID();
}

Datum
sno_move_back(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("sno_move_back()");
	move_back(SF_GENERATOR_SNO, fcinfo);
	PG_RETURN_VOID();
}

/*
 * The durable state
 *
 * CREATE EXTENSION is run in each database, while the state belongs to the server.  The state is
 * new if the server has never had it.  Otherwise it is left alone, even if it was lost: a server
 * that cannot determine which IDs it has issued waits for an administrator to set the floor.  That
 * the server has had it before is shown by the mark that the script of the extension leaves in the
 * catalog of privileges of parameters, which all databases share and pg_upgrade preserves.
 *
 * A new state begins at the present time, so the first IDs are not before it if the clock steps
 * back; the second line of sno was not used.  The state is not transactional: a rollback of CREATE
 * EXTENSION keeps it.
 */

/*
 * The argument is whether there is no mark.  The script of the extension has locked the catalog in
 * this case, so only one transaction creates the state.  It can continue what an earlier one has
 * begun before a crash.
 */
Datum
snowflake_create_state(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();
	SfLayout	recorded;

	sf_clock_check(&sf_shared_required()->generators[SF_GENERATOR_BIGINT], now);
	sf_durable_take_slots();
	if (!PG_GETARG_BOOL(0))
		PG_RETURN_VOID();
	if (sf_durable_layout_read(&recorded) == SF_OPENING_LOST)
	{
		sf_durable_layout_write(sf_layout_in_force());
		ereport(LOG,
				errmsg("created the durable state of Snowflake IDs with the layout \"%s\"",
					   sf_layout_in_force_text()));
	}
	sf_durable_begin(SF_GENERATOR_SNO, 0, now);
	sf_durable_begin(SF_GENERATOR_SNO, 1, SF_UNIX_EPOCH);
	sf_durable_begin(SF_GENERATOR_BIGINT, 0, now);
	PG_RETURN_VOID();
}
