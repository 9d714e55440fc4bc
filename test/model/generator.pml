/*
 * generator.pml
 *	  The generator as a model, of which spin tries every run.
 *
 * The promise: an ID that was issued is not issued again, in whatever order backends run, whatever
 * the clock shows, after a crash at any point, and after the promotion of a standby that has
 * received the commit of the transaction that holds the ID.  (A recovery to a point in time is the
 * same as a promotion.)  After snowflake_set_floor() has returned, no ID below the floor is issued.
 * After snowflake_move_back() has returned, no ID is issued before the next start of the server.
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
 * - the active line is read in the step in which the generation is read: any other line would do,
 *   as ANY_LINE shows;
 * - sf_next_id finds the batch to be of an old generation in the step in which
 *   take_batch reads the generation: if the two differ, the clock can be the reason
 *   why the batch is not used;
 * - if the generator is never changed, the generation does not change either once it is open, and
 *   the read of it after the swap is left out; an ID then counts as issued by the swap.
 *
 * The generation is a sequence lock.  It is 1 until the generator is opened.  Of an open generator, it
 * is odd while a change is in progress, and even otherwise.  A session does not take a batch while it
 * is odd, and keeps a batch only if the generation is the same before it reads anything else and
 * after its swap.  There are three changes of an open generator (issue/change.c):
 *
 * - A new lease, under the lock: begin_change() makes the generation odd; machine ID, bounds, cursors
 *   and reservations are changed; end_change() makes the generation even.
 * - A close, in the same way.  No batch can be taken afterwards.  If an administrator moves the
 *   generator back, the durable numbers are lowered after the change has ended, under the lock as
 *   well, and apply at the next start.
 * - A floor: the durable numbers are raised, and WAL is flushed; then reservations and cursors are
 *   raised; then the generation increases by 2, so that sessions drop their batches.  Nothing is
 *   stopped.
 *
 * A change of a generator that is not open leaves the generation at 1.
 *
 * With LINES of 2 it is the generator of IDs of type sno.  Each line has a cursor, a reservation and
 * a durable number, and the IDs of the two lines differ.  Sessions use the active line.  If the clock
 * has stepped back, they switch to the other one.
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
 * - An administrator who moves the generator back asserts that no ID at or after the new time was
 *   issued.  So when the durable numbers are lowered, the promise ends for such IDs, and holds for
 *   those below, and for all that are issued later.
 * - A generator that is opened writes its durable number again, which only increases it.  This is
 *   left out: nothing is issued before an extension has written a later one.
 *
 * With LEASES:
 *
 * - There are two machine IDs.  The first lease is of one of them and starts at tick 0;
 *   others are of either, provided that they start after those of any other server: at the end of
 *   the last lease that this server had of the machine ID, or later.  Other servers and the
 *   registry are modeled in registry.pml.
 * - The lease that survives a restart of all processes (state/postmaster_memory.c) is set in
 *   the first step of a change, and forgotten in the step that ends the close.  In
 *   between, a restart finds one or the other, which is a change before or after it.
 * - A release reaches the registry in the step that ends the close.  Later, others
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
 * Left out: a machine ID that is not leased, which does not change; accesses that a
 * processor reorders.  The model accesses memory in the order of the C code, which the barriers
 * there have to ensure; litmus/ checks that they do.
 *
 * Macros: the bounds below; LEASES, SESSIONS and REACH, see there.  READ_BACKWARD lets a session read
 * machine ID, cursor and reserved_until in the opposite order.  ANY_LINE lets it take a batch from
 * either line at any time; SWITCH_PLAIN lets it switch without a comparison; CLOSE_KEEPS_CURSOR leaves
 * the cursors of a closed generator as they are.  These are no mistakes here: no ID is issued twice.
 * (The last one is a mistake on a processor that reorders accesses; see litmus/close.test.)  Any other
 * macro introduces one mistake, for which spin has to find an ID that breaks the promise.
 * test/model/run shows with which macros it is run.
 */

#ifndef BACKENDS
#define BACKENDS	2
#endif
#ifndef LINES
#define LINES		1			/* 1 or 2 */
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
#ifndef FLOORS
#define FLOORS		0			/* calls of snowflake_set_floor */
#endif
#ifndef BACKS
#define BACKS		0			/* calls of snowflake_move_back */
#endif
#ifndef CREATORS
#define CREATORS	0			/* sessions that run CREATE EXTENSION: 0, 1 or 2; one line */
#endif
#ifndef LOSSES
#define LOSSES		0			/* times that the durable number is lost; with CREATORS */
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

