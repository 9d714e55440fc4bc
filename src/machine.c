/*
 * machine.c
 *	  The machine ID of this server.
 *
 * A reload reaches the sessions of a server one by one.  If two servers swapped
 * their machine IDs by a reload, each would for a moment have sessions that
 * still issue IDs under the number that is the other's by now.  So the first
 * use in a run of the server pins the number in shared memory, and a restart
 * changes it.
 *
 * Where a registry leases machine IDs, it is the registrar that writes the numbers
 * (span.c), and what is configured is what it asks for.
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "kept.h"
#include "machine.h"
#include "settings.h"

/* The pinned number of a line, or SF_MACHINE_ID_UNSET. */
static int
pinned_number(SfShared *shared, SfLineKind kind)
{
	uint32		pinned = pg_atomic_read_u32(&shared->lines[kind].machine_id);

	return pinned == SF_MACHINE_ID_NOT_PINNED ? SF_MACHINE_ID_UNSET : (int) pinned;
}

/* Warn if this server goes on with another partition than the one that is configured. */
static void
warn_of_partition(int configured)
{
	int			pinned = pinned_number(sf_shared(), SF_LINE_SNO);

	if (pinned != SF_MACHINE_ID_UNSET && configured != SF_MACHINE_ID_UNSET && configured != pinned)
		ereport(WARNING,
				errmsg("the partition of type sno is now %d, but this server goes on with %d until it is restarted",
					   configured, pinned),
				errdetail("The partition is fixed by its first use after a start."));
}

/*
 * At a reload the postmaster lets all sessions know the new number, and warns,
 * once for the server, of what it brings.  All the settings that it has to fit
 * are fixed by then.
 */
static void
assign_machine_id(int newval, void *extra)
{
	int			pinned;

	if (IsUnderPostmaster || sf_shared() == NULL || newval == sf_settings_machine_id)
		return;
	pg_atomic_write_u32(&sf_shared()->configured_machine_id, (uint32) newval);
	if (sf_settings_sno_partition == SF_MACHINE_ID_UNSET)
		warn_of_partition(newval);
	if (!sf_settings_fit(sf_settings_layout(), sf_settings_layout_text(), sf_settings_sequence_range(), newval, WARNING))
		return;
	pinned = pinned_number(sf_shared(), SF_LINE_BIGINT);
	if (pinned != SF_MACHINE_ID_UNSET && newval != pinned)
		ereport(WARNING,
				errmsg("snowflake.machine_id is now %d, but this server goes on with %d until it is restarted",
					   newval, pinned),
				errdetail("The machine ID is fixed by its first use after a start."));
}

/* As for the machine ID. */
static void
assign_sno_partition(int newval, void *extra)
{
	if (IsUnderPostmaster || sf_shared() == NULL || newval == sf_settings_sno_partition)
		return;
	pg_atomic_write_u32(&sf_shared()->configured_sno_partition, (uint32) newval);
	warn_of_partition(newval);
}

void
sf_machine_init(void)
{
	DefineCustomIntVariable("snowflake.sno_partition",
							"The partition of IDs of type sno that this server issues, different on each.",
							"-1 for snowflake.machine_id. Its first use fixes it until the server is restarted.",
							&sf_settings_sno_partition,
							SF_MACHINE_ID_UNSET, SF_MACHINE_ID_UNSET, PG_UINT16_MAX,
							PGC_SIGHUP, 0,
							NULL, assign_sno_partition, NULL);
	DefineCustomIntVariable("snowflake.machine_id",
							"The number of this server, different on each.",
							"-1 if not set. Its first use fixes it until the server is restarted.",
							&sf_settings_machine_id,
							SF_MACHINE_ID_UNSET, SF_MACHINE_ID_UNSET, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, assign_machine_id, NULL);
	if (process_shared_preload_libraries_in_progress)
	{
		sf_settings_fit(sf_settings_layout(), sf_settings_layout_text(), sf_settings_sequence_range(),
						sf_settings_machine_id, WARNING);
		sf_settings_warn_of_end();
	}
}

/*
 * What is configured: by the postmaster, or where the library was not preloaded and it knows
 * nothing of it, by this session, which has the configuration file of when its statement
 * began.
 */
int
sf_configured_machine_id(SfShared *shared)
{
	return shared->preloaded ? (int) pg_atomic_read_u32(&shared->configured_machine_id) : sf_settings_machine_id;
}

