/*
 * origin.c
 *	  The replication origin in which PostgreSQL keeps the durable state of a generator.
 *
 * PostgreSQL has a 64-bit number that is logged in WAL, kept by checkpoints and replicated: the
 * progress of a replication origin.  No subscription uses our origins.  Recovery, checkpoints
 * and standbys treat the number like that of any origin, so the extension needs no file, no
 * checksum and no WAL record type of its own.
 *
 * durable_state.c defines what the number means.  The name of the origin contains
 * the layout, because IDs of two layouts can be equal: a server that is
 * configured with another layout does not find the origin, and issues no ID.
 *
 * An origin takes one of max_replication_slots (18:
 * max_active_replication_origins) from its first write on.  If no slot is free, replorigin_advance
 * raises an error that names the setting.
 *
 * The name is catalog data, and transactional; the value is not.  So a reservation is not written
 * by a transaction that has itself renamed the origin: if the transaction were rolled back, the
 * value would remain without a name, and the next origin with the same number would inherit it.
 *
 * For the same reason a drop loses the value even if it is rolled back: it sets the value to 0 at
 * once, and the rollback restores only the name.  So the value of an existing origin is 0 only if
 * the value was lost: sf_origin_create writes SF_ORIGIN_NEW.  If the creation is rolled back, the
 * value 1 remains, which does no harm to a later origin with the same number, because no WAL record
 * begins there.  But the extension's own origin must not be left with this value.  Therefore a
 * transaction that has dropped the origin cannot create it: its rollback would restore the old name
 * with the value of a new origin.  A generator whose origin is 0 is not opened.  A server that has
 * the end of the reservation in shared memory writes it again (reservation.c).
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

#include "state/origin.h"

static const char *const prefixes[SF_GENERATOR_COUNT] = {
	[SF_GENERATOR_BIGINT] = "snowflake bigint: ",
	[SF_GENERATOR_SNO] = "snowflake sno: ",
};

#define NAME_SIZE	(32 + SF_LAYOUT_TEXT_SIZE)

static void
format_name(SfGeneratorKind kind, const SfLayout *layout, char *name)
{
	strlcpy(name, prefixes[kind], NAME_SIZE);
	sf_layout_format(layout, name + strlen(name));
}

static char *
row_name(Relation origins, HeapTuple row)
{
	bool		isnull;

	return TextDatumGetCString(heap_getattr(row, Anum_pg_replication_origin_roname,
											RelationGetDescr(origins), &isnull));
}

static bool
is_row_of(Relation origins, HeapTuple row, SfGeneratorKind kind)
{
	return strncmp(row_name(origins, row), prefixes[kind], strlen(prefixes[kind])) == 0;
}

/* The row of an origin, with any layout in its name; NULL if there is none. */
static HeapTuple
find_row(Relation origins, SfGeneratorKind kind)
{
	SysScanDesc scan = systable_beginscan(origins, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	row;
	HeapTuple	found = NULL;

	while (found == NULL && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		if (is_row_of(origins, row, kind))
			found = heap_copytuple(row);
	}
	systable_endscan(scan);
	return found;
}

/* Whether the current transaction has deleted a row. */
static bool
is_deleted_here(HeapTuple row)
{
	HeapTupleHeader header = row->t_data;

	return (header->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		!HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(header));
}

/*
 * Raises object_not_in_prerequisite_state if the current transaction has dropped the origin of a
 * kind.
 */
static void
refuse_if_dropped_here(Relation origins, SfGeneratorKind kind)
{
	SysScanDesc scan = systable_beginscan(origins, InvalidOid, false, SnapshotAny, 0, NULL);
	HeapTuple	row;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		if (is_deleted_here(row) && is_row_of(origins, row, kind))
			ereport(ERROR,
					errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("cannot create the origin of %s IDs in the transaction that dropped it",
						   sf_generator_kind_name(kind)),
					errhint("Commit the transaction first, or roll it back."));
	}
	systable_endscan(scan);
}

void
sf_origin_report_missing(SfGeneratorKind kind)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the origin of %s IDs is missing", sf_generator_kind_name(kind)),
			errdetail("CREATE EXTENSION creates the replication origin \"%s...\" once for all databases.  pg_upgrade does not preserve it.",
					  prefixes[kind]),
			errhint("Use snowflake_create_origin().  If the clock can be behind the newest existing ID, use %s() with a time after that ID as well, before any ID is issued.  Otherwise IDs can be issued twice.",
					kind == SF_GENERATOR_SNO ? "sno_set_floor" : "snowflake_set_floor"));
}

