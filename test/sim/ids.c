/*
 * ids.c
 *	  "P1: A server never issues an ID twice, in any session, table or database.  This holds after a
 *	  crash or a restart, if the clock is wrong or set back, and if the transaction that took the ID
 *	  is rolled back."
 *	  "P7: A promoted standby, or a server recovered to a point in time, never issues an ID of a
 *	  transaction that it has replayed, even if its clock or that of the old primary was wrong."
 *
 * All IDs of a run are remembered, except IDs that may be issued again.  Beside this, the reasons
 * for which no ID is issued twice are checked: the reservation is on disk, the machine ID is
 * configured or leased, and the sequence number is in the range.
 */
#include "record.h"

#include "core/batch.h"

#define IDS		8192
#define BUCKETS	32768

Issued		issued[IDS];
int			issued_count;
static int	buckets[BUCKETS],
			bucket_epoch[BUCKETS],
			epoch;
int64		ids_issued;
int			machine_used[2];
bool		sno_was_first;		/* a call for sno has begun before there was a
								 * bigint */
static uint32 configured[2];	/* a bit for each number since the start */

static void
remember(int number)
{
	const Issued *id = &issued[number];
	uint32		bucket = (uint32) (id->key * UINT64CONST(0x9E3779B97F4A7C15) >> 49);

	for (; bucket_epoch[bucket] == epoch; bucket = (bucket + 1) % BUCKETS)
	{
		const Issued *other = &issued[buckets[bucket]];

		if (other->key == id->key && other->kind == id->kind)
			fail("P1: %s %llx was issued twice, at first as number %d", name_of_kind(id->kind),
				 (unsigned long long) id->key, buckets[bucket]);
	}
	bucket_epoch[bucket] = epoch;
	buckets[bucket] = number;
}

/* Forget IDs that can be issued again: exceptions to P1. */
static void
forget_ids(bool (*may_repeat) (const Issued *, int64), int64 argument)
{
	int			kept = 0;

	epoch++;
	for (int i = 0; i < issued_count; i++)
		if (!may_repeat(&issued[i], argument))
		{
			issued[kept] = issued[i];
			remember(kept++);
		}
	issued_count = kept;
}

/* P7: their rows did not reach the standby. */
static bool
is_after(const Issued *id, int64 lsn)
{
	return id->lsn == 0 || id->lsn > lsn;
}

/*
 * Issued before the generator was moved back, and not before the time to which it was moved.  With
 * weak memory, a session can find the generation old after the move, and return an ID that it took
 * before the move.
 */
static bool
is_moved(const Issued *id, int64 kind)
{
	int64		moved = kind == SF_GENERATOR_BIGINT ? lowered_at[NUMBER(BIGINT)] :
	Max(lowered_at[NUMBER(TICK)], lowered_at[NUMBER(TOCK)]);

	return id->kind == (SfGeneratorKind) kind && id->time >= moved_to[kind] &&
		id->returned - (weak ? id->duration : 0) <= moved;
}

static bool
is_of_kind(const Issued *id, int64 kind)
{
	return id->kind == (SfGeneratorKind) kind;
}

void
forget_layout(void)
{
	forget_ids(is_of_kind, SF_GENERATOR_BIGINT);
}

void
forget_after(int64 lsn)
{
	forget_ids(is_after, lsn);
}

void
forget_moved(SfGeneratorKind kind)
{
	forget_ids(is_moved, kind);
}

/* The machine ID and the partition that are configured now. */
void
oracle_configured(void)
{
	int			partition = config.partition == SF_MACHINE_ID_UNSET ? config.machine_id :
	config.partition;

	configured[SF_GENERATOR_BIGINT] |= 1U << Max(config.machine_id, 0);
	configured[SF_GENERATOR_SNO] |= 1U << Max(partition, 0);
}

void
ids_begin(void)
{
	epoch++;
	issued_count = 0;
}

void
ids_start(bool new_postmaster)
{
	if (new_postmaster)
	{
		memset(configured, 0, sizeof(configured));
		machine_used[0] = machine_used[1] = -1;
		sno_was_first = false;
	}
	oracle_configured();
}

