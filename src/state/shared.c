/*
 * shared.c
 *	  The state that all backends of a server share.
 *
 * The postmaster makes it from the settings when it starts, and again when it
 * starts all processes again after one has crashed.  If the library is not preloaded, the first
 * session that needs the state makes the memory (PostgreSQL 17 and later), and the others find it
 * by its name.  A background worker fills it, because the settings of a session can be those of its
 * role or client (settings_worker.c).  The settings that it is filled from apply until the server
 * is restarted, as if they had been read at its start.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/guc.h"

#include "clocks.h"
#include "compat.h"
#include "core/hot.h"
#include "core/sno.h"
#include "settings.h"
#include "state/horizon.h"
#include "state/postmaster_memory.h"
#include "state/shared.h"

static SfShared *shared = NULL;

extern PGDLLEXPORT void snowflake_settings_worker_main(Datum argument);

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

/* After the crash of a process, restore the lease, or without a registry the machine IDs. */
static void
restore_shared(SfShared *new)
{
	const SfLease *lease = &new->registry.lease;

	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		SfGenerator *generator = &new->generators[i];

		if (!generator->leased)
			pg_atomic_write_u32(&generator->machine_id, sf_postmaster_machine_id(generator->kind));
		else if (lease->number != 0)
			sf_generator_set_lease(generator, lease->machine_id, lease->from, lease->until);
	}
}

/*
 * Make new memory, without any value of a setting.  Sessions do this under a lock, so nothing
 * raises an error (sf_named_segment).
 */
static void
make_empty(void *memory)
{
	SfShared   *new = memory;

	memset(new, 0, sizeof(*new));
	strlcpy(new->version, SF_VERSION, sizeof(new->version));
	new->preloaded = !IsUnderPostmaster;
	pg_atomic_init_u32(&new->settings_worker, 0);
	pg_atomic_init_u32(&new->filled, 0);
}

void
sf_shared_set_max_ahead(SfShared *shared, int max_ahead)
{
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
		pg_atomic_write_u32(&shared->generators[i].max_ahead, (uint32) max_ahead * 1000);
}

/* Publish the settings of this process that a reload changes. */
static void
publish(SfShared *shared)
{
	pg_atomic_write_u32(&shared->configured_machine_id, (uint32) sf_settings_machine_id);
	pg_atomic_write_u32(&shared->configured_sno_partition, (uint32) sf_settings_sno_partition);
	pg_atomic_write_u32(&shared->max_clock_step, (uint32) sf_max_clock_step);
	pg_atomic_write_u32(&shared->sequence_jitter, (uint32) sf_sequence_jitter);
	pg_atomic_write_u32(&shared->registry_is_set, sf_settings_has_registry());
	sf_shared_set_max_ahead(shared, sf_max_ahead);
}

/* Fill empty memory from the settings of this process. */
static void
fill(SfShared *new)
{
	bool		leased = new->preloaded && sf_settings_has_registry();

	pg_atomic_init_u32(&new->configured_machine_id, 0);
	pg_atomic_init_u32(&new->configured_sno_partition, 0);
	pg_atomic_init_u32(&new->max_clock_step, 0);
	pg_atomic_init_u32(&new->sequence_jitter, 0);
	pg_atomic_init_u32(&new->registry_is_set, 0);
	pg_atomic_init_u64(&new->clock_difference, (uint64) sf_clock_difference(GetCurrentTimestamp()));
	sf_generator_init(&new->generators[SF_GENERATOR_BIGINT], SF_GENERATOR_BIGINT,
					  &sf_settings_layout, sf_settings_layout_text,
					  sf_settings_sequence_range, leased);
	sf_generator_init(&new->generators[SF_GENERATOR_SNO], SF_GENERATOR_SNO, &sf_sno_layout, "sno",
					  sf_settings_sno_sequence_range, leased);
	sf_lease_init(&new->registry);
	sf_horizon_init(horizon_of(new));
	publish(new);
	if (new->preloaded)
		restore_shared(new);
	pg_write_barrier();			/* pairs with the one in
								 * sf_settings_worker_has_filled */
	pg_atomic_write_u32(&new->filled, 1);
}

static void
request_shared(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
}

static void
start_shared(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	/* After a crash it points into the old segment. */
	shared = NULL;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("snowflake", shared_size(), &found);
	if (!found)
	{
		make_empty(shared);
		fill(shared);
	}
	sf_horizon_attach(horizon_of(shared));
	LWLockRelease(AddinShmemInitLock);
}

void
sf_shared_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared;
}

/*
 * Sessions that were started after an update of the files have the new library, and the old library
 * may have made the memory.  (For this reason the name of the memory does not contain the version:
 * there would be two generators of each kind.)
 */
static void
check_version(const SfShared *found)
{
	if (strcmp(found->version, SF_VERSION) != 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("another version of the library \"snowflake\" is in use by this server"),
				errdetail("This session has loaded version %s, and shared memory was created by version %s.",
						  SF_VERSION, found->version),
				errhint("Restart the server."));
}

/* The memory, which may not be filled yet.  Returns NULL if only the postmaster can make it. */
static SfShared *
find_or_make(void)
{
	SfShared   *found = sf_named_segment("snowflake", shared_size(), make_empty);

	if (found)
		check_version(found);
	return found;
}

static void
attach(SfShared *found)
{
	sf_horizon_attach(horizon_of(found));
	shared = found;
}

/*
 * Main function of the settings worker.  If the memory is filled already, an earlier worker was
 * terminated.
 */
void
snowflake_settings_worker_main(Datum argument)
{
	SfShared   *found;

	sf_settings_worker_begin();
	found = find_or_make();
	if (found == NULL || !sf_settings_worker_enter(found))
		return;
	attach(found);
	if (sf_settings_worker_has_filled(found))
		publish(found);
	else
		fill(found);
	sf_settings_worker_serve();
}

bool
sf_shared_publishes(void)
{
	return shared && (!IsUnderPostmaster || sf_is_settings_worker());
}

static void
find_filled(void)
{
	SfShared   *found = find_or_make();

	if (found == NULL)
		return;
	sf_settings_worker_await(found);
	attach(found);
}

SF_HOT SfShared *
sf_shared(void)
{
	if (shared == NULL && IsUnderPostmaster)
		find_filled();
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

SF_HOT SfShared *
sf_shared_required(void)
{
	if (sf_shared() == NULL)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
				preload_hint());
	if (!shared->preloaded && pg_atomic_read_u32(&shared->registry_is_set))
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
				errdetail("\"snowflake.registry\" is set, and the registry worker is started with the server."),
				preload_hint());
	return shared;
}

const SfLayout *
sf_layout_in_force(void)
{
	return sf_shared() ? &shared->generators[SF_GENERATOR_BIGINT].layout : &sf_settings_layout;
}

const char *
sf_layout_in_force_text(void)
{
	return sf_shared() ?
		shared->generators[SF_GENERATOR_BIGINT].layout_text : sf_settings_layout_text;
}
