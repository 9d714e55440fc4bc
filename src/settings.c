/*
 * settings.c
 *	  The settings of the generator, and the rules over several of them.
 *
 * A check hook sees one new value and the old values of all other settings, so
 * it can judge that value alone: its syntax and what is wrong with any layout.
 * Whether the values fit each other is for sf_settings_fit, which is asked when
 * all of them are in place.
 *
 * Settings that must be the same for the whole run of a server have the context
 * postmaster.  A library that is loaded late must not define such settings
 * (guc.c makes that FATAL); there they can change at a reload.  On 17 and later that
 * changes nothing once there is shared memory, which has what holds (shared.c); before,
 * they only say how to decode.
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "settings.h"
#include "shared.h"

int			sf_settings_machine_id = SF_MACHINE_ID_UNSET;
int			sf_settings_sno_partition = SF_MACHINE_ID_UNSET;
int			sf_max_ahead = 10;
int			sf_max_wait = 5000;
int			sf_max_clock_step = 3600 * 1000;
int			sf_sequence_jitter = 0;
bool		sf_enable_timestamp_pushdown = true;

/* Text of the settings, owned by guc.c, and what the check hooks made of it. */
static char *layout_text;
static char *sequence_range_text;
static char *sno_sequence_range_text;
static const SfLayout *layout;
static const SfSequenceRange *sequence_range;
static const SfSequenceRange *sno_sequence_range;

/* The warning comes at each start within these last years of a layout. */
#define WARN_BEFORE_END		(5 * INT64CONST(365) * USECS_PER_DAY)

#define SNO_RANGE_HINT \
	"Give the lowest and the highest, 4 numbers or more, as in \"0-32767\", or nothing for all."
#define RANGE_HINT \
	"Give the lowest and highest sequence number as in \"0-2047\", or nothing for all."

/* The check hook of a parsed setting keeps *value in extra for the assign hook. */
static bool
keep_extra(void **extra, const void *value, size_t size)
{
	*extra = sf_guc_malloc(size);
	if (*extra == NULL)
		return false;
	memcpy(*extra, value, size);
	return true;
}

static bool
check_layout(char **newval, void **extra, GucSource source)
{
	SfLayout	parsed;
	SfParseError error;

	if (!sf_layout_parse(*newval, &parsed, &error))
	{
		GUC_check_errdetail("At character %zu, %s.", error.position, error.message);
		GUC_check_errhint("%s", SF_LAYOUT_HINT);
		return false;
	}
	return keep_extra(extra, &parsed, sizeof(parsed));
}

/*
 * Plans may have the layout in them (pushdown.c).  It changes under them only
 * where it is not fixed by shared memory.
 */
static void
assign_layout(const char *newval, void *extra)
{
	if (layout && !sf_layout_equal(layout, extra))
		ResetPlanCache();
	layout = extra;
}

typedef bool (*RangeParser) (const char *text, SfSequenceRange *range, SfParseError *error);

static bool
check_range(const char *text, void **extra, RangeParser parse, const char *hint)
{
	SfSequenceRange parsed;
	SfParseError error;

	if (!parse(text, &parsed, &error))
	{
		GUC_check_errdetail("At character %zu, %s.", error.position, error.message);
		GUC_check_errhint("%s", hint);
		return false;
	}
	return keep_extra(extra, &parsed, sizeof(parsed));
}

static bool
check_sequence_range(char **newval, void **extra, GucSource source)
{
	return check_range(*newval, extra, sf_sequence_range_parse, RANGE_HINT);
}

static void
assign_sequence_range(const char *newval, void *extra)
{
	sequence_range = extra;
}

static bool
check_sno_sequence_range(char **newval, void **extra, GucSource source)
{
	return check_range(*newval, extra, sf_sno_sequence_range_parse, SNO_RANGE_HINT);
}

static void
assign_sno_sequence_range(const char *newval, void *extra)
{
	sno_sequence_range = extra;
}

static void
assign_max_ahead(int newval, void *extra)
{
	sf_shared_set_max_ahead(newval);
}

static void
report_malformed(const char *name, const char *value, const SfParseError *error,
				 const char *hint)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("invalid value for parameter \"%s\": \"%s\"", name, value),
			errdetail("At character %zu, %s.", error->position, error->message),
			errhint("%s", hint));
}

/*
 * What the configuration file says before the library is loaded is checked when
 * a setting is defined; if it is malformed, guc.c warns and falls back to the
 * default.  For a setting that decides what an ID is, that will not do.
 */
