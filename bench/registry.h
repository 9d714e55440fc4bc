/*
 * registry.h
 *	  The simulation of servers that call a registry (registry.c): the servers, their attempts, and
 *	  the interfaces of its parts.
 */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

#define LEASE	3600			/* s */

typedef enum Action
{
	CLAIM,
	RENEW,
	RELEASE,
	ACTIONS
} Action;

/* A simulated server, and the lease that it holds; number is 0 if it holds none. */
typedef struct Server
{
	uint64_t	token[2];
	int			index;			/* its name is server<index>.example.com */
	int			machine_id;
	int64_t		from;			/* us since 1970, as the next one */
	int64_t		until;
	int64_t		number;
	double		due;			/* s; of the next attempt */
	int64_t		delay;			/* ms; see sf_retry_delay */
	bool		answered;		/* in this wave */
	Action		action;			/* of the next attempt */
} Server;

typedef enum Stage
{
	CONNECTING,
	ASKING,						/* for the identity */
	CALLING
} Stage;

/* A place for an attempt, and its connection, which can stay open for the next attempt. */
typedef struct Attempt
{
	PGconn	   *connection;
	Server	   *server;			/* NULL: unused */
	Stage		stage;
	Action		action;
	double		began;			/* of the stage */
} Attempt;

/* Of a query. */
typedef enum Answer
{
	GRANTED,
	REFUSED,
	FAILED
} Answer;

typedef struct Totals
{
	long		attempts;
	long		not_connected;
	long		timeouts;
	long		refused;
	long		errors;
	long		calls[ACTIONS]; /* that were granted */
} Totals;

typedef struct Fleet Fleet;

/*
 * Plans what a server does after an attempt, and pushes the server if there is another attempt to
 * make.  The server still has the action with which the ended attempt began.
 */
typedef void (*AttemptEnded) (Fleet *fleet, Server *server, bool granted);

/* The servers of a run, and the connections over which they call. */
struct Fleet
{
	Server	   *servers;
	int			server_count;
	int			stored_count;	/* servers in the file, at least as many */

	Server	  **heap;			/* servers by the times of their next attempts */
	int			heap_size;

	const char *conninfo;
	bool		keep_open;		/* connections stay open */
	int			poll_set;
	Attempt    *attempts;
	int			attempt_count;
	AttemptEnded attempt_ended; /* set by the kind of the run */

	Totals		totals;
};

/* registry.c */
extern void fail(const char *what);
extern void *allocate(size_t count, size_t size);

/* registry_random.c: random numbers */
extern void seed_random(uint64_t seed);
extern uint64_t random_number(void);
extern uint32_t random_draw(void);

/* registry_clock.c: the time of the run, and the time of day */
extern void start_clock(void);
extern double monotonic(void);	/* s since the start */
extern void map_wall_clock(const char *path);
extern int64_t wall_clock(void);	/* us since 1970 */
extern void set_wall_clock(int64_t time);

/* registry_call.c: queries, and their answers */
extern const char *const action_names[ACTIONS];

extern bool send_identity_query(PGconn *connection);
extern bool send_call(PGconn *connection, const Server *server, Action action);
extern Answer read_identity(const PGresult *result);
extern Answer read_answer(const PGresult *result, Action action, Server *server);

/* registry_attempt.c: the stages of an attempt */
extern void begin_attempt(Fleet *fleet, Attempt *attempt, Server *server);
extern void advance_attempt(Fleet *fleet, Attempt *attempt);
extern void end_attempt(Fleet *fleet, Attempt *attempt, bool granted);
extern void open_connections(Fleet *fleet);

/* registry_loop.c: when attempts begin, advance and time out */
extern void push(Fleet *fleet, Server *server);
extern int	begin_due(Fleet *fleet, double now);
extern void wait_for_events(Fleet *fleet, double now);
extern void end_timeouts(Fleet *fleet, double now);

/* registry_wave.c, registry_day.c: the two kinds of runs */
extern void run_wave(Fleet *fleet, Action action, const char *retries_name, double limit);
extern void run_day(Fleet *fleet, double hours);

#endif							/* REGISTRY_H */
