/*
 * registry.pml
 *	  The registry and its servers as a model, of which spin tries every run.
 *
 * The promise: no two servers issue IDs of the same machine ID and the same time,
 * in whatever order they call the registry, whatever their clocks show, after crashes of servers,
 * after the registry has moved to a standby that has not received the last leases granted, and
 * after it was dropped and created again; and also if one more caller lies.
 *
 * How to read it.  A proctype is a process.  A statement is one step, and so is
 * a whole atomic or d_step block.  Spin interleaves the steps of all processes
 * in every order.  An "if" takes any branch whose first statement can be carried
 * out, and spin tries each that can; "else" is for when none can.  A condition
 * that stands alone, or before "->", waits until it is true.  An "inline" is a
 * macro.
 *
 * A step is one call of a function of the
 * registry, with its answer: a lock on the registry's configuration serializes the calls,
 * and between a call and its answer a server only uses the lease that it has.  An
 * answer that is lost on the way is one that the server does not take.
 *
 * Simplifications compared with SQL and C, and the reasons for which nothing is lost by them:
 *
 * - Time is counted in ticks, and there are few.
 * - A server that has a lease issues any time of it at any moment.  So its clock may
 *   show any time, and it makes no difference which IDs the server has issued before.  It has a
 *   lease until it takes another one, releases it, or crashes; whether the time of the lease has
 *   passed is not checked.  A crash of its processes alone, after which it has the same lease and
 *   the same token, is not a step here.
 * - The clock that a server sends is off from the registry's by no more than the
 *   registry accepts; else it is refused, and nothing happens.
 * - The registry's clock is the true time or up to SKEW ticks ahead of it, another at
 *   each reading.  So it may step back by that amount, and that of a standby may differ by it.
 * - A machine ID that was never claimed is one that was released at tick 0.  Any that
 *   is free may be granted, not only the smallest: so it does not matter which was wanted,
 *   nor which of them is watched.
 * - A server may claim at any time, also while it holds a lease: then the registry answers
 *   with that lease.  So a claim that arrives late, after the server has given up waiting for
 *   it, is tried too.  A renewal that arrives late states less than one in time.  Only a late
 *   release can do harm, and here it arrives at any time, or never.
 * - A stop is a crash after a release.  A server that is started again has another
 *   token, and so has a copy of a server: it is one more server.
 * - The checker watches one ID.  Each ID issued becomes that one or not, while there is none.  Spin
 *   tries both, so of a run in which two servers issue an ID it finds the variant that watches this ID.
 * - The standby has any state of the registry that was current once.  The registry
 *   notices with the first call after a move that it has moved.
 * - A registry that is created again has no records, and begins a grace period with the first
 *   call.  The one at the beginning was declared the first, and has none.
 *
 * - A liar is a caller whose own IDs do not count.  It claims, states any lease that the registry
 *   accepts, under a token of its own, and releases it from any tick on.  In a run with a liar, the
 *   operator ends a grace period if no move has lost leases: before that, no other server gets a
 *   machine ID that the liar has released.
 *
 * Left out: leases of different lengths, all are the longest one; a registry that does not
 * notice that its files were put back, and two registries at once, against which it has no
 * protection; other calls of the operator, who is trusted: that a server is dead, that a lease was
 * lost.  IDs that one server issues twice are for test/sim; here, a server may
 * be granted its previous lease again.
 *
 * Macros: the bounds below; REACH, see there; any other introduces one mistake, for which spin has
 * to find an ID of two servers.  test/model/run shows with which macros it is run.
 */

#ifndef SERVERS
#define SERVERS		2
#endif
#ifndef MACHINES
#define MACHINES	1
#endif
#ifndef END
#define END			5			/* the last tick of the true time */
#endif
#ifndef LEASE
#define LEASE		2			/* max_lease, ticks */
#endif
#ifndef SKEW
#define SKEW		1			/* max_skew, ticks; 0 or 1 */
#endif
#ifndef OFF
#define OFF			SKEW		/* of the registry's clock, 0 or 1 */
#endif
#ifndef STOPS
#define STOPS		0			/* of servers, by a crash or not */
#endif
#ifndef MOVES
#define MOVES		0			/* of the registry to its standby */
#endif
#ifndef REMAKES
#define REMAKES		0			/* of the registry, 0 or 1, with no records */
#endif
#ifndef LIES
#define LIES		0			/* calls of a liar */
#endif

