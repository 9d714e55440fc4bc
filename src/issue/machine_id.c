/*
 * machine_id.c
 *	  The machine ID of this server.
 *
 * A reload reaches the sessions of a server one by one.  If an administrator swaps two machine IDs
 * by reload, each server would for a moment have sessions that still issue IDs with the number
 * that the other server already uses.  So the first use in a run of the server fixes the number,
 * and only a restart changes it.
 *
 * If a registry grants leases to this server, the registry worker writes the numbers
 * (issue/change.c), and requests the configured number.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "compat.h"
#include "core/hot.h"
#include "issue/machine_id.h"
#include "settings.h"
#include "state/postmaster_memory.h"

int
sf_machine_id_in_use(SfShared *shared, SfGeneratorKind kind)
{
	uint32		pinned = pg_atomic_read_u32(&shared->generators[kind].machine_id);

	return pinned == SF_MACHINE_ID_NOT_PINNED ? SF_MACHINE_ID_UNSET : (int) pinned;
}

int
sf_configured_machine_id(SfShared *shared)
{
	return (int) pg_atomic_read_u32(&shared->configured_machine_id);
}

static int
partition_setting(SfShared *shared)
{
	return (int) pg_atomic_read_u32(&shared->configured_sno_partition);
}

static void
report_unset(const SfGenerator *generator)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("\"snowflake.machine_id\" is not set"),
			errdetail("Each server that issues Snowflake IDs needs a different machine ID, from 0 to %lld in the layout \"%s\".",
					  (long long) sf_field_max(generator->layout.machine_bits),
					  generator->layout_text),
			errhint("Set \"snowflake.machine_id\" in a configuration file outside of the data directory, and reload the configuration.  For a trial on a server without copies, ALTER SYSTEM is enough; base backups and pg_rewind copy its settings.  Two servers with the same machine ID can issue the same IDs."));
}

/*
 * The first ID after a start or a promotion: a copy of the server could have the same number.
 */
static void
report_copied(const char *setting)
{
	const char *file = sf_setting_file(setting);

	if (file == NULL || !path_is_prefix_of_path(DataDir, file))
		return;
	ereport(LOG,
			errmsg("\"%s\" is set in a file in the data directory", setting),
			errdetail("Base backups and pg_rewind copy the file \"%s\".  Two servers with the same number can issue the same IDs.",
					  file),
			errhint("If this server is a copy or has copies, set \"%s\" in a file outside of the data directory.",
					setting),
			errhidestmt(true), errhidecontext(true));
}

/*
 * Fix a number that is not pinned yet.  The first session decides: the memory that survives a
 * crash of a process (state/postmaster_memory.c) keeps its number, and if the swap fails, it
 * returns this number.
 */
static uint32
pin_number(SfGenerator *generator, uint32 configured, const char *setting)
{
	uint32		number = sf_postmaster_pin_machine_id(generator->kind, configured);
	uint32		pinned = SF_MACHINE_ID_NOT_PINNED;

	if (!pg_atomic_compare_exchange_u32(&generator->machine_id, &pinned, number))
		return pinned;
	report_copied(setting);
	return number;
}

/* SF_MACHINE_ID_NOT_PINNED if a registry leases it. */
static uint32
configured_for_bigint(SfShared *shared)
{
	SfGenerator *generator = &shared->generators[SF_GENERATOR_BIGINT];
	int			configured = sf_configured_machine_id(shared);

	sf_settings_fit(configured, ERROR);
	if (generator->leased)
		return SF_MACHINE_ID_NOT_PINNED;
	if (generator->layout.machine_bits == 0)
		return 0;
	if (configured == SF_MACHINE_ID_UNSET)
		report_unset(generator);
	return (uint32) configured;
}

static void
report_no_partition(int machine_id, const char *hint)
{
	ereport(ERROR,
			errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			errmsg("machine ID %d is too large for a partition of type sno", machine_id),
			errdetail("Partitions are from 0 to %d.", PG_UINT16_MAX),
			errhint("%s", hint));
}

static uint32
configured_sno_partition(SfShared *shared)
{
	int			partition = partition_setting(shared);

	if (partition == SF_MACHINE_ID_UNSET)
		partition = sf_machine_id_in_use(shared, SF_GENERATOR_BIGINT);
	if (partition == SF_MACHINE_ID_UNSET)
		partition = sf_configured_machine_id(shared);
	if (partition == SF_MACHINE_ID_UNSET)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("neither \"snowflake.sno_partition\" nor \"snowflake.machine_id\" is set"),
				errdetail("Each server that issues IDs of type sno needs a different partition, from 0 to %d.",
						  PG_UINT16_MAX),
				errhint("Set one of them in a configuration file outside of the data directory, and reload the configuration.  For a trial on a server without copies, ALTER SYSTEM is enough; base backups and pg_rewind copy its settings.  Two servers with the same partition can issue the same IDs."));
	if (partition > PG_UINT16_MAX)
		report_no_partition(partition, "Set \"snowflake.sno_partition\" to a number that no other server has.  Two servers with the same partition can issue the same IDs.");
	return (uint32) partition;
}

/* The partition must be the machine ID, since only the machine ID is leased. */
static uint32
leased_sno_partition(SfShared *shared, uint32 leased)
{
	int			partition = partition_setting(shared);

	if (partition != SF_MACHINE_ID_UNSET)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("\"snowflake.sno_partition\" cannot be set together with \"snowflake.registry\""),
				errdetail("With a registry, the leased machine ID is the partition."),
				errhint("Remove \"snowflake.sno_partition\" from the configuration, and reload the configuration."));
	if (leased != SF_MACHINE_ID_NOT_PINNED && leased > PG_UINT16_MAX)
		report_no_partition((int) leased,
							"With a registry, use a layout with at most 16 bits for the machine ID to issue IDs of type sno.");
	return leased;
}

/* Fix the number, unless a registry leases it or the layout has no bits for it. */
static uint32
fix_number(SfShared *shared, SfGeneratorKind kind, uint32 number)
{
	SfGenerator *generator = &shared->generators[kind];
	bool		is_partition = kind == SF_GENERATOR_SNO &&
	partition_setting(shared) != SF_MACHINE_ID_UNSET;

	if (generator->leased || (kind == SF_GENERATOR_BIGINT && generator->layout.machine_bits == 0))
		return number;
	return pin_number(generator, number,
					  is_partition ? "snowflake.sno_partition" : "snowflake.machine_id");
}

uint32
sf_next_machine_id(SfShared *shared, SfGeneratorKind kind)
{
	uint32		pinned = pg_atomic_read_u32(&shared->generators[kind].machine_id);

	if (kind == SF_GENERATOR_SNO && shared->generators[kind].leased)
		return leased_sno_partition(shared, pinned);
	if (pinned != SF_MACHINE_ID_NOT_PINNED)
		return pinned;
	return kind == SF_GENERATOR_SNO ?
		configured_sno_partition(shared) : configured_for_bigint(shared);
}

SF_HOT uint32
sf_machine_id(SfShared *shared, SfGeneratorKind kind)
{
	SfGenerator *generator = &shared->generators[kind];
	uint32		pinned = pg_atomic_read_u32(&generator->machine_id);

	if (pinned != SF_MACHINE_ID_NOT_PINNED && !(kind == SF_GENERATOR_SNO && generator->leased))
		return pinned;
	return fix_number(shared, kind, sf_next_machine_id(shared, kind));
}