static void
report_other_layout(const char *carried, const char *wanted)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("\"snowflake.layout\" does not match the layout of this cluster"),
			errdetail("Snowflake IDs are issued in the layout \"%s\", but the setting is \"%s\".",
					  carried + strlen(prefixes[SF_GENERATOR_BIGINT]),
					  wanted + strlen(prefixes[SF_GENERATOR_BIGINT])),
			errhint("Change \"snowflake.layout\" back, or use snowflake_accept_layout().  IDs of the two layouts can be equal, and do not sort by time."));
}

void
sf_origin_report_lost(SfGeneratorKind kind)
{
	if (sf_max_origins() == 0)
		ereport(ERROR,
				errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				errmsg("could not read the origin of %s IDs", sf_generator_kind_name(kind)),
				errdetail("Replication origins are not loaded, because \"%s\" is 0.", SF_MAX_ORIGINS_NAME),
				errhint("Set \"%s\" to at least 2, and restart the server.", SF_MAX_ORIGINS_NAME));
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the origin of %s IDs has lost its value", sf_generator_kind_name(kind)),
			errdetail("The value of the replication origin \"%s...\" is 0, as after a drop that was rolled back.  The server cannot determine which IDs it has issued.",
					  prefixes[kind]),
			errhint("Use %s() with a time after the newest existing ID, or with now() if the clock is after that ID.  With an earlier time, IDs are issued twice.",
					kind == SF_GENERATOR_SNO ? "sno_set_floor" : "snowflake_set_floor"));
}

static void
report_uncommitted(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("cannot issue Snowflake IDs in the transaction that created or changed their origin"),
			errhint("Commit the transaction first."));
}

/* Whether the row was created or renamed by this transaction, which may still roll back. */
static bool
is_uncommitted(HeapTuple row)
{
	return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data));
}

static ReplOriginId
row_origin(HeapTuple row)
{
	return (ReplOriginId) ((Form_pg_replication_origin) GETSTRUCT(row))->roident;
}

/* The number of a generator's origin; raises the errors of sf_origin_find. */
static ReplOriginId
find_checked(const SfGenerator *generator)
{
	char		name[NAME_SIZE];
	Relation	origins = table_open(ReplicationOriginRelationId, AccessShareLock);
	HeapTuple	row = find_row(origins, generator->kind);
	char	   *carried;

	if (row == NULL)
		sf_origin_report_missing(generator->kind);
	format_name(generator->kind, &generator->layout, name);
	carried = row_name(origins, row);
	if (strcmp(carried, name) != 0)
		report_other_layout(carried, name);
	if (is_uncommitted(row))
		report_uncommitted();
	table_close(origins, AccessShareLock);
	return row_origin(row);
}

uint64
sf_origin_read(ReplOriginId origin)
{
	return replorigin_get_progress(origin, false);
}

/*
 * The lock tag of an origin.  A drop of the origin locks the catalog in mode
 * Exclusive in 15, and the origin in mode AccessExclusive since 16, to the end
 * of its transaction.
 */
static LOCKTAG
origin_tag(ReplOriginId origin)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, ReplicationOriginRelationId, origin, 0);
	return tag;
}

static bool
lock_catalog(bool wait)
{
	if (!wait)
		return ConditionalLockRelationOid(ReplicationOriginRelationId, RowExclusiveLock);
	LockRelationOid(ReplicationOriginRelationId, RowExclusiveLock);
	return true;
}

static void
unlock_catalog(void)
{
	UnlockRelationOid(ReplicationOriginRelationId, RowExclusiveLock);
}

/* The catalog is locked; if this fails, the catalog is unlocked. */
static bool
lock_origin(ReplOriginId origin, bool wait)
{
	LOCKTAG		tag = origin_tag(origin);

	if (LockAcquire(&tag, AccessShareLock, false, !wait) != LOCKACQUIRE_NOT_AVAIL)
	{
		AcceptInvalidationMessages();	/* of changes under the lock */
		return true;
	}
	unlock_catalog();
	return false;
}

