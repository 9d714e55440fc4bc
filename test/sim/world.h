/*
 * world.h
 *	  The simulated world: what PostgreSQL, the kernel and the disk do.
 *
 * One process and one thread run the extension's objects as they are compiled for a server.  Each
 * simulated process is a coroutine with its own copy of their variables; shared memory is one
 * block.  The comment before each function of PostgreSQL that is simulated names its file, and the
 * assumptions about it.  README.md has an overview.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "postgres.h"

#include <setjmp.h>

#undef printf
#undef vprintf
#undef snprintf
#undef vsnprintf
#undef qsort

#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "issue/shared.h"
#include "settings.h"

/* The simulated processes. */
#define SESSIONS	6
#define WORKER		SESSIONS	/* of the registry */
#define WAL_WRITER	(SESSIONS + 1)
#define CHECKPOINTER (SESSIONS + 2)
#define STARTUP		(SESSIONS + 3)
#define PROCESSES	(SESSIONS + 4)

/* Variables that each process has a copy of. */
#define OF_PROCESS	__attribute__((section("sfdata")))

/* What sessions do, and what happens to them, in one of n runs. */
#define FEATURES(F) \
	F(sno, 2) F(leased, 3) F(prepare, 3) F(guard, 2) F(horizon, 2) F(floor, 3) F(move_back, 4) \
	F(promise, 4) F(bulk, 4) F(subtransactions, 2) F(parallel, 16) F(many_databases, 300) \
	F(old_snapshots, 2) F(wait, 3)
#define FAULTS(F) \
	F(crash, 2) F(promote, 4) F(upgrade, 8) F(relayout, 16) F(clock_back, 2) F(jump, 5) \
	F(interrupt, 4) F(reload, 6) F(async, 4) F(stall, 3) F(fail_flush, 5) F(slow_disk, 5) \
	F(checkpoint, 4)

/*
 * What is drawn for a run (faults.c).  Few features at once find errors that all of them together
 * would hide.
 */
typedef struct Config
{
	/* The settings of the server; start_postmaster and a reload apply them. */
	SfLayout	layouts[2];
	int			layout;			/* the configured one */
	SfSequenceRange range,
				sno_range;
	int			machine_id,
				partition,		/* or SF_MACHINE_ID_UNSET */
				max_ahead,
				max_wait,
				max_clock_step,
				jitter;

	int			machines;		/* machine IDs are below it */
	int			sessions;
	int			operations;		/* of each session */
	int			databases;

	/* Features and faults. */
#define FIELD(name, n)	bool name;
				FEATURES(FIELD)
				FAULTS(FIELD)
#undef FIELD
	bool		rate,			/* sessions that never pause */
				spin;			/* all but the first do not even wait */

	int			switch_rate;	/* of 1024 points; 0: priorities */
	int			patience;		/* steps at most for which priorities stay */
	int			step;			/* us at most that a point takes */
	int			think;			/* us at most between transactions */
} Config;

extern Config config;

/* A function that returns an expression. */
#define RETURNS(type, value, name, ...) \
	type name(__VA_ARGS__) { return value; } \
	extern int	sim_unused

/*
 * Processes (scheduler.c)
 */

typedef enum WaitsFor
{
	NOTHING,
	TIME,
	LATCH,
	VARIABLE,
	LWLOCK,
} WaitsFor;

typedef struct Buffered
{
	volatile void *p;
	int			size;
	uint64		value;
	int			group;			/* write barriers before it */
} Buffered;

#define BUFFERED	16
#define WINDOW		8			/* points for which an old value can be read */

/* What a process sees of memory (memory.c). */
typedef struct View
{
	Buffered	buffer[BUFFERED];
	int			buffered;
	int			group;
	int64		buffered_since; /* in steps */
	int64		floor;			/* nothing older is read */
	int64		recent[WINDOW]; /* times of the last points */
	int			points;
	struct
	{
		const volatile void *p;
		int64		time;
	}			seen[16];
	int			seen_count;
} View;

typedef struct Process
{
	int			number;
	bool		alive;
	bool		started;
	void		(*main) (void);
	jmp_buf		context;
	char	   *image;			/* its variables while it does not run */
	int64		priority;

	WaitsFor	waits_for;
	int64		wake;			/* by the boot clock */
	LWLock	   *lwlock;
	ConditionVariable *variable;
	int64		queued;			/* its place in the queue of the variable */
	bool		signaled;
	bool		wakes_others;	/* a waiter that was woken, until it has woken
								 * the next ones */
	int64		woken;			/* when it was signaled */

	int			lwlocks;		/* that it holds; it serves no interrupts then */
	int			interrupt;		/* an error level; 0 for none */
	bool		flushing;
	bool		releasing;		/* the resources of a transaction */

	char		error[400];		/* its last message */

	/* Of the statement that it executes. */
	int64		waited;			/* us, without those for the disk */
	TimestampTz least_clock;
	TimestampTz greatest_clock;

	struct
	{
		pg_on_exit_callback function;
		Datum		argument;
	}			at_exit[4];
	int			at_exit_count;
	View		view;
} Process;

extern Process processes[PROCESSES];
extern Process *current;		/* NULL: the postmaster, or a fault */
extern PGPROC procs[PROCESSES];
extern int64 now;				/* the boot clock, in us */
extern int64 wall_offset;		/* of the wall clock */
extern int64 steps;				/* of this run */
extern int64 next_fault;		/* the step of the next fault */
extern bool quiet;				/* the last phase, without faults */
extern bool weak;				/* memory with store buffers */
extern bool tracing;
extern uint64 random_state;

