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

/* A call to the extension, with the state when it began. */
typedef struct Call
{
	SfGeneratorKind kind;
	bool		counts;			/* it issues an ID: snowflake.max_wait limits
								 * it */
	bool		in_recovery;
	bool		quiet;
	bool		moved;
	bool		lost;
	bool		stays_lost;		/* unless the call restores it: the server is
								 * not in recovery, and no process writes the
								 * layout */
	bool		moves;			/* the generator back */
	bool		other_line_is_free;
	bool		restores;		/* it sets a floor */
	bool		accepts;		/* the clock */
	bool		reads;			/* it can return a horizon */
	TimestampTz floor;
	TimestampTz reached;		/* by the cursors of the kind */
	int64		difference;		/* of the clocks, that was accepted */
	int64		began;
	int			steps_back;		/* of the clock */
	int			run;
	int64		promised;
	int			ends;			/* of promises */
	int64		returned;		/* the horizon of the database */
	int			calls_ended;	/* of readers */
	int			changes;
	uint64		lease_start;
	int			bigint_machine; /* that a partition has to have; or -1 */
	int64		id;				/* of the guard */
	bool		unknown;		/* no horizon can be known for its snapshot */
} Call;

/* The call of this process; ends the previous one. */
extern Call *oracle_begin(SfGeneratorKind kind, bool counts);

extern void oracle_transaction_begins(void);

/* Its result. */
extern void oracle_bigint(int64 id, bool is_row);
extern void oracle_sno(const SfSno *id);
extern void oracle_reader_begins(void);
extern void oracle_horizon(int64 horizon, const HeldSnapshot *snapshot, bool is_new);
extern int64 oracle_position(void);
extern void oracle_slept(bool signaled);
extern void oracle_waited(int64 next_id, int64 horizon);
extern void oracle_promise_begins(void);
extern void oracle_promises_end(void);
extern void oracle_promise(int64 proposal, int64 promise);
extern void oracle_floor_begins(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_floor(SfGeneratorKind kind, TimestampTz instant);
extern bool oracle_move_back_begins(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_moved_back(SfGeneratorKind kind, TimestampTz instant);
extern void oracle_time(SfGeneratorKind kind, TimestampTz time);
extern void oracle_acceptance_begins(void);
extern void oracle_acceptance_ends(void);
extern void oracle_creation_begins(void);
extern void oracle_layout_accepted(void);
extern void oracle_created(void);
extern void oracle_error(void);

/* What the world does. */
extern void oracle_run_begins(void);
extern void oracle_server_starts(bool new_postmaster);
extern void oracle_promoted(int64 lsn);
extern void oracle_number_lost(int number);
extern void oracle_number_written(int number);
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
