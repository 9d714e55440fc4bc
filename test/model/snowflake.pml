/*
 * snowflake.pml
 *	  The generator as a model, of which spin tries every run.
 *
 * The promise: an ID that was handed out is not handed out again, in whatever
 * order backends come to run, whatever the clock says, after a crash at any
 * point, and after the promotion of a standby that has received the commit of
 * the transaction that holds the ID.  (A recovery to a point in time is the same
 * as a promotion.)
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
 * it, which nobody else sees.  Names are those of the C code; a local that ends
 * in "_seen" holds what was read from shared memory.  Accesses share a step only
 * where no other process could come between them to any effect:
 *
 * - the lock is taken in the step of the first access under it, and released in
 *   that of the last;
 * - what only the holder of the lock changes, it reads and writes in one step;
 * - a loop of swaps is the one swap that succeeds;
 * - whether the line is open is looked at in the step of the next access: once
 *   it is, it stays open to the end of the server's run;
 * - sf_generator_next finds a lease in hand to be of an old generation in the
 *   step in which take_lease reads the generation: where the two differ, the
 *   clock can be the reason why the lease is not used;
 * - where the line is never moved, the generation does not change, and the look
 *   at it after the swap is left out; an ID then counts as handed out by the swap.
 *
 * What is simpler than in C, and why nothing is lost by it:
 *
 * - Time is counted in ticks of two positions, and there are few ticks.  On the
 *   last one callers get an error, as in C.
 * - Each look at the clock gives any tick.  So the clock may stand, jump, and
 *   step back between any two looks, and be another for each process.  Waits and
 *   the check for jumps only keep some readings from being used; here, all are.
 * - The size of a lease, its jitter, and whether a raise is tried early: any.
 * - A caller whose lease is refused, be it for the clock, for the ceiling or
 *   because its swap fails, begins anew at sf_generator_next.  From there it can
 *   do all that the loop of take_lease does.
 * - The checker watches one ID.  Each ID handed out becomes that one or not,
 *   while there is none.  Spin tries both, so of a run that repeats an ID it
 *   finds the variant that watches this ID.
 * - WAL is what it amounts to when it is replayed to the end, to where it is
 *   flushed, and to where a standby has received it.  Any process may flush at
 *   any time, and a crash keeps what is flushed: WAL that survives further than
 *   somebody asked for is WAL that somebody else flushed just before the crash.
 *   A standby that lags is one that has received no more yet.
 * - The commit of the watched ID is logged any time after it was handed out, or
 *   never.
 * - A crash is one step, at any time.  It takes shared memory, and what is in
 *   hand.  Each backend notices in a step of its own, and none goes on before
 *   all have.
 *
 * What is left out: the machine ID; a register that is dropped while the server
 * runs; accesses that a processor reorders.  The model accesses memory in the
 * order of the C code, which the barriers there have to ensure.
 *
 * With TIMELINES it is the line of IDs of type sno (core/timeline.h): cursor, hand and
 * IDs have the timeline above the position.  The packed number of the register is three
 * here, written in one step, and not rounded.
 *
 * Macros: the bounds below; TIMELINES, SESSIONS and REACH, see there; any other puts in one
 * mistake, by which spin has to find an ID that comes twice.  test/model/run
 * says with which it is run.
 */

#ifndef BACKENDS
#define BACKENDS	2
#endif
#ifndef TICKS
#define TICKS		3			/* 3 to 5 */
#endif
#ifndef RESERVE
#define RESERVE		1			/* ticks that a raise reserves */
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
#ifndef MAX_AHEAD
#define MAX_AHEAD	1			/* ticks */
#endif
#ifndef SEQUENCES
#define SEQUENCES	2			/* positions of a tick */
#endif

#ifdef TIMELINES
#define OTHER		16			/* the timeline bit of a cursor */
#define PART(cursor)		((cursor) % OTHER)
#define TIMELINE(cursor)	((cursor) / OTHER)
#else
#define OTHER		0
#define PART(cursor)		(cursor)
#define TIMELINE(cursor)	0
#endif

#define POSITION(tick)	((tick) * SEQUENCES)
#define TICK(position)	((position) / SEQUENCES)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/* Shared memory: SfShared. */
byte cursor;
byte ceiling;
bool opened;					/* origin is valid */
byte generation;
#ifdef TIMELINES
byte wall_safe;
byte opened_at;					/* the cursor, when the line was opened */
#endif
bool locked;

/* What WAL amounts to, replayed up to some point. */
typedef Wal {
	byte ceiling;				/* the register */
#ifdef TIMELINES
	byte safe;
	byte timeline;
#endif
	bool commit					/* of the watched ID */
}
Wal written;					/* so written.ceiling is the register in memory */
Wal flushed;
Wal standby;

