/*
 * oracles.h
 *	  What must always hold: the promises P1 to P8 of docs/guarantees.md.
 *
 * Scenarios report what they do, and the world what it does.  A promise that is broken ends the
 * run.
 */
#ifndef SIM_ORACLES_H
#define SIM_ORACLES_H

#include "world.h"

#include "core/sno.h"

#define DATABASES	320			/* more than horizon.c keeps */
#define START		((TimestampTz) INT64CONST(820000000000000)) /* of the wall clock */

/*
 * Failures that are known, and left out unless "run --with NAME" is given.  A name goes when its
 * cause is mended.
 */
typedef enum Known
{
	FIRST_PROMISE,				/* the first promise lowers the horizon, and a
								 * start forgets the horizons before it */
	HORIZON_BEFORE_EPOCH,		/* the horizon goes back over a crash */
	PROMISE_BEFORE_EPOCH,		/* rows appear below a promise after a restart */
	ANY_JUMP,					/* jumps of any length are accepted when a
								 * floor or a lease is ahead of the clock */
	ANY_JUMP_AFTER_CRASH,		/* the same, if max_clock_step is about a
								 * reservation */
	WAIT_AFTER_CHANGE,			/* a call waits longer than max_wait */
	SNO_AFTER_FLOOR,			/* the line of sno changes while a floor or a
								 * lease raises the lines, so that the snos of
								 * a session can decrease */
	SNO_AFTER_RESTART,			/* the same, if others extend the reservation
								 * while a session compares the clock with the
								 * cursor from before */
	CAUSE_OF_MOVE_BACK,			/* weak memory: the error after a move back is
								 * that of a missing lease */
	ORDER_AFTER_STEP_BACK,		/* a session uses a batch of an earlier tick
								 * again when the clock has stepped back to it */
} Known;

#define KNOWN_COUNT	(ORDER_AFTER_STEP_BACK + 1)

extern const char *const known_names[KNOWN_COUNT];
extern bool left_out[KNOWN_COUNT];

/* A call of the extension, with what was known when it began. */
typedef struct Call
{
	SfGeneratorKind kind;
	bool		counts;			/* it issues an ID: snowflake.max_wait limits
								 * it */
	bool		in_recovery;
	bool		quiet;
	bool		moved;
	bool		lost;
	bool		moves;			/* the generator back */
	bool		other_line_is_free;
	bool		restores;		/* it sets a floor */
	bool		reads;			/* it can return a horizon */
	TimestampTz floor;
	TimestampTz reached;		/* by IDs of the kind */
	int64		began;
	int			run;
	int64		promised;
	int64		returned;		/* the horizon of the database */
	int			changes;
	uint32		generation;
	uint64		lease_start;
	int			bigint_machine; /* that a partition has to have; or -1 */
	int64		id;				/* of the guard */
} Call;

/* The call of this process; ends the previous one. */
extern Call *oracle_begin(SfGeneratorKind kind, bool counts);

extern void oracle_transaction_begins(void);

/* Its result. */
extern void oracle_bigint(int64 id, bool is_row);
extern void oracle_sno(const SfSno *id);
extern void oracle_reader_begins(void);
extern void oracle_horizon(int64 horizon, int64 view);
extern void oracle_promise_begins(void);
extern void oracle_promise(int64 proposal, int64 promise);
extern void oracle_floor_begins(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_floor(SfGeneratorKind kind, TimestampTz instant);
extern bool oracle_move_back_begins(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_moved_back(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_time(TimestampTz time);	/* can be issued from now on */
extern void oracle_clock_accepted(void);
extern void oracle_layout_accepted(void);
extern void oracle_creation_begins(void);
extern void oracle_created(void);
extern void oracle_error(void);

/* What the world does. */
extern void oracle_run_begins(void);
extern void oracle_server_starts(bool new_postmaster);
extern void oracle_promoted(int64 lsn);
extern void oracle_number_lost(int number);
extern void oracle_configured(void);
extern void oracle_clock_set(int64 by);
extern void oracle_lwlock_wait(const Process *holder);
extern void oracle_lost_wake_up(int process, int lock);
extern void oracle_lease_changes(void);
extern void oracle_released(int machine, TimestampTz from);
extern void oracle_phase_ends(void);

/* For scenarios: a time that IDs have reached; IDs and horizons that might be refused. */
extern TimestampTz oracle_greatest_time(void);
extern int64 oracle_some_id(void);
extern bool oracle_is_lost(SfGeneratorKind kind);
extern int64 ids_issued;

/*
 * Leases (registry.c)
 */

extern void registry_begins(void);
extern void registry_promoted(void);
extern bool registry_covers(int machine, TimestampTz time);
extern SfLease registry_kept(void);
extern void registry_forgets(void);
extern void worker_main(void);

/* Sessions (sessions.c) */
extern int	operations[SESSIONS];	/* that are left */
extern void sessions_begin(void);
extern void session_main(void);

/* Runs (faults.c) */
extern void begin_run(uint64 seed);
extern int	most_operations,
			most_sessions;		/* 0: as drawn */

#endif							/* SIM_ORACLES_H */
