/*
 * disk.c
 *	  WAL, the progress of replication origins, checkpoints, and recovery.
 *
 * A position in WAL is a number of records.  What is flushed survives a crash of the machine, and
 * so may any part of the rest.
 */
#include "world.h"

#include "replication/origin.h"

#include "compat.h"
#include "oracles.h"

typedef struct Record
{
	RecordType	type;
	int			number;			/* of an origin, or a transaction */
	uint64		value;
	bool		lower;			/* the progress can move backward */
} Record;

#define RECORDS	16384

static Record wal[RECORDS];
int64		inserted,
			flushed;
Numbers		in_memory,
			on_disk;
int64		lowered_at[SF_DURABLE_COUNT];
bool		in_recovery;
int64		replay_until;

/* The last checkpoint. */
static Numbers saved;
static int64 redo;

/* xloginsert.c: XLogInsert; XactLastRecEnd is the end of the last record of the process. */
int64
insert_record(RecordType type, int number, uint64 value, bool lower)
{
	if (inserted >= RECORDS)
		fail("the simulated WAL is full");
	wal[inserted++] = (Record)
	{
		type, number, value, lower
	};
	XactLastRecEnd = (XLogRecPtr) inserted;
	return inserted;
}

/* origin.c: replorigin_redo applies the record that ends at an LSN as replorigin_advance did. */
static void
replay(int64 lsn, Numbers numbers)
{
	const Record *record = &wal[lsn - 1];

	if (record->type == RECORD_NUMBER &&
		(record->lower || record->value > numbers[record->number]))
		numbers[record->number] = record->value;
}

/*
 * xlogrecovery.c and origin.c (StartupReplicationOrigin): recovery begins with the numbers that the
 * checkpoint has saved, and replays the records after its redo pointer.
 */
static void
recover(int64 lsn, Numbers numbers)
{
	memcpy(numbers, saved, sizeof(Numbers));
	for (int64 i = redo + 1; i <= lsn; i++)
		replay(i, numbers);
}

/* After a crash WAL ends at an LSN. */
void
crash_disk(int64 lsn)
{
	inserted = flushed = lsn;
	recover(lsn, on_disk);
	memcpy(in_memory, on_disk, sizeof(Numbers));
}

/* A standby has WAL up to an LSN, of which it has replayed a part.  It has a checkpoint of its own. */
void
standby_disk(int64 lsn, int64 replayed)
{
	memset(saved, 0, sizeof(Numbers));
	redo = 0;
	crash_disk(replayed);
	inserted = replay_until = lsn;
}

void
reset_disk(void)
{
	standby_disk(0, 0);
	memset(lowered_at, 0, sizeof(lowered_at));
	in_recovery = false;
}

/* xlog.c: returns when WAL is on disk up to an LSN; concurrent requests are served together. */
void
XLogFlush(XLogRecPtr lsn)
{
	int64		target;

	point();
	if ((int64) lsn <= flushed)
		return;
	target = chance(2) ? inserted : (int64) lsn;
	if (config.fail_flush && !quiet && chance(60))
		flush_fails();
	trace("XLogFlush                    %lld", (long long) lsn);
	current->flushing = true;
	if (config.slow_disk && !quiet && chance(4))
		sleep_until(now + below(chance(4) ? 3000000 : 300000));
	else if (chance(2))
		sleep_until(now + below(3000));
	current->flushing = false;
	while (flushed < target)
		replay(++flushed, on_disk);
	trace("XLogFlush                    WAL is on disk up to %lld", (long long) flushed);
	point();
}

/* xlog.c */
RETURNS(bool, (point(), (int64) lsn > flushed), XLogNeedsFlush, XLogRecPtr lsn);

/* xlog.c: wakes the WAL writer if it sleeps, which then flushes WAL up to the LSN. */
void
XLogSetAsyncXactLSN(XLogRecPtr lsn)
{
	point();
	trace("XLogSetAsyncXactLSN          %lld", (long long) lsn);
	procs[WAL_WRITER].procLatch.is_set = true;
}

/* walwriter.c */
void
wal_writer_main(void)
{
	for (;;)
	{
		WaitLatch(MyLatch, 0, 200, 0);
		ResetLatch(MyLatch);
		if (!in_recovery)
			XLogFlush((XLogRecPtr) inserted);
	}
}

/*
 * checkpointer.c, origin.c (CheckPointReplicationOrigin): the numbers are saved after the redo pointer
 * was fixed, and before WAL is flushed up to their records.
 */
void
checkpointer_main(void)
{
	for (;;)
	{
		Numbers		numbers;
		int64		pointer;

		sleep_until(now + below(1000000));
		if (in_recovery)
			continue;
		point();
		pointer = inserted;
		yield_now();
		memcpy(numbers, in_memory, sizeof(numbers));
		yield_now();
		XLogFlush((XLogRecPtr) pointer);
		trace("checkpoint                   %lld", (long long) pointer);
		memcpy(saved, numbers, sizeof(numbers));
		redo = pointer;
		recover(flushed, on_disk);
	}
}

/* xlogrecovery.c: replays the rest of WAL on a standby, and promotes it. */
void
startup_main(void)
{
	int64		lsn = flushed;

	while (lsn < replay_until)
	{
		replay(++lsn, in_memory);
		sleep_until(now + below(2000));
	}
	crash_disk(replay_until);
	point();
	trace("promoted");
	in_recovery = false;
}

/* origin.c: logs the number, and then sets it in memory, under a lock.  No transaction is needed. */
void
replorigin_advance(ReplOriginId node, XLogRecPtr value, XLogRecPtr local, bool lower, bool log)
{
	int			number = (int) node - SF_DURABLE_FIRST;

	point();
	trace("replorigin_advance           number %d: %lld%s", number, (long long) value,
		  lower ? ", also if it is lower" : "");
	if (log)
		(void) insert_record(RECORD_NUMBER, number, value, lower);
	if (lower)
		lowered_at[number] = now;
	if (lower || value > in_memory[number])
		in_memory[number] = value;
	oracle_number_written(number);
}

/* origin.c: of an origin without progress, 0. */
RETURNS(XLogRecPtr, (point(), in_memory[node - SF_DURABLE_FIRST]), replorigin_get_progress,
		ReplOriginId node, bool flush);

/* origin.c: the catalog has no row for these origins. */
RETURNS(bool, false, replorigin_by_oid, ReplOriginId node, bool missing_ok, char **name);

/* xlog.c */
RETURNS(bool, in_recovery, RecoveryInProgress, void);

/* utility.c */
void
PreventCommandDuringRecovery(const char *name)
{
	if (in_recovery)
		ereport(ERROR, errmsg("cannot execute %s during recovery", name));
}
