/*
 * record.h
 *	  What the files of oracles share: the call of each process, and what has happened to the generators.
 *
 * A check that fails ends the run.  Each promise has a file, in whose opening comment it is stated.
 */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include "oracles.h"

/* An ID, when it is issued. */
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

/* The call of this process (record.c). */
extern Call call;

extern int	run;				/* of the server, from 1 on in each run of the
								 * simulation */

/* Of each kind. */
extern TimestampTz moved_to[2];
extern bool move_begun[2];
extern int	changes[2];			/* floors that were begun or set, and promises */
extern int	restoring[2];		/* floors and layouts that are being set */

extern SfGenerator *generator_of(SfGeneratorKind kind);
extern const char *name_of_kind(SfGeneratorKind kind);
extern int64 microseconds(int64 milliseconds);
extern TimestampTz end_of(int number);	/* what is in memory about a line, as
										 * an instant */
extern bool layout_is_recorded(void);

/* P1 and P7 (ids.c) */
extern Issued issued[];
extern int	issued_count;
extern int	machine_used[2];
extern bool sno_was_first;

extern void ids_begin(void);
extern void ids_start(bool new_postmaster);
extern void forget_layout(void);
extern void forget_after(int64 lsn);
extern void forget_moved(SfGeneratorKind kind);

/* P2 (clocks.c) */
extern int	steps_back;
extern int64 behind_until;		/* the clock has caught up after a step back */

extern void clocks_begin(void);
extern void clocks_start(void);
extern void check_time(SfGeneratorKind kind, TimestampTz time, int64 tick);
extern bool jump_is_right(void);
extern int64 accepted_difference(SfGeneratorKind kind);
extern TimestampTz reached_time(SfGeneratorKind kind);

/* P3 (order.c) */
extern void order_start(void);
extern void check_order(const Issued *id, int64 tick);
extern void check_order_of_session(int64 id);
extern void check_order_of_snos(const SfSno *id);
extern void order_of_transaction(void);

/* P5, and the waits of P6 (waits.c) */
extern void waits_begin(void);
extern void check_wait(void);
extern void check_starvation(int64 duration);
extern void check_other_line(void);
extern bool is_undisturbed(void);
extern bool other_line_is_free(void);

/* P6 (errors.c) */
extern void check_no_error(void);

/* P8 (horizons.c) */
extern int64 returned[],
			promised;
extern int	promise_ends;
extern int	calls_ended;

extern void forget_horizons(void);
extern void horizons_start(void);
extern void horizons_of_new_layout(void);
extern void reader_fails(void);
extern void check_proposal(int64 id);
extern bool refusal_is_right(void);

#endif							/* SIM_RECORD_H */
