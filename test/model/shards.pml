/*
 * shards.pml
 *	  The horizon of several servers as a model, of which spin tries every run.
 *
 * The promise: a row that becomes visible after a result was returned does not have an ID below the
 * result, whichever server has issued the ID and whatever has happened to that server.  And a row is
 * refused only after a fault: its issuer has lost the transaction, or is a new server that is behind,
 * and has not taken part in a call yet, or a call has failed before that.
 *
 * How to read it: see registry.pml.  A step is one call on one server, with its answer.  test/sim has
 * the steps within a server.
 *
 * Simplifications compared with C and SQL, and the reasons for which nothing is lost by them:
 *
 * - The checker watches one row.  Its ID is issued by any server, and it is sent to any server, where
 *   it arrives at any time, even if its issuer has ended.  Other transactions only move cursors: a
 *   slot of another transaction would make a proposal or an answer lower.
 * - Server 0 is the coordinator.  It fails by leaving a call at any step, and by a crash.
 * - A crash moves the cursor of its server ahead by any amount, as an unused reservation does.
 *   Others may do so too, at any time.
 * - With NEW, the last server is new: it takes part in calls from some time on.  Its cursor is at the
 *   beginning, as its clock is behind.  It stores rows after a call in which it has taken part, and
 *   which has succeeded.
 * - Calls exclude each other.  There is no limit on their number; cursors end them.
 *
 * Macros: the bounds below; NEW; REACH, see there.  Any other introduces one mistake, for which spin
 * has to find a row that is missed, or one that is refused without a fault.  test/model/run shows
 * with which macros it is run.
 */

#ifndef SERVERS
#define SERVERS		2
#endif
#ifndef TICKS
#define TICKS		4			/* IDs of each server */
#endif
#ifndef CRASHES
#define CRASHES		1
#endif

#define END			(TICKS * SERVERS)
#define NONE		255
#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define MIN(a, b)	((a) < (b) -> (a) : (b))
#ifdef NEW
#define NEWEST		(SERVERS - 1)
#else
#define NEWEST		NONE
#endif

/* Servers.  The IDs of server s are s, s + SERVERS, and so on; the cursor is the next one. */
byte cursor[SERVERS];
byte noted[SERVERS];			/* the greatest promise */
byte durable[SERVERS];			/* the promise on disk */
#ifdef OPENED_AT_POSITION
byte bound[SERVERS];
#define BOUND(s)	MAX(noted[s], bound[s])
#else
#define BOUND(s)	noted[s]
#endif

/* The row. */
mtype = { absent, sent, open, prepared, finished };
mtype row = absent;
byte id = NONE;
byte issuer;
byte storer;
bool issuer_open;				/* its slot holds the ID */
bool was_known;					/* the issuer was not behind when it issued the ID */

byte result;					/* the greatest that was returned */
bool takes_part = (NEWEST == NONE);
bool stores = (NEWEST == NONE);	/* whether the newest server may store rows */
bool failed;					/* a call was left before */

byte crashes;
byte called = NONE;			/* the server that executes a call; a crash ends it */

/* REACH, what a run has to reach. */
#ifdef REACH
bool refused;
bool held_back;
bool raised;
#endif

#ifdef PREPARED_FORGOTTEN
bool forgotten;
#define STORED(s)	((row == open || row == prepared) && storer == (s) && !forgotten)
#else
#define STORED(s)	((row == open || row == prepared) && storer == (s))
#endif
#define SLOT_OF_ISSUER(s)	(issuer_open && issuer == (s) -> id : NONE)
#define SLOT_OF_STORER(s)	(STORED(s) -> id : NONE)
#define LEAST(s)	MIN(SLOT_OF_ISSUER(s), SLOT_OF_STORER(s))
#define OWN(s)		MIN(cursor[s], LEAST(s))
#define MEMBER(s)	((s) != NEWEST || takes_part)

inline any_server(s)
{
	if
	:: s = 0
	:: s = 1
#if SERVERS > 2
	:: s = 2
#endif
	fi
}

