/* DRAFT 2 */
#ifndef BACKENDS
#define BACKENDS	2
#endif
#ifndef TICKS
#define TICKS		4
#endif
#ifndef FAILURES
#define FAILURES	2
#endif
#ifndef MOVES
#define MOVES		0
#endif
#define SEQUENCES	2
#define MAX_AHEAD	1
#ifndef RESERVE
#define RESERVE		2
#endif
#define NONE		255

#define POSITION(tick)	((tick) * SEQUENCES)
#define TICK(position)	((position) / SEQUENCES)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/* shared memory */
byte cursor;
byte ceiling;
bool opened;
byte generation;
bool locked;

/* WAL */
typedef Replay {
	byte reg;
	bool commit;
}
Replay written;
Replay flushed;
#ifdef STANDBY
Replay standby;
#endif

typedef Hand {
	byte next;
	byte end;
	byte generation;
}
Hand hand[BACKENDS];

byte issued = NONE;

byte down;
byte failures;
byte moves;

inline copy_replay(from, to)
{
	to.reg = from.reg;
	to.commit = from.commit;
}

inline read_clock()
{
	if
	:: now = 0
	:: now = 1
#if TICKS > 2
	:: now = 2
#endif
#if TICKS > 3
	:: now = 3
#endif
#if TICKS > 4
	:: now = 4
#endif
#if TICKS > 5
	:: now = 5
#endif
	fi
}

inline forget()
{
		issued = NONE;
		written.commit = false;
		flushed.commit = false;
#ifdef STANDBY
		standby.commit = false;
#endif
}

inline issue()
{
	assert(hand[me].next != issued);
	if
	:: issued == NONE -> issued = hand[me].next
	:: true
	fi;
	hand[me].next++;
#ifndef SESSION
	if
	:: hand[me].next == hand[me].end -> hand[me].next = 0; hand[me].end = 0; hand[me].generation = 0
	:: else
	fi;
#endif
}

inline raise_locked(seen)
{
		atomic {
			if
			:: ceiling != seen -> goto unlock
			:: else
			fi
		}
		atomic {
			read_clock();
			raised = POSITION(MIN(MAX(now, TICK(cursor)) + RESERVE, TICKS));
			now = 0;
			if
			:: raised <= seen -> raised = 0; goto unlock
			:: else
			fi
		}
		d_step { written.reg = MAX(written.reg, raised) }
#ifdef PUBLISH_BEFORE_FLUSH
		ceiling = raised;
		d_step { copy_replay(written, flushed) }
#else
		d_step { copy_replay(written, flushed) }
		d_step { ceiling = raised; raised = 0 }
#endif
unlock:
		locked = false
}


inline sf_ceiling_open()
{
	if
	:: atomic { opened && down == 0 }
	:: atomic { !opened && down == 0 -> reset_seen() };
		atomic { !locked -> locked = true };
		if
		:: !opened ->
#ifdef OPEN_AT_CLOCK
			atomic { read_clock(); start = POSITION(now); now = 0 }
#else
			start = written.reg;
#endif
			cursor = MAX(cursor, start);
			d_step { ceiling = MAX(cursor, start); start = 0 }
			opened = true
		:: opened
		fi;
		locked = false
	fi
}

inline reset_seen()
{
	generation_seen = 0; cursor_seen = 0; ceiling_seen = 0; start = 0; end = 0; now = 0
}

inline take_lease()
{
	sf_ceiling_open();
again:
	generation_seen = generation;
	cursor_seen = cursor;
	ceiling_seen = ceiling;
	atomic {
		read_clock();
		start = (now > TICK(cursor_seen) -> POSITION(now) : cursor_seen);
#ifdef JITTER
		if
		:: start % SEQUENCES == 0 -> start++
		:: true
		fi;
#endif
		if
		:: TICK(start) >= TICKS -> reset_seen(); goto idle
		:: else
		fi;
		if
		:: TICK(start) > now + MAX_AHEAD -> reset_seen(); goto idle
		:: else
		fi;
		now = 0;
		if
		:: start >= ceiling_seen -> start = 0; generation_seen = 0; cursor_seen = 0; early = false; goto raise
		:: else
		fi;
		if
		:: end = start + 1
		:: end = start + 2
		fi;
		end = MIN(end, MIN(POSITION(TICK(start) + 1), ceiling_seen));
		if
		:: cursor == cursor_seen -> cursor = end
		:: else -> reset_seen(); goto again
		fi;
#ifdef RECHECK
	}
	atomic {
		if
		:: generation != generation_seen -> reset_seen(); goto again
		:: else
		fi;
#endif
#ifdef SESSION
		assert(start >= hand[me].next);
#endif
		hand[me].next = start;
		hand[me].end = end;
		hand[me].generation = generation_seen;
		issue();
		start = 0;
		end = 0;
		generation_seen = 0;
		cursor_seen = 0;
		if
		:: early = true; goto raise
		:: ceiling_seen = 0; goto idle
		fi
	}
raise:
	atomic {
		if
		:: !locked -> locked = true
		:: early -> early = false; ceiling_seen = 0; goto idle
		fi
	}
	raise_locked(ceiling_seen);
	atomic {
		ceiling_seen = 0;
		if
		:: early -> early = false; goto idle
		:: else -> goto again
		fi
	}
}