/* What a backend has in hand. */
typedef Hand {
	byte next;
	byte end;
	byte generation
}
Hand hand[BACKENDS];

/* The watched ID; none yet; or none for now, while the line is moved back. */
#define NONE		255
#define OLD_LINE	254
byte watched = NONE;
#define WATCHING	(watched < OLD_LINE)

byte crashes;
byte promotions;
byte moves;

/* The processes that have not noticed a crash yet, one bit each. */
byte down;
#define RUNNING	(down == 0)
#if MOVES == 0
#define PROCESSES	BACKENDS
#else
#define PROCESSES	(BACKENDS + 1)
#endif

#ifdef REACH
byte latest_clock;
bool stepped_back;
bool moved_back;
bool changed;
bool changed_twice;
bool changed_after_crash;
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

#ifdef TIMELINES
#define DIFFER(a, b)	(a.ceiling != b.ceiling || a.commit != b.commit || a.safe != b.safe || a.timeline != b.timeline)
#else
#define DIFFER(a, b)	(a.ceiling != b.ceiling || a.commit != b.commit)
#endif

inline replay(from, to)
{
#ifdef TIMELINES
	to.safe = from.safe;
	to.timeline = from.timeline;
#endif
	to.ceiling = from.ceiling;
	to.commit = from.commit
}

/* sf_register_write is one of these two and XLogFlush. */
inline replorigin_advance(position)
{
#ifdef TIMELINES
	d_step {
		written.safe = wall_safe;
		written.timeline = TIMELINE(cursor);
		written.ceiling = MAX(written.ceiling, position)
	}
#else
	written.ceiling = MAX(written.ceiling, position)
#endif
}

inline replorigin_advance_back(position)
{
	written.ceiling = position
}

