/*
 * generator.pml
 *	  The generator as a model, of which spin tries every run.
 *
 * The promise: an ID that was issued is not issued again, in whatever order backends run, whatever
 * the clock shows, after a crash at any point, and after the promotion of a standby that has
 * received the commit of the transaction that holds the ID.  (A recovery to a point in time is the
 * same as a promotion.)
 *
 * With LEASES, machine IDs come from a registry, and the promise is about IDs with their
 * machine ID.  In addition, each ID is within a lease of its machine ID that this server
 * was granted, and below the end that the server stated when it released the lease.
 *
 * How to read it.  A proctype is a process.  A statement is one step, and so is
 * a whole atomic or d_step block.  Spin interleaves the steps of all processes
 * in every order.  An "if" takes any branch whose first statement can be carried
 * out, and spin tries each that can; "else" is for when none can.  A condition
 * that stands alone, or before "->", waits until it is true.  An "inline" is a
 * macro.  In "A unless { B }", A is abandoned between two steps as soon as B can
 * begin.
 *
 * A step is one access to shared memory or to WAL, with the arithmetic around
 * it, which no other process sees.  Names are those of the C code; a local that ends
 * in "_seen" holds a value that was read from shared memory.  Accesses share a step only if no step
 * of another process between them could have an effect:
 *
 * - the lock is taken in the step of the first access under it, and released in
 *   that of the last, or after it;
 * - values that only the holder of the lock changes, it reads and writes in one step;
 * - a loop of swaps is the one swap that succeeds;
 * - whether the generator is open is checked in the step of the next access: once
 *   it is, it stays open to the end of the server's run;
 * - sf_next_id finds the batch to be of an old generation in the step in which
 *   take_batch reads the generation: if the two differ, the clock can be the reason
 *   why the batch is not used;
 * - if the generator is never changed, the generation number does not change either, and
 *   the read of it after the swap is left out; an ID then counts as issued by the swap.
 *
 * The six changes of a generator are those of state/change.c: it moves forward, it moves
 * backward, it changes its phase, it gets another lease, it is closed, and a session that is
 * terminated returns the reservation.  Each of them
 *
 *	1. writes the durable number and flushes WAL, if the change is to survive a crash,
 *	2. stops issuing: stop_issuing() sets reserved_until to 0,
 *	3. changes cursor, machine ID and bounds,
 *	4. resumes: resume_issuing() increments the generation, then sets reserved_until.
 *
 * The return of the reservation is the exception: it writes the number after step 3.
 *
 * A session that reads 0 takes no batch.  It requests a reservation, waits for the lock, which is
 * held until the change has ended, and compares reserved_until again: if that is another number by
 * then, the session starts over; otherwise it extends the reservation itself.  A write of the
 * number that fails precedes all other steps, and so is the same as a change that was not made.
 *
 * Simplifications compared with C, and the reasons for which nothing is lost by them:
 *
 * - Time is counted in ticks of two positions, and there are few ticks.  On the
 *   last one callers get an error, as in C.
 * - Each reading of the clock gives any tick.  So the clock may stand, jump, and
 *   step back between any two readings, and differ between processes.  Waits and the check for
 *   jumps only keep some readings from being used; here, all are.
 * - The size of a batch, its jitter, and whether a reservation is extended early: any.
 * - A session whose batch is refused, because of the clock or the reservation, or because its swap
 *   fails, starts over at sf_next_id.  From there it can do all that the loop of take_batch does.
 * - The checker watches one ID.  Each ID issued becomes that one or not, while there is
 *   none.  Spin tries both, so of a run that issues an ID twice it finds the variant
 *   that watches this ID.
 * - WAL is its result when it is replayed to the end, to the point up to which it is
 *   flushed, and to the point up to which a standby has received it.  Any process may flush
 *   at any time, and a crash keeps the flushed part: WAL that survives further than a process
 *   requested is WAL that another process flushed just before the crash.  A standby that lags is
 *   one that has received no more yet.
 * - The commit of the watched ID is logged any time after it was issued, or never.
 * - A crash is one step, at any time.  It takes shared memory, and the batches of
 *   sessions.  Each backend notices in a step of its own, and none continues before
 *   all have.
 *
 * With LEASES:
 *
 * - There are two machine IDs.  The first lease is of one of them and starts at tick 0;
 *   others are of either, provided that they start after those of any other server: at the end of
 *   the last lease that this server had of the machine ID, or later.  Other servers and the
 *   registry are modeled in registry.pml.
 * - The lease that survives a restart of all processes (state/postmaster_memory.c) is set in
 *   the first step of a change, and forgotten in the step that closes the generator.  In
 *   between, a restart finds one or the other, which is a change before or after it.
 * - A release reaches the registry in the step that closes the generator.  Later, others
 *   would have the rest of the lease later, and so more would be allowed here.
 * - A generator that is closed may be given a lease again, in the same run.
 * - With a promotion, the standby holds a lease of the other machine ID, which the server before
 *   is not granted.  An ID whose transaction the standby has not received counts as well: the server
 *   before may still run.
 * - A stop of the server is a crash after a close.  A crash keeps the lease, as if only the
 *   processes were restarted: a server that has none yet issues nothing.
 * - There is one generator.  The other is given leases in the same way, and the end that is
 *   released is the later one of the two.
 * - With SESSIONS, IDs are compared by tick, machine ID and sequence, in this order.  Machine
 *   ID 0, which the server has first, is the greater one, so that a mistake in the first change of
 *   the machine ID is found.
 * - A generator is closed if there is no lease: lease_end is 0.
 *
 * With CREATORS, nothing is known at first, and sessions run CREATE EXTENSION at the same time, each in
 * a database of its own.  The functions of the extension exist from then on.  With LOSSES, the number is
 * lost in an upgrade, and nothing is issued before an administrator has set a floor.  A floor that is
 * not above the watched ID ends the promise for this ID.
 *
 * With PHASES it is the generator of IDs of type sno (core/phase.h): cursor, batches and
 * IDs have the phase above the position.  The packed durable number is three
 * here, written in one step, and not rounded.
 *
 * Left out: a machine ID that is not leased, which does not change; accesses that a
 * processor reorders.  The model accesses memory in the order of the C code, which the barriers
 * there have to ensure; litmus/ checks that they do.
 *
 * Macros: the bounds below; PHASES, LEASES, SESSIONS and REACH, see there; any other introduces one
 * mistake, for which spin has to find an ID that breaks the promise.  test/model/run shows with
 * which macros it is run.
 */