#ifdef KEEP_OLD_LEASES
#define hand_is_valid(me)	(hand[me].next < hand[me].end)
#else
#define hand_is_valid(me)	(hand[me].next < hand[me].end && hand[me].generation == generation)
#endif

inline sf_generator_next()
{
	if
	:: atomic {
		hand_is_valid(me) && down == 0 -> read_clock();
		if
		:: TICK(hand[me].next) >= now && TICK(hand[me].next) <= now + MAX_AHEAD ->
			issue();
			now = 0;
			goto idle
		:: else -> now = 0
		fi
		}
	:: !hand_is_valid(me) && down == 0
	fi;
	take_lease()
}

proctype Backend(byte me)
{
	byte generation_seen, cursor_seen, ceiling_seen, start, end, raised, now;
	bool early;

idle:
	{
		sf_generator_next()
	} unless {
		atomic {
			down & (1 << me) ->
			down = down - (1 << me);
			hand[me].next = 0;
			hand[me].end = 0;
			hand[me].generation = 0;
			reset_seen();
			raised = 0;
			early = false;
			goto idle
		}
	}
}

#if MOVES > 0
#define ADMIN	BACKENDS

#ifdef OPENED_BY_ORIGIN
#define NOT_OPENED	!opened
#else
#define NOT_OPENED	cursor == 0
#endif
active proctype Administrator()
{
	byte position, before;

idle:
	{
		atomic { moves < MOVES && down == 0 -> moves++;
			if
			:: position = POSITION(0)
			:: position = POSITION(1)
			:: position = POSITION(2)
			:: position = POSITION(3)
			fi
		}
		atomic { !locked -> locked = true };
		if
		:: atomic { NOT_OPENED -> written.reg = position; forget() }
			d_step { copy_replay(written, flushed) }
		:: atomic { !(NOT_OPENED) && position > cursor }
			d_step { written.reg = MAX(written.reg, position) }
			d_step { copy_replay(written, flushed) }
			cursor = MAX(cursor, position);
			ceiling = MAX(ceiling, position)
		:: else ->
			d_step { before = ceiling; ceiling = 0 }
#ifdef GENERATION_FIRST
			generation++;
#endif
			atomic {
				if
				:: TICK(cursor) - TICK(position) <= RESERVE -> goto refuse
				:: else
				fi;
				cursor = position;
#ifndef GENERATION_FIRST
			}
			atomic { generation++;
#endif
				forget()
			}
			written.reg = position;
			d_step { copy_replay(written, flushed) }
			ceiling = position;
			goto unlock;
refuse:		ceiling = before
		fi;
unlock:		atomic { locked = false; before = 0; position = 0 }
		goto idle
	} unless {
		atomic {
			down & (1 << ADMIN) ->
			down = down - (1 << ADMIN);
			before = 0;
			position = 0;
			goto idle
		}
	}
}
#else
#define ADMIN	(BACKENDS - 1)
#endif

inline wipe()
{
	cursor = 0;
	ceiling = 0;
	opened = false;
	generation = 0;
	locked = false;
	failures++;
	down = (1 << (ADMIN + 1)) - 1
}

active proctype Server()
{
end:
	do
	:: d_step { down == 0 && (flushed.reg != written.reg || flushed.commit != written.commit) -> copy_replay(written, flushed) }
	:: d_step { down == 0 && failures < FAILURES -> copy_replay(flushed, written); wipe() }
#ifdef STANDBY
	:: d_step { down == 0 && issued != NONE && !written.commit -> written.commit = true }
	:: d_step { down == 0 && (standby.reg != flushed.reg || standby.commit != flushed.commit) -> copy_replay(flushed, standby) }
	:: d_step { down == 0 && failures < FAILURES ->
			copy_replay(standby, written);
			copy_replay(standby, flushed);
			if
			:: !standby.commit -> forget()
			:: else
			fi;
			wipe() }
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
