/*
 * register.c
 *	  The one number of this cluster that outlives it: the durable ceiling.
 *
 * PostgreSQL has a WAL-logged, checkpointed and replicated 64-bit register: the
 * progress of a replication origin.  Ours is an origin that no subscription
 * uses.  Recovery, checkpoints and standbys take care of its value as of any
 * origin's, so there is no file, no checksum and no record type of our own.
 *
 * The value is a time, in microseconds since the Unix epoch.  The name carries
 * the layout, because IDs of two layouts can be equal: a server that is
 * configured with another layout does not find the register, and issues no ID.
 *
 * An origin takes one of max_replication_slots (18:
 * max_active_replication_origins) from its first write on.  If there is none,
 * replorigin_advance says so, and names the setting.
 *
 * The name is catalog data, and transactional; the value is not.  So the value
 * is not written by a transaction that has itself made or renamed the register:
 * were it rolled back, the value would be left without a name, to be found by
 * the next origin that is given the same number.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/pg_replication_origin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "register.h"

#define NAME_PREFIX	"snowflake bigint: "
#define NAME_SIZE	(sizeof(NAME_PREFIX) + SF_LAYOUT_TEXT_SIZE)

static void
register_name(const SfLayout *layout, char *name)
{
	strcpy(name, NAME_PREFIX);
	sf_layout_format(layout, name + strlen(NAME_PREFIX));
}

/* The row of our register, whatever layout it carries; NULL if there is none. */
static HeapTuple
find_row(Relation origins)
{
	SysScanDesc scan = systable_beginscan(origins, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	row;
	HeapTuple	found = NULL;

	while (found == NULL && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		name = heap_getattr(row, Anum_pg_replication_origin_roname,
										RelationGetDescr(origins), &isnull);

		if (strncmp(TextDatumGetCString(name), NAME_PREFIX, strlen(NAME_PREFIX)) == 0)
			found = heap_copytuple(row);
	}
	systable_endscan(scan);
	return found;
}

static char *
row_name(Relation origins, HeapTuple row)
{
	bool		isnull;

	return TextDatumGetCString(heap_getattr(row, Anum_pg_replication_origin_roname,
											RelationGetDescr(origins), &isnull));
}

void
sf_register_report_missing(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the register of Snowflake IDs is missing"),
			errdetail("It is the replication origin \"%s...\", made by CREATE EXTENSION once for all databases; pg_upgrade does not carry it over.", NAME_PREFIX),
			errhint("Make it anew by \"SELECT snowflake_make_register()\". If the clock may be behind the newest ID, then also \"SELECT snowflake_set_floor(T)\", with a time T after it."));
}

static void
report_other_layout(const char *carried, const char *wanted)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("snowflake.layout is not the layout that this cluster issues Snowflake IDs in"),
			errdetail("IDs are issued in \"%s\", and the setting is \"%s\": IDs of the two can be equal.",
					  carried + strlen(NAME_PREFIX), wanted + strlen(NAME_PREFIX)),
			errhint("Set snowflake.layout back, or accept the new one by \"SELECT snowflake_accept_layout()\"."));
}

static void
report_uncommitted(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("Snowflake IDs cannot be issued by the transaction that made or changed their register"),
			errhint("Commit CREATE EXTENSION or snowflake_accept_layout() first."));
}

RepOriginId
sf_register_find(const SfLayout *layout)
{
	char		name[NAME_SIZE];
	Relation	origins = table_open(ReplicationOriginRelationId, AccessShareLock);
	HeapTuple	row = find_row(origins);
	RepOriginId origin;
	char	   *carried;

	if (row == NULL)
		sf_register_report_missing();
	register_name(layout, name);
	carried = row_name(origins, row);
	if (strcmp(carried, name) != 0)
		report_other_layout(carried, name);
	if (TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data)))
		report_uncommitted();
	origin = (RepOriginId) ((Form_pg_replication_origin) GETSTRUCT(row))->roident;
	table_close(origins, AccessShareLock);
	return origin;
}

SfInstant
sf_register_read(RepOriginId origin)
{
	return (SfInstant) replorigin_get_progress(origin, false) + SF_UNIX_EPOCH;
}

/* DROP takes the same lock in mode AccessExclusive, and keeps it. */
static LOCKTAG
lock_tag(RepOriginId origin)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, ReplicationOriginRelationId, origin, 0);
	return tag;
}

bool
sf_register_hold(RepOriginId origin, bool wait)
{
	LOCKTAG		tag = lock_tag(origin);
	char	   *name;

	if (LockAcquire(&tag, AccessShareLock, false, !wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	AcceptInvalidationMessages();
	if (replorigin_by_oid(origin, true, &name) &&
		strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0)
		return true;
	sf_register_release(origin);
	return false;
}

void
sf_register_release(RepOriginId origin)
{
	LOCKTAG		tag = lock_tag(origin);

	LockRelease(&tag, AccessShareLock, false);
}

void
sf_register_write(RepOriginId origin, SfInstant instant, bool back)
{
	replorigin_advance(origin, (XLogRecPtr) (instant - SF_UNIX_EPOCH),
					   InvalidXLogRecPtr, back, true);
	XLogFlush(XactLastRecEnd);
}

static void
rename_row(Relation origins, HeapTuple row, const char *name)
{
	Datum		values[Natts_pg_replication_origin] = {0};
	bool		nulls[Natts_pg_replication_origin] = {false};
	bool		replaces[Natts_pg_replication_origin] = {false};
	HeapTuple	renamed;

	values[Anum_pg_replication_origin_roname - 1] = CStringGetTextDatum(name);
	replaces[Anum_pg_replication_origin_roname - 1] = true;
	renamed = heap_modify_tuple(row, RelationGetDescr(origins), values, nulls, replaces);
	CatalogTupleUpdate(origins, &renamed->t_self, renamed);
	CommandCounterIncrement();
}

/*
 * The lock on the catalog is kept to the end of the transaction, so that of two
 * databases that create the extension at once the second sees what the first
 * has made.
 */
bool
sf_register_make(const SfLayout *layout, bool accept, char **before)
{
	char		name[NAME_SIZE];
	Relation	origins = table_open(ReplicationOriginRelationId, ExclusiveLock);
	HeapTuple	row = find_row(origins);
	bool		changed = false;

	register_name(layout, name);
	*before = NULL;
	if (row == NULL)
	{
		replorigin_create(name);
		changed = true;
	}
	else
	{
		char	   *carried = row_name(origins, row);

		*before = carried + strlen(NAME_PREFIX);
		if (accept && strcmp(carried, name) != 0)
		{
			rename_row(origins, row, name);
			changed = true;
		}
	}
	table_close(origins, NoLock);
	return changed;
}
