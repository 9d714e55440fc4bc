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
 * With SPANS, machine IDs come from a registry, and the promise is about IDs with their machine
 * ID; and in addition, each ID that is handed out is in a span of its machine ID that this
 * server was given, and below the end that it said when it gave the span back.
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
 * With SPANS:
 *
 * - There are two machine IDs.  The first span is of one of them and starts at tick 0;
 *   others are of any, as long as they start where no other server was given the machine
 *   ID: at the end of the last span that this server had of it, or later.  What other
 *   servers and the registry do is the matter of registry.pml.
 * - The span that is kept over a restart of all processes is set in the first step of a
 *   change, and gone in the last one of a close.  In between, a restart finds one or the
 *   other, which is a change before or after it.
 * - A release comes to the registry in the step that closes the line.  Later, others would
 *   have the rest of the span later, and so more would be allowed here.
 * - A line that is closed may be given a span again, in the same run.
 * - A stop of the server is a crash after a close.  A crash keeps the span, as if only the
 *   processes were restarted: a server that has none yet hands out nothing.
 * - There is one line.  The other is given spans in the same way, and the end that is
 *   released is the later one of the two.
 * - With SESSIONS, IDs are compared by tick, machine ID and sequence, in this order.  Machine
 *   ID 0, which the server has first, is the greater one, so that the first change of the
 *   machine ID can go wrong.
 * - With LOSSES, the register is dropped and made again at once, with 0.  That it is gone is
 *   noticed under the lock, by any session, in a step of its own; here, by World.  The number
 *   in the register protects nothing then, so there are no crashes as well.
 *
 * What is left out: a machine ID that is not leased, which does not change; accesses that a
 * processor reorders.  The model accesses memory in the order of the C code, which the barriers
 * there have to ensure; litmus/ checks that they do.
 *
 * With TIMELINES it is the line of IDs of type sno (core/timeline.h): cursor, hand and
 * IDs have the timeline above the position.  The packed number of the register is three
 * here, written in one step, and not rounded.
 *
 * Macros: the bounds below; TIMELINES, SPANS, SESSIONS and REACH, see there; any other puts in one
 * mistake, by which spin has to find an ID that breaks the promise.  test/model/run
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
#ifndef LOSSES
#define LOSSES		0			/* times that the register is dropped */
#endif
#ifndef CHANGES_OF_SPAN
#define CHANGES_OF_SPAN	1		/* also renewals and releases */
#endif
#ifndef FIRST_END
#define FIRST_END	2			/* tick, of the first span */
#endif
#ifndef MAX_AHEAD
#define MAX_AHEAD	1			/* ticks */
#endif
#ifndef SEQUENCES
#define SEQUENCES	2			/* positions of a tick */
#endif

/* The timeline bit of a cursor, and above it the machine ID of what is in hand. */
#ifdef TIMELINES
#define OTHER		16
#define TIMELINE(cursor)	((cursor) / OTHER % 2)
#else
#define OTHER		0
#define TIMELINE(cursor)	0
#endif
#ifdef SPANS
#define OTHER_MACHINE	32
#define MACHINE(id)		((id) / OTHER_MACHINE)
#endif
#if defined(TIMELINES) || defined(SPANS)
#define PART(cursor)	((cursor) % 16)
#else
#define PART(cursor)	(cursor)
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

#ifdef SPANS
#define CLOSED		239			/* SF_CURSOR_CLOSED; as if far ahead, in the first timeline */
#define NOT_PINNED	2
byte machine_id;				/* the first span is of machine ID 0 */
byte span_start;				/* ticks */
byte span_end = FIRST_END;
byte closed_at;
#define LAST_TICK	MIN(TICKS, span_end)
#define IS_CLOSED	(cursor == CLOSED)
#define SAFE_OF_SPAN	(MAX(span_start, 1) - 1)

/* Of IDs with their machine IDs, the greater one has the greater rank. */
#define RANK(id)	((TICK(PART(id)) * 2 + 1 - MACHINE(id)) * SEQUENCES + PART(id) % SEQUENCES)

/* What survives a restart of all processes: kept.c.  NOT_PINNED: none. */
byte kept_machine;
byte kept_start;
byte kept_end = FIRST_END;

