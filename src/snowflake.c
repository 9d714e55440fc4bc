/*
 * snowflake.c
 *	  Initialization of the library, its settings with their hooks, and its version.
 *
 * README.md in this directory describes all parts and the order in which to read them.
 *
 * A check hook sees one new value and the old values of all other settings.  So
 * it can check only the value by itself, such as its syntax.  sf_settings_fit
 * checks whether the values fit each other, when all of them are set.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "libpq-fe.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "functions/functions.h"
#include "issue/generator.h"
#include "issue/machine_id.h"
#include "issue/shared.h"
#include "pushdown/pushdown.h"
#include "registry/worker.h"
#include "settings.h"
#include "state/postmaster_memory.h"

SF_MODULE_MAGIC("snowflake", SF_VERSION);

#define SNO_RANGE_HINT \
	"Write the lowest and the highest of at least 4 sequence numbers, such as \"0-32767\", or leave it empty for all."
#define RANGE_HINT \
	"Write the lowest and the highest sequence number, such as \"0-2047\", or leave it empty for all."

#define REGISTRY_HINT \
	"Use a libpq connection string, such as \"host=registry.example.com dbname=registry user=snowflake_server\"."

/* The texts of these settings, owned by PostgreSQL; the parsed values are in settings.c. */
static char *layout_text;
static char *sequence_range_text;
static char *sno_sequence_range_text;

/*
 * Reject a value, NULL if it can contain a password; for the check hooks.  PostgreSQL checks a
 * configured value when the setting is defined.  If it is malformed, PostgreSQL warns and uses the
 * default.  These settings determine what an ID means and which IDs are this server's, so a
 * malformed value must be an error.
 */
static bool
reject_setting(const char *name, const char *value, const char *hint)
{
	if (process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				value ? errmsg("invalid value for parameter \"%s\": \"%s\"", name, value) :
				errmsg("invalid value for parameter \"%s\"", name),
				errdetail_internal("%s", GUC_check_errdetail_string),
				errhint("%s", hint));
	GUC_check_errhint("%s", hint);
	return false;
}

static bool
reject_text(const char *name, const char *value, const SfParseError *error, const char *hint)
{
	GUC_check_errdetail("At character %zu, %s.", error->position, error->message);
	return reject_setting(name, value, hint);
}

/* The parsed value of a setting, which PostgreSQL keeps and passes to the assign hook. */
static bool
keep_parsed(void **extra, const void *parsed, size_t size)
{
	*extra = sf_setting_alloc(size);
	if (*extra)
		memcpy(*extra, parsed, size);
	return *extra != NULL;
}

static bool
check_layout(char **newval, void **extra, GucSource source)
{
	SfLayout	parsed;
	SfParseError error;

	if (!sf_layout_parse(*newval, &parsed, &error))
		return reject_text("snowflake.layout", *newval, &error, SF_LAYOUT_HINT);
	return keep_parsed(extra, &parsed, sizeof(parsed));
}

static void
assign_layout(const char *newval, void *extra)
{
	sf_settings_layout = *(const SfLayout *) extra;
	if (strlcpy(sf_settings_layout_text, newval, SF_LAYOUT_TEXT_SIZE) >= SF_LAYOUT_TEXT_SIZE)
		sf_layout_format(&sf_settings_layout, sf_settings_layout_text);
}

static bool
check_sequence_range(char **newval, void **extra, GucSource source)
{
	SfSequenceRange parsed;
	SfParseError error;

	if (!sf_sequence_range_parse(*newval, &parsed, &error))
		return reject_text("snowflake.sequence_range", *newval, &error, RANGE_HINT);
	return keep_parsed(extra, &parsed, sizeof(parsed));
}

static void
assign_sequence_range(const char *newval, void *extra)
{
	sf_settings_sequence_range = *(const SfSequenceRange *) extra;
}

static bool
check_sno_sequence_range(char **newval, void **extra, GucSource source)
{
	SfSequenceRange parsed;
	SfParseError error;

	if (!sf_sno_sequence_range_parse(*newval, &parsed, &error))
		return reject_text("snowflake.sno_sequence_range", *newval, &error, SNO_RANGE_HINT);
	return keep_parsed(extra, &parsed, sizeof(parsed));
}

static void
assign_sno_sequence_range(const char *newval, void *extra)
{
	sf_settings_sno_sequence_range = *(const SfSequenceRange *) extra;
}

static void
assign_max_ahead(int newval, void *extra)
{
	if (sf_shared_is_mine())
		sf_shared_set_max_ahead(sf_shared(), newval);
}

static void
assign_max_clock_step(int newval, void *extra)
{
	if (sf_shared_is_mine())
		pg_atomic_write_u32(&sf_shared()->max_clock_step, (uint32) newval);
}