#ifndef BACKENDS
#define BACKENDS	2
#endif
#ifndef TICKS
#define TICKS		3			/* 3 to 5 */
#endif
#ifndef RESERVE
#define RESERVE		1			/* ticks that an extension reserves */
#endif
#ifndef CRASHES
#define CRASHES		0
#endif
#ifndef PROMOTIONS
#define PROMOTIONS	0
#endif
#ifndef MOVES
#define MOVES		0			/* calls of snowflake_set_floor */
#endif
#ifndef CREATORS
#define CREATORS	0			/* sessions that run CREATE EXTENSION: 0, 1 or 2 */
#endif
#ifndef LOSSES
#define LOSSES		0			/* times that the durable number is lost; with CREATORS */
#endif
#ifndef RETURNS
#define RETURNS		0			/* sessions that are terminated */
#endif
#ifndef CHANGES_OF_LEASE
#define CHANGES_OF_LEASE	1		/* also renewals and releases */
#endif
#ifndef FIRST_END
#define FIRST_END	2			/* tick, of the first lease */
#endif
#ifndef MAX_AHEAD
#define MAX_AHEAD	1			/* ticks */
#endif
#ifndef SEQUENCES
#define SEQUENCES	2			/* positions of a tick */
#endif

/* The phase bit of a cursor, and above it the machine ID of a batch. */
#ifdef PHASES
#define OTHER_PHASE		16
#define PHASE(cursor)	((cursor) / OTHER_PHASE % 2)
#else
#define OTHER_PHASE		0
#define PHASE(cursor)	0
#endif
#ifdef LEASES
#define OTHER_MACHINE	32
#define MACHINE(id)		((id) / OTHER_MACHINE)
#endif
#if defined(PHASES) || defined(LEASES)
#define PART(cursor)	((cursor) % 16)
#else
#define PART(cursor)	(cursor)
#endif

/* core/batch.h: sf_position_next_tick; and state/change.c: whole_tick. */
#ifdef LEAVE_TICK_NOT_AT_START
#define NEXT_TICK(cursor)	POSITION(TICK(PART(cursor) + SEQUENCES - 1))
#else
#define NEXT_TICK(cursor)	POSITION(TICK(PART(cursor)) + 1)
#endif
#define ROUNDED_UP(cursor)	TICK(PART(cursor) + SEQUENCES - 1)

#define POSITION(tick)	((tick) * SEQUENCES)
#define TICK(position)	((position) / SEQUENCES)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/* Shared memory: SfShared. */
byte cursor;
byte reserved_until;
bool opened;					/* cursor and reserved_until apply */
byte pending;					/* pending.until; 0 for none */
bool pending_flushed;			/* !XLogNeedsFlush(pending.lsn) */
byte generation;
#ifdef PHASES
byte wall_safe;
byte opened_at;					/* the cursor, when the generator was opened */
#endif
bool locked;

#ifdef LEASES
#define NOT_PINNED	2
byte machine_id;				/* the first lease is of machine ID 0 */
byte lease_start;				/* ticks */
byte lease_end = FIRST_END;		/* 0 while there is no lease: the generator is closed */
#define LAST_TICK	MIN(TICKS, lease_end)
#define IS_CLOSED	(lease_end == 0)
#ifdef OPEN_BELOW_LEASE
#define START_OF_LEASE	0
#else
#define START_OF_LEASE	POSITION(lease_start)
#endif
#define SAFE_OF_LEASE	(MAX(lease_start, 1) - 1)

/* Of IDs with their machine IDs, the greater one has the greater rank. */
#define RANK(id)	((TICK(PART(id)) * 2 + 1 - MACHINE(id)) * SEQUENCES + PART(id) % SEQUENCES)

/*
 * The state that survives a restart of all processes: state/postmaster_memory.c.  NOT_PINNED: none.
 */
byte kept_machine;
byte kept_start;
byte kept_end = FIRST_END;

/*
 * The registry's record of the two machine IDs: the time until which others may not have them; and
 * the ticks in which this server may issue or have issued IDs, one bit each.
 */
byte ended[2];
byte granted[2];
byte changes;
#define GRANTED(id)	(granted[MACHINE(id)] & (1 << TICK(PART(id))))
#define FROM_TO(start, end)	((1 << (end)) - (1 << (start)))