#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define BACK(a, b)	((a) > (b) -> (a) - (b) : 0)

/* The tables of the registry. */
#define NO_TOKEN	0
typedef Row {
	byte token;					/* or NO_TOKEN */
	byte from;
	byte until;
	byte earliest_end;
	bool sound					/* granted after the last grace period began */
}
typedef Registry {
	Row row[MACHINES];			/* by machine ID */
	byte grace_until
}
Registry registry;
Registry standby;
Registry nothing;
bool moved;						/* the incarnation is another one, or none */
bool remade;

/* The state of a server. */
typedef Server {
	byte machine;
	byte from;
	byte until;					/* 0: no lease */
	byte starts					/* of its postmaster, after the first */
}
Server server[SERVERS];
#define HAS_LEASE	(server[me].until > 0)
#ifdef TOKEN_COPIED
#define TOKEN	1
#elif defined(TOKEN_KEPT)
#define TOKEN	(1 + me)
#else
#define TOKEN	(1 + me + SERVERS * server[me].starts)
#endif

byte time;						/* the true one */
byte moves;
byte stops;
#if LIES > 0
#define LIAR	255				/* its token */
byte lies;
bool lost;						/* a move has lost leases */
#endif

/* A release that was sent and has not arrived. */
byte leaving_token;
byte leaving_machine;
byte leaving_end;

/* The watched ID is of machine ID 0. */
#define NONE	255
byte watched = NONE;
byte issuer;
#define HAS_WATCHED \
	(server[me].machine == 0 && server[me].from <= watched && watched < server[me].until)

#ifdef REACH
byte last_holder;				/* of machine ID 0: 1 + server, or 0 */
bool released;
bool reused;
bool reused_after_release;
bool reused_after_grace_period;
bool confirmed;
bool confirmed_unknown;
bool refused;
#endif

/* clock_timestamp */
inline read_clock()
{
	if
	:: now = time
#if OFF > 0
	:: now = time + OFF
#endif
	fi
}

/* The caller's. */
inline read_callers_clock()
{
	if
	:: clock = now
#if SKEW > 0
	:: clock = now + SKEW
	:: clock = BACK(now, SKEW)
#endif
	fi
}

/* begin_grace_period */
#ifdef GRACE_OF_LEASE
#define GRACE_PERIOD_END	(now + LEASE)
#elif defined(GRACE_OF_ONE_SKEW)
#define GRACE_PERIOD_END	(now + LEASE + SKEW)
#else
#define GRACE_PERIOD_END	(now + LEASE + 2 * SKEW)
#endif

inline enter()
{
	read_clock();
	read_callers_clock();
#if MOVES + REMAKES > 0
	if
	:: moved ->
		moved = false;
		registry.row[0].sound = false;
#if MACHINES > 1
		registry.row[1].sound = false;
#endif
#ifndef NO_GRACE_PERIOD
		registry.grace_until = MAX(registry.grace_until, GRACE_PERIOD_END)
#endif
	:: else
	fi
#endif
}

inline find_token()
{
	if
	:: registry.row[0].token == TOKEN -> m = 0
#if MACHINES > 1
	:: registry.row[1].token == TOKEN -> m = 1
#endif
	:: else -> m = NONE
	fi
}

inline leave_registry()
{
	now = 0;
	clock = 0;
	m = 0
}

#define SAME_LEASE	(HAS_LEASE && server[me].machine == m && server[me].from == registry.row[m].from)

/*
 * The caller gets the answer, or it is lost.  The end of a lease that it has is never
 * moved backward; another lease takes the place of the one that it has.
 */
inline answer()
{
	if
	:: server[me].until = (SAME_LEASE -> MAX(server[me].until, registry.row[m].until) :
			registry.row[m].until);
		server[me].machine = m;
		server[me].from = registry.row[m].from
	:: true
	fi
}

