/*
 * durable.c
 *	  The numbers that a server must not forget.
 *
 * PostgreSQL keeps a 64-bit number for each replication origin: its progress.  It is logged in WAL,
 * saved by checkpoints, replayed by recovery and standbys, and copied by base backups.  So the
 * extension needs no file, no checksum and no type of WAL record of its own.
 *
 * The catalog has no row for these origins, since a row would be transactional while the progress
 * is not.  A number is written outside of transactions, in any process, and a rollback leaves it as
 * it is.  The SQL functions for origins find them by name, so they cannot change or drop these.
 * PostgreSQL assigns the lowest number that is free to an origin, and would come to these only if
 * 65527 others existed.
 *
 * pg_upgrade does not carry the progress of origins.  Afterwards all numbers are 0, and no ID is
 * issued until an administrator has set the floor.
 *
 * Each end of a reservation is one number, so that one record of WAL writes it, and a crash leaves
 * either the old end or the new one.  The layout is two numbers: the first one is set to 0 before
 * the second one changes, and written last.
 *
 * A checkpoint can save a number whose record of WAL is not on disk yet.  If the record is lost in
 * a crash, the saved number remains, which is the safe direction for an end of the reservation;
 * open_locked (reservation.c) writes it again, for standbys.
 *
 * PostgreSQL reads and writes a number under ReplicationOriginLock, which cannot be interrupted,
 * and its writer can wait for the disk.  So shared memory contains a copy of the numbers, and a
 * process that reads one does not wait behind a disk.  The first process that reads or writes a
 * number after recovery reads all of them, so before that no process of ours can hold the lock
 * during a write.  Afterwards only this file changes the numbers: a process that writes one
 * changes the copy next, an end of a reservation at once, any other number when it is on disk.
 * During recovery, when replay changes the numbers, the copy is not used.
 *
 * When an administrator drops the numbers (functions/state.c), no further number is written until
 * the next start, and the copy stays as it is.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/origin.h"

#include "atomic.h"
#include "compat.h"
#include "state/durable.h"
#include "state/postmaster_memory.h"

StaticAssertDecl(SF_DURABLE_REGISTRY == DoNotReplicateId - 1, "the last number of an origin");

/* A number of the copy that was not read yet. */
#define NOT_READ	PG_UINT64_MAX

static pg_atomic_uint64 *copies = NULL;

void
sf_durable_init(pg_atomic_uint64 *copy)
{
	for (int i = 0; i < SF_DURABLE_COUNT; i++)
		pg_atomic_init_u64(&copy[i], NOT_READ);
}

void
sf_durable_attach(pg_atomic_uint64 *copy)
{
	copies = copy;
}

static pg_atomic_uint64 *
copy_of(SfDurable number)
{
	return &copies[number - SF_DURABLE_FIRST];
}

/* A copy that another process has read or written meanwhile is left as it is. */
static void
read_all(void)
{
	for (int number = SF_DURABLE_FIRST; number <= SF_DURABLE_REGISTRY; number++)
	{
		uint64		expected = NOT_READ;
		uint64		value = replorigin_get_progress((ReplOriginId) number, false);

		pg_atomic_compare_exchange_u64(copy_of(number), &expected, value);
	}
}

uint64
sf_durable_read(SfDurable number)
{
	uint64		value = pg_atomic_read_u64(copy_of(number));

	if (value != NOT_READ)
		return value;
	if (RecoveryInProgress())
		return replorigin_get_progress((ReplOriginId) number, false);
	read_all();
	return pg_atomic_read_u64(copy_of(number));
}

void
sf_durable_refuse_dropped(void)
{
	if (!sf_postmaster_state_dropped())
		return;
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("all generators are closed until the server is restarted"),
			errdetail("The durable state of Snowflake IDs was dropped by snowflake_drop_state()."),
			errhint("Restart the server."));
}

/* The copy is read before the number changes, so that it is not ahead of the disk. */
static XLogRecPtr
write_record(SfDurable number, uint64 value, bool lower)
{
	sf_durable_refuse_dropped();
	(void) sf_durable_read(number);
	replorigin_advance((ReplOriginId) number, (XLogRecPtr) value, InvalidXLogRecPtr, lower, true);
	return XactLastRecEnd;
}