/* The lease that the standby holds before it is promoted. */
#define STANDBY_MACHINE	1
#define STANDBY_START	1
#define STANDBY_END		2
#define STANDBY_IS_PROMOTED	(PROMOTIONS == 0 || promotions > 0)
#else
#define LAST_TICK	TICKS
#define IS_CLOSED	false
#endif

/* The result of WAL, replayed up to some point. */
typedef Wal {
	byte reserved_until;		/* the durable number; with CREATORS, 0 is that nothing is known */
#ifdef PHASES
	byte safe;
	byte phase;
#endif
	bool commit					/* of the watched ID */
}
Wal written;					/* so written.reserved_until is the durable number in memory */
Wal flushed;
Wal standby;

/* The batch that a backend holds. */
typedef HeldBatch {
	byte next;
	byte end;
	byte generation
}
HeldBatch held[BACKENDS];

/* The watched ID; none yet; or none for now, while the generator is moved backward. */
#define NONE		255
#define MOVING_BACKWARD	254
byte watched = NONE;
#define WATCHING	(watched < MOVING_BACKWARD)

#if CREATORS > 0
byte created;					/* calls of CREATE EXTENSION */
bool marked;					/* the mark in a shared catalog */
byte losses;
#if defined(OPEN_LOST)
#define IS_LOST		false
#else
#define IS_LOST		(written.reserved_until == 0)
#endif
#define KNOWN(position)	MAX(position, 1)
#define EXISTS		marked		/* the extension, with its functions */
#else
#define IS_LOST		false
#define EXISTS		true
#define KNOWN(position)	position
#endif

byte crashes;
byte promotions;
byte moves;
byte returns;

/* The processes that have not noticed a crash yet, one bit each. */
byte down;
#define RUNNING	(down == 0)
#define ADMINISTRATOR	BACKENDS
#if MOVES == 0
#define WORKER	BACKENDS
#else
#define WORKER	(BACKENDS + 1)
#endif
#ifdef LEASES
#define TERMINATED	(WORKER + 1)
#else
#define TERMINATED	WORKER
#endif
#if RETURNS > 0
#define CREATOR	(TERMINATED + 1)
#else
#define CREATOR	TERMINATED
#endif
#define PROCESSES	(CREATOR + CREATORS)

#ifdef REACH
byte latest_clock;
bool stepped_back;
bool moved_backward;
bool stopped;
bool refused;
bool refused_under_lock;
bool changed;
bool changed_twice;
bool changed_after_crash;
bool renewed;
bool changed_machine;
bool reopened;
#endif

/* GetCurrentTimestamp */
inline read_clock()
{
	if
	:: now = 0
	:: now = 1
	:: now = 2
#if TICKS > 3
	:: now = 3
#endif
#if TICKS > 4
	:: now = 4
#endif
	fi;
#ifdef REACH
	if
	:: now < latest_clock -> stepped_back = true
	:: else -> latest_clock = now
	fi
#endif
}

#ifdef PHASES
#define DIFFER(a, b)	(a.reserved_until != b.reserved_until || a.commit != b.commit || \
	a.safe != b.safe || a.phase != b.phase)
#else
#define DIFFER(a, b)	(a.reserved_until != b.reserved_until || a.commit != b.commit)
#endif

inline replay(from, to)
{
#ifdef PHASES
	to.safe = from.safe;
	to.phase = from.phase;
#endif
	to.reserved_until = from.reserved_until;
	to.commit = from.commit
}

/*
 * state/durable.c.  In C both also flush WAL, which is a step of its own here.  The number in
 * memory is what is read, and it need not be on disk yet.
 */
inline sf_durable_raise(position)
{
#ifdef PHASES
	d_step {
		if						/* the three are one number in C */
		:: position > written.reserved_until ||
			(position == written.reserved_until && (wall_safe > written.safe ||
			(wall_safe == written.safe && PHASE(cursor) > written.phase))) ->
			written.safe = wall_safe;
			written.phase = PHASE(cursor);
			written.reserved_until = position
		:: else
		fi
	}
#else
	written.reserved_until = MAX(written.reserved_until, position)
#endif
}

inline sf_durable_set(position)
{
	written.reserved_until = position
}

/* Up to the end of WAL, and so also the record of a pending extension. */
inline flush()
{
	replay(written, flushed);
	pending_flushed = (pending != 0)
}

inline XLogFlush()
{
	d_step { flush() }
}

/* The promise no longer holds for the watched ID. */
inline forget()
{
	watched = NONE;
	written.commit = false;
	flushed.commit = false;
	standby.commit = false
}

/*
 * An ID is issued.  REACH is a condition that has to be met before in some run, in
 * which the promise holds for an earlier ID: spin has to find one.
 */
inline issue(id)
{
#ifdef REACH
	assert(!(REACH && WATCHING));
#endif
	assert(id != watched);
#ifdef LEASES
	assert(GRANTED(id));
#endif
	if
	:: watched == NONE -> watched = id
	:: true
	fi
}

/* Locals of no more use are zeros, so that states do not differ by them. */
inline forget_batch()
{
#ifdef LEASES
	machine_id_seen = 0;
#endif
	generation_seen = 0;
	cursor_seen = 0;
	start = 0;
	end = 0;
	now = 0
}

inline forget_seen()
{
	forget_batch();
	reserved_until_seen = 0
}