/*
 * What the registry knows of the two machine IDs: until when others may not have them;
 * and the ticks in which this server may issue or have issued IDs, one bit each.
 */
byte ended[2];
byte given[2];
byte changes;
#define GIVEN(id)	(given[MACHINE(id)] & (1 << TICK(PART(id))))
#define FROM_TO(start, end)	((1 << (end)) - (1 << (start)))
#else
#define LAST_TICK	TICKS
#define IS_CLOSED	false
#endif

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
byte losses;
byte promotions;
byte moves;

/* The processes that have not noticed a crash yet, one bit each. */
byte down;
#define RUNNING	(down == 0)
#define ADMINISTRATOR	BACKENDS
#if MOVES == 0
#define REGISTRAR	BACKENDS
#else
#define REGISTRAR	(BACKENDS + 1)
#endif
#ifdef SPANS
#define PROCESSES	(REGISTRAR + 1)
#else
#define PROCESSES	REGISTRAR
#endif

#ifdef REACH
byte latest_clock;
bool stepped_back;
bool moved_back;
bool changed;
bool changed_twice;
bool changed_after_crash;
bool renewed;
bool changed_machine;
bool changed_unopened;
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
#ifdef SPANS
	assert(GIVEN(id));
#endif
	if
	:: watched == NONE -> watched = id
	:: true
	fi
}

/* Locals of no more use are zeros, lest states differ by them. */
inline forget_lease()
{
#ifdef SPANS
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
		:: opened || IS_CLOSED -> goto idle
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
#ifdef SPANS
		wall_safe = MAX(written.safe, SAFE_OF_SPAN);
		cursor = MAX(written.ceiling, POSITION(span_start)) + OTHER * written.timeline;
#else
		wall_safe = written.safe;
		cursor = written.ceiling + OTHER * written.timeline;
#endif
		opened_at = cursor
	}
#else
	cursor = MAX(cursor, written.ceiling);	/* sf_register_read, and the swaps */
#ifdef SPANS
	cursor = MAX(cursor, POSITION(span_start));
#endif
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

#ifdef RAISE_PAST_SPAN
#define LAST_TICK_OF_RAISE	TICKS
#else
#define LAST_TICK_OF_RAISE	LAST_TICK
#endif