/* An ID has its line above the position, and above that its machine ID. */
#define OTHER_LINE		16
#define OTHER_MACHINE	32
#define PART(id)		((id) % 16)
#define MACHINE(id)		((id) / OTHER_MACHINE)

#define POSITION(tick)	((tick) * SEQUENCES)
#define TICK(position)	((position) / SEQUENCES)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/* core/batch.h: sf_position_next_tick */
#define NEXT_TICK(position)	POSITION(TICK(position) + 1)

#if FLOORS > 0 || BACKS > 0 || defined(LEASES)
#define CHANGES
#endif
#if BACKS > 0 || defined(LEASES)
#define CLOSES
#endif

/* Shared memory: SfShared. */
byte cursor[LINES];
byte reserved_until[LINES];
byte pending;					/* pending.until; 0 for none */
bool pending_flushed;			/* !XLogNeedsFlush(pending.lsn) */
byte generation = 1;
bool locked;
#if LINES > 1
bit pending_line;
bit switches;					/* its lowest bit: the active line */
#else
#define line			0
#define pending_line	0
#endif

#define OPENED			(generation > 1)
#define IS_ODD(value)	((value) % 2 == 1)

#ifdef CLOSES
#ifdef LEASES
byte lease_end = FIRST_END;		/* a tick; 0 while the generator is closed */
#else
byte lease_end = TICKS;
#endif
bool moved_back;				/* no lease opens the generator again in this run of the server */
bool is_moved_back;				/* the move has ended */
#define LAST_TICK	MIN(TICKS, lease_end)
#define IS_CLOSED	(lease_end == 0)
#define WITHIN_LEASE(position)	MIN(position, POSITION(lease_end))
#else
#define LAST_TICK	TICKS
#define IS_CLOSED	false
#define WITHIN_LEASE(position)	position
#endif

#ifdef LEASES
#define NOT_PINNED	2
byte machine_id;				/* the first lease is of machine ID 0 */
byte lease_start;				/* a tick */
#ifdef OPEN_BELOW_LEASE
#define START_OF_LEASE	0
#else
#define START_OF_LEASE	POSITION(lease_start)
#endif

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
#define START_OF_LEASE	0
#endif

/* The result of WAL, replayed up to some point. */
typedef Wal {
	byte end[LINES];			/* the durable numbers; with CREATORS, 0 is that nothing is known */
	bool commit					/* of the watched ID */
}
Wal written;					/* so written.end is the durable number in memory */
Wal flushed;
Wal standby;

/* The batch that a backend holds. */
typedef HeldBatch {
	byte next;
	byte end;
	byte generation
}
HeldBatch held[BACKENDS];

/* The watched ID, or none. */
#define NONE		255
byte watched = NONE;
#define WATCHING	(watched != NONE)

#if FLOORS > 0
byte floor;						/* the greatest of which set_floor has returned */
#endif

#if CREATORS > 0
byte created;					/* calls of CREATE EXTENSION */
bool marked;					/* the mark in a shared catalog */
byte losses;
#if defined(OPEN_LOST)
#define IS_LOST		false
#else
#define IS_LOST		(written.end[0] == 0)
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
byte floors;
byte backs;

/* The processes that have not noticed a crash yet, one bit each. */
byte down;
#define RUNNING	(down == 0)
#define ADMINISTRATOR	BACKENDS
#if FLOORS == 0 && BACKS == 0
#define WORKER	BACKENDS
#else
#define WORKER	(BACKENDS + 1)
#endif
#ifdef LEASES
#define CREATOR	(WORKER + 1)
#else
#define CREATOR	WORKER
#endif
#define PROCESSES	(CREATOR + CREATORS)

#ifdef REACH
byte latest_clock;
bool stepped_back;
bool refused;
bool raised;
bool restarted_back;
bool switched;
bool switched_twice;
bool switched_after_crash;
bool renewed;
bool changed_machine;
bool reopened;
bool closed_after_back;
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