inline drop_batch()
{
	held[me].next = 0;
	held[me].end = 0;
	held[me].generation = 0
}

/* With SESSIONS, a batch used up is kept, to see that the next one is above it. */
inline issue_next()
{
	issue(held[me].next);
	held[me].next++;
#ifndef SESSIONS
	if
	:: held[me].next == held[me].end -> drop_batch()
	:: else
	fi
#endif
}

/*
 * state/generator_state.c: sf_stop_issuing.  While the generator changes, every batch is
 * refused: none starts below 0.
 */
inline stop_issuing(previous)
{
	atomic {
		assert(locked);
		previous = reserved_until;
#if !defined(STOP_LEFT_OUT) && !defined(STOP_LATE)
		reserved_until = 0;
#endif
#ifndef KEEP_PENDING
		pending = 0;
		pending_flushed = false;
#endif
#ifdef REACH
		stopped = true
#endif
	}
}

#if !defined(LEASES) || defined(RESUME_PAST_LEASE)
#define WITHIN_LEASE(position)	position
#else
#define WITHIN_LEASE(position)	MIN(position, POSITION(lease_end))
#endif

/*
 * state/generator_state.c: sf_resume_issuing.  By the generation a session finds out after its
 * swap whether it has read a state from before the change, and later whether the batch that it
 * holds is from before.
 */
inline resume_issuing(value)
{
#if defined(STOP_LEFT_OUT) || defined(STOP_LATE) || defined(EXTEND_UNLOCKED)
	assert(locked);
#else
	assert(locked && reserved_until == 0);
#endif
#ifdef STOP_LATE
	reserved_until = 0;
#endif
#ifdef RESUME_BEFORE_GENERATION
	reserved_until = WITHIN_LEASE(value);
#endif
	atomic {
#ifndef KEEP_GENERATION
		generation++;
#endif
#ifdef REACH
		stopped = false;
#endif
		watched = (watched == MOVING_BACKWARD -> NONE : watched)
	}
	reserved_until = WITHIN_LEASE(value)
}

/* state/reservation.c: sf_generator_open, open_locked */
inline sf_generator_open()
{
	atomic {
		!locked;
		if
		:: opened || IS_LOST -> goto idle
		:: else -> locked = true
		fi
	}
#ifdef OPEN_AT_CLOCK
	atomic {
		read_clock();
		cursor = MAX(cursor, POSITION(now));
		now = 0
	}
#else
#ifdef PHASES
	atomic {					/* no other process reads these before it is open */
#ifdef LEASES
		wall_safe = MAX(written.safe, SAFE_OF_LEASE);
		cursor = MAX(written.reserved_until, START_OF_LEASE) + OTHER_PHASE * written.phase;
#else
		wall_safe = written.safe;
		cursor = written.reserved_until + OTHER_PHASE * written.phase;
#endif
		opened_at = cursor
	}
#else
	cursor = written.reserved_until;
#if CREATORS > 0
	sf_durable_set(cursor);		/* it need not be in WAL */
#endif
#ifdef LEASES
	cursor = MAX(cursor, START_OF_LEASE);
#endif
#endif
#endif
	reserved_until = PART(cursor);
	atomic {
		opened = true;
		locked = false;
		goto idle
	}
}

/* Leaving out only one of the two is no mistake: each compensates for the other. */
#ifdef EXTEND_BLINDLY
#define STILL_WANTED	true
#define write_number(position)	sf_durable_set(position)
#else
#define STILL_WANTED	(reserved_until == reserved_until_seen)
#define write_number(position)	sf_durable_raise(position)
#endif

#ifdef EXTEND_UNLOCKED
#define MAY_LOCK	true
#define LOCK		skip
#define UNLOCK		skip
#else
#define MAY_LOCK	!locked
#define LOCK		locked = true
#define UNLOCK		locked = false
#endif

#ifdef EXTEND_PAST_LEASE
#define LAST_TICK_TO_RESERVE	TICKS
#else
#define LAST_TICK_TO_RESERVE	LAST_TICK
#endif

/*
 * state/reservation.c: sf_reservation_extend, sf_reservation_extend_early.  An extension that is
 * written is pending.  The session flushes it, or leaves it to others.
 */
inline sf_reservation_extend()
{
	atomic {
		if
		:: MAY_LOCK && STILL_WANTED && opened -> LOCK
		:: true ->					/* not wanted, or early and locked */
			forget_seen();
			goto idle
		fi
	}
	atomic {
		if
		:: pending != 0 ->
			forget_seen();
			goto publish
		:: true
		fi;
		/* core/reserved_time.h: sf_reservation_next */
		read_clock();
		extended = POSITION(MIN(MAX(now, TICK(PART(cursor))) + RESERVE, LAST_TICK_TO_RESERVE));
		if
		:: extended <= reserved_until_seen ->
#ifdef REACH
			refused_under_lock = refused_under_lock || (IS_CLOSED && reserved_until_seen == 0);
#endif
			extended = 0;
			forget_seen();
			UNLOCK;
			goto idle
		:: else -> forget_seen()
		fi
	}
	write_number(extended);
	atomic {
		pending = extended;
		pending_flushed = false;
		extended = 0;
		if
		:: true
		:: UNLOCK; goto idle		/* begin_extension */
		fi
	}
publish:
#ifdef PUBLISH_BEFORE_FLUSH
	reserved_until = MAX(reserved_until, pending);
#endif
#ifndef PUBLISH_PENDING_UNFLUSHED
	if
	:: XLogFlush()					/* flush_extension */
	:: pending_flushed				/* look_at_extension */
	fi;
#endif
	atomic {						/* publish_extension */
		reserved_until = MAX(reserved_until, pending);
		pending = 0;
		pending_flushed = false;
		UNLOCK;
		goto idle
	}
}