#define NEW_UNTIL	(MAX(now, clock) + LEASE)
#ifdef UNTIL_MOVED_BACK
#define LATER(new_until)	(new_until)
#else
#define LATER(new_until)	MAX(registry.row[m].until, new_until)
#endif

#ifdef END_OF_STATED_START
#define EARLIEST_END(m, new_token, new_from)	(new_from)
#elif defined(END_OF_OWN_START)
#define EARLIEST_END(m, new_token, new_from) \
	MAX(new_from, (registry.row[m].token == new_token -> 0 : registry.row[m].until))
#elif defined(END_OF_OTHERS_START)
#define EARLIEST_END(m, new_token, new_from)	MAX(new_from, registry.row[m].earliest_end)
#else
#define EARLIEST_END(m, new_token, new_from) \
	MAX(new_from, (registry.row[m].token == new_token -> registry.row[m].earliest_end : \
		registry.row[m].until))
#endif

#define STORE(m, new_token, new_from, new_until) \
	registry.row[m].earliest_end = EARLIEST_END(m, new_token, new_from); \
	registry.row[m].from = new_from; \
	registry.row[m].until = LATER(new_until); \
	registry.row[m].token = new_token; \
	registry.row[m].sound = true

inline grant_lease()
{
#if MACHINES > 1
	if
	:: registry.row[1 - m].token == TOKEN -> registry.row[1 - m].token = NO_TOKEN
	:: else
	fi;
#endif
	STORE(m, TOKEN, new_from, new_until);
	new_from = 0;
	new_until = 0
}

#ifdef EXPIRED_BY_CALLER
#define IS_FREE(m)	(registry.row[m].until <= clock && registry.grace_until <= clock)
#elif defined(NOT_EXPIRED)
#define IS_FREE(m)	(registry.grace_until <= clock)
#elif defined(GRACE_BY_CALLER)
#define IS_FREE(m)	(registry.row[m].until <= clock && registry.grace_until <= clock && \
	(registry.row[m].token == NO_TOKEN || registry.row[m].until <= now))
#else
#define IS_FREE(m)	(registry.row[m].until <= clock && registry.grace_until <= MIN(now, clock) && \
	(registry.row[m].token == NO_TOKEN || registry.row[m].until <= now))
#endif

#ifdef FROM_CLOCK
#define FROM	BACK(MIN(now, clock), SKEW)
#elif defined(FROM_IN_GRACE)
#define FROM	MAX(registry.row[m].until, BACK(MIN(now, clock), SKEW))
#else
#define FROM	MAX(MAX(registry.row[m].until, registry.grace_until), BACK(MIN(now, clock), SKEW))
#endif

inline claim()
{
	enter();
	find_token();
	if
	:: m != NONE && registry.row[m].sound ->
		new_from = registry.row[m].from;
		new_until = NEW_UNTIL;
		grant_lease();
		answer()
	:: else ->
		if
		:: m != NONE -> registry.row[m].token = NO_TOKEN
		:: else
		fi;
		if
		:: IS_FREE(0) ->
			m = 0;
#ifdef REACH
			if
			:: last_holder > 0 && last_holder != me + 1 ->
				reused = true;
				reused_after_release = reused_after_release || released;
				reused_after_grace_period = reused_after_grace_period || registry.grace_until > 0
			:: else
			fi;
			last_holder = me + 1;
#endif
			new_from = FROM;
			new_until = NEW_UNTIL;
			grant_lease();
			answer()
#if MACHINES > 1
		:: IS_FREE(1) ->
			m = 1;
			new_from = FROM;
			new_until = NEW_UNTIL;
			grant_lease();
			answer()
#endif
		:: else
		fi
	fi;
	leave_registry()
}

#ifdef ANY_CALLER
#define IS_HELD	true
#elif defined(ANY_LEASE)
#define IS_HELD	(registry.row[m].token == TOKEN)
#else
#define IS_HELD	(registry.row[m].token == TOKEN && registry.row[m].from == server[me].from)
#endif
#ifdef NO_PROOF
#define IS_PROVEN	true
#elif defined(PROOF_WITHOUT_SKEW)
#define IS_PROVEN	(server[me].until > MAX(now, clock))
#else
#define IS_PROVEN	(server[me].until > MAX(now, clock) + SKEW)
#endif

