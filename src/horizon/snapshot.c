/*
 * snapshot.c
 *	  The order of snapshots, what a snapshot sees, and the horizons that are known for snapshots.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "port/pg_bitutils.h"
#include "storage/procarray.h"
#include "utils/builtins.h"

#include "horizon/snapshot.h"

FullTransactionId
sf_full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (xid > XidFromFullTransactionId(next))
		epoch--;
	return FullTransactionIdFromEpochAndXid(epoch, xid);
}

/*
 * The transactions that a snapshot lists.  One that is being prepared can be listed twice.
 */
static uint64
count_running(Snapshot snapshot)
{
	TransactionId *xids;
	uint64		count;

	if (snapshot->xcnt < 2 || max_prepared_xacts == 0)
		return snapshot->xcnt;
	xids = palloc(snapshot->xcnt * sizeof(TransactionId));
	memcpy(xids, snapshot->xip, snapshot->xcnt * sizeof(TransactionId));
	qsort(xids, snapshot->xcnt, sizeof(TransactionId), xidComparator);
	count = 1;
	for (uint32 i = 1; i < snapshot->xcnt; i++)
		count += xids[i] != xids[i - 1];
	pfree(xids);
	return count;
}

/* A snapshot does not list the transaction that takes it. */
SfPlace
sf_place_of(Snapshot snapshot)
{
	SfPlace		place = {
		.xmax = U64FromFullTransactionId(sf_full_xid(snapshot->xmax)),
		.running = count_running(snapshot)
	};
	FullTransactionId mine = GetTopFullTransactionIdIfAny();

	if (FullTransactionIdIsValid(mine) && U64FromFullTransactionId(mine) < place.xmax)
		place.running++;
	return place;
}

SfPlace
sf_place_now(void)
{
	static SnapshotData now =
	{
		.snapshot_type = SNAPSHOT_MVCC
	};

	return sf_place_of(GetSnapshotData(&now));
}

/* The end of a transaction raises xmax, or leaves fewer that run. */
static bool
is_later(SfPlace place, SfPlace than)
{
	return place.xmax > than.xmax ||
		(place.xmax == than.xmax && place.running < than.running);
}

bool
sf_snapshot_lacks(Snapshot snapshot, SfPlace place, uint64 xid)
{
	if (xid >= place.xmax)
		return true;
	if (place.xmax - xid > (uint32) (snapshot->xmax - snapshot->xmin))
		return false;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		if (snapshot->xip[i] == (TransactionId) xid)
			return true;
	return false;
}

static int
index_of(uint64 number)
{
	int			level = Min(pg_rightmost_one_pos64(number), SF_KNOWN_LEVELS - 1);

	return level * SF_KNOWN_ENTRIES + (int) ((number >> level) / 2 % SF_KNOWN_ENTRIES);
}

void
sf_known_add(SfKnownHorizons *known, SfPlace place, int64 horizon)
{
	SfKnown    *entry;

	if (known->count > 0 && known->entries[index_of(known->count)].horizon >= horizon)
		return;
	entry = &known->entries[index_of(++known->count)];
	entry->place = place;
	entry->horizon = horizon;
}

int64
sf_known_at(const SfKnownHorizons *known, SfPlace place)
{
	int64		greatest = PG_INT64_MIN;

	for (int i = 0; i < SF_KNOWN_LEVELS * SF_KNOWN_ENTRIES; i++)
	{
		const SfKnown *entry = &known->entries[i];

		if (entry->place.xmax != 0 && !is_later(entry->place, place))
			greatest = Max(greatest, entry->horizon);
	}
	return greatest;
}
