/*
 * oracles.c
 *	  What must always hold.  Each message begins with the promise that is broken, of
 *	  docs/guarantees.md, or with the invariant (I1 to I12) of src/README.md.
 */
#include "oracles.h"

#include "access/parallel.h"

#include "core/batch.h"
#include "core/line.h"

const char *const known_names[KNOWN_COUNT] = {
	[FIRST_PROMISE] = "first_promise",
	[HORIZON_BEFORE_EPOCH] = "horizon_before_epoch",
	[PROMISE_BEFORE_EPOCH] = "promise_before_epoch",
	[ANY_JUMP] = "any_jump",
	[ANY_JUMP_AFTER_CRASH] = "any_jump_after_crash",
	[WAIT_AFTER_CHANGE] = "wait_after_change",
	[SNO_AFTER_FLOOR] = "sno_after_floor",
	[CAUSE_OF_MOVE_BACK] = "cause_of_move_back",
	[ORDER_AFTER_STEP_BACK] = "order_after_step_back",
};
bool		left_out[KNOWN_COUNT];

/* What an ID was, when it was issued. */
typedef struct Issued
{
	uint64		key;			/* of its kind */
	SfGeneratorKind kind;
	int			machine;
	int			run;			/* of the server */
	TimestampTz time;
	int64		lsn;			/* of its row; 0: it is in none */
	int64		returned;		/* by the boot clock */
	int64		duration;
	int			steps_back;		/* of the clock, before */
} Issued;

#define IDS		8192
#define BUCKETS	32768

static Issued issued[IDS];
static int	issued_count;
static int	buckets[BUCKETS],
			bucket_epoch[BUCKETS],
			epoch;
int64		ids_issued;
static int	run;

/* Of each kind. */
static TimestampTz floors[2],
			moved_to[2];
static bool move_begun[2],
			move_done[2];
static int	machine_used[2];
static int	line_used;			/* of sno, since the start; or -1 */
static int	changes[2];			/* floors that were begun or set, and promises */
static int	restoring[2];		/* floors and layouts that are being set */
static uint32 configured[2];	/* a bit for each number since the start */

/* Clocks. */
static TimestampTz greatest_time;	/* of an ID, a floor or a lease */
static int64 accepted;			/* the greatest difference of the clocks */
static TimestampTz reached[2];	/* by IDs and the durable state of each kind */
static int	steps_back;
static int64 behind_until;		/* the clock has caught up after a step back */

/* Horizons: the greatest of each database; 0: of all. */
static int64 returned[DATABASES + 1];
static int64 promised,
			proposed;			/* the greatest that was to be promised */
static int64 greatest_returned; /* in this run of the server */
static int64 promise_at_start;	/* of this run of the server; 0: none */
static int	readers;			/* calls that can return a horizon */
static bool unreported;			/* one of them has failed */

/* Of each session. */
static OF_PROCESS Call call = {0};
static OF_PROCESS int64 last_bigint = -1;
static OF_PROCESS SfSno last_sno = {{0}};
static OF_PROCESS int64 last_sno_at = 0;
static OF_PROCESS int last_changes = 0;
static OF_PROCESS int64 transaction_proposed = 0;	/* when it began */
static OF_PROCESS int transaction_run = 0;
static OF_PROCESS int transaction_steps_back = 0;

static SfGenerator *
generator_of(SfGeneratorKind kind)
{
	return &((SfShared *) shmem)->generators[kind];
}

static const char *
name_of(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno" : "bigint";
}

static int64
microseconds(int64 milliseconds)
{
	return milliseconds * 1000;
}

/* Whether a durable number of a kind is lost. */
bool
oracle_is_lost(SfGeneratorKind kind)
{
	if (kind == SF_GENERATOR_SNO)
		return in_memory[NUMBER(TICK)] == 0 || in_memory[NUMBER(TOCK)] == 0;
	return in_memory[NUMBER(BIGINT)] == 0 || in_memory[NUMBER(LAYOUT)] == 0;
}

/* Whether the line of sno that is not active was not used at the time that the clock shows. */
static bool
other_line_is_free(void)
{
	SfGenerator *generator = generator_of(SF_GENERATOR_SNO);
	uint64		cursor = generator->cursor[~generator->switches.value & 1].value;

	return cursor > 0 && sf_layout_tick_floor(&sf_sno_layout, wall()) >
		(int64) sf_line_last_tick(&sf_sno_layout, cursor);
}

