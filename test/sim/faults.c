/*
 * faults.c
 *	  The configuration of a run, and its faults: crashes, starts, promotions, clocks, interrupts.
 */
#include "oracles.h"

int			most_operations,
			most_sessions;

#define MOST_FAULTS	12

static int64 fault_steps[MOST_FAULTS];
static bool started;
static int	fault_count,
			faults_done;

/*
 * Starts
 */

static void
start_server(bool new_postmaster)
{
	if (new_postmaster)
	{
		if (config.reload)
			config.machine_id = (int) below(config.machines);
		if (config.relayout)
			config.layout = (int) below(2);
		registry_forgets();
		start_postmaster();
	}
	make_shared_memory();
	oracle_server_starts(new_postmaster);
	for (int i = 0; i < config.sessions; i++)
		start_process(i, session_main);
	start_process(WAL_WRITER, wal_writer_main);
	if (config.checkpoint)
		start_process(CHECKPOINTER, checkpointer_main);
	if (config.leased)
		start_process(WORKER, worker_main);
	if (in_recovery)
		start_process(STARTUP, startup_main);
}

/* What CREATE EXTENSION writes (admin.c, snowflake_create_state). */
static void
create_extension(void)
{
	SfPackedLayout packed = sf_layout_pack(&config.layouts[config.layout]);
	uint64		present = (uint64) wall() - (uint64) SF_UNIX_EPOCH;
	Numbers		numbers = {
		[NUMBER(TOCK)] = 1,
		[NUMBER(EPOCH)] = packed.epoch,
		[NUMBER(LAYOUT)] = packed.fields,
		[NUMBER(TICK)] = present,
		[NUMBER(BIGINT)] = present,
	};

	reset_disk();
	for (int i = 0; i < SF_DURABLE_COUNT; i++)
		(void) insert_record(RECORD_NUMBER, i, numbers[i], false);
	crash_disk(inserted);
}

#define EXTENSION	SF_DURABLE_COUNT	/* the LSN after that */

/* Of a process (all are restarted), or of the machine. */
static void
crash(bool of_process)
{
	int64		lsn = flushed + below(inserted - flushed + 1);

	trace("crash                        %s, WAL up to %lld of %lld",
		  of_process ? "of a process" : "of the machine", (long long) lsn, (long long) inserted);
	current = NULL;
	if (in_recovery)
		lsn = replay_until;
	in_recovery = false;
	crash_disk(lsn);
	recover_transactions(lsn);
	now += below(chance(2) ? 3000 : 2000000);
	if (!of_process && config.clock_back && chance(2))
		oracle_clock_set(-below(chance(3) ? 6000000 : 1000000));
	start_server(!of_process);
}

/* A standby that has received WAL up to an LSN replaces the server. */
static void
promote(void)
{
	int64		lsn = chance(2) ? flushed : EXTENSION + below(flushed - EXTENSION + 1);

	if (in_recovery)
		return;
	trace("promotion                    of a standby with WAL up to %lld of %lld",
		  (long long) lsn, (long long) inserted);
	standby_disk(lsn, lsn - below(Min(lsn - EXTENSION, 12) + 1));
	oracle_promoted(lsn);
	registry_promoted();
	recover_transactions(lsn);
	in_recovery = true;
	start_server(true);
}

/* pg_upgrade loses all numbers; something else loses one.  An administrator sets the floors. */
static void
lose_numbers(void)
{
	int			only = chance(2) ? (int) below(SF_DURABLE_COUNT) : -1;

	if (in_recovery || only == NUMBER(EPOCH))
		return;
	trace("durable numbers are lost     %d", only);
	forget_transactions(false);
	for (int i = 0; i < SF_DURABLE_COUNT; i++)
		if ((only == -1 || i == only) && i != NUMBER(REGISTRY))
		{
			(void) insert_record(RECORD_NUMBER, i, 0, true);
			oracle_number_lost(i);
		}
	crash_disk(inserted);
	start_server(true);
}

/* xlog.c: a flush that fails is a PANIC; the next fault is a crash. */
void
flush_fails(void)
{
	trace("XLogFlush                    PANIC");
	next_fault = -1;
	yield_now();
}

static void
set_clock(int64 by)
{
	trace("the clock is set             by %lld us", (long long) by);
	oracle_clock_set(by);
}

void
fault(void)
{
	int64		kind;

	if (!started)
	{
		started = true;
		next_fault = fault_count ? fault_steps[0] : PG_INT64_MAX;
		create_extension();
		start_server(true);
		return;
	}
	kind = below(10);
	if (next_fault == -1)
		kind = 0;
	else
		faults_done++;
	next_fault = faults_done < fault_count ? fault_steps[faults_done] : PG_INT64_MAX;
	if (quiet)
		return;
	if (kind <= 1 && config.crash)
		crash(kind == 0);
	else if (kind == 2 && config.upgrade)
		lose_numbers();
	else if (kind == 2 && config.promote)
		promote();
	else if (kind <= 4 && config.clock_back)
		set_clock(-below(chance(2) ? 20000 : 1500000));
	else if (kind <= 5 && config.jump)
		set_clock(below(chance(2) ? 1000000 : chance(4) ? INT64CONST(31536000000000) : 20000000));
	else if (kind <= 7 && config.interrupt)
	{
		Process    *process = &processes[below(config.sessions)];

		process->interrupt = chance(3) ? FATAL : ERROR;
		trace("interrupt                    of s%d", process->number);
	}
	else if (config.stall)
		now += below(chance(2) ? 5000 : 700000);
}

static int
compare(const void *a, const void *b)
{
	return *(const int64 *) a < *(const int64 *) b ? -1 : 1;
}

/*
 * Configurations
 */