/* Invariants 1 and 2: the reservation is on disk. */
static void
check_reservation(SfGeneratorKind kind, uint64 position, bool second_line)
{
	int			number = kind == SF_GENERATOR_BIGINT ? NUMBER(BIGINT) :
	second_line ? NUMBER(TOCK) : NUMBER(TICK);
	TimestampTz end = (TimestampTz) (on_disk[number] + (uint64) SF_UNIX_EPOCH);

	if (!move_begun[kind] &&
		(on_disk[number] == 0 || position >= sf_position_at(&generator_of(kind)->layout, end)))
		fail("I2: an ID whose reservation is not on disk");
}

static void
check_machine(SfGeneratorKind kind, int machine, TimestampTz time)
{
	if (config.leased)
	{
		if (!registry_covers(machine, time))
			fail("P1: an ID outside of its lease");
		return;
	}
	if ((configured[kind] & 1 << machine) == 0)
		fail("P1: machine ID %d was not configured since the start", machine);
	if (machine_used[kind] >= 0 && machine_used[kind] != machine)
		fail("P1: machine ID %d after %d", machine, machine_used[kind]);
	if (kind == SF_GENERATOR_SNO && config.partition == SF_MACHINE_ID_UNSET && !sno_was_first &&
		call.bigint_machine >= 0 && machine != call.bigint_machine)
		fail("P1: partition %d beside machine ID %d", machine, call.bigint_machine);
	machine_used[kind] = machine;
}

/* What holds for IDs of both kinds. */
static void
check_id(int machine, uint64 position, TimestampTz time, uint64 key, bool second_line)
{
	SfGeneratorKind kind = call.kind;
	const SfGenerator *generator = generator_of(kind);
	int64		tick = generator->layout.tick_length;
	uint32		sequence = sf_position_sequence(&generator->layout, position);
	Issued		id = {key, kind, machine, run, time, 0, now, now - call.began, steps_back};

	ids_issued++;
	trace("ID                           %s %lld, machine ID %d, sequence %u", name_of_kind(kind),
		  (long long) key, machine, sequence);
	if (in_recovery)
		fail("P7: an ID was issued during recovery");
	check_no_error();
	if (sequence < generator->range.min || sequence > generator->range.max)
		fail("P1: sequence %u is outside of the range", sequence);
	if (time < call.floor)
		fail("P1: an ID is %lld us before the floor", (long long) (call.floor - time));
	check_time(kind, time, tick);
	check_reservation(kind, position, second_line);
	check_machine(kind, machine, time);
	check_wait();
	if (kind == SF_GENERATOR_BIGINT)
		check_order(&id, tick);
	oracle_time(kind, time);
	check_starvation(id.duration);
	if (issued_count == IDS)
		fail("the simulation has no room for IDs");
	issued[issued_count] = id;
	remember(issued_count++);
}

void
oracle_bigint(int64 id, bool is_row)
{
	const SfLayout *layout = sf_layout_in_force();
	SfFields	fields;

	if (!sf_layout_holds(layout, id))
		fail("P6: an ID after the last one of the layout");
	if (!layout_is_recorded())
		fail("P6: an ID in a layout that is not recorded");
	fields = sf_layout_decompose(layout, id);
	check_id((int) fields.machine, sf_position(layout, fields.tick, fields.sequence),
			 sf_layout_tick_start(layout, fields.tick), (uint64) id, false);
	check_order_of_session(id);
	check_proposal(id);
	if (is_row)
	{
		int			number = issued_count - 1;

		issued[number].lsn = inserted + 1;
		(void) add_row(id);
	}
}

void
oracle_sno(const SfSno *id)
{
	SfSnoFields fields = sf_sno_decompose(id);

	check_id(fields.partition, sf_position(&sf_sno_layout, fields.units, fields.sequence),
			 sf_sno_instant(id), (uint64) fields.tick_tock << 63 | fields.units << 24 |
			 (uint64) fields.sequence << 8 | fields.partition, fields.tick_tock);
	check_order_of_snos(id);
	check_other_line();
}

void
oracle_released(int machine, TimestampTz from)
{
	for (int i = 0; i < issued_count; i++)
		if (issued[i].machine == machine && issued[i].time >= from)
			fail("P1: a lease was released before the time of an ID");
}