#ifdef PHASES

/*
 * core/phase.h: sf_phase_judge.  More is tolerated if nothing was issued since the
 * generator was opened.
 */
#define BEHIND(cursor)	(PART(cursor) > 0 && \
	now + MAX_AHEAD + (cursor == opened_at -> RESERVE : 0) < TICK(PART(cursor) - 1))
#define CHANGES(cursor)	(BEHIND(cursor) && now > wall_safe)

#ifdef SAFE_NOT_KEPT
#define SAFE	0
#elif defined(SAFE_OF_CURSOR)
#define SAFE	TICK(PART(cursor) - 1)
#else
#define SAFE	TICK(MAX(reserved_until, PART(cursor)) - 1)
#endif

/* state/change.c: sf_change_phase */
inline change_phase()
{
	atomic {
		!locked;
		read_clock();
		if
#ifdef CHANGE_PHASE_CLOSED
		:: PHASE(cursor) != PHASE(cursor_seen) || !CHANGES(cursor) ->
#else
		:: PHASE(cursor) != PHASE(cursor_seen) || !CHANGES(cursor) || IS_CLOSED ->
#endif
			forget_seen();
			goto idle
		:: else
		fi;
		forget_seen_but_now();
		locked = true;
		start = POSITION(now) + OTHER_PHASE * (1 - PHASE(cursor));
		extended = POSITION(MIN(now + RESERVE, LAST_TICK));
		now = 0
	}
	atomic {
		written.reserved_until = extended;
		written.safe = SAFE;
		written.phase = PHASE(start)
	}
#ifndef PHASE_NOT_FLUSHED
	XLogFlush();
#endif
	stop_issuing(_);
	atomic {						/* the swap that succeeds; end keeps the value that it swapped */
		end = cursor;
		cursor = start;
		start = 0
	}
	atomic {
		wall_safe = TICK(PART(end) - 1);
#ifdef REACH
		changed_twice = changed;
		changed_after_crash = crashes > 0;
		changed = true;
#endif
		end = 0
	}
	resume_issuing(extended);
	atomic {
		extended = 0;
		locked = false;
		goto idle
	}
}

inline forget_seen_but_now()
{
#ifdef LEASES
	machine_id_seen = 0;
#endif
	generation_seen = 0;
	cursor_seen = 0;
	reserved_until_seen = 0;
	end = 0
}

#endif

/* generator/generator.c: take_batch, after its read of the generation */
inline take_batch()
{
#if defined(LEASES) && !defined(READ_MACHINE_FIRST)
	machine_id_seen = machine_id;
#endif
	cursor_seen = cursor;
	atomic {
		reserved_until_seen = reserved_until;
#ifdef REACH
		refused = refused || (stopped && reserved_until_seen == 0)
#endif
	}
#ifdef READ_GENERATION_LAST
	generation_seen = generation;
#endif
	atomic {
		/* core/batch.c: sf_batch_next */
		read_clock();
		start = MAX(PART(cursor_seen), POSITION(now));
		if
#ifndef PHASES
		:: start == POSITION(TICK(start)) -> start++	/* jitter */
#endif
		:: true
		fi;
		if
		:: TICK(start) >= TICKS ||						/* SF_BATCH_EXHAUSTED */
			TICK(start) > now + MAX_AHEAD ->			/* SF_BATCH_AHEAD */
#ifdef PHASES
			now = 0;
			start = 0;
			goto change
#else
			forget_seen();
			goto idle
#endif
		:: else
		fi;
		if
		:: start >= reserved_until_seen ->						/* SF_BATCH_NOT_RESERVED */
			forget_batch();
			goto extend
		:: else
		fi;
		if
		:: end = start + 1
		:: end = start + 2
		fi;
		end = MIN(end, MIN(POSITION(TICK(start) + 1), reserved_until_seen));

#ifndef PLAIN_WRITE_OF_CURSOR
		if
#ifdef NO_PHASE_IN_SWAP
		:: PART(cursor) != PART(cursor_seen) ->
#else
		:: cursor != cursor_seen ->
#endif
			forget_seen();
			goto idle
		:: else
		fi;
#endif
		end = end + OTHER_PHASE * PHASE(cursor_seen);
		start = start + OTHER_PHASE * PHASE(cursor_seen);
		cursor = end;
#ifdef LEASES
		start = start + OTHER_MACHINE * machine_id_seen;
		end = end + OTHER_MACHINE * machine_id_seen;
		machine_id_seen = 0;
#endif
#if (MOVES > 0 || RETURNS > 0 || defined(PHASES) || defined(LEASES)) && !defined(NO_LOOK_AFTER_SWAP)
		cursor_seen = 0;
		now = 0
	}
	atomic {
		if
		:: generation != generation_seen ->
			forget_seen();
			goto idle
		:: else
		fi;
#endif
#if defined(SESSIONS) && defined(LEASES)
		assert(held[me].next == 0 || RANK(start) > RANK(held[me].next - 1));
#elif defined(SESSIONS)
		assert(start >= held[me].next);
#endif
		/* hold_batch; sf_next_id issues the first ID in any case */
		held[me].next = start;
		held[me].end = end;
		held[me].generation = generation_seen;
		issue_next();
		forget_batch()
	}
}