/* ceiling.c: sf_ceiling_raise, sf_ceiling_raise_early, raise_locked */
inline sf_ceiling_raise()
{
	atomic {
		if
		:: !locked && STILL_WANTED && opened -> locked = true
		:: true ->					/* not wanted, or early and not to be had */
			forget_seen();
			goto idle
		fi
	}
	atomic {
		/* core/reserve.h: sf_ceiling_next */
		read_clock();
		raised = POSITION(MIN(MAX(now, TICK(PART(cursor))) + RESERVE, LAST_TICK_OF_RAISE));
		if
		:: raised <= ceiling_seen || IS_CLOSED ->
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

/* change_over.c: sf_line_change_over, change_over_locked */
inline change_over()
{
	atomic {
		!locked;
		read_clock();
		if
#ifdef CHANGE_OVER_CLOSED
		:: TIMELINE(cursor) != TIMELINE(cursor_seen) || !CHANGES(cursor) ->
#else
		:: TIMELINE(cursor) != TIMELINE(cursor_seen) || !CHANGES(cursor) || IS_CLOSED ->
#endif
			forget_seen();
			goto idle
		:: else
		fi;
		forget_seen_but_now();
		locked = true;
		start = POSITION(now) + OTHER * (1 - TIMELINE(cursor));
		raised = POSITION(MIN(now + RESERVE, LAST_TICK));
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
#ifdef SPANS
	machine_id_seen = 0;
#endif
	generation_seen = 0;
	cursor_seen = 0;
	ceiling_seen = 0;
	end = 0
}

#endif

/* generator.c: take_lease, after its read of the generation */
inline take_lease()
{
#if defined(SPANS) && !defined(READ_MACHINE_FIRST)
	machine_id_seen = machine_id;
#endif
#ifdef SPANS
	atomic {
		if
		:: IS_CLOSED ->
			forget_seen();
			goto idle
		:: else -> cursor_seen = cursor
		fi
	}
#else
	cursor_seen = cursor;
#endif
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
#ifdef SPANS
		start = start + OTHER_MACHINE * machine_id_seen;
		end = end + OTHER_MACHINE * machine_id_seen;
		machine_id_seen = 0;
#endif
#if (MOVES > 0 || defined(TIMELINES) || defined(SPANS)) && !defined(NO_LOOK_AFTER_SWAP)
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
#if defined(SESSIONS) && defined(SPANS)
		assert(hand[me].next == 0 || RANK(start) > RANK(hand[me].next - 1));
#elif defined(SESSIONS)
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
#ifdef SPANS
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
	byte generation_seen, cursor_seen, ceiling_seen, start, end, raised, now;
#ifdef SPANS
	byte machine_id_seen;
#endif

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

/* line_move.c: sf_line_move, where the line is not open */
inline move_unopened()
{
	atomic {
		replorigin_advance_back(position);
		forget()
	}
	XLogFlush();
	goto unlock
}

/* line_move.c: move_forth; the lock is held */
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
 * line_move.c: move_back; the lock is held.
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

#define BEFORE_SPAN	(TICK(position) < span_start)

active proctype Administrator()
{
	byte position;

idle:
	{
		/* line_move.c: sf_line_move */
		atomic {
			moves < MOVES && RUNNING && !locked;
			moves++;
#ifndef FLOOR_CHECKED_EARLY
			locked = true;
#endif
			if
			:: position = POSITION(0)
			:: position = POSITION(1)
			:: position = POSITION(2)
			fi;
#ifdef FLOOR_CHECKED_EARLY
			if
			:: BEFORE_SPAN ->
				position = 0;
				goto idle
			:: else
			fi
		}
		atomic {
			!locked;
			locked = true;
			if
			:: IS_CLOSED -> goto unlock
			:: else
			fi;
#elif defined(SPANS)
			if
			:: IS_CLOSED || BEFORE_SPAN -> goto unlock
			:: else
			fi;
#endif
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
			down & (1 << ADMINISTRATOR);
			down = down - (1 << ADMINISTRATOR);
			position = 0;
			goto idle
		}
	}
}

#endif

#ifdef SPANS

/* Any span. */
inline choose()
{
	if
	:: machine = 0
	:: machine = 1
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

inline forget_span()
{
	leaves = false;
	machine = 0;
	start = 0;
	end = 0;
	was = 0
}

/* What is kept is set first, and the span is in force after a restart of all processes. */
inline keep()
{
	kept_machine = machine;
	kept_start = start;
	kept_end = end;
	ended[machine] = end;
	given[machine] = given[machine] | FROM_TO(start, end)
}

/* core/lease.h: sf_position_next_tick */
#ifdef LEAVE_TICK_NOT_AT_START
#define NEXT_TICK(cursor)	POSITION(TICK(PART(cursor) + SEQUENCES - 1))
#else
#define NEXT_TICK(cursor)	POSITION(TICK(PART(cursor)) + 1)
#endif

/* line.h: sf_line_was_opened */
#ifdef LEAVE_TICK_IF_OPEN
#define WAS_OPENED	opened
#else
#define WAS_OPENED	(opened || cursor != 0)
#endif

/* line_span.c: sf_line_begin_span; the lock is held, and the ceiling was read */
inline begin_span()
{
#ifndef KEEP_CEILING
	ceiling = 0;
#endif
	atomic {
		if
		:: IS_CLOSED -> cursor = closed_at
		:: else
		fi
	}
	atomic {
		machine_id = machine;
		span_start = start;
		span_end = end
	}
#ifdef LEAVE_TICK_READ_FIRST
	position = PART(cursor);
	atomic {
		if
		:: leaves && WAS_OPENED && PART(cursor) < NEXT_TICK(position) -> cursor = NEXT_TICK(position) + OTHER * TIMELINE(cursor)
		:: else
		fi;
		position = 0
	}
#else
	atomic {
		if
		:: leaves && WAS_OPENED -> cursor = NEXT_TICK(cursor) + OTHER * TIMELINE(cursor)
		:: else
		fi
	}
#endif
#ifdef TIMELINES
	wall_safe = MAX(wall_safe, SAFE_OF_SPAN);
#endif
	atomic {
		if
		:: WAS_OPENED && PART(cursor) < POSITION(start) -> cursor = POSITION(start) + OTHER * TIMELINE(cursor)
		:: else
		fi
	}
	generation++;
	atomic {
		ceiling = MIN(was, POSITION(end));
		forget_span();
		locked = false;
		goto idle
	}
}

#define ROUNDED_UP(cursor)	TICK(PART(cursor) + SEQUENCES - 1)
#if defined(TIMELINES) && !defined(END_OF_CURSOR)
#define END_OF_OPENED(cursor)	MAX(ROUNDED_UP(cursor), wall_safe + 1)
#else
#define END_OF_OPENED(cursor)	ROUNDED_UP(cursor)
#endif

/* Of a line that was not opened since a crash, it is not known what was issued before. */
#ifdef UNUSED_SINCE_CRASH
#define USED_END(cursor)	END_OF_OPENED(cursor)
#else
#define USED_END(cursor)	(opened || crashes == 0 -> END_OF_OPENED(cursor) : span_end)
#endif

/*
 * span.c: sf_span_close, and line_span.c: sf_line_close.  The release comes to the registry
 * at once, and others have what is left from then on.
 */
inline close()
{
#ifdef END_BEFORE_CLOSE
	end = ROUNDED_UP(cursor);
#endif
	ceiling = 0;
#ifdef PLAIN_WRITE_OF_CLOSED
	was = cursor;
#endif
	atomic {
#ifndef PLAIN_WRITE_OF_CLOSED
		was = cursor;
#endif
		cursor = CLOSED;
		closed_at = was;
#ifndef GENERATION_KEPT_BY_CLOSE
		generation++;
#endif
#ifndef END_BEFORE_CLOSE
		end = USED_END(was);
#endif
		end = MIN(MAX(end, span_start), span_end);
		assert(!(WATCHING && MACHINE(watched) == machine_id && TICK(PART(watched)) >= end));
		given[machine_id] = given[machine_id] & FROM_TO(0, end);
		ended[machine_id] = end;
		kept_machine = NOT_PINNED;
		kept_start = 0;
		kept_end = 0;
		forget_span();
		locked = false;
		goto idle
	}
}

/*
 * The registry renews the span that is held, or it gives another one: of a machine ID that
 * nobody else has, from when the last span of it ended, or later if others had it
 * meanwhile.  At the end of the run, or before, the span is given back.
 */
proctype Registrar()
{
	byte machine, start, end, was;
	bool leaves;
#ifdef LEAVE_TICK_READ_FIRST
	byte position;
#endif

idle:
	{
		atomic {
			RUNNING && !locked && changes < CHANGES_OF_SPAN;
			changes++;
			locked = true;
			if
			:: kept_machine != NOT_PINNED && kept_end < TICKS ->
				machine = kept_machine;
				start = kept_start;
				end = kept_end + 1;
				keep();
#ifdef REACH
				renewed = true;
#endif
				span_end = end;			/* line_span.c: sf_line_extend_span */
				forget_span();
				locked = false;
				goto idle
			:: true ->
				choose();
				if
				:: end > TICKS ->
					changes--;
					forget_span();
					locked = false;
					goto idle
				:: else
				fi;
#ifdef REACH
				changed_machine = changed_machine || (machine_id != NOT_PINNED && machine_id != machine);
				changed_unopened = changed_unopened || (losses > 0 && !opened && cursor != 0 && machine_id != machine);
				reopened = reopened || IS_CLOSED;
#endif
				leaves = machine_id != machine;
				keep();
				was = ceiling
			:: kept_machine != NOT_PINNED && !IS_CLOSED -> goto leave
			fi
		}
		begin_span();
leave:	close()
	} unless {
		atomic {
			down & (1 << REGISTRAR);
			down = down - (1 << REGISTRAR);
			forget_span();
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
#ifdef SPANS
	machine_id = kept_machine;
	span_start = kept_start;
	span_end = kept_end;
	closed_at = 0;
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
#if LOSSES > 0
	:: atomic {						/* ceiling.c: reopen, to where it releases the lock */
			!locked && opened && losses < LOSSES;
			losses++;
			locked = true;
			written.ceiling = 0;
			flushed.ceiling = 0
		}
		ceiling = 0;
		generation++;
		atomic {
			opened = false;
			locked = false
		}
#endif
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
#ifdef SPANS
		given[0] = FROM_TO(0, FIRST_END);
		ended[0] = FIRST_END;
		run Registrar();
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