/* Sessions that create the extension can raise a number at the same time. */
void
sf_durable_raise(SfDurable number, uint64 value)
{
	XLogFlush(write_record(number, value, false));
	sf_atomic_raise(copy_of(number), value);
}

void
sf_durable_set(SfDurable number, uint64 value)
{
	XLogFlush(write_record(number, value, true));
	pg_atomic_write_u64(copy_of(number), value);
}

void
sf_durable_take_slots(void)
{
	XLogRecPtr	end = InvalidXLogRecPtr;

	for (int i = 0; i < SF_DURABLE_COUNT; i++)
		end = write_record((SfDurable) (SF_DURABLE_FIRST + i), 0, false);
	XLogFlush(end);
}

/*
 * The ends of the reservations
 */

static SfDurable
number_of(SfGeneratorKind kind, int line)
{
	if (kind == SF_GENERATOR_BIGINT)
		return SF_DURABLE_BIGINT;
	return line == 0 ? SF_DURABLE_TICK : SF_DURABLE_TOCK;
}

/* An end at the Unix epoch is rounded up, since 0 means that the state is lost. */
static uint64
to_number(SfInstant end)
{
	return Max((uint64) end - (uint64) SF_UNIX_EPOCH, 1);
}

/* An end after the last tick belongs to another layout.  Nothing is issued above it. */
bool
sf_durable_end(SfGeneratorKind kind, int line, SfInstant *end)
{
	uint64		number = sf_durable_read(number_of(kind, line));
	uint64		last = (uint64) SF_INSTANT_END - (uint64) SF_UNIX_EPOCH;

	*end = (SfInstant) (Min(number, last) + (uint64) SF_UNIX_EPOCH);
	return number != 0;
}

uint64
sf_durable_position(const SfGenerator *generator, int line)
{
	SfInstant	end;
	uint64		position;

	if (!sf_durable_end(generator->kind, line, &end))
		return 0;
	position = sf_position_at(&generator->layout, end);
	return Max(position, sf_position_first(&generator->layout));
}

XLogRecPtr
sf_durable_raise_end(SfGenerator *generator, int line, SfInstant end)
{
	SfDurable	number = number_of(generator->kind, line);
	XLogRecPtr	lsn;

	Assert(sf_lock_is_mine(&generator->lock));
	lsn = write_record(number, to_number(end), false);
	sf_atomic_raise(copy_of(number), to_number(end));
	return lsn;
}

void
sf_durable_lower_end(SfGenerator *generator, int line, SfInstant end)
{
	SfDurable	number = number_of(generator->kind, line);

	Assert(sf_lock_is_mine(&generator->lock));
	if (sf_durable_read(number) > to_number(end))
		sf_durable_set(number, to_number(end));
}

void
sf_durable_begin(SfGeneratorKind kind, int line, SfInstant end)
{
	if (sf_durable_read(number_of(kind, line)) == 0)
		sf_durable_raise(number_of(kind, line), to_number(Max(end, SF_UNIX_EPOCH)));
}

/*
 * The layout of IDs of type bigint
 */

SfOpening
sf_durable_layout_read(SfLayout *layout)
{
	SfPackedLayout packed = {
		.epoch = sf_durable_read(SF_DURABLE_EPOCH),
		.fields = sf_durable_read(SF_DURABLE_LAYOUT),
	};

	if (packed.fields == 0)
		return SF_OPENING_LOST;
	return sf_layout_unpack(packed, layout) ? SF_OPENING_DONE : SF_OPENING_INVALID;
}

SfOpening
sf_durable_layout_check(const SfGenerator *generator)
{
	SfLayout	recorded;
	SfOpening	result = sf_durable_layout_read(&recorded);

	if (result == SF_OPENING_DONE && !sf_layout_equal(&recorded, &generator->layout))
		return SF_OPENING_OTHER_LAYOUT;
	return result;
}

void
sf_durable_layout_write(const SfLayout *layout)
{
	SfPackedLayout packed = sf_layout_pack(layout);

	sf_durable_set(SF_DURABLE_LAYOUT, 0);
	sf_durable_set(SF_DURABLE_PROMISE, 0);	/* an ID of the old layout */
	sf_durable_set(SF_DURABLE_EPOCH, packed.epoch);
	sf_durable_set(SF_DURABLE_LAYOUT, packed.fields);
}