Call *
oracle_begin(SfGeneratorKind kind, bool counts)
{
	call = (Call)
	{
		.kind = kind,
			.counts = counts,
			.in_recovery = in_recovery,
			.quiet = quiet && sf_settings_max_wait < 0,
			.moved = move_done[kind],
			.lost = oracle_is_lost(kind),
			.floor = floors[kind],
			.reached = reached[kind],
			.began = now,
			.run = run,
			.promised = promised,
			.returned = returned[MyDatabaseId],
			.changes = changes[kind],
			.other_line_is_free = kind == SF_GENERATOR_SNO && other_line_is_free(),
			.generation = generator_of(kind)->generation.value,
			.lease_start = generator_of(kind)->lease_start.value,
			.bigint_machine = generator_of(SF_GENERATOR_SNO)->machine_id.value == SF_MACHINE_ID_NOT_PINNED ?
			machine_used[SF_GENERATOR_BIGINT] : -1,
	};
	current->least_clock = PG_INT64_MAX;
	current->greatest_clock = PG_INT64_MIN;
	current->waited = 0;
	if (weak)
		full_barrier();			/* a new statement reads nothing old */
	return &call;
}

/*
 * P1: no ID twice
 */

static void
remember(int number)
{
	const Issued *id = &issued[number];
	uint32		bucket = (uint32) (id->key * UINT64CONST(0x9E3779B97F4A7C15) >> 49);

	for (; bucket_epoch[bucket] == epoch; bucket = (bucket + 1) % BUCKETS)
	{
		const Issued *other = &issued[buckets[bucket]];

		if (other->key == id->key && other->kind == id->kind)
			fail("P1: %s %llx was issued twice, at first as number %d", name_of(id->kind),
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

/* Issued before the generator was moved back, and not before the time to which it was moved. */
static bool
is_moved(const Issued *id, int64 kind)
{
	int64		moved = kind == SF_GENERATOR_BIGINT ? lowered_at[NUMBER(BIGINT)] :
	Max(lowered_at[NUMBER(TICK)], lowered_at[NUMBER(TOCK)]);

	return id->kind == (SfGeneratorKind) kind && id->time >= moved_to[kind] &&
		id->returned <= moved;
}

static bool
is_of_kind(const Issued *id, int64 kind)
{
	return id->kind == (SfGeneratorKind) kind;
}

/*
 * P2: the clock
 */

/*
 * Times up to this one were issued, or can be.  A jump of the clock is accepted if it lands at most
 * max_clock_step after the generator, and, as documented, if the clock was more than that behind.
 */
#define SHORT_STEP	3000000		/* leases, ticks and max_ahead move a
								 * generator as far */

void
oracle_time(TimestampTz time)
{
	int64		step = microseconds(config.max_clock_step);
	int64		difference = (int64) ((SfShared *) shmem)->clock_difference.value;
	bool		behind_is_enough = left_out[step <= SHORT_STEP ? ANY_JUMP_AFTER_CRASH : ANY_JUMP];

	greatest_time = Max(greatest_time, time);
	if (greatest_time + step >= wall() ||
		(behind_is_enough && (step <= SHORT_STEP || greatest_time - (now + difference) > step)))
		accepted = Max(accepted, wall_offset);
}

/* A lease begins or ends: the cursors leave their ticks. */
void
oracle_lease_changes(void)
{
	for (SfGeneratorKind kind = 0; kind < SF_GENERATOR_COUNT; kind++)
	{
		SfGenerator *generator = generator_of(kind);
		uint64		end = Max(generator->cursor[0].value, generator->cursor[1].value);

		if (end > 0)
			oracle_time(sf_generator_time(generator, end) + generator->layout.tick_length);
	}
}

static void
check_time(TimestampTz time, int64 tick)
{
	int64		ahead = microseconds(config.max_ahead);
	int64		step = microseconds(config.max_clock_step);

	if (time > current->greatest_clock + ahead)
		fail("P2: an ID is %lld us ahead of the clock", (long long) (time - current->greatest_clock));
	if (time <= current->least_clock - tick)
		fail("P2: an ID is %lld us behind the clock", (long long) (current->least_clock - time));
	if (step > 0 && time > Max(now + accepted, greatest_time) + step + ahead + tick)
		fail("P2: an ID after a jump of the clock by %lld us", (long long) (wall_offset - accepted));
}

/*
 * P3: order
 */

static void
check_order(const Issued *id, int64 tick)
{
	int64		least = microseconds(config.max_ahead) + tick + id->duration;

	for (int i = Max(0, issued_count - 40); i < issued_count; i++)
	{
		const Issued *other = &issued[i];
		int64		between = id->returned - id->duration - other->returned;

		if (left_out[ORDER_AFTER_STEP_BACK] &&
			(other->steps_back != steps_back || transaction_steps_back != steps_back))
			continue;
		if (other->kind == SF_GENERATOR_BIGINT && other->run == run && other->key > id->key &&
			between > least + other->duration)
			fail("P3: ID %lld is lower than %lld, which was issued %lld us before",
				 (long long) id->key, (long long) other->key, (long long) between);
	}
}

/*
 * P5: the rate
 */

static int64 rate_began,
			rate_ended,
			rate_ids;

static void
count_rate(void)
{
	if (rate_ids++ == 0)
		rate_began = now;
	rate_ended = now;
}

/* Sessions that never pause use nine of ten sequence numbers. */
void
oracle_phase_ends(void)
{
	const SfGenerator *generator = generator_of(SF_GENERATOR_BIGINT);
	int64		ticks = (rate_ended - rate_began) / generator->layout.tick_length;
	int64		possible = ticks * (generator->range.max - generator->range.min + 1);

	if (config.rate && !config.spin && ticks > 20 && rate_ids < possible * 9 / 10)
		fail("P5: %lld IDs in %lld ticks, of %lld", (long long) rate_ids, (long long) ticks,
			 (long long) possible);
}

/*
 * What holds for IDs of both kinds
 */

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
	if (kind == SF_GENERATOR_SNO && config.partition == SF_MACHINE_ID_UNSET &&
		call.bigint_machine >= 0 && machine != call.bigint_machine)
		fail("P1: partition %d beside machine ID %d", machine, call.bigint_machine);
	machine_used[kind] = machine;
}

/* snowflake.max_wait: sums the sleeps of the call; a write is waited for for 10 ms at least. */
static void
check_wait(void)
{
	int64		longest = sf_settings_max_wait < 0 ? 600000 : Max(sf_settings_max_wait, 10);

	if (left_out[WAIT_AFTER_CHANGE] && generator_of(call.kind)->generation.value != call.generation)
		return;
	if (call.counts && current->waited > microseconds(longest + 5))
		fail("P6: a call waited for %lld ms, with max_wait %d", (long long) current->waited / 1000,
			 sf_settings_max_wait);
	call.counts = false;
}

static void
check_id(int machine, uint64 position, TimestampTz time, uint64 key, bool second_line)
{
	SfGeneratorKind kind = call.kind;
	const SfGenerator *generator = generator_of(kind);
	int64		tick = generator->layout.tick_length;
	uint32		sequence = sf_position_sequence(&generator->layout, position);
	Issued		id = {key, kind, machine, run, time, 0, now, now - call.began, steps_back};

	ids_issued++;
	trace("ID                           %s %lld, machine ID %d, sequence %u", name_of(kind),
		  (long long) key, machine, sequence);
	if (in_recovery)
		fail("P7: an ID was issued during recovery");
	if (call.moved)
		fail("P6: an ID was issued after a move back");
	if (call.lost && call.changes == changes[kind] && restoring[kind] == 0)
		fail("P6: an ID was issued although the durable state is lost");
	if (ParallelWorkerNumber >= 0)
		fail("P3: an ID was issued in a parallel worker");
	if (sequence < generator->range.min || sequence > generator->range.max)
		fail("P1: sequence %u is outside of the range", sequence);
	if (time < call.floor)
		fail("P1: an ID is %lld us before the floor", (long long) (call.floor - time));
	check_time(time, tick);
	check_reservation(kind, position, second_line);
	check_machine(kind, machine, time);
	check_wait();
	if (kind == SF_GENERATOR_BIGINT)
		check_order(&id, tick);
	oracle_time(time);
	reached[kind] = Max(reached[kind], time);
	if (config.rate)
		count_rate();
	if (config.spin && current->number == 0 && id.duration > 1000000)
		fail("P5: a session that waits has no ID for %lld ms", (long long) id.duration / 1000);
	if (issued_count == IDS)
		fail("the simulation has no room for IDs");
	issued[issued_count] = id;
	remember(issued_count++);
}

static bool
layout_is_recorded(void)
{
	SfPackedLayout packed = sf_layout_pack(sf_layout_in_force());

	return in_memory[NUMBER(EPOCH)] == packed.epoch && in_memory[NUMBER(LAYOUT)] == packed.fields;
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
	if (id <= last_bigint)
		fail("P3: ID %lld of a session after %lld", (long long) id, (long long) last_bigint);
	if (id < transaction_proposed && transaction_run == run && !(left_out[PROMISE_BEFORE_EPOCH] && layout->epoch > START))
		fail("P8: ID %lld is below the proposal %lld", (long long) id,
			 (long long) transaction_proposed);
	last_bigint = id;
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
	bool		undisturbed = !config.floor && !config.upgrade && !config.leased && !config.jump &&
	!config.slow_disk && !config.stall;
	bool		changed = last_changes != changes[SF_GENERATOR_SNO] || restoring[SF_GENERATOR_SNO] > 0;

	check_id(fields.partition, sf_position(&sf_sno_layout, fields.units, fields.sequence),
			 sf_sno_instant(id), (uint64) fields.tick_tock << 63 | fields.units << 24 |
			 (uint64) fields.sequence << 8 | fields.partition, fields.tick_tock);
	if (line_used >= 0 && line_used != fields.tick_tock && steps_back == 0 &&
		!(left_out[SNO_AFTER_FLOOR] && config.floor))
		fail("P3: the line of sno has changed although the clock has not stepped back");
	line_used = fields.tick_tock;
	if (call.other_line_is_free && undisturbed &&
		current->waited > microseconds(config.max_ahead) + 1800000)
		fail("P5: a call waited for %lld ms although the other line of sno is free",
			 (long long) current->waited / 1000);
	if (sf_sno_compare(id, &last_sno) <= 0 && last_sno_at >= behind_until &&
		!(left_out[SNO_AFTER_FLOOR] && changed))
		fail("P3: the snos of a session decrease");
	last_sno = *id;
	last_sno_at = now;
	last_changes = changes[SF_GENERATOR_SNO];
}

/*
 * P6: errors have a cause, and waits end
 */

static bool
has(const char *text)
{
	return strstr(current->error, text) != NULL;
}

/*
 * Whether the guard may refuse an ID: a reader has got a horizon above it, or could have before the
 * server was started.
 */
static bool
refusal_is_right(void)
{
	TimestampTz began = (TimestampTz) generator_of(SF_GENERATOR_BIGINT)->began.value;
	int64		bound = Max(returned[MyDatabaseId], promised);

	bound = Max(bound, (int64) in_memory[NUMBER(PROMISE)]);
	bound = Max(bound, promise_at_start);
	if (promise_at_start == 0)
		bound = Max(bound, sf_layout_boundary(sf_layout_in_force(), began) + 1);
	if (config.many_databases || (promised > 0 && left_out[FIRST_PROMISE]))
		bound = Max(bound, greatest_returned);
	if (left_out[HORIZON_BEFORE_EPOCH] && sf_layout_in_force()->epoch > START)
		return true;
	return call.id < bound || readers > 0 || unreported;
}

/* It moves the generator by more than max_clock_step, which was not more than that ahead. */
static bool
jump_is_right(void)
{
	int64		step = microseconds(config.max_clock_step);
	int64		difference = (int64) ((SfShared *) shmem)->clock_difference.value;

	return step > 0 && current->greatest_clock - call.reached > step &&
		call.reached - (now + difference) <= step;
}

/* Whether an error has a cause.  In the quiet phase each wait ends. */
static bool
is_right(void)
{
	if (has("canceled") || has("terminated") || has("maximum number of prepared"))
		return true;
	if (has("during recovery"))
		return call.in_recovery;
	if (has("moved back"))
		return move_begun[call.kind];
	if (has("jumped forward"))
		return jump_is_right();
	if (has("below the horizon"))
		return refusal_is_right();
	if (has("is missing"))
		return call.lost || oracle_is_lost(call.kind);
	if (has("does not match"))
		return config.relayout;
	if (has("parallel"))
		return ParallelWorkerNumber >= 0;
	if (has("READ COMMITTED"))
		return IsolationUsesXactSnapshot();
	if (has("lease") || has("registry") || has("release of the machine ID"))
		return config.leased || (left_out[CAUSE_OF_MOVE_BACK] && weak && move_begun[call.kind]);
	if (has("within the layout"))
		return true;
	if (has("within"))
		return sf_settings_max_wait >= 0 &&
			now - call.began >= microseconds(sf_settings_max_wait);
	return has("as a horizon") || has("last timestamp") || has("move the generator");
}

void
oracle_error(void)
{
	if (!is_right())
		fail("P6: an error without a cause: %s", current->error);
	check_wait();
	if (call.restores)
		restoring[call.kind]--;
	if (call.reads)
	{
		readers--;
		unreported = true;
	}
	if (call.moves && generator_of(call.kind)->moved_back.value == 0)
		move_begun[call.kind] = false;
	memset(&call, 0, sizeof(call));
}

void
oracle_lwlock_wait(const Process *holder)
{
	if (holder->flushing)
		fail("P6: a process waits without interrupts for one that waits for the disk");
}

void
oracle_lost_wake_up(int process, int lock)
{
	fail("P6: process %d sleeps for lock %d, which is free", process, lock);
}

/*
 * P8: horizons
 */

void
oracle_reader_begins(void)
{
	call.reads = true;
	readers++;
}

static void
reader_ends(void)
{
	call.reads = false;
	readers--;
}

/*
 * A horizon was returned, and a reader sees a view of the database: the transactions that have
 * become visible after it have no rows below the horizon.
 */
void
oracle_horizon(int64 horizon, int64 view)
{
	int			database = (int) MyDatabaseId;
	bool		before_epoch = config.layouts[config.layout].epoch > START;

	trace("horizon                      %lld of database %d", (long long) horizon, database);
	reader_ends();
	greatest_returned = Max(greatest_returned, horizon);
	if (IsolationUsesXactSnapshot() || call.in_recovery)
		fail("P8: a horizon in a transaction with one snapshot, or in recovery");
	if (before_epoch && left_out[promised > 0 ? PROMISE_BEFORE_EPOCH : HORIZON_BEFORE_EPOCH])
		return;
	if (horizon < call.returned && call.run == run && !config.many_databases &&
		!(left_out[FIRST_PROMISE] && promised > 0))
		fail("P8: the horizon is %lld, after %lld", (long long) horizon, (long long) call.returned);
	if (call.promised > 1 && promised >= call.promised && !move_begun[SF_GENERATOR_BIGINT] &&
		in_memory[NUMBER(PROMISE)] != 0 && horizon > (int64) in_memory[NUMBER(PROMISE)])
		fail("P8: the horizon is %lld, and not the promise", (long long) horizon);
	for (Transaction *t = NULL; (t = next_transaction(t)) != NULL;)
		for (int i = 0; t->state == VISIBLE && t->visible > view && i < t->rows; i++)
			if (t->database == database && t->ids[i] < horizon)
				fail("P8: row %lld is not in the view of the horizon %lld", (long long) t->ids[i],
					 (long long) horizon);
	if (promised > 0 && left_out[FIRST_PROMISE])
		horizon = Min(horizon, (int64) on_disk[NUMBER(PROMISE)]);
	returned[database] = Max(returned[database], horizon);
}

void
rows_are_visible(Transaction *t)
{
	int64		horizon = Max(returned[t->database], returned[0]);

	for (int i = 0; i < t->rows; i++)
		if (t->ids[i] < horizon)
			fail("P8: row %lld appears below the horizon %lld", (long long) t->ids[i],
				 (long long) horizon);
}

/* As the coordinator of several servers, of which this is one. */
void
oracle_promise_begins(void)
{
	changes[SF_GENERATOR_BIGINT]++;
	if (promised == 0 && left_out[FIRST_PROMISE])
		memset(returned, 0, sizeof(returned));
	promised = Max(promised, 1);
}

void
oracle_promise(int64 proposal, int64 promise)
{
	trace("promise                      %lld of %lld", (long long) promise, (long long) proposal);
	reader_ends();
	changes[SF_GENERATOR_BIGINT]++;
	if (call.run != run)
		return;
	if (promise > proposal || (call.promised >= proposal && promise < proposal))
		fail("P8: promise %lld of %lld, after %lld", (long long) promise, (long long) proposal,
			 (long long) call.promised);
	if (call.moved && (uint64) promise > on_disk[NUMBER(PROMISE)])
		fail("P8: a promise after a move back");
	if (!move_begun[SF_GENERATOR_BIGINT] && on_disk[NUMBER(PROMISE)] < (uint64) promise)
		fail("P8: a promise that is not on disk");
	if (promise == 0)
		return;
	promised = Max(promised, promise);
	/* Without a lease the generator is not raised to the proposal. */
	proposed = Max(proposed, config.leased ? promise : proposal);
	if (!(config.layouts[config.layout].epoch > START && left_out[PROMISE_BEFORE_EPOCH]))
		returned[0] = Max(returned[0], promise);
}

/*
 * What administrators and the world do
 */

static void
forget_horizons(void)
{
	memset(returned, 0, sizeof(returned));
	promised = proposed = 0;
}

void
oracle_floor_begins(SfGeneratorKind kind, TimestampTz instant)
{
	if (kind == SF_GENERATOR_BIGINT && call.lost)
	{
		promise_at_start = 0;	/* it is forgotten with the layout */
		oracle_layout_accepted();
	}
	changes[kind]++;
	restoring[kind]++;
	call.restores = true;
	oracle_time(instant + generator_of(kind)->layout.tick_length);
}

void
oracle_floor(SfGeneratorKind kind, TimestampTz instant)
{
	changes[kind]++;
	restoring[kind]--;
	call.restores = false;
	if (call.moved)
		fail("P6: a floor was set after a move back");
	if (!move_begun[kind])
		floors[kind] = Max(floors[kind], instant);
}

bool
oracle_move_back_begins(SfGeneratorKind kind, TimestampTz instant)
{
	if (move_begun[kind])
		return move_done[kind];
	moved_to[kind] = instant;
	move_begun[kind] = call.moves = true;
	return true;
}

void
oracle_moved_back(SfGeneratorKind kind, TimestampTz instant)
{
	const SfGenerator *generator = generator_of(kind);

	if (config.leased && call.lease_start == generator->lease_start.value &&
		sf_position_at(&generator->layout, instant) < call.lease_start)
		fail("P1: moved back before the lease");
	move_done[kind] = true;
}

void
oracle_clock_accepted(void)
{
	accepted = Max(accepted, wall_offset);
}

/*
 * CREATE EXTENSION in another database checks the clock, also if the generator of bigint is not open:
 * such a generator has reached the beginning of its layout, and so each long jump moves it.
 */
void
oracle_creation_begins(void)
{
	const SfGenerator *generator = generator_of(SF_GENERATOR_BIGINT);

	call.reached = generator->cursor[0].value == 0 ? generator->layout.epoch :
		reached[SF_GENERATOR_BIGINT];
}

/* It leaves a state that is lost alone. */
void
oracle_created(void)
{
	if (call.lost && !oracle_is_lost(call.kind) && changes[call.kind] == call.changes &&
		restoring[call.kind] == 0)
		fail("P6: a state that is lost was created");
}

/* If another layout was recorded, IDs of the two can be equal. */
void
oracle_layout_accepted(void)
{
	changes[SF_GENERATOR_BIGINT]++;
	if (layout_is_recorded() || !config.relayout)
		return;
	run++;
	promise_at_start = 0;
	forget_ids(is_of_kind, SF_GENERATOR_BIGINT);
	forget_horizons();
}

/*
 * A session can have read the wall clock this long before it compares it with the boot clock, and
 * so take a jump for a shorter one.
 */
#define LATE_READING	2000000

/* An administrator or a time service sets the clock. */
void
oracle_clock_set(int64 by)
{
	int64		step = microseconds(config.max_clock_step);

	wall_offset += by;
	if (by < 0)
	{
		steps_back++;
		behind_until = Max(behind_until, now) - by + microseconds(config.max_ahead + 1000);
	}
	for (int i = NUMBER(TOCK); i <= NUMBER(BIGINT); i++)
		if (i == NUMBER(TOCK) || i == NUMBER(TICK) || i == NUMBER(BIGINT))
			oracle_time((TimestampTz) (in_memory[i] + (uint64) SF_UNIX_EPOCH));
	if (step == 0 || wall_offset - accepted <= step + LATE_READING)
		accepted = Max(accepted, wall_offset);
}

void
oracle_transaction_begins(void)
{
	transaction_proposed = proposed;
	transaction_run = run;
	transaction_steps_back = steps_back;
}

void
oracle_released(int machine, TimestampTz from)
{
	for (int i = 0; i < issued_count; i++)
		if (issued[i].machine == machine && issued[i].time >= from)
			fail("P1: a lease was released before the time of an ID");
}

void
oracle_run_begins(void)
{
	epoch++;
	issued_count = 0;
	rate_ids = 0;
	steps_back = 0;
	behind_until = 0;
	forget_horizons();
	memset(move_begun, 0, sizeof(move_begun));
	memset(move_done, 0, sizeof(move_done));
	floors[0] = floors[1] = PG_INT64_MIN;
	greatest_time = Max(START, config.layouts[0].epoch);
}

/* What is on disk about a line, as an instant. */
static TimestampTz
end_of(int number)
{
	return (TimestampTz) (in_memory[number] + (uint64) SF_UNIX_EPOCH);
}

static void
end_move_back(SfGeneratorKind kind)
{
	if (!move_begun[kind])
		return;
	forget_ids(is_moved, kind);
	floors[kind] = PG_INT64_MIN;
	if (kind == SF_GENERATOR_BIGINT)
		forget_horizons();
	if (move_done[kind] && !in_recovery &&
		end_of(kind == SF_GENERATOR_BIGINT ? NUMBER(BIGINT) : NUMBER(TICK)) > moved_to[kind] + 1)
		fail("P6: a move back was lost");
	move_begun[kind] = move_done[kind] = false;
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
oracle_server_starts(bool new_postmaster)
{
	SfLease		kept = registry_kept();

	run++;
	end_move_back(SF_GENERATOR_BIGINT);
	end_move_back(SF_GENERATOR_SNO);
	accepted = wall_offset;
	reached[SF_GENERATOR_BIGINT] = end_of(NUMBER(BIGINT));
	reached[SF_GENERATOR_SNO] = Max(end_of(NUMBER(TICK)), end_of(NUMBER(TOCK)));
	promise_at_start = (int64) in_memory[NUMBER(PROMISE)];
	readers = 0;
	restoring[0] = restoring[1] = 0;
	unreported = in_recovery;
	greatest_returned = 0;
	line_used = -1;
	if (new_postmaster)
	{
		memset(configured, 0, sizeof(configured));
		machine_used[0] = machine_used[1] = -1;
	}
	oracle_configured();
	if (!new_postmaster && kept.number != 0 && generator_of(0)->lease_end.value == 0 &&
		sf_position_at(&config.layouts[config.layout], kept.until) > 0)
		fail("P6: the lease was lost in a crash");
}

void
oracle_promoted(int64 lsn)
{
	forget_horizons();
	floors[0] = floors[1] = PG_INT64_MIN;
	if (!config.leased)
		forget_ids(is_after, lsn);
	move_done[0] = move_done[1] = false;
}

/* A loss of the reservation can be a loss of the horizon, which it is above. */
void
oracle_number_lost(int number)
{
	SfGeneratorKind kind = number == NUMBER(TICK) || number == NUMBER(TOCK) ?
	SF_GENERATOR_SNO : SF_GENERATOR_BIGINT;

	if (kind == SF_GENERATOR_BIGINT)
		forget_horizons();
	if (number != NUMBER(PROMISE))
		floors[kind] = PG_INT64_MIN;
}

TimestampTz
oracle_greatest_time(void)
{
	return greatest_time;
}

/* An ID for the guard that was not issued in this transaction, and that may be below a horizon. */
int64
oracle_some_id(void)
{
	int64		horizon = Max(returned[MyDatabaseId], returned[0]);

	if (horizon > 4 && chance(3))
		return horizon - below(4);
	for (int tries = 10; issued_count > 0 && tries > 0; tries--)
	{
		const Issued *id = &issued[issued_count - 1 - below(Min(issued_count, 12))];

		if (id->kind == SF_GENERATOR_BIGINT)
			return (int64) id->key + (chance(3) ? below(5) - 2 : 0);
	}
	return sf_layout_boundary(sf_layout_in_force(), wall()) + below(8) - 4;
}