inline XLogFlush()
{
	d_step { replay(written, flushed) }
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
 * An ID is handed out.  REACH is what has to have happened before in some run, in
 * which the promise holds for an earlier ID: spin has to find one.
 */
inline issue(id)
{
#ifdef REACH
	assert(!(REACH && WATCHING));
#endif
	assert(id != watched);
	if
	:: watched == NONE -> watched = id
	:: true
	fi
}

/* Locals of no more use are zeros, lest states differ by them. */
inline forget_lease()
{
	generation_seen = 0;
	cursor_seen = 0;
	start = 0;
	end = 0;
	now = 0
}

inline forget_seen()
{
	forget_lease();
	ceiling_seen = 0
}

inline drop_hand()
{
	hand[me].next = 0;
	hand[me].end = 0;
	hand[me].generation = 0
}

/* With SESSIONS, a lease used up is kept, to see that the next one is above it. */
inline hand_out()
{
	issue(hand[me].next);
	hand[me].next++;
#ifndef SESSIONS
	if
	:: hand[me].next == hand[me].end -> drop_hand()
	:: else
	fi
#endif
}

/* ceiling.c: sf_ceiling_open, open_locked */
inline sf_ceiling_open()
{
	atomic {
		!locked;
		if
		:: opened -> goto idle
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
#ifdef TIMELINES
	atomic {					/* nobody else reads these before the line is open */
		wall_safe = written.safe;
		cursor = written.ceiling + OTHER * written.timeline;
		opened_at = cursor
	}
#else
	cursor = MAX(cursor, written.ceiling);	/* sf_register_read, and the swaps */
#endif
#endif
	ceiling = PART(cursor);
	atomic {
		opened = true;
		locked = false;
		goto idle
	}
}

/* One of the two alone is no mistake: each makes up for the other. */
#ifdef RAISE_BLINDLY
#define STILL_WANTED	true
#define raise_register(position)	replorigin_advance_back(position)
#else
#define STILL_WANTED	(ceiling == ceiling_seen)
#define raise_register(position)	replorigin_advance(position)
#endif

/* ceiling.c: sf_ceiling_raise, sf_ceiling_raise_early, raise_locked */
inline sf_ceiling_raise()
{
	atomic {
		if
		:: !locked && STILL_WANTED -> locked = true
		:: true ->					/* not wanted, or early and not to be had */
			forget_seen();
			goto idle
		fi
	}
	atomic {
		/* core/reserve.h: sf_ceiling_next */
		read_clock();
		raised = POSITION(MIN(MAX(now, TICK(PART(cursor))) + RESERVE, TICKS));
		if
		:: raised <= ceiling_seen ->
			raised = 0;
			forget_seen();
			locked = false;
			goto idle
		:: else -> forget_seen()
		fi
	}
	raise_register(raised);
#ifdef PUBLISH_BEFORE_FLUSH
	ceiling = raised;
#endif
	XLogFlush();
	atomic {
		ceiling = raised;
		raised = 0;
		locked = false;
		goto idle
	}
}

#ifdef TIMELINES

/*
 * core/timeline.h: sf_timeline_judge; what is tolerated is more where nothing was issued
 * since the line was opened.
 */
#define BEHIND(cursor)	(PART(cursor) > 0 && \
	now + MAX_AHEAD + (cursor == opened_at -> RESERVE : 0) < TICK(PART(cursor) - 1))
#define CHANGES(cursor)	(BEHIND(cursor) && now > wall_safe)

#ifdef SAFE_NOT_KEPT
#define SAFE	0
#elif defined(SAFE_OF_CURSOR)
#define SAFE	TICK(PART(cursor) - 1)
#else
#define SAFE	TICK(MAX(ceiling, PART(cursor)) - 1)
#endif

/* ceiling.c: sf_ceiling_change_over, change_over_locked */
inline change_over()
{
	atomic {
		!locked;
		read_clock();
		if
		:: TIMELINE(cursor) != TIMELINE(cursor_seen) || !CHANGES(cursor) ->
			forget_seen();
			goto idle
		:: else
		fi;
		forget_seen_but_now();
		locked = true;
		start = POSITION(now) + OTHER * (1 - TIMELINE(cursor));
		raised = POSITION(MIN(now + RESERVE, TICKS));
		now = 0
	}
	atomic {
		written.ceiling = raised;
		written.safe = SAFE;
		written.timeline = TIMELINE(start)
	}
#ifndef CHANGE_NOT_FLUSHED
	XLogFlush();
#endif
#ifndef KEEP_CEILING
	ceiling = 0;
#endif
	atomic {						/* the swap that succeeds; end keeps what it swapped */
		end = cursor;
		cursor = start;
		start = 0
	}
	wall_safe = TICK(PART(end) - 1);
	atomic {
		generation++;
#ifdef REACH
		changed_twice = changed;
		changed_after_crash = crashes > 0;
		changed = true;
#endif
		end = 0
	}
	atomic {
		ceiling = raised;
		raised = 0;
		locked = false;
		goto idle
	}
}

inline forget_seen_but_now()
{
	generation_seen = 0;
	cursor_seen = 0;
	ceiling_seen = 0;
	end = 0
}

#endif

/* generator.c: take_lease, after its read of the generation */
inline take_lease()
{
	cursor_seen = cursor;
	ceiling_seen = ceiling;
#ifdef READ_GENERATION_LAST
	generation_seen = generation;
#endif
	atomic {
		/* core/lease.c: sf_lease_next */
		read_clock();
		start = MAX(PART(cursor_seen), POSITION(now));
		if
#ifndef TIMELINES
		:: start == POSITION(TICK(start)) -> start++	/* jitter */
#endif
		:: true
		fi;
		if
		:: TICK(start) >= TICKS ||						/* SF_LEASE_EXHAUSTED */
			TICK(start) > now + MAX_AHEAD ->			/* SF_LEASE_AHEAD */
#ifdef TIMELINES
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
		:: start >= ceiling_seen ->						/* SF_LEASE_AT_CEILING */
			forget_lease();
			goto raise
		:: else
		fi;
		if
		:: end = start + 1
		:: end = start + 2
		fi;
		end = MIN(end, MIN(POSITION(TICK(start) + 1), ceiling_seen));

#ifndef PLAIN_WRITE_OF_CURSOR
		if
#ifdef NO_TIMELINE_IN_SWAP
		:: PART(cursor) != PART(cursor_seen) ->
#else
		:: cursor != cursor_seen ->
#endif
			forget_seen();
			goto idle
		:: else
		fi;
#endif
		end = end + OTHER * TIMELINE(cursor_seen);
		start = start + OTHER * TIMELINE(cursor_seen);
		cursor = end;
#if (MOVES > 0 || defined(TIMELINES)) && !defined(NO_LOOK_AFTER_SWAP)
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
#ifdef SESSIONS
		assert(start >= hand[me].next);
#endif
		/* take_in_hand; sf_generator_next hands the first ID out in any case */
		hand[me].next = start;
		hand[me].end = end;
		hand[me].generation = generation_seen;
		hand_out();
		forget_lease()
	}
}

#define TICK_IS_CURRENT \
	(TICK(PART(hand[me].next)) >= now && TICK(PART(hand[me].next)) <= now + MAX_AHEAD)
#ifdef KEEP_OLD_LEASES
#define GENERATION_IS_CURRENT	true
#else
#define GENERATION_IS_CURRENT	(hand[me].generation == generation)
#endif

/* generator.c: sf_generator_next, and take_lease to its read of the generation */
inline sf_generator_next()
{
	atomic {
		RUNNING;
		read_clock();
		if
		:: hand[me].next < hand[me].end && TICK_IS_CURRENT && GENERATION_IS_CURRENT ->
			now = 0;
			hand_out();
			goto idle
		:: else -> now = 0
		fi;
		if
		:: opened -> generation_seen = generation
		:: else -> goto open
		fi
	}
}

proctype Backend(byte me)
{
	byte generation_seen, cursor_seen, ceiling_seen, start, end, raised, now;

idle:
	{
		sf_generator_next();
		take_lease();
#ifdef TIMELINES
change:	change_over();
#endif
raise:	sf_ceiling_raise();
open:	sf_ceiling_open()
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			drop_hand();
			forget_seen();
			raised = 0;
			goto idle
		}
	}
}