static void
assign_sequence_jitter(int newval, void *extra)
{
	if (sf_shared_is_mine())
		pg_atomic_write_u32(&sf_shared()->sequence_jitter, (uint32) newval);
}

/* The detail is the message of libpq, without the newline at its end. */
static bool
check_registry(char **newval, void **extra, GucSource source)
{
	char	   *error = NULL;
	PQconninfoOption *options = PQconninfoParse(*newval, &error);

	if (options)
	{
		PQconninfoFree(options);
		return true;
	}
	GUC_check_errdetail("%s", error ? pchomp(error) : "out of memory");
	free(error);
	return reject_setting("snowflake.registry", NULL, REGISTRY_HINT);
}

/* Warn if this server continues with another partition than the configured one. */
static void
warn_of_partition(int configured)
{
	int			pinned = sf_machine_id_in_use(sf_shared(), SF_GENERATOR_SNO);

	if (pinned != SF_MACHINE_ID_UNSET && configured != SF_MACHINE_ID_UNSET && configured != pinned)
		ereport(WARNING,
				errmsg("the new partition of type sno has no effect until the server is restarted"),
				errdetail("The configured partition is %d.  IDs are still issued in partition %d, which was fixed by its first use.",
						  configured, pinned),
				errhint("Restart the server, or restore the previous value."));
}

/*
 * At a reload the postmaster publishes the new number to all sessions.  It alone warns if the
 * number does not fit or has no effect, so that the log has one warning.  The settings that the
 * number must fit are fixed at that time.
 */
static void
assign_machine_id(int newval, void *extra)
{
	int			pinned;

	if (!sf_shared_is_mine() || newval == sf_settings_machine_id)
		return;
	pg_atomic_write_u32(&sf_shared()->configured_machine_id, (uint32) newval);
	if (sf_settings_sno_partition == SF_MACHINE_ID_UNSET)
		warn_of_partition(newval);
	if (!sf_settings_fit(newval, WARNING))
		return;
	pinned = sf_machine_id_in_use(sf_shared(), SF_GENERATOR_BIGINT);
	if (pinned != SF_MACHINE_ID_UNSET && newval != pinned)
		ereport(WARNING,
				errmsg("the new value of \"%s\" has no effect until the server is restarted",
					   "snowflake.machine_id"),
				errdetail("The new value is %d.  IDs are still issued with machine ID %d, which was fixed by its first use.",
						  newval, pinned),
				errhint("Restart the server, or restore the previous value."));
}

/* Publishes and warns as assign_machine_id does. */
static void
assign_sno_partition(int newval, void *extra)
{
	if (!sf_shared_is_mine() || newval == sf_settings_sno_partition)
		return;
	pg_atomic_write_u32(&sf_shared()->configured_sno_partition, (uint32) newval);
	warn_of_partition(newval);
}

static void
define_for_layout(void)
{
	DefineCustomStringVariable("snowflake.layout",
							   "Sets the layout of the bits of Snowflake IDs.",
							   "The name of a layout in the view snowflake_layouts, or a definition.",
							   &layout_text,
							   "twitter",
							   PGC_POSTMASTER, 0,
							   check_layout, assign_layout, NULL);
	DefineCustomStringVariable("snowflake.sequence_range",
							   "Sets the range of sequence numbers that this server uses, as min-max.",
							   "An empty value allows all. Servers with ranges that do not overlap can share a machine ID.",
							   &sequence_range_text,
							   "",
							   PGC_POSTMASTER, 0,
							   check_sequence_range, assign_sequence_range, NULL);
	DefineCustomStringVariable("snowflake.sno_sequence_range",
							   "Sets the range of sequence numbers that this server uses in IDs of type sno, as min-max.",
							   "An empty value allows all. Servers with ranges that do not overlap can share a partition.",
							   &sno_sequence_range_text,
							   "",
							   PGC_POSTMASTER, 0,
							   check_sno_sequence_range, assign_sno_sequence_range, NULL);
}