void
sf_settings_check(void)
{
	const char *value;
	SfLayout	parsed_layout;
	SfSequenceRange parsed_range;
	SfParseError error;

	/*
	 * In a session that set and reset it before the library was loaded, it is
	 * empty: there it means the default.
	 */
	value = GetConfigOption("snowflake.layout", true, false);
	if (value && (value[0] || process_shared_preload_libraries_in_progress) &&
		!sf_layout_parse(value, &parsed_layout, &error))
		report_malformed("snowflake.layout", value, &error, SF_LAYOUT_HINT);
	value = GetConfigOption("snowflake.sequence_range", true, false);
	if (value && !sf_sequence_range_parse(value, &parsed_range, &error))
		report_malformed("snowflake.sequence_range", value, &error, RANGE_HINT);
	value = GetConfigOption("snowflake.sno_sequence_range", true, false);
	if (value && !sf_sno_sequence_range_parse(value, &parsed_range, &error))
		report_malformed("snowflake.sno_sequence_range", value, &error, SNO_RANGE_HINT);
}

void
sf_settings_init(void)
{
	GucContext	fixed = process_shared_preload_libraries_in_progress ?
	PGC_POSTMASTER : PGC_SIGHUP;

	DefineCustomStringVariable("snowflake.layout",
							   "How the bits of a Snowflake ID are laid out.",
							   "The name of a preset (see the view snowflake_layouts) or a definition.",
							   &layout_text,
							   "twitter",
							   fixed, 0,
							   check_layout, assign_layout, NULL);
	DefineCustomStringVariable("snowflake.sequence_range",
							   "Sequence numbers that this server may use, as min-max.",
							   "Empty for all. Servers with ranges that do not overlap can share a machine ID.",
							   &sequence_range_text,
							   "",
							   fixed, 0,
							   check_sequence_range, assign_sequence_range, NULL);
	DefineCustomStringVariable("snowflake.sno_sequence_range",
							   "Sequence numbers of type sno that this server may use, as min-max.",
							   "Empty for all. Servers with ranges that do not overlap can share a partition.",
							   &sno_sequence_range_text,
							   "",
							   fixed, 0,
							   check_sno_sequence_range, assign_sno_sequence_range, NULL);
	DefineCustomIntVariable("snowflake.max_ahead",
							"How far the time of an ID may be ahead of the clock.",
							NULL,
							&sf_max_ahead,
							10, 0, 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, assign_max_ahead, NULL);
	DefineCustomIntVariable("snowflake.max_wait",
							"How long one ID may wait: for the clock, for a lock on the register, or for a machine ID to be leased.",
							"0 fails at once, -1 waits without limit.",
							&sf_max_wait,
							5000, -1, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_clock_step",
							"Jump of the clock forward that is refused.",
							"0 believes the clock whatever it says.",
							&sf_max_clock_step,
							3600 * 1000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.sequence_jitter",
							"Starts the sequence of each tick at a random number up to this.",
							"It costs so much of a tick's capacity.",
							&sf_sequence_jitter,
							0, 0, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("snowflake.enable_timestamp_pushdown",
							 "Turns conditions on snowflake_timestamp(id) and sno_timestamp(id) into conditions on id.",
							 NULL,
							 &sf_enable_timestamp_pushdown,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
}

const SfLayout *
sf_settings_layout(void)
{
	return layout;
}

const char *
sf_settings_layout_text(void)
{
	return layout_text;
}

SfSequenceRange
sf_settings_sequence_range(void)
{
	return *sequence_range;
}

SfSequenceRange
sf_settings_sno_sequence_range(void)
{
	return *sno_sequence_range;
}

void
sf_settings_warn_of_end(void)
{
	TimestampTz end = sf_layout_tick_start(layout, sf_layout_last_tick(layout) + 1);

	if (GetCurrentTimestamp() < end - WARN_BEFORE_END)
		return;
	ereport(WARNING,
			errmsg("the timestamp bits of the Snowflake layout \"%s\" are used up at %s",
				   layout_text, timestamptz_to_str(end)),
			errdetail("From then on no ID can be issued in it."),
			errhint("Plan for a layout with a later epoch or more timestamp bits, and so for IDs that differ from those issued."));
}

bool
sf_settings_fit(const SfLayout *fitted, const char *text, SfSequenceRange range, int machine_id, int elevel)
{
	int64		machine_max = (int64) sf_field_max(fitted->machine_bits);
	int64		sequence_max = (int64) sf_field_max(fitted->sequence_bits);
	bool		all_sequences = range.min == 0 && range.max == SF_SEQUENCE_MAX;

	if (fitted->machine_bits > 0 && machine_id > machine_max)
	{
		ereport(elevel,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("machine ID %d does not fit the Snowflake layout \"%s\"", machine_id, text),
				errdetail("The layout has %d bits for the machine ID: 0 to %lld.",
						  fitted->machine_bits, (long long) machine_max),
				errhint("Change snowflake.machine_id, or snowflake.layout."));
		return false;
	}
	if (!all_sequences && range.max > sequence_max)
	{
		ereport(elevel,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("sequence range \"%u-%u\" does not fit the Snowflake layout \"%s\"",
					   range.min, range.max, text),
				errdetail("The layout has %d bits for the sequence: 0 to %lld.",
						  fitted->sequence_bits, (long long) sequence_max),
				errhint("Change snowflake.sequence_range, or snowflake.layout."));
		return false;
	}
	return true;
}