static inline uint64
rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * UINT64CONST(2685821657736338717) >> 20;
}

/* A random number from 0 to n - 1. */
static inline int64
below(int64 n)
{
	return n <= 0 ? 0 : (int64) (rnd() % (uint64) n);
}

#define chance(n)	(below(n) == 0)
#define wall()		(now + wall_offset)

/* A point at which other processes can run, and faults can happen. */
extern void point(void);

/* Let others run until an instant of the boot clock. */
extern void sleep_until(int64 instant);
extern void yield_now(void);
extern void wait_for(WaitsFor waits_for, int64 until);

/* Print a line of the trace, if the run is traced. */
#define trace(...) \
	do { if (unlikely(tracing)) trace_line(__VA_ARGS__); } while (0)
extern void trace_line(const char *format,...) pg_attribute_printf(1, 2);

/* A promise is broken: end the run. */
extern void fail(const char *format,...) pg_attribute_printf(1, 2) __attribute__((noreturn));

/*
 * Run the processes until the scenario is over or steps were made.  Returns the fault that was
 * found, or NULL.
 */
extern const char *run_processes(int64 longest);

extern void start_process(int number, void (*main) (void));
extern void end_processes(void);
extern void restart_process(void (*main) (void)) __attribute__((noreturn));

/* Save and load the variables of the postmaster; the variables of a new one. */
extern void init_images(void);
extern void save_postmaster(void);
extern void load_postmaster(bool new);

/*
 * Memory (memory.c)
 */

#define SHMEM_SIZE	491520

extern char shmem[SHMEM_SIZE];

extern void drain(Process *process, int count);
extern void forget_memory(void);
extern void full_barrier(void);
extern void memory_point(void);

/*
 * Locks, latches, clocks (locks.c)
 */

extern bool is_ready(const Process *process);
extern void check_sleepers(void);
extern void release_lwlocks(void);	/* as an abort does */
extern void forget_lwlocks(void);
extern void leave_process(void);

/*
 * Disk (disk.c)
 */

typedef uint64 Numbers[SF_DURABLE_COUNT];

#define NUMBER(name)	(SF_DURABLE_##name - SF_DURABLE_FIRST)

typedef enum RecordType
{
	RECORD_NUMBER,				/* the progress of an origin */
	RECORD_ROW,
	RECORD_COMMIT,
	RECORD_ABORT,
	RECORD_PREPARED,
} RecordType;

extern int64 inserted,
			flushed;			/* positions in WAL: numbers of records */
extern Numbers in_memory,
			on_disk;
extern int64 lowered_at[SF_DURABLE_COUNT];	/* by the boot clock */
extern bool in_recovery;
extern int64 replay_until;

extern int64 insert_record(RecordType type, int number, uint64 value, bool lower);
extern void crash_disk(int64 lsn);
extern void standby_disk(int64 lsn, int64 replayed);
extern void reset_disk(void);
extern void wal_writer_main(void);
extern void checkpointer_main(void);
extern void startup_main(void);

/*
 * Transactions (transactions.c)
 */

#define ROWS	24

typedef enum TransactionState
{
	OPEN,
	IN_DOUBT,					/* prepared */
	VISIBLE,
	GONE,
} TransactionState;

typedef struct Transaction
{
	TransactionState state;
	int			database;
	int			rows;
	int64		ids[ROWS];
	int64		commit,
				prepare,
				end;			/* LSNs; end: of a ROLLBACK PREPARED */
	int64		ended;			/* its place in the order in which
								 * transactions leave the process array; 0: it
								 * has not */
	bool		twice;			/* in the process array */
	bool		preparing;
	bool		recovered;
	bool		locked;
	LOCKTAG		lock;
} Transaction;

extern uint32 my_xid(void);		/* 0 for none */
extern bool transactions_open(void);
extern Transaction *next_transaction(Transaction *before);	/* NULL: the first one */
extern int64 add_row(int64 id); /* returns its LSN */
extern void commit_transaction(void);
extern void abort_transaction(void);
extern void prepare_transaction_of_session(void);
extern void finish_prepared(void);
extern void end_subtransaction(void);
extern void recover_transactions(int64 lsn);
extern void forget_transactions(bool all);
extern int64 ends;				/* of transactions */
extern int64 released_at,		/* when resources were released last */
			finished_at;		/* and a prepared transaction was finished */

#define LISTED	48

/* A snapshot of a process. */
typedef struct HeldSnapshot
{
	SnapshotData data;
	TransactionId xip[LISTED];
	int64		ends;			/* that it sees */
	bool		lists_recovered;	/* transactions of earlier runs of the
									 * server */
} HeldSnapshot;

extern void take_snapshot(HeldSnapshot *snapshot);
extern void push_snapshot(HeldSnapshot *snapshot);

/*
 * Server (postmaster.c, postgres.c)
 */


extern void start_postmaster(void);
extern void make_shared_memory(void);

/*
 * What the world reports to the oracles and the scenario (oracles.c, sessions.c, faults.c)
 */

extern void rows_are_visible(Transaction *transaction);
extern void flush_fails(void);
extern void fault(void);
extern bool scenario_is_over(void);

#endif							/* SIM_WORLD_H */