static void
define_for_clock(void)
{
	DefineCustomIntVariable("snowflake.max_ahead",
							"Sets the maximum time by which an ID can be ahead of the system clock.",
							NULL,
							&sf_settings_max_ahead,
							10, 0, 60 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, assign_max_ahead, NULL);
	DefineCustomIntVariable("snowflake.max_wait",
							"Sets the maximum time to wait for an ID.",
							"A call waits for the clock, for a reservation that is written to disk, or for a lease of a machine ID. 0 disables waiting, and -1 waits without limit.",
							&sf_settings_max_wait,
							5000, -1, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("snowflake.max_clock_step",
							"Sets the maximum forward jump of the clock that is accepted.",
							"0 accepts any time of the clock.",
							&sf_settings_max_clock_step,
							3600 * 1000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, assign_max_clock_step, NULL);
}

static void
define_others(void)
{
	DefineCustomIntVariable("snowflake.sequence_jitter",
							"Sets the maximum of the random sequence number at which each tick starts.",
							"Each tick can have up to this many fewer IDs.",
							&sf_settings_sequence_jitter,
							0, 0, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, assign_sequence_jitter, NULL);
	DefineCustomBoolVariable("snowflake.enable_timestamp_pushdown",
							 "Sets whether the planner turns conditions on snowflake_timestamp(id) and sno_timestamp(id) into conditions on id.",
							 NULL,
							 &sf_settings_enable_timestamp_pushdown,
							 true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);
}

static void
define_for_registry(void)
{
	DefineCustomStringVariable("snowflake.registry",
							   "Sets the connection string of the registry that leases machine IDs.",
							   "If it is empty, there is no registry, and snowflake.machine_id is the machine ID of this server.",
							   &sf_settings_registry,
							   "",
							   PGC_POSTMASTER, GUC_SUPERUSER_ONLY,
							   check_registry, NULL, NULL);
	DefineCustomIntVariable("snowflake.registry_lease",
							"Sets the length of the lease of a machine ID.",
							"If the registry is unreachable, IDs are issued until the lease ends. 0 is an hour, or, if snowflake.machine_id is set, a minute or four times snowflake.max_ahead, whichever is longer.",
							&sf_settings_registry_lease,
							0, 0, 24 * 3600,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("snowflake.registry_standby",
							 "Sets whether this server leases a machine ID while it is a standby.",
							 "With a lease, it can issue IDs after its promotion even if the registry is unreachable.",
							 &sf_settings_registry_standby,
							 false,
							 PGC_POSTMASTER, 0,
							 NULL, NULL, NULL);
}

/* Must be called after all other settings are defined, because these hooks use them. */
static void
define_for_machine(void)
{
	DefineCustomIntVariable("snowflake.sno_partition",
							"Sets the partition of IDs of type sno, which must be different on each server.",
							"-1 uses snowflake.machine_id. The first use fixes the partition until the server is restarted.",
							&sf_settings_sno_partition,
							SF_MACHINE_ID_UNSET, SF_MACHINE_ID_UNSET, PG_UINT16_MAX,
							PGC_SIGHUP, 0,
							NULL, assign_sno_partition, NULL);
	DefineCustomIntVariable("snowflake.machine_id",
							"Sets the machine ID of this server, which must be different on each server.",
							"-1 means that it is not set. The first use fixes the machine ID until the server is restarted.",
							&sf_settings_machine_id,
							SF_MACHINE_ID_UNSET, SF_MACHINE_ID_UNSET, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, assign_machine_id, NULL);
}

/* Within these last years of a layout, each start of the server warns of its end. */
#define WARN_BEFORE_END		(5 * INT64CONST(365) * USECS_PER_DAY)

static void
warn_of_end(void)
{
	uint64		last_tick = sf_layout_last_tick(&sf_settings_layout);
	TimestampTz end = sf_layout_tick_start(&sf_settings_layout, last_tick + 1);

	if (GetCurrentTimestamp() < end - WARN_BEFORE_END)
		return;
	ereport(WARNING,
			errmsg("the Snowflake layout \"%s\" reaches its last timestamp at %s",
				   sf_settings_layout_text, timestamptz_to_str(end)),
			errdetail("No ID can be issued in this layout after that time."),
			errhint("Plan to change to a layout with a later epoch or more timestamp bits.  IDs of the two layouts can be equal, and do not sort by time."));
}

/* Define the settings, and warn if they are inconsistent. */
static void
define_settings(void)
{
	define_for_layout();
	define_for_clock();
	define_others();
	define_for_registry();
	define_for_machine();
	sf_settings_fit(sf_settings_machine_id, WARNING);
	warn_of_end();
	MarkGUCPrefixReserved("snowflake");
}

/* PostgreSQL calls this function when it has loaded the library. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern PGDLLEXPORT void _PG_init(void);

/*
 * A session that loads a library that was not preloaded gets no settings, no shared memory and no
 * hooks.  Functions that need none of these can be called (issue/shared.c).
 *
 * Raises invalid_parameter_value if the configuration file has a malformed layout, sequence range
 * or connection string.  The server then does not start.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	sf_postmaster_memory_init();
	define_settings();
	sf_registry_worker_init();
	sf_shared_init();
	sf_transactions_init();
	sf_pushdown_init();
	sf_discard_init();
}

/*
 * snowflake_version() returns text
 *
 * The release of the loaded library.  A preloaded library was loaded when the server started;
 * a release that was installed since then is loaded by a restart.
 */
PG_FUNCTION_INFO_V1(snowflake_version);

Datum
snowflake_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(SF_VERSION));
}