static void
draw_layout(int number, int machine_bits)
{
	static const int bits[] = {1, 2, 2, 3, 3, 8, 12, 12};
	static const char *const ticks[] = {"100us", "1ms", "10ms", "1s"};
	int			tick = (int) below(4);
	int			sequence = bits[below(8)];
	char		text[160];
	long long	epoch = (long long) (START - SF_UNIX_EPOCH) / 1000000 * 1000000;
	SfParseError error;
	bool		edge = chance(8);	/* a layout that begins or ends now */

	if (config.rate)
	{
		sequence = chance(3) ? 8 : 1 + (int) below(2);
		tick = sequence == 8 ? 2 : 1 + (int) below(2);	/* the processor is fast
														 * enough */
		edge = false;
	}
	snprintf(text, sizeof(text), chance(4) ?
			 "epoch=%1$lldus tick=%2$s timestamp=%3$d sequence=%5$d machine=%4$d" :
			 "epoch=%1$lldus tick=%2$s timestamp=%3$d machine=%4$d sequence=%5$d",
			 edge ? epoch + (long long) below(3000000) - 1500000 : epoch - 86400000000 * 365,
			 ticks[tick], edge ? Max(14 - 4 * tick, 2) : 44 - 4 * tick, machine_bits, sequence);
	if (!sf_layout_parse(text, &config.layouts[number], &error))
		abort();
}

/* Features of which some failures need several. */
static void
draw_more(void)
{
	if (config.rate)
		return;
	if (config.wait && chance(2))	/* no cause to oversleep: see waits.c */
		config.guard = config.floor = config.move_back = config.leased = config.relayout =
			config.upgrade = config.reload = config.promise = false;
	else if (config.layouts[0].epoch > START && !chance(4)) /* horizons of all
															 * machine IDs are in
															 * the first tick */
	{
		config.guard = config.horizon = config.crash = config.reload = true;
		config.promise = !chance(3);
	}
	if (config.relayout || (config.move_back && chance(3)))
	{
		config.promise = config.horizon = config.crash = true;
		config.clock_back |= config.move_back;
	}
}

static void
draw_settings(void)
{
	static const int aheads[] = {0, 1, 10, 10, 100, 1000};
	static const int waits[] = {-1, 0, 50, 2000};
	static const int clock_steps[] = {0, 1000, 10000, 3600000};
	uint32		max = (uint32) sf_field_max(config.layouts[0].sequence_bits);

	config.machine_id = config.leased ? SF_MACHINE_ID_UNSET : (int) below(config.machines);
	config.partition = config.leased || chance(2) ? SF_MACHINE_ID_UNSET : (int) below(config.machines);
	config.max_ahead = aheads[below(6)];
	config.max_wait = waits[below(4)];
	config.max_clock_step = clock_steps[below(4)];
	config.jitter = chance(5) ? 1 : 0;
	config.range = (SfSequenceRange)
	{
		0, SF_SEQUENCE_MAX
	};
	if (chance(3) && !config.relayout)
		config.range = (SfSequenceRange)
	{
		(uint32) below(max), max - (uint32) below(2)
	};
	config.range.max = Max(config.range.min, config.range.max);
	config.sno_range = (SfSequenceRange)
	{
		0, chance(2) ? 3 : 1023
	};
	if (config.rate)
	{
		config.max_wait = -1;
		config.jitter = 0;
		config.spin &= config.max_ahead > 1;
	}
}

static void
draw_features(void)
{
	int			faults;

#define DRAW(name, n)	config.name = chance(n);
	FEATURES(DRAW)
		FAULTS(DRAW)
		config.fail_flush &= config.crash;
	config.guard |= config.many_databases;
	faults = (int) below(5);
	fault_count = faults ? faults + (int) below(4) : 0;
	for (int i = 0; i < fault_count; i++)
		fault_steps[i] = below(config.sessions * config.operations * 60);
	qsort(fault_steps, (size_t) fault_count, sizeof(int64), compare);
	faults_done = 0;
}

static void
draw_rate(void)
{
	config.rate = true;
	config.spin = chance(3);
	config.sessions = 3;
	config.operations = 200;
	config.step = 1;
	config.databases = 1;
	config.switch_rate = 100;
	fault_count = 0;
}

static void
draw_config(void)
{
	static const int rates[] = {0, 0, 0, 30, 100, 300, 700};
	int			machine_bits = 1 + (int) below(3);

	memset(&config, 0, sizeof(config));
	config.patience = chance(2) ? 400 : 40;
	config.machines = 1 << machine_bits;
	if (chance(50))
		draw_rate();
	else
	{
		config.sessions = 2 + (int) below(chance(3) ? SESSIONS - 1 : 2);
		config.operations = 2 + (int) below(10);
		if (most_sessions)
			config.sessions = Min(config.sessions, most_sessions);
		if (most_operations)
			config.operations = Min(config.operations, most_operations);
		draw_features();
		config.databases = chance(3) ? 2 : 1;
		config.switch_rate = rates[below(7)];
		config.step = chance(3) ? 1 : chance(2) ? 20 : 200;
		config.think = chance(2) ? 0 : chance(2) ? 5000 : 900000;
	}
	draw_layout(0, machine_bits);
	draw_layout(1, machine_bits);
	draw_more();
	draw_settings();
}

/* The first fault is the start of the server. */
void
begin_run(uint64 seed)
{
	random_state = (seed + 1) * UINT64CONST(0x9E3779B97F4A7C15);
	for (int i = 0; i < 4; i++)
		(void) rnd();
	draw_config();
	end_processes();
	quiet = started = false;
	steps = next_fault = 0;
	now = 1000000 + below(1000000);
	wall_offset = START - now;
	forget_transactions(true);
	oracle_run_begins();
	registry_begins();
	sessions_begin();
}
