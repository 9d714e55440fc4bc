/* DRAFT */
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
#define END			(TICKS * SEQUENCES)
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
Replay standby;

typedef Hand {
	byte next;
	byte end;
	byte generation;
}
Hand hand[BACKENDS];

byte issued = NONE;

bool down[BACKENDS + 1];
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
	d_step {
		issued = NONE;
		written.commit = false;
		flushed.commit = false;
		standby.commit = false;
	}
}

inline issue(id)
{
	assert(id != issued);
	if
	:: issued == NONE -> issued = id
	:: skip
	fi
}

inline lock_shared()
{
	atomic { !locked -> locked = true }
}

inline register_write(position, back)
{
	atomic {
		if
		:: back || written.reg < position -> written.reg = position
		:: else
		fi
	}
	d_step { copy_replay(written, flushed) }
}

inline raise_locked(seen)
{
	if
	:: atomic { ceiling == seen ->
			read_clock();
			raised = POSITION(MIN(MAX(now, TICK(cursor)) + RESERVE, TICKS));
			now = 0 }
		if
		:: raised > seen ->
#ifdef PUBLISH_BEFORE_FLUSH
			d_step { written.reg = MAX(written.reg, raised) }
			ceiling = raised;
			d_step { copy_replay(written, flushed) }
#else
			register_write(raised, false);
			ceiling = raised
#endif
		:: else
		fi;
		raised = 0
	:: ceiling != seen
	fi
}

inline sf_ceiling_raise(seen)
{
	lock_shared();
	raise_locked(seen);
	locked = false
}

inline sf_ceiling_raise_early(seen)
{
	if
	:: lock_shared();
		raise_locked(seen);
		locked = false
	:: skip
	fi
}

inline sf_ceiling_open()
{
	if
	:: opened
	:: !opened ->
		lock_shared();
		if
		:: !opened ->
#ifdef OPEN_AT_CLOCK
			atomic { read_clock(); start = POSITION(now); now = 0 }
#else
			start = written.reg;
#endif
			cursor = MAX(cursor, start);
			atomic { ceiling = MAX(cursor, start); start = 0 }
			opened = true
		:: opened
		fi;
		locked = false
	fi
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
		if
		:: TICK(start) >= TICKS -> start = 0; now = 0; goto idle
		:: else
		fi;
		if
		:: TICK(start) > now + MAX_AHEAD -> start = 0; now = 0; goto again
		:: else
		fi;
		now = 0;
		if
		:: start >= ceiling_seen -> start = 0; goto at_ceiling
		:: else
		fi;
		if
		:: end = start + 1
		:: end = start + 2
		fi;
		end = MIN(end, MIN(POSITION(TICK(start) + 1), ceiling_seen));
		if
		:: cursor == cursor_seen -> cursor = end
		:: else -> start = 0; end = 0; goto again
		fi;
#if MOVES == 0
		assert(start >= hand[me].next);
#endif
		hand[me].next = start;
		hand[me].end = end;
		hand[me].generation = generation_seen;
		issue(hand[me].next);
		hand[me].next++;
		start = 0;
		end = 0;
		generation_seen = 0;
		cursor_seen = 0;
	}
	sf_ceiling_raise_early(ceiling_seen);
	goto idle;
at_ceiling:
	sf_ceiling_raise(ceiling_seen);
	goto again
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
		hand_is_valid(me) -> read_clock();
		if
		:: TICK(hand[me].next) >= now && TICK(hand[me].next) <= now + MAX_AHEAD ->
			issue(hand[me].next);
			hand[me].next++;
			now = 0;
			goto idle
		:: else -> now = 0
		fi
		}
	:: !hand_is_valid(me)
	fi;
	take_lease()
}

proctype Backend(byte me)
{
	byte generation_seen, cursor_seen, ceiling_seen, start, end, raised, now;

idle:
	{
		d_step { generation_seen = 0; cursor_seen = 0; ceiling_seen = 0 }
		sf_generator_next()
	} unless {
		atomic {
			down[me] ->
			down[me] = false;
			hand[me].next = 0;
			hand[me].end = 0;
			hand[me].generation = 0;
			generation_seen = 0;
			cursor_seen = 0;
			ceiling_seen = 0;
			start = 0;
			end = 0;
			raised = 0;
			now = 0;
			goto idle
		}
	}
}

inline wipe()
{
	cursor = 0;
	ceiling = 0;
	opened = false;
	generation = 0;
	locked = false;
	failures++;
	down[0] = true;
	down[1] = true;
#if BACKENDS > 2
	down[2] = true;
#endif
}

active proctype Server()
{
end:
	do
	:: d_step { issued != NONE && !written.commit -> written.commit = true }
	:: d_step { flushed.reg != written.reg || flushed.commit != written.commit -> copy_replay(written, flushed) }
	:: d_step { standby.reg != flushed.reg || standby.commit != flushed.commit -> copy_replay(flushed, standby) }
	:: d_step { failures < FAILURES -> copy_replay(flushed, written); wipe() }
	:: d_step { failures < FAILURES ->
			copy_replay(standby, written);
			copy_replay(standby, flushed);
			if
			:: !standby.commit -> forget()
			:: else
			fi;
			wipe() }
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