#define TICK_IS_CURRENT \
	(TICK(PART(held[me].next)) >= now && TICK(PART(held[me].next)) <= now + MAX_AHEAD)
#ifdef KEEP_OLD_BATCHES
#define GENERATION_IS_CURRENT	true
#else
#define GENERATION_IS_CURRENT	(held[me].generation == generation)
#endif

/* generator/generator.c: sf_next_id, and take_batch to its read of the generation */
inline sf_next_id()
{
	atomic {
		RUNNING;
		read_clock();
		if
		:: held[me].next < held[me].end && TICK_IS_CURRENT && GENERATION_IS_CURRENT ->
			now = 0;
			issue_next();
			goto idle
		:: else -> now = 0
		fi;
		if
		:: opened ->
#ifdef READ_MACHINE_FIRST
			machine_id_seen = machine_id
		:: !opened && machine_id == NOT_PINNED -> goto idle
		:: !opened && machine_id != NOT_PINNED -> goto open
		fi
	}
	generation_seen = generation
#else
			generation_seen = generation
#ifdef LEASES
		:: !opened && machine_id == NOT_PINNED -> goto idle
		:: !opened && machine_id != NOT_PINNED -> goto open
#else
		:: else -> goto open
#endif
		fi
	}
#endif
}

proctype Backend(byte me)
{
	byte generation_seen, cursor_seen, reserved_until_seen, start, end, extended, now;
#ifdef LEASES
	byte machine_id_seen;
#endif

idle:
	{
		sf_next_id();
		take_batch();
#ifdef PHASES
change:	change_phase();
#endif
extend:	sf_reservation_extend();
open:	sf_generator_open()
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			drop_batch();
			forget_seen();
			extended = 0;
			goto idle
		}
	}
}

#if MOVES > 0

/* state/change.c: sf_change_floor of a generator that is not open */
inline move_unopened()
{
	atomic {
		sf_durable_set(position);
		if
		:: !WATCHING || watched >= position -> forget()
		:: else
		fi
	}
	XLogFlush();
	goto unlock
}

/* state/change.c: sf_change_floor, forward; the lock is held */
inline move_forward()
{
#ifdef PUBLISH_FORWARD_FIRST
	reserved_until = MAX(reserved_until, position);
#endif
	written.reserved_until = MAX(position, reserved_until);		/* sf_durable_set */
	XLogFlush();
	stop_issuing(previous);
	atomic {
		cursor = MAX(cursor, position);
		previous = MAX(previous, position)
	}
	resume_issuing(previous);
	goto unlock
}

/*
 * state/change.c: sf_change_floor, backward; the lock is held.
 *
 * IDs issued before can be issued again, as the administrator has requested.
 * Those issued until the generation changes can, too, as the comment in C says.
 * Of those issued from then on, none is issued twice.
 */
inline move_backward()
{
	atomic {
		sf_durable_set(position);
		forget();
		watched = MOVING_BACKWARD
	}
	XLogFlush();
	stop_issuing(previous);
	atomic {
		cursor = position;
#ifdef REACH
		moved_backward = true
#endif
	}
#ifdef RESUME_AT_PREVIOUS
	resume_issuing(previous);
#else
	resume_issuing(position);
#endif
	goto unlock
}

#ifdef OPENED_IF_CURSOR
#define OPENED	(cursor != 0)
#else
#define OPENED	opened
#endif

#define BEFORE_LEASE	(TICK(position) < lease_start)

active proctype Administrator()
{
	byte position, previous;

idle:
	{
		/* state/change.c: sf_change_floor */
		atomic {
			moves < MOVES && RUNNING && !locked && EXISTS;
			moves++;
#ifndef FLOOR_CHECKED_EARLY
			locked = true;
#endif
			if
			:: position = KNOWN(POSITION(0))
			:: position = POSITION(1)
			:: position = POSITION(2)
			fi;
#ifdef FLOOR_CHECKED_EARLY
			if
			:: BEFORE_LEASE ->
				position = 0;
				goto idle
			:: else
			fi
		}
		atomic {
			!locked;
			locked = true;
#elif defined(LEASES)
			if
			:: BEFORE_LEASE -> goto unlock
			:: else
			fi;
#endif
			if
			:: !OPENED -> goto unopened
			:: OPENED && position > cursor -> goto forward
			:: OPENED && position <= cursor ->
				if
				:: TICK(cursor) - TICK(position) <= RESERVE -> goto unlock
				:: else -> goto backward
				fi
			fi
		}
unopened:
		move_unopened();
forward:
		move_forward();
backward:
		move_backward();
unlock:	atomic {
			locked = false;
			position = 0;
			previous = 0;
			goto idle
		}
	} unless {
		atomic {
			down & (1 << ADMINISTRATOR);
			down = down - (1 << ADMINISTRATOR);
			position = 0;
			previous = 0;
			goto idle
		}
	}
}

#endif

#ifdef LEASES

/* Any lease. */
inline choose()
{
	if
	:: machine = 0
	:: STANDBY_IS_PROMOTED -> machine = 1
	fi;
	start = ended[machine];
	do
	:: start + 1 < TICKS -> start++
	:: break
	od;
	end = start + 1;
	do
	:: end < TICKS -> end++
	:: break
	od
}