#if MOVES > 0

/* ceiling.c: sf_ceiling_move, where the line is not open */
inline move_unopened()
{
	atomic {
		replorigin_advance_back(position);
		forget()
	}
	XLogFlush();
	goto unlock
}

/* ceiling.c: move_forth; the lock is held */
inline move_forth()
{
#ifdef PUBLISH_FORTH_FIRST
	ceiling = MAX(ceiling, position);
#endif
	d_step {						/* with the greater of the two */
		replorigin_advance(position);
		replorigin_advance(ceiling)
	}
	XLogFlush();
	cursor = MAX(cursor, position);
	generation++;
	ceiling = MAX(ceiling, position);
	goto unlock
}

/*
 * ceiling.c: move_back; the lock is held.
 *
 * IDs handed out before can come again: that is what the administrator asks for.
 * Those handed out until the generation changes can, too, as the comment in C
 * says.  Of those handed out from then on, none comes twice.
 */
inline move_back()
{
	atomic {
		replorigin_advance_back(position);
		forget();
		watched = OLD_LINE
	}
	XLogFlush();
#ifndef KEEP_CEILING
	ceiling = 0;
#endif
	cursor = position;
	atomic {
#ifdef REACH
		moved_back = true;
#endif
		generation++;
		watched = NONE
	}
	ceiling = position;
	goto unlock
}

#ifdef OPENED_IF_CURSOR
#define OPENED	(cursor != 0)
#else
#define OPENED	(cursor != 0 || opened)
#endif

active proctype Administrator()
{
	byte position;

idle:
	{
		/* ceiling.c: sf_ceiling_move */
		atomic {
			moves < MOVES && RUNNING && !locked;
			moves++;
			locked = true;
			if
			:: position = POSITION(0)
			:: position = POSITION(1)
			:: position = POSITION(2)
			fi;
			if
			:: !OPENED -> goto unopened
			:: OPENED && position > cursor -> goto forth
			:: OPENED && position <= cursor ->
				if
				:: TICK(cursor) - TICK(position) <= RESERVE -> goto unlock
				:: else -> goto back
				fi
			fi
		}
unopened:
		move_unopened();
forth:	move_forth();
back:	move_back();
unlock:	atomic {
			locked = false;
			position = 0;
			goto idle
		}
	} unless {
		atomic {
			down & (1 << BACKENDS);
			down = down - (1 << BACKENDS);
			position = 0;
			goto idle
		}
	}
}

#endif

/* Shared memory is new, and nobody is in the middle of anything. */
inline restart()
{
	cursor = 0;
	ceiling = 0;
	opened = false;
	generation = 0;
#ifdef TIMELINES
	wall_safe = 0;
	opened_at = 0;
#endif
	locked = false;
	if
	:: watched == OLD_LINE -> watched = NONE
	:: else
	fi;
	down = (1 << PROCESSES) - 1
}

/* All else that happens to a server. */
active proctype World()
{
end:
	do
	:: d_step {						/* some process flushes WAL */
			RUNNING && DIFFER(flushed, written);
			replay(written, flushed)
		}
	:: d_step {						/* a crash */
			RUNNING && crashes < CRASHES;
			crashes++;
			replay(flushed, written);
			restart()
		}
#if PROMOTIONS > 0
	:: d_step {						/* the transaction of the watched ID commits */
			RUNNING && WATCHING && !written.commit;
			written.commit = true
		}
	:: d_step {						/* the standby receives what is flushed */
			RUNNING && DIFFER(standby, flushed);
#ifdef REGISTER_NOT_LOGGED
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
			if
			:: !standby.commit -> forget()
			:: else
			fi;
			restart()
		}
#endif
	od
}

init
{
	atomic {
		run Backend(0);
		run Backend(1);
#if BACKENDS > 2
		run Backend(2);
#endif
	}
}