#if LINES > 1
#define DIFFER(a, b)	(a.end[0] != b.end[0] || a.end[1] != b.end[1] || a.commit != b.commit)
#else
#define DIFFER(a, b)	(a.end[0] != b.end[0] || a.commit != b.commit)
#endif

inline replay(from, to)
{
	to.end[0] = from.end[0];
#if LINES > 1
	to.end[1] = from.end[1];
#endif
	to.commit = from.commit
}

/* state/durable.c.  The number in memory is what is read, and it need not be on disk yet. */
inline sf_durable_raise(which, position)
{
	written.end[which] = MAX(written.end[which], position)
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
#if FLOORS > 0
	assert(PART(id) >= floor);
#endif
#ifdef CLOSES
	assert(!is_moved_back);
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

inline forget_line()
{
#if LINES > 1
	line = 0;
#endif
	reserved_until_seen = 0
}

inline forget_seen()
{
	forget_batch();
	forget_line()
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

/* issue/reservation.c: sf_generator_open, open_locked.  The generation is written last. */
inline sf_generator_open()
{
	atomic {
		!locked;
		if
		:: OPENED || IS_LOST ->
			forget_line();
			goto idle
		:: else ->
			forget_line();
			locked = true
		fi
	}
#ifdef OPEN_GENERATION_FIRST
	generation = 2;
#endif
#ifdef OPEN_AT_CLOCK
	atomic {
		read_clock();
		cursor[0] = POSITION(now);
		now = 0
	}
	reserved_until[0] = written.end[0];
#else
	reserved_until[0] = WITHIN_LEASE(MAX(written.end[0], START_OF_LEASE));
#if CREATORS > 0
	written.end[0] = MAX(written.end[0], 1);
#endif
	cursor[0] = MAX(written.end[0], START_OF_LEASE);
#endif
#if LINES > 1
	reserved_until[1] = WITHIN_LEASE(MAX(written.end[1], START_OF_LEASE));
	atomic {					/* switches decides nothing, so it needs no step of its own */
#ifdef OPEN_OF_ONE_LINE
		cursor[1] = MAX(written.end[0], START_OF_LEASE);
#else
		cursor[1] = MAX(written.end[1], START_OF_LEASE);
#endif
		switches = (cursor[1] > cursor[0])
	}
#endif
	atomic {
		generation = 2;
		locked = false;
		goto idle
	}
}

/* Leaving out only one of the two is no mistake: each compensates for the other. */
#ifdef EXTEND_BLINDLY
#define STILL_WANTED	true
#define write_number(position)	written.end[line] = position
#else
#define STILL_WANTED	(reserved_until[line] == reserved_until_seen)
#define write_number(position)	sf_durable_raise(line, position)
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

#ifdef PUBLISH_OTHER_LINE
#define LINE_TO_PUBLISH	(1 - pending_line)
#else
#define LINE_TO_PUBLISH	pending_line
#endif

inline forget_pending()
{
	pending = 0;
#if LINES > 1
	pending_line = 0;
#endif
	pending_flushed = false
}

/*
 * issue/reservation.c: sf_reservation_extend, sf_reservation_extend_early.  An extension that is
 * written is pending.  The session flushes it, or leaves it to others.  One that is pending, of
 * either line, is published, or dropped.
 */
inline sf_reservation_extend()
{
	atomic {
		if
		:: MAY_LOCK && STILL_WANTED && OPENED -> LOCK
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
		extended = POSITION(MIN(MAX(now, TICK(cursor[line])) + RESERVE, LAST_TICK_TO_RESERVE));
		if
		:: extended <= reserved_until_seen ->
			extended = 0;
			forget_seen();
			UNLOCK;
			goto idle
		:: else ->
			forget_batch();
			reserved_until_seen = 0
		fi
	}
	write_number(extended);
	atomic {
		pending = extended;
#if LINES > 1
		pending_line = line;
		line = 0;
#endif
		pending_flushed = false;
		extended = 0;
		if
		:: true
		:: UNLOCK; goto idle		/* begin_extension */
		fi
	}
publish:
#ifdef PUBLISH_BEFORE_FLUSH
	reserved_until[pending_line] = MAX(reserved_until[pending_line], pending);
#endif
#ifndef PUBLISH_PENDING_UNFLUSHED
	if
	:: XLogFlush()					/* flush_extension */
	:: pending_flushed				/* look_at_extension */
	fi;
#endif
	atomic {						/* publish_extension */
		reserved_until[LINE_TO_PUBLISH] = MAX(reserved_until[LINE_TO_PUBLISH], pending);
		forget_pending();
		UNLOCK;
		goto idle
	}
}

/* issue/generator.c: read_or_wait, after its read of the generation */
#if defined(LEASES) && !defined(READ_MACHINE_FIRST)
#define read_machine_id()	machine_id_seen = machine_id
#else
#define read_machine_id()	skip
#endif

#ifdef REACH
#define note_refusal()	refused = true
#else
#define note_refusal()	skip
#endif

/*
 * How far the last ID of a line may be ahead of the clock before that counts as a step back.  More
 * is tolerated if nothing is reserved: the line was opened or raised.
 */
#define TOLERATED	(MAX_AHEAD + (reserved_until_seen <= cursor_seen -> RESERVE : 0))
#define STEPPED_BACK	(cursor_seen > 0 && TICK(cursor_seen - 1) > now + TOLERATED)
#define OTHER	(1 - line)

#ifdef ANY_LINE
#define choose_line() \
	if \
	:: line = 0 \
	:: line = 1 \
	fi
#elif LINES > 1
#define choose_line()	line = switches
#else
#define choose_line()	skip
#endif

#if LINES > 1 && !defined(ANY_LINE)
/* issue/clock.c: the clock has stepped back, and has passed the other line. */
inline switch_line()
{
	atomic {
		if
		:: cursor[OTHER] == 0 || now > TICK(cursor[OTHER] - 1) ->
#ifndef SWITCH_RESETS
			now = 0
#else
			skip
#endif
		:: else ->
			forget_seen();
			goto idle
		fi
	}
	atomic {
#ifndef SWITCH_PLAIN
		if
		:: switches != line ->
			forget_seen();
			goto idle
		:: else
		fi;
#endif
		switches = OTHER;
#ifdef REACH
		switched_twice = switched;
		switched_after_crash = crashes > 0;
		switched = true;
#endif
#ifndef SWITCH_RESETS
		forget_seen();
		goto idle
	}
#else
	}
	atomic {
		cursor[OTHER] = POSITION(now);
		forget_seen();
		goto idle
	}
#endif
}
#endif

/* issue/generator.c: take_batch, after its read of the generation */
inline take_batch()
{
#ifdef READ_BACKWARD
	reserved_until_seen = reserved_until[line];
	cursor_seen = cursor[line];
	read_machine_id();
#else
	read_machine_id();
	cursor_seen = cursor[line];
	reserved_until_seen = reserved_until[line];
#endif
#ifdef READ_GENERATION_LAST
	generation_seen = generation;
#endif
	atomic {
		/* core/batch.c: sf_batch_next */
		read_clock();
		start = MAX(cursor_seen, POSITION(now));
		if
#if LINES == 1
		:: start == POSITION(TICK(start)) -> start++	/* jitter */
#endif
		:: true
		fi;
		if
		:: TICK(start) >= TICKS || TICK(start) > now + MAX_AHEAD ->
								/* SF_BATCH_EXHAUSTED, SF_BATCH_AHEAD */
#if LINES > 1 && !defined(ANY_LINE)
			if
			:: STEPPED_BACK ->
				generation_seen = 0;
				cursor_seen = 0;
				reserved_until_seen = 0;
#ifdef LEASES
				machine_id_seen = 0;
#endif
				start = 0;
				goto change
			:: else
			fi;
#endif
			forget_seen();
			goto idle
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
		end = MIN(end, MIN(NEXT_TICK(start), reserved_until_seen));
		now = 0;

#ifndef PLAIN_WRITE_OF_CURSOR
		if
		:: cursor[line] != cursor_seen ->
			forget_seen();
			goto idle
		:: else
		fi;
#endif
		cursor[line] = end;
#if LINES > 1
		start = start + OTHER_LINE * line;
		end = end + OTHER_LINE * line;
#endif
#ifdef LEASES
		start = start + OTHER_MACHINE * machine_id_seen;
		end = end + OTHER_MACHINE * machine_id_seen;
		machine_id_seen = 0;
#endif
		forget_line();
#if defined(CHANGES) && !defined(NO_LOOK_AFTER_SWAP)
		cursor_seen = 0
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

#ifdef TAKE_IN_CHANGE
#define IS_CHANGING	false
#else
#define IS_CHANGING	(OPENED && IS_ODD(generation))
#endif

/* issue/generator.c: sf_next_id, and take_batch to its read of the generation */
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
#ifdef LEASES
		:: !OPENED && machine_id == NOT_PINNED -> goto idle
		:: !OPENED && machine_id != NOT_PINNED -> goto open
#else
		:: !OPENED -> goto open
#endif
#ifdef CHANGES
		:: IS_CHANGING ->			/* wait for the holder of the lock */
			note_refusal();
			goto idle
#endif
		:: OPENED && !IS_CHANGING -> choose_line()
		fi;
#ifdef READ_MACHINE_FIRST
		machine_id_seen = machine_id
	}
	generation_seen = generation
#else
		generation_seen = generation
	}
#endif
}