inline forget_change()
{
	leaves = false;
	machine = 0;
	start = 0;
	end = 0;
	previous = 0
}

/* The lease is kept first: after a restart of all processes it applies. */
inline keep()
{
	kept_machine = machine;
	kept_start = start;
	kept_end = end;
	ended[machine] = end;
	granted[machine] = granted[machine] | FROM_TO(start, end)
}

/* state/generator_state.c: sf_generator_leave_tick, the swap that succeeds */
inline leave_tick()
{
	if
	:: opened -> cursor = NEXT_TICK(cursor) + OTHER_PHASE * PHASE(cursor)
	:: else
	fi
}

/* state/change.c: sf_change_lease; the lock is held */
inline change_lease()
{
	stop_issuing(previous);
	atomic {
		machine_id = machine;
		lease_start = start;
		lease_end = end
	}
#ifdef LEAVE_TICK_READ_FIRST
	position = PART(cursor);
	atomic {
		if
		:: leaves && opened && PART(cursor) < NEXT_TICK(position) ->
			cursor = NEXT_TICK(position) + OTHER_PHASE * PHASE(cursor)
		:: else
		fi;
		position = 0
	}
#else
	atomic {
		if
		:: leaves -> leave_tick()
		:: else
		fi
	}
#endif
#ifdef PHASES
	wall_safe = MAX(wall_safe, SAFE_OF_LEASE);
#endif
	atomic {
		if
		:: opened && PART(cursor) < POSITION(start) ->
			cursor = POSITION(start) + OTHER_PHASE * PHASE(cursor)
		:: else
		fi
	}
	resume_issuing(previous);
	goto unlock
}

/* The tick before which all IDs were issued, once the cursor has left its tick. */
#if defined(PHASES) && !defined(END_OF_CURSOR)
#define END_OF_OPENED	MAX(TICK(PART(cursor)), wall_safe + 1)
#else
#define END_OF_OPENED	TICK(PART(cursor))
#endif

/* A generator that was not opened since a crash has no record of the IDs issued before. */
#ifdef UNUSED_SINCE_CRASH
#define USED_END	END_OF_OPENED
#else
#define USED_END	(opened || crashes == 0 -> END_OF_OPENED : lease_end)
#endif

/*
 * state/lease.c: sf_lease_close, and state/change.c: sf_change_close; the lock is held.  The
 * cursor leaves its tick, so that no batch can be taken by a session that has read the old cursor
 * and the old reservation; all batches that were taken are in earlier ticks.  The release reaches
 * the registry with it, and others have the rest of the lease from then on.
 */
inline change_close()
{
#ifdef END_BEFORE_CLOSE
	end = ROUNDED_UP(cursor);
#endif
#ifdef LEAVE_TICK_BEFORE_STOP
	atomic {
		leave_tick();
		end = USED_END
	}
#endif
	stop_issuing(_);
#ifdef PLAIN_WRITE_OF_CLOSED
	previous = cursor;
#endif
	atomic {
#ifdef PLAIN_WRITE_OF_CLOSED
		cursor = previous;
#endif
#if !defined(CURSOR_KEPT) && !defined(LEAVE_TICK_BEFORE_STOP)
		leave_tick();
#endif
#if !defined(END_BEFORE_CLOSE) && !defined(LEAVE_TICK_BEFORE_STOP)
		end = USED_END;
#endif
		end = MIN(MAX(end, lease_start), lease_end);
		lease_end = 0;
		assert(!(WATCHING && MACHINE(watched) == machine_id && TICK(PART(watched)) >= end));
		granted[machine_id] = granted[machine_id] & FROM_TO(0, end);
		ended[machine_id] = end;
		kept_machine = NOT_PINNED;
		kept_start = 0;
		kept_end = 0;
		forget_change()
	}
	resume_issuing(0);
	goto unlock
}

/*
 * The registry renews the lease that is held, or it grants another one: of a machine ID that
 * no other server has, from the end of the last lease of it, or later if others had it
 * meanwhile.  At the end of the run, or before, the lease is released.
 */
proctype Registry_worker()
{
	byte machine, start, end, previous;
	bool leaves;
#ifdef LEAVE_TICK_READ_FIRST
	byte position;
#endif

idle:
	{
		atomic {
			RUNNING && changes < CHANGES_OF_LEASE;
			if
			:: kept_machine != NOT_PINNED && kept_end < TICKS ->
				changes++;
				machine = kept_machine;
				start = kept_start;
				end = kept_end + 1;
				keep();
#ifdef REACH
				renewed = true;
#endif
				lease_end = end;			/* state/change.c: sf_extend_lease, without the lock */
				forget_change();
				goto idle
			:: !locked ->
				changes++;
				locked = true
			fi;
			if
			:: true ->
				choose();
				if
				:: end > TICKS ->
					changes--;
					forget_change();
					locked = false;
					goto idle
				:: else
				fi;
#ifdef REACH
				changed_machine = changed_machine || (machine_id != NOT_PINNED && machine_id != machine);
				reopened = reopened || IS_CLOSED;
#endif
				leaves = machine_id != machine;
				keep()
			:: kept_machine != NOT_PINNED && !IS_CLOSED -> goto leave
			fi
		}
		change_lease();
leave:	change_close();
unlock:	atomic {
			locked = false;
			forget_change();
			goto idle
		}
	} unless {
		atomic {
			down & (1 << WORKER);
			down = down - (1 << WORKER);
			forget_change();
			goto idle
		}
	}
}