#ifndef ROW_OF_TOKEN

inline renew()
{
	enter();
	m = server[me].machine;
	if
	:: registry.row[m].sound && IS_HELD ->
		new_from = server[me].from;
		new_until = NEW_UNTIL;
		grant_lease();
		answer()
	:: registry.row[m].sound && !IS_HELD
	:: !registry.row[m].sound && IS_PROVEN ->
#ifdef REACH
		confirmed = true;
		confirmed_unknown = confirmed_unknown || registry.row[m].token != TOKEN;
#endif
		new_from = server[me].from;
		new_until = MAX(server[me].until, NEW_UNTIL);
		grant_lease();
		answer()
	:: !registry.row[m].sound && !IS_PROVEN ->
#ifdef REACH
		refused = true;
#endif
		registry.row[m].until = MAX(registry.row[m].until, server[me].until);
		if
		:: registry.row[m].token == TOKEN -> registry.row[m].token = NO_TOKEN
		:: else
		fi
	fi;
	leave_registry()
}

#else

/* The proof is accepted for any row with the token. */
inline renew()
{
	enter();
	find_token();
	if
	:: m == NONE
	:: m != NONE && (registry.row[m].sound || IS_PROVEN) ->
		new_from = registry.row[m].from;
		new_until = NEW_UNTIL;
		grant_lease();
		answer()
	:: m != NONE && !registry.row[m].sound && !IS_PROVEN ->
		registry.row[m].token = NO_TOKEN
	fi;
	leave_registry()
}

#endif

/* The server has no lease any more, and its next run has another token. */
inline crash()
{
	stops++;
	server[me].machine = 0;
	server[me].from = 0;
	server[me].until = 0;
	server[me].starts++
}

/* All IDs that were issued are below the end. */
inline stop()
{
	leaving_token = TOKEN;
	leaving_machine = server[me].machine;
	leaving_end = server[me].from;
	do
	:: leaving_end < server[me].until -> leaving_end++
	:: break
	od;
	if
	:: watched != NONE && issuer == me -> leaving_end = MAX(leaving_end, watched + 1)
	:: else
	fi;
	crash()
}

/* An ID of the lease. */
inline issue()
{
	if
	:: watched != NONE ->
		assert(issuer == me)
	:: watched == NONE ->
#ifdef REACH
		assert(!(REACH));
#endif
		watched = server[me].from;
		do
		:: watched + 1 < server[me].until -> watched++
		:: break
		od;
		issuer = me
	fi
}

proctype A_server(byte me)
{
	byte now, clock, m, new_from, new_until;

end:
	do
	:: atomic { claim() }
	:: atomic {
			HAS_LEASE;
			renew()
		}
	:: atomic {
			HAS_LEASE && (watched == NONE -> server[me].machine == 0 : HAS_WATCHED && issuer != me);
			issue()
		}
#if STOPS > 0
	:: atomic {
			HAS_LEASE && stops < STOPS && leaving_token == NO_TOKEN;
			stop()
		}
	:: atomic {
			HAS_LEASE && stops < STOPS;
			crash()
		}
#endif
	od
}

#if LIES > 0

/* A renewal of a lease that the liar states, or a claim. */
inline lie()
{
	enter();
	if
	:: !registry.row[m].sound ->
		new_until = NEW_UNTIL;
		do
		:: new_until < MAX(now, clock) + LEASE + 2 * SKEW -> new_until++
		:: break
		od;
		do
		:: new_from + 1 < new_until -> new_from++
		:: break
		od
	:: registry.row[m].sound && IS_FREE(m) ->
		new_from = FROM;
		new_until = NEW_UNTIL
	:: else
	fi;
	if
	:: new_until > 0 -> STORE(m, LIAR, new_from, new_until)
	:: else
	fi;
	new_from = 0;
	new_until = 0;
	leave_registry()
}