proctype Backend(byte me)
{
	byte generation_seen, cursor_seen, reserved_until_seen, start, end, extended, now;
#if LINES > 1
	bit line;
#endif
#ifdef LEASES
	byte machine_id_seen;
#endif

idle:
	{
		sf_next_id();
		take_batch();
#if LINES > 1 && !defined(ANY_LINE)
change:	switch_line();
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

#ifdef CHANGES

/*
 * state/generator_state.c: sf_begin_change, sf_end_change.  The mistakes: the generation is not odd
 * meanwhile; it is the same afterwards; or a generator that is not open looks open.
 */
#ifdef CHANGE_OPENS
#define HAS_SESSIONS	true
#else
#define HAS_SESSIONS	OPENED
#endif

inline make_odd(closes)
{
	if
#ifdef CLOSE_NOT_ODD
	:: HAS_SESSIONS && !closes -> generation++
#else
	:: HAS_SESSIONS -> generation++
#endif
	:: else
	fi
}

inline begin_change(closes)
{
	atomic {
		assert(locked && (!OPENED || !IS_ODD(generation)));
#if !defined(NOT_ODD) && !defined(KEEP_GENERATION) && !defined(ODD_LATE)
		make_odd(closes);
#endif
#ifndef KEEP_PENDING
		forget_pending()
#endif
	}
}

inline end_change(closes)
{
#ifndef KEEP_GENERATION
	if
#ifdef NOT_ODD
	:: HAS_SESSIONS -> generation = generation + 2
#elif defined(CLOSE_NOT_ODD)
	:: HAS_SESSIONS && closes -> generation = generation + 2
	:: HAS_SESSIONS && !closes -> generation++
#else
	:: HAS_SESSIONS -> generation++
#endif
	:: else
	fi;
#endif
	assert(!OPENED || !IS_ODD(generation))
}

/* The same where the mistake is that it comes too late, or too early. */
inline begin_late(closes)
{
#ifdef ODD_LATE
	atomic { make_odd(closes) }
#else
	skip
#endif
}

#ifdef EVEN_EARLY
#define end_early(closes)	atomic { end_change(closes) }
#define end_in_time(closes)	skip
#else
#define end_early(closes)	skip
#define end_in_time(closes)	end_change(closes)
#endif

#endif

#ifdef CLOSES

inline close_line(which)
{
#if defined(CLOSE_OF_ONE_LINE) && LINES > 1
	reserved_until[which] = (which == switches -> 0 : reserved_until[which]);
#elif !defined(RESERVATION_KEPT)
	reserved_until[which] = 0;
#endif
#ifndef CLOSE_KEEPS_CURSOR
	cursor[which] = (OPENED -> NEXT_TICK(cursor[which]) : 0)
#else
	skip
#endif
}

/*
 * issue/change.c: sf_change_close, to its end; the lock is held.  Each cursor leaves its tick.  A
 * session that swaps a cursor during the change, or that has read a state from before it, and swaps
 * later, drops its batch.
 */
inline close_lines(moves_back)
{
	atomic {
		lease_end = 0;
		moved_back = moved_back || moves_back
	}
	close_line(0);
#if LINES > 1
	close_line(1);
#endif
}

#endif

#if FLOORS > 0 || BACKS > 0

/*
 * issue/change.c: sf_raise_floor; the lock is held.  The numbers of all lines are raised, with one
 * flush.  A generator that is not open starts at them.
 */
inline raise_line(which)
{
#if !defined(FLOOR_OF_OPENED)
	reserved_until[which] = WITHIN_LEASE(MAX(reserved_until[which], position));
#else
	reserved_until[which] = MAX(reserved_until[which], position);
#endif
	cursor[which] = MAX(cursor[which], position)
}

inline raise_generation()
{
#ifndef FLOOR_KEEPS_GENERATION
	generation = generation + 2
#else
	skip
#endif
}

inline raise_floor()
{
#ifndef FLOOR_NOT_DURABLE
	atomic {
		sf_durable_raise(0, position);
#if LINES > 1 && !defined(FLOOR_OF_ONE_LINE)
		sf_durable_raise(1, position);
#endif
#if CREATORS > 0
		if
		:: !WATCHING || watched >= position -> forget()
		:: else
		fi
#endif
	}
#ifndef FLOOR_NOT_FLUSHED
	XLogFlush();
#endif
#endif
	atomic {
		if
		:: !OPENED -> goto raised_all
		:: else
		fi
	}
#ifdef FLOOR_GENERATION_FIRST
	raise_generation();
#endif
	raise_line(0);
#if LINES > 1
	raise_line(1);
#endif
#ifndef FLOOR_GENERATION_FIRST
	raise_generation();
#endif
raised_all:
	atomic {
#if FLOORS > 0
		floor = MAX(floor, position);
#endif
#ifdef REACH
		raised = OPENED;
#endif
		goto unlock
	}
}

/*
 * issue/change.c: sf_move_back; the lock is held.  IDs at or after the position can be issued again
 * after the next start.
 */
inline lower_line(which)
{
	written.end[which] = MIN(written.end[which], position)
}

inline lower()
{
	atomic {
		lower_line(0);
#if LINES > 1
		lower_line(1);
#endif
		if
		:: WATCHING && PART(watched) >= position -> forget()
		:: else
		fi;
#if FLOORS > 0
		floor = MIN(floor, position);
#endif
	}
	XLogFlush()
}

inline move_back()
{
#ifdef LOWER_FIRST
	lower();
#endif
#ifdef MOVE_BACK_OPEN
	lower();
	goto unlock;
#endif
	begin_change(true);
	close_lines(true);
	atomic { end_change(true) }
#ifndef LOWER_FIRST
	lower();
#endif
	atomic {
		is_moved_back = true;
		goto unlock
	}
}

active proctype Administrator()
{
	byte position;

idle:
	{
		atomic {
			(floors < FLOORS || backs < BACKS) && RUNNING && !locked && EXISTS;
			locked = true;
			if
			:: position = KNOWN(POSITION(0))
			:: position = POSITION(1)
			:: position = POSITION(2)
			fi;
			if
#if FLOORS > 0
			:: floors < FLOORS -> floors++
#endif
#if BACKS > 0
			:: backs < BACKS ->
				backs++;
				goto back
#endif
			fi
		}
#if FLOORS > 0
		raise_floor();
#endif
#if BACKS > 0
back:	move_back();
#endif
unlock:	atomic {
			locked = false;
			position = 0;
			goto idle
		}
	} unless {
		atomic {
			down & (1 << ADMINISTRATOR);
			down = down - (1 << ADMINISTRATOR);
			position = 0;
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
	end = 0
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

#ifdef RESERVE_PAST_LEASE
#define cut_reservation(which)	skip
#else
#define cut_reservation(which)	reserved_until[which] = WITHIN_LEASE(reserved_until[which])
#endif

#ifdef LEAVE_NO_TICK
#define LEFT(position)	position
#else
#define LEFT(position)	(leaves -> NEXT_TICK(position) : position)
#endif

/* The swap that succeeds. */
inline move_line(which)
{
#if defined(LEASE_OF_ONE_LINE) && LINES > 1
	cursor[which] = (OPENED && which == switches -> MAX(LEFT(cursor[which]), POSITION(start)) : cursor[which]);
#elif !defined(CURSOR_KEPT)
	cursor[which] = (OPENED -> MAX(LEFT(cursor[which]), POSITION(start)) : 0);
#endif
	cut_reservation(which)
}

/* issue/change.c: sf_change_lease; the lock is held */
inline change_lease()
{
	begin_change(false);
	end_early(false);
	atomic {
		machine_id = machine;
		lease_start = start;
#ifdef LEASE_OPENS_MOVED_BACK
		lease_end = end
#else
		lease_end = (moved_back -> 0 : end)
#endif
	}
	move_line(0);
	begin_late(false);
#if LINES > 1
	move_line(1);
#endif
	atomic {
		end_in_time(false);
		goto unlock
	}
}

/* The tick before which all IDs were issued: that of the greatest cursor, which has left its tick. */
#define ROUNDED_UP(position)	TICK(position + SEQUENCES - 1)
#if LINES == 1
#define GREATEST_CURSOR	cursor[0]
#elif defined(END_OF_ONE_LINE)
#define GREATEST_CURSOR	cursor[switches]
#else
#define GREATEST_CURSOR	MAX(cursor[0], cursor[1])
#endif

/* A generator that was not opened since a crash has no record of the IDs issued before. */
#ifdef UNUSED_SINCE_CRASH
#define USED_END	ROUNDED_UP(GREATEST_CURSOR)
#else
#define USED_END	(OPENED || crashes == 0 -> ROUNDED_UP(GREATEST_CURSOR) : kept_end)
#endif

/*
 * state/lease.c: sf_lease_close, and issue/change.c: sf_change_close; the lock is held.  The
 * release reaches the registry in the last step, and others have the rest of the lease from then on.
 */
inline change_close()
{
#ifdef END_BEFORE_CLOSE
	end = USED_END;
#endif
	begin_change(true);
	close_lines(false);
	begin_late(true);
#ifndef END_BEFORE_CLOSE
	end = USED_END;
#endif
	atomic {
		end = MIN(MAX(end, kept_start), kept_end);
		assert(!(WATCHING && MACHINE(watched) == kept_machine && TICK(PART(watched)) >= end));
		granted[kept_machine] = granted[kept_machine] & FROM_TO(0, end);
		ended[kept_machine] = end;
		kept_machine = NOT_PINNED;
		kept_start = 0;
		kept_end = 0;
#ifdef REACH
		closed_after_back = moved_back;
#endif
		forget_change();
		end_in_time(true);
		goto unlock
	}
}

/*
 * The registry renews the lease that is held, or it grants another one: of a machine ID that
 * no other server has, from the end of the last lease of it, or later if others had it
 * meanwhile.  At the end of the run, or before, the lease is released.
 */
proctype Registry_worker()
{
	byte machine, start, end;
	bool leaves;

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
				/* issue/change.c: sf_extend_lease, without the lock: a swap, unless it is 0 */
#ifdef RENEW_CLOSED
				lease_end = MAX(lease_end, end);
#else
				lease_end = (IS_CLOSED -> 0 : MAX(lease_end, end));
#endif
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
				reopened = reopened || (IS_CLOSED && !moved_back);
#endif
				leaves = machine_id != machine;
				keep()
			:: kept_machine != NOT_PINNED -> goto leave
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
			RUNNING && created < CREATORS && written.end[0] == 0;
#else
			RUNNING && created < CREATORS && written.end[0] == 0 && !marked;
#endif
			created++;
			read_clock();
			position = KNOWN(POSITION(now));
			now = 0
		}
		atomic {
#ifdef NEW_SET
			written.end[0] = position;
#else
			sf_durable_raise(0, position);
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
	cursor[0] = 0;
	reserved_until[0] = 0;
#if LINES > 1
	cursor[1] = 0;
	reserved_until[1] = 0;
	switches = 0;
#endif
	forget_pending();
	generation = 1;
#ifdef CLOSES
#ifdef REACH
	restarted_back = is_moved_back;
#endif
	moved_back = false;
	is_moved_back = false;
#endif
#ifdef LEASES
	machine_id = kept_machine;
	lease_start = kept_start;
	lease_end = kept_end;
#elif defined(CLOSES)
	lease_end = TICKS;
#endif
	locked = false;
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
			RUNNING && losses < LOSSES && written.end[0] > 0;
			losses++;
			written.end[0] = 0;
			flushed.end[0] = 0;
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
#if FLOORS > 0
			floor = 0;				/* it may not have received it */
#endif
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
