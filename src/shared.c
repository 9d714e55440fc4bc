/*
 * shared.c
 *	  The state that all backends of a server share.
 *
 * The postmaster makes it from the settings when it starts, and anew when it
 * starts all processes again after one has crashed.  Where the library is not
 * preloaded, the first session that needs it does (PostgreSQL 17 and later), and the
 * others find it by its name; the settings that it is made from hold until the server is
 * restarted, as if they had been read at its start.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "clock.h"
#include "compat.h"
#include "core/sno.h"
#include "machine.h"
#include "registrar.h"
#include "settings.h"
#include "shared.h"

static SfShared *shared = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* Make the state in new memory.  Sessions do this under a lock, so it raises nothing. */
static void
fill_shared(void *memory)
{
	SfShared   *new = memory;
	bool		leased = !IsUnderPostmaster && sf_registrar_wanted();

	memset(new, 0, sizeof(*new));
	strlcpy(new->version, SF_VERSION, sizeof(new->version));
	new->preloaded = !IsUnderPostmaster;
	new->tranche = LWLockNewTrancheId();
	pg_atomic_init_u32(&new->configured_machine_id, (uint32) sf_settings_machine_id);
	pg_atomic_init_u32(&new->configured_sno_partition, (uint32) sf_settings_sno_partition);
	pg_atomic_init_u64(&new->clock_difference, (uint64) sf_clock_difference());
	LWLockInitialize(&new->registry.lock, new->tranche);
	sf_line_init(&new->lines[SF_LINE_BIGINT], SF_LINE_BIGINT, sf_settings_layout(), sf_settings_layout_text(),
				 sf_settings_sequence_range(), leased, new->tranche);
	sf_line_init(&new->lines[SF_LINE_SNO], SF_LINE_SNO, &sf_sno_layout, "sno",
				 sf_settings_sno_sequence_range(), leased, new->tranche);
	if (leased)
		sf_span_init(new);
	else if (new->preloaded)
		sf_machine_restore(new);
}

static void
request_shared(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(CACHELINEALIGN(sizeof(SfShared)));
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
	shared = ShmemInitStruct("snowflake", sizeof(SfShared), &found);
	if (!found)
		fill_shared(shared);
	LWLockRelease(AddinShmemInitLock);
	LWLockRegisterTranche(shared->tranche, "snowflake");
}

/*
 * A replication origin was created or dropped, or that was rolled back: the registers may
 * have lost their values (register.c).  Called in any state of the process, so it only notes
 * that.
 */
static void
doubt_registers(Datum argument, int cache, uint32 hash)
{
	for (int i = 0; shared && i < SF_LINE_COUNT; i++)
		pg_atomic_write_u32(&shared->lines[i].register_doubtful, 1);
}

void
sf_shared_init(void)
{
	CacheRegisterSyscacheCallback(REPLORIGIDENT, doubt_registers, (Datum) 0);
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared;
}

/*
 * Sessions that were started after an update of the files have the new library, and the
 * memory may be the old one's.  (That is why it does not have the version in its name:
 * there would be two lines.)
 */
static void
check_version(const SfShared *found)
{
	if (strcmp(found->version, SF_VERSION) != 0)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("another version of the library snowflake is in use in this server"),
				errdetail("This session has version %s.", SF_VERSION),
				errhint("Restart the server."));
}

/* Find what a session has made, or make it. */
static void
attach(void)
{
	SfShared   *found = sf_named_segment("snowflake", sizeof(SfShared), fill_shared);

	if (found == NULL)
		return;
	check_version(found);
	LWLockRegisterTranche(found->tranche, "snowflake");
	shared = found;
	sf_shared_set_max_ahead(sf_max_ahead);
}

SfShared *
sf_shared(void)
{
	if (shared == NULL && IsUnderPostmaster)
		attach();
	return shared;
}

void
sf_shared_set_max_ahead(int max_ahead)
{
	if (shared == NULL || (shared->preloaded && IsUnderPostmaster))
		return;
	for (int i = 0; i < SF_LINE_COUNT; i++)
		pg_atomic_write_u32(&shared->lines[i].max_ahead, (uint32) max_ahead * 1000);
}

/*
 * Which line to add to which file.  Who may not read the settings concerned is
 * not told what they hold.
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

SfShared *
sf_shared_required(void)
{
	if (sf_shared() == NULL)
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("Snowflake IDs can be generated only if snowflake is loaded by shared_preload_libraries"),
				preload_hint());
	if (!shared->preloaded && sf_registrar_wanted())
		ereport(ERROR,
				errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("a machine ID can be leased only if snowflake is loaded by shared_preload_libraries"),
				errdetail("snowflake.registry is set."),
				preload_hint());
	return shared;
}

const SfLayout *
sf_layout_in_force(void)
{
	return sf_shared() ? &shared->lines[SF_LINE_BIGINT].layout : sf_settings_layout();
}

const char *
sf_layout_in_force_text(void)
{
	return sf_shared() ? shared->lines[SF_LINE_BIGINT].layout_text : sf_settings_layout_text();
}