inline lie_at_release()
{
	do
	:: new_until < MAX(registry.row[m].until, registry.grace_until) -> new_until++
	:: break
	od;
	registry.row[m].token = NO_TOKEN;
	registry.row[m].until = MAX(registry.row[m].earliest_end, new_until);
	new_until = 0;
	m = 0
}

active proctype Liar()
{
	byte now, clock, m, new_from, new_until;

end:
	do
	:: atomic {
			lies < LIES;
			lies++;
			lie()
		}
	:: atomic {
			registry.row[0].token == LIAR;
			lie_at_release()
		}
#if MACHINES > 1
	:: atomic {
			lies < LIES;
			lies++;
			m = 1;
			lie()
		}
	:: atomic {
			registry.row[1].token == LIAR;
			m = 1;
			lie_at_release()
		}
#endif
	od
}

/* Whether the standby lacks something that the registry has stored of a machine ID. */
#define IS_LOST(m) \
	(registry.row[m].token != standby.row[m].token || \
	registry.row[m].from != standby.row[m].from || \
	registry.row[m].until != standby.row[m].until || \
	registry.row[m].earliest_end != standby.row[m].earliest_end || \
	registry.row[m].sound != standby.row[m].sound)

#endif

inline copy(from_, to_)
{
	to_.row[0].token = from_.row[0].token;
	to_.row[0].from = from_.row[0].from;
	to_.row[0].until = from_.row[0].until;
	to_.row[0].earliest_end = from_.row[0].earliest_end;
	to_.row[0].sound = from_.row[0].sound;
#if MACHINES > 1
	to_.row[1].token = from_.row[1].token;
	to_.row[1].from = from_.row[1].from;
	to_.row[1].until = from_.row[1].until;
	to_.row[1].earliest_end = from_.row[1].earliest_end;
	to_.row[1].sound = from_.row[1].sound;
#endif
	to_.grace_until = from_.grace_until
}

#ifdef RELEASE_OF_MACHINE
#define IS_LEAVING(m)	(leaving_machine == m)
#else
#define IS_LEAVING(m)	(registry.row[m].token == leaving_token)
#endif

inline release(m)
{
	if
	:: IS_LEAVING(m) ->
		registry.row[m].token = NO_TOKEN;
		registry.row[m].until = MAX(registry.row[m].earliest_end,
			MIN(leaving_end, MAX(registry.row[m].until, registry.grace_until)));
#ifdef REACH
		released = true
#endif
	:: else
	fi
}

active proctype World()
{
end:
	do
	:: d_step {
			time < END;
			time++
		}
#if STOPS > 0
	:: d_step {						/* a release arrives at the registry */
			leaving_token != NO_TOKEN;
			release(0);
#if MACHINES > 1
			release(1);
#endif
			leaving_token = NO_TOKEN;
			leaving_machine = 0;
			leaving_end = 0
		}
#endif
#if MOVES > 0
	:: d_step {						/* the standby receives the current state */
			moves < MOVES;
			copy(registry, standby)
		}
	:: d_step {						/* the standby is the registry now */
			moves < MOVES;
			moves++;
#if LIES > 0
			lost = lost || IS_LOST(0) || registry.grace_until != standby.grace_until;
#if MACHINES > 1
			lost = lost || IS_LOST(1);
#endif
#endif
			copy(standby, registry);
			moved = true;
			if
			:: moves == MOVES -> copy(nothing, standby)	/* states do not differ by it */
			:: else
			fi
		}
#endif
#if LIES > 0
	:: d_step {						/* end_grace_period */
			!lost && (moved || registry.grace_until > 0);
			moved = false;
			registry.grace_until = 0;
			registry.row[0].sound = true;
#if MACHINES > 1
			registry.row[1].sound = true
#endif
		}
#endif
#if REMAKES > 0
	:: d_step {						/* the registry is dropped and created again */
			!remade;
			remade = true;
			copy(nothing, registry);
#ifndef NEW_TRUSTED
			moved = true
#endif
		}
#endif
	od
}

init
{
	atomic {
		run A_server(0);
		run A_server(1);
#if SERVERS > 2
		run A_server(2);
#endif
	}
}
