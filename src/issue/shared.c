/*
 * shared.c
 *	  The state that all backends of a server share.
 *
 * The postmaster makes it from the settings when it starts, and again when it starts all processes
 * again after one has crashed.  If the library is not preloaded, this state does not exist, and the
 * layout of the server is unknown.  Functions that need either of them raise an error
 * (sf_shared_required).  This is the only place that refuses for lack of the preload.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/guc.h"

#include "clocks.h"
#include "core/hot.h"
#include "core/sno.h"
#include "horizon/horizon.h"
#include "issue/shared.h"
#include "settings.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"

static SfShared *shared = NULL;

/* Set in the postmaster, and inherited by its processes. */
static bool preloaded = false;
static bool requested = false;	/* the memory and the locks */

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* The state of the horizon follows the struct. */
static Size
shared_size(void)
{
	return CACHELINEALIGN(sizeof(SfShared)) + sf_horizon_size();
}

static void *
horizon_of(SfShared *memory)
{
	return (char *) memory + CACHELINEALIGN(sizeof(SfShared));
}

/*
 * After the crash of a process, restore the lease, or without a registry the machine IDs; and a
 * generator that was moved back stays closed.
 */
static void
restore_shared(SfShared *new)
{
	const SfLease *lease = &new->lease.last.lease;

	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		SfGenerator *generator = &new->generators[i];

		if (sf_postmaster_was_moved_back(generator->kind))
		{
			pg_atomic_write_u32(&generator->moved_back, 1);
			pg_atomic_write_u64(&generator->lease_end, 0);
		}
		if (!generator->leased)
			pg_atomic_write_u32(&generator->machine_id, sf_postmaster_machine_id(generator->kind));
		else if (lease->number != 0)
			sf_generator_set_lease(generator, lease->machine_id, lease->from, lease->until);
	}
}

void
sf_shared_set_max_ahead(SfShared *shared, int max_ahead)
{
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		pg_atomic_write_u32(&shared->generators[i].max_ahead, (uint32) max_ahead * 1000);
}

/* Make the state from the settings of the postmaster. */
static void
make_shared(SfShared *new)
{
	bool		leased = sf_settings_has_registry();

	memset(new, 0, sizeof(*new));
	pg_atomic_init_u32(&new->configured_machine_id, (uint32) sf_settings_machine_id);
	pg_atomic_init_u32(&new->configured_sno_partition, (uint32) sf_settings_sno_partition);
	pg_atomic_init_u32(&new->max_clock_step, (uint32) sf_settings_max_clock_step);
	pg_atomic_init_u32(&new->sequence_jitter, (uint32) sf_settings_sequence_jitter);
	pg_atomic_init_u64(&new->clock_difference, (uint64) sf_clock_difference(GetCurrentTimestamp()));
	sf_generator_init(&new->generators[SF_GENERATOR_BIGINT], SF_GENERATOR_BIGINT,
					  &sf_settings_layout, sf_settings_layout_text,
					  sf_settings_sequence_range, leased);
	sf_generator_init(&new->generators[SF_GENERATOR_SNO], SF_GENERATOR_SNO, &sf_sno_layout, "sno",
					  sf_settings_sno_sequence_range, leased);
	sf_durable_init(new->durable);
	sf_lease_init(&new->lease);
	sf_horizon_init(horizon_of(new));
	sf_shared_set_max_ahead(new, sf_settings_max_ahead);
	restore_shared(new);
}

static void
request_shared(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
	sf_lock_request();
	requested = true;
}

/* A library that is loaded later can have replaced a hook of ours, without calling it. */
static void
report_replaced_hook(int level, const char *hook)
{
	ereport(level,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("could not set up shared memory for Snowflake IDs"),
			errdetail("A library after \"snowflake\" in \"shared_preload_libraries\" does not call the \"%s\" of earlier libraries.",
					  hook),
			errhint("Move \"snowflake\" to the end of \"shared_preload_libraries\", and restart the server."));
}

static void
start_shared(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	if (!requested)
		report_replaced_hook(FATAL, "shmem_request_hook");

	/* After a crash it points into the old segment. */
	shared = NULL;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("snowflake", shared_size(), &found);
	if (!found)
		make_shared(shared);
	sf_horizon_attach(horizon_of(shared));
	sf_durable_attach(shared->durable);
	LWLockRelease(AddinShmemInitLock);
}

void
sf_shared_init(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared;
	preloaded = true;
}

bool
sf_shared_is_mine(void)
{
	return shared && !IsUnderPostmaster;
}

SF_HOT SfShared *
sf_shared(void)
{
	return shared;
}

/*
 * The hint shows which line to add to which file.  A role that may not read the
 * settings does not see their values.
 */
static int
preload_hint(void)
{
	bool		may_read = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
	const char *others = may_read ? shared_preload_libraries_string : "";
	const char *file = may_read && ConfigFileName ? ConfigFileName : "postgresql.conf";

	return errhint("Add the line \"shared_preload_libraries = '%s%ssnowflake'\" to \"%s\" and restart the server.",
				   others, others[0] ? ", " : "", file);
}

static void
report_missing(void)
{
	if (preloaded)
		report_replaced_hook(ERROR, "shmem_startup_hook");
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
			preload_hint());
}

SF_HOT SfShared *
sf_shared_required(void)
{
	if (sf_shared() == NULL)
		report_missing();
	return shared;
}

const SfLayout *
sf_layout_in_force(void)
{
	return &sf_shared_required()->generators[SF_GENERATOR_BIGINT].layout;
}

const char *
sf_layout_in_force_text(void)
{
	return sf_shared_required()->generators[SF_GENERATOR_BIGINT].layout_text;
}