#endif

#if RETURNS > 0

/*
 * state/change.c: return_locked, of a session that is terminated.  The durable number may be a lower
 * end only when no batch above that end can be taken any more.
 */
inline skip_position()
{
#ifndef CURSOR_KEPT
	cursor++
#else
	skip
#endif
}

#ifdef RETURN_IN_TICK
#define END_OF_RETURNED	POSITION(TICK(PART(cursor)))
#else
#define END_OF_RETURNED	POSITION(ROUNDED_UP(cursor))
#endif

active proctype Terminated()
{
	byte position;

idle:
	{
		atomic {
			returns < RETURNS && RUNNING && !locked && opened;
			returns++;
			locked = true
		}
#ifdef RETURN_FIRST
		position = PART(cursor);
		sf_durable_set(position);
		XLogFlush();
#endif
		stop_issuing(_);
		atomic {
			skip_position();
			position = END_OF_RETURNED
		}
#ifndef RETURN_FIRST
		d_step {
#ifdef PHASES
			written.safe = wall_safe;
#endif
			sf_durable_set(position)
		}
#endif
		XLogFlush();
		resume_issuing(position);
		atomic {
			position = 0;
			locked = false;
			goto idle
		}
	} unless {
		atomic {
			down & (1 << TERMINATED);
			down = down - (1 << TERMINATED);
			position = 0;
			goto idle
		}
	}
}

#endif

#if CREATORS > 0

/*
 * CREATE EXTENSION, in a database of its own.  It writes "new" if nothing is known and no mark of
 * an earlier life exists.  It takes no lock: "new" never lowers a number that was written meanwhile.
 * "New" is the time of creation.
 */
proctype Creator(byte me)
{
	byte position, now;

idle:
	{
		atomic {
#ifdef NEW_DESPITE_MARK
			RUNNING && created < CREATORS && written.reserved_until == 0;
#else
			RUNNING && created < CREATORS && written.reserved_until == 0 && !marked;
#endif
			created++;
			read_clock();
			position = KNOWN(POSITION(now));
			now = 0
		}
		atomic {
#ifdef NEW_SET
			sf_durable_set(position);
#else
			sf_durable_raise(position);
#endif
			position = 0;
			marked = true
		}
		XLogFlush();
		goto idle
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			position = 0;
			now = 0;
			goto idle
		}
	}
}

#endif

/* Shared memory is new, and no process is in the middle of a change. */
inline restart()
{
	cursor = 0;
	reserved_until = 0;
	pending = 0;
	pending_flushed = false;
	opened = false;
	generation = 0;
#ifdef PHASES
	wall_safe = 0;
	opened_at = 0;
#endif
#ifdef LEASES
	machine_id = kept_machine;
	lease_start = kept_start;
	lease_end = kept_end;
#endif
	locked = false;
#ifdef REACH
	stopped = false;
#endif
	if
	:: watched == MOVING_BACKWARD -> watched = NONE
	:: else
	fi;
	down = (1 << PROCESSES) - 1
}

/* All other events of a server. */
active proctype World()
{
end:
	do
	:: d_step {						/* some process flushes WAL */
			RUNNING && (DIFFER(flushed, written) || (pending != 0 && !pending_flushed));
			flush()
		}
	:: d_step {						/* a crash */
			RUNNING && crashes < CRASHES;
			crashes++;
			replay(flushed, written);
			restart()
		}
#if LOSSES > 0
	:: d_step {						/* pg_upgrade: the mark is kept, the number is not */
			RUNNING && losses < LOSSES && written.reserved_until > 0;
			losses++;
			written.reserved_until = 0;
			flushed.reserved_until = 0;
			restart()
		}
#endif
#if PROMOTIONS > 0
	:: d_step {						/* the transaction of the watched ID commits */
			RUNNING && WATCHING && !written.commit;
			written.commit = true
		}
	:: d_step {						/* the standby receives the flushed WAL */
			RUNNING && DIFFER(standby, flushed);
#ifdef NUMBER_NOT_LOGGED
			standby.commit = flushed.commit
#else
			replay(flushed, standby)
#endif
		}
	:: d_step {						/* a promotion: the standby is the server now */
			RUNNING && promotions < PROMOTIONS;
			promotions++;
			replay(standby, written);
			replay(standby, flushed);
#ifdef LEASES
#ifndef LEASE_COPIED
			kept_machine = STANDBY_MACHINE;
			kept_start = STANDBY_START;
			kept_end = STANDBY_END;
#endif
#else
			if
			:: !standby.commit -> forget()
			:: else
			fi;
#endif
			restart()
		}
#endif
	od
}

init
{
	atomic {
#ifdef LEASES
		granted[0] = FROM_TO(0, FIRST_END);
		ended[0] = FIRST_END;
#if PROMOTIONS > 0
		granted[STANDBY_MACHINE] = FROM_TO(STANDBY_START, STANDBY_END);
		ended[STANDBY_MACHINE] = STANDBY_END;
#endif
		run Registry_worker();
#endif
#if CREATORS > 0
		run Creator(CREATOR);
#endif
#if CREATORS > 1
		run Creator(CREATOR + 1);
#endif
		run Backend(0);
#if BACKENDS > 1
		run Backend(1);
#endif
#if BACKENDS > 2
		run Backend(2);
#endif
	}
}