/* Whether sf_origin_find would return this origin. */
static bool
is_register(ReplOriginId origin, const SfGenerator *generator)
{
	char		name[NAME_SIZE];
	Relation	origins = table_open(ReplicationOriginRelationId, AccessShareLock);
	HeapTuple	row = find_row(origins, generator->kind);
	bool		is;

	format_name(generator->kind, &generator->layout, name);
	is = row != NULL && row_origin(row) == origin && !is_uncommitted(row) &&
		strcmp(row_name(origins, row), name) == 0;
	table_close(origins, AccessShareLock);
	return is;
}

SfOriginHold
sf_origin_hold(ReplOriginId origin, const SfGenerator *generator, bool wait)
{
	if (!lock_catalog(wait) || !lock_origin(origin, wait))
		return SF_ORIGIN_BUSY;
	if (is_register(origin, generator))
		return SF_ORIGIN_HELD;
	sf_origin_release(origin);
	return SF_ORIGIN_GONE;
}

bool
sf_origin_hold_unseen(ReplOriginId origin)
{
	return lock_catalog(false) && lock_origin(origin, false);
}

#ifdef USE_ASSERT_CHECKING
bool
sf_origin_is_held(ReplOriginId origin)
{
	LOCKTAG		tag = origin_tag(origin);

	return sf_lock_is_held(&tag, AccessShareLock);
}
#endif

void
sf_origin_release(ReplOriginId origin)
{
	LOCKTAG		tag = origin_tag(origin);

	LockRelease(&tag, AccessShareLock, false);
	unlock_catalog();
}

/*
 * The origin that is found may be dropped, and another one created, before it is locked; in that
 * case the search is repeated.
 */
SfOriginHold
sf_origin_find(const SfGenerator *generator, bool wait, ReplOriginId *origin)
{
	SfOriginHold hold;

	do
	{
		if (!lock_catalog(wait))
			return SF_ORIGIN_BUSY;
		*origin = find_checked(generator);
		unlock_catalog();
		hold = sf_origin_hold(*origin, generator, wait);
	} while (hold == SF_ORIGIN_GONE);
	return hold;
}

XLogRecPtr
sf_origin_log(ReplOriginId origin, uint64 number, bool back)
{
	replorigin_advance(origin, (XLogRecPtr) number, InvalidXLogRecPtr, back, true);
	return XactLastRecEnd;
}

void
sf_origin_write(ReplOriginId origin, uint64 number, bool back)
{
	XLogFlush(sf_origin_log(origin, number, back));
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

/* The name of the origin's row; NULL if there is none. */
static char *
carried_name(SfGeneratorKind kind)
{
	Relation	origins = table_open(ReplicationOriginRelationId, AccessShareLock);
	HeapTuple	row = find_row(origins, kind);
	char	   *carried = row ? row_name(origins, row) : NULL;

	table_close(origins, AccessShareLock);
	return carried;
}

void
sf_origin_check_layout(const SfLayout *layout)
{
	char		name[NAME_SIZE];
	char	   *carried = carried_name(SF_GENERATOR_BIGINT);

	if (carried == NULL)
		sf_origin_report_missing(SF_GENERATOR_BIGINT);
	format_name(SF_GENERATOR_BIGINT, layout, name);
	if (strcmp(carried, name) != 0)
		report_other_layout(carried, name);
}

bool
sf_origins_exist(void)
{
	for (int i = 0; i < SF_GENERATOR_COUNT; i++)
	{
		if (carried_name((SfGeneratorKind) i) == NULL)
			return false;
	}
	return true;
}

/*
 * Looks first without a lock that CREATE EXTENSION in other databases would wait for, and takes
 * that lock only to change something.  The lock is kept to the end of the transaction, so that if
 * two databases create the extension at once, the second sees the origin that the first has
 * created.
 */
bool
sf_origin_create(SfGeneratorKind kind, const SfLayout *layout, bool accept, char **before)
{
	char		name[NAME_SIZE];
	char	   *carried = carried_name(kind);
	Relation	origins;
	HeapTuple	row;

	format_name(kind, layout, name);
	*before = NULL;
	if (carried && (!accept || strcmp(carried, name) == 0))
		return false;

	origins = table_open(ReplicationOriginRelationId, ExclusiveLock);
	row = find_row(origins, kind);
	if (row == NULL)
	{
		refuse_if_dropped_here(origins, kind);
		sf_origin_write(replorigin_create(name), SF_ORIGIN_NEW, false);
	}
	else if (accept)
	{
		*before = row_name(origins, row) + strlen(prefixes[kind]);
		rename_row(origins, row, name);
	}
	table_close(origins, NoLock);
	return row == NULL || accept;
}