/* The row and its transactions. */
active proctype Row()
{
	byte s;

end:
	do
	:: atomic {
			row == absent ->
			any_server(issuer);
			any_server(storer);
			if
			:: cursor[issuer] < END ->
				id = cursor[issuer];
				cursor[issuer] = cursor[issuer] + SERVERS;
				issuer_open = true;
				was_known = (issuer != NEWEST || (stores && !failed));
				row = sent
			:: else
			fi
		}
	:: atomic {					/* the guard */
			row == sent && (storer != NEWEST || stores) ->
#ifndef GUARD_ABSENT
			if
			:: id < BOUND(storer) ->
				assert(!issuer_open || !was_known);
#ifdef REACH
				refused = true;
#endif
				row = finished
			:: else -> row = open
			fi
#else
			row = open
#endif
		}
	:: atomic { row == open -> row = prepared }
	:: atomic {					/* COMMIT, or COMMIT PREPARED */
			row == open || row == prepared ->
			assert(id >= result);
			row = finished
		}
	:: atomic { row == sent || row == open || row == prepared -> row = finished }
	:: atomic { row == finished && issuer_open -> issuer_open = false }
		/* A fault: the issuer is cancelled, killed, cut off or removed. */
	:: atomic { issuer_open -> issuer_open = false }
	:: atomic {					/* other IDs */
			any_server(s);
			if
			:: cursor[s] < END -> cursor[s] = cursor[s] + SERVERS
			:: else
			fi;
			s = 0
		}
#ifdef REACH
	:: atomic { REACH -> assert(!(REACH)) }
#endif
#ifdef NEW
	:: atomic { !takes_part -> takes_part = true }
#endif
#ifdef OWN_HORIZON
	:: atomic {					/* snowflake_horizon() on any server */
			any_server(s);
			noted[s] = MAX(noted[s], OWN(s));
			s = 0
		}
#endif
	:: atomic {
			crashes < CRASHES ->
			crashes++;
			any_server(s);
			if
			:: issuer == s -> issuer_open = false
			:: else
			fi;
			if
			:: row == open && storer == s -> row = finished
#ifdef PREPARED_FORGOTTEN
			:: row == prepared && storer == s -> forgotten = true
#endif
			:: else
			fi;
			noted[s] = durable[s];
			if
			:: called == s -> called = NONE
			:: else
			fi;
#ifdef OPENED_AT_POSITION
			if
			:: cursor[s] < END -> cursor[s] = cursor[s] + SERVERS
			:: true
			fi;
			bound[s] = cursor[s];
#endif
			s = 0
		}
	od
}

/* The first ID of a server that is not below an ID. */
#define RAISED(s, to)	(((to) + SERVERS - 1 - (s)) / SERVERS * SERVERS + (s))

inline promise(s)
{
	atomic {
		called = s;
#ifdef REACH
		raised = raised || cursor[s] < proposal;
#endif
		cursor[s] = MAX(cursor[s], RAISED(s, proposal));
#ifdef REACH
		held_back = held_back || LEAST(s) < proposal;
#endif
#ifdef OWN_PROMISED
		noted[s] = MAX(noted[s], OWN(s));
#else
#ifndef NOT_NOTED
		noted[s] = MAX(noted[s], MIN(proposal, OWN(s)));
#endif
#endif
#ifdef ANSWERS_IGNORED
		answer = proposal
#else
#ifdef NOT_NOTED
		answer = MIN(proposal, OWN(s))
#else
		answer = MIN(proposal, noted[s])
#endif
#endif
	}
#ifndef NOT_DURABLE
	atomic {
		if
		:: called == s -> durable[s] = MAX(durable[s], answer)
		:: else -> failed = failed || !stores; goto call
		fi
	}
#endif
}

/* The coordinator; any step may be the last one of a call. */
active proctype Coordinator()
{
	byte s, proposal, answer, least;
	bool new_takes_part;

end:
call:
	atomic {
		s = 0;
		proposal = NONE;
		answer = 0;
		least = NONE;
		called = NONE;
		new_takes_part = takes_part
	}
	do
	:: atomic {
			s < SERVERS ->
			if
			:: s != NEWEST || new_takes_part ->
				proposal = MIN(proposal, OWN(s));
#ifdef PROPOSALS_NOTED
				noted[s] = MAX(noted[s], OWN(s));
#endif
			:: else
			fi;
			s++
		}
	:: s == SERVERS -> break
	od;
	atomic { proposal = MAX(proposal, result) }
#ifdef COORDINATOR_FIRST
	s = 0;
	promise(0);
	result = MAX(result, answer);
#endif
	s = 1;
	do
	:: s < SERVERS ->
		if
		:: s != NEWEST || new_takes_part ->
			promise(s);
			atomic { least = MIN(least, answer) }
#ifdef ANSWERS_MISSING
		:: s != NEWEST || new_takes_part -> skip
#endif
		:: else
		fi;
		s++
	:: s == SERVERS -> break
	:: atomic { failed = failed || !stores } goto call
	od;
#ifndef COORDINATOR_FIRST
	atomic {
		s = 0;
		proposal = MIN(proposal, least);
#ifndef LESS_ACCEPTED
		if
		:: proposal < result -> failed = failed || !stores; goto call
		:: else
		fi
#endif
	}
	promise(0);
	atomic {
		result = MAX(result, answer);
		if
		:: new_takes_part -> stores = true
		:: else
		fi
	}
#endif
	goto call
}