static int
partition_setting(SfShared *shared)
{
	return shared->preloaded ? (int) pg_atomic_read_u32(&shared->configured_sno_partition) : sf_settings_sno_partition;
}

static void
report_unset(const SfLine *line)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("snowflake.machine_id is not set"),
			errdetail("Each server that issues Snowflake IDs needs a number of its own, 0 to %lld in the layout \"%s\".",
					  (long long) sf_field_max(line->layout.machine_bits), line->layout_text),
			errhint("Set it by \"ALTER SYSTEM SET snowflake.machine_id = N\" and \"SELECT pg_reload_conf()\"."));
}

/*
 * Fix a number that is not pinned yet.  The first session decides: what is kept over a crash of
 * a process (kept.c) has its number, and on failure the swap returns it.
 */
static uint32
pin(SfLine *line, uint32 configured)
{
	uint32		number = sf_kept_pin_machine_id(line->kind, configured);
	uint32		pinned = SF_MACHINE_ID_NOT_PINNED;

	if (pg_atomic_compare_exchange_u32(&line->machine_id, &pinned, number))
		return number;
	return pinned;
}

void
sf_machine_restore(SfShared *shared)
{
	for (int i = 0; i < SF_LINE_COUNT; i++)
		pg_atomic_write_u32(&shared->lines[i].machine_id, sf_kept_machine_id(shared->lines[i].kind));
}

static uint32
bigint_machine_id(SfShared *shared)
{
	SfLine	   *line = &shared->lines[SF_LINE_BIGINT];
	int			configured = sf_configured_machine_id(shared);

	sf_settings_fit(&line->layout, line->layout_text, line->range, configured, ERROR);
	if (line->leased)
		return SF_MACHINE_ID_NOT_PINNED;
	if (line->layout.machine_bits == 0)
		return 0;
	if (configured == SF_MACHINE_ID_UNSET)
		report_unset(line);
	return pin(line, (uint32) configured);
}

static void
report_no_partition(int machine_id, const char *hint)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("machine ID %d is no partition of type sno", machine_id),
			errdetail("Partitions are 0 to %d.", PG_UINT16_MAX),
			errhint("%s", hint));
}

static uint32
configured_sno_partition(SfShared *shared)
{
	int			partition = partition_setting(shared);

	if (partition == SF_MACHINE_ID_UNSET)
		partition = pinned_number(shared, SF_LINE_BIGINT);
	if (partition == SF_MACHINE_ID_UNSET)
		partition = sf_configured_machine_id(shared);
	if (partition == SF_MACHINE_ID_UNSET)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("neither snowflake.sno_partition nor snowflake.machine_id is set"),
				errdetail("Each server that issues IDs of type sno needs a number of its own, 0 to %d.", PG_UINT16_MAX),
				errhint("Set it by \"ALTER SYSTEM SET snowflake.sno_partition = N\" and \"SELECT pg_reload_conf()\"."));
	if (partition > PG_UINT16_MAX)
		report_no_partition(partition, "Set snowflake.sno_partition.");
	return (uint32) partition;
}

/* The partition is the machine ID, and nothing else: that is what is leased. */
static uint32
leased_sno_partition(SfShared *shared, uint32 leased)
{
	int			partition = partition_setting(shared);

	if (partition != SF_MACHINE_ID_UNSET)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("snowflake.sno_partition cannot be set together with snowflake.registry"),
				errdetail("The registry leases machine IDs, which are the partitions."),
				errhint("Remove snowflake.sno_partition from the configuration, and reload it."));
	if (leased != SF_MACHINE_ID_NOT_PINNED && leased > PG_UINT16_MAX)
		report_no_partition((int) leased, "IDs of type sno need a layout with at most 16 bits for the machine ID.");
	return leased;
}

static uint32
sno_partition(SfShared *shared)
{
	return pin(&shared->lines[SF_LINE_SNO], configured_sno_partition(shared));
}

uint32
sf_machine_id(SfShared *shared, SfLineKind kind)
{
	uint32		pinned = pg_atomic_read_u32(&shared->lines[kind].machine_id);

	if (kind == SF_LINE_SNO && shared->lines[kind].leased)
		return leased_sno_partition(shared, pinned);
	if (pinned != SF_MACHINE_ID_NOT_PINNED)
		return pinned;
	return kind == SF_LINE_SNO ? sno_partition(shared) : bigint_machine_id(shared);
}
