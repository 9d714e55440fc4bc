/*
 * horizon.pml
 *	  The horizon as a model, of which spin tries every run.
 *
 * The promise: a row that becomes visible after a horizon was returned to a reader of its database,
 * and whose ID was issued in the transaction that writes the row or checked by the guard, does not
 * have an ID below the horizon; and the horizon of a database never decreases, not even over a
 * crash.
 *
 * How to read it: see generator.pml.  A step is one access to shared memory, as there.  A row is
 * visible from the step in which its transaction leaves the process array, or from a later one, in
 * which a callback of another extension commits it elsewhere; a reader's next statement begins after
 * the step in which its horizon is returned, at once.
 *
 * Simplifications compared with C, and the reasons for which nothing is lost by them:
 *
 * - Time, clocks and batches: as in generator.pml.  A session may ask for another batch at any
 *   time, even if it holds one.  The state that outlives a crash is on disk in the step in which it
 *   is written.  The durable number is never lost.
 * - A session whose batch is refused or whose swap fails is at "idle" then, where it may wait for
 *   any length of time.  There, its slot holds the first ID of its transaction, and no other ID.
 * - The checker watches one row, as generator.pml watches one ID.
 * - The promise does not cover rows that are committed elsewhere after a crash of this server.  Here
 *   they never appear.
 * - One transaction of a run is prepared.  Its transaction ID is in progress from before its slot
 *   is set.  World commits it at any time, or never.
 * - There is no limit on the number of transactions or horizons; cursors end them.
 * - With BUFFERS, a write to a slot or to the shared maximum reaches other processes any time
 *   later, and with the next barrier at the latest.  A swap is no barrier.  Only the last write to
 *   a slot is kept in the buffer; a run in which another process sees the previous write is the one
 *   in which that write left the buffer earlier.  Without BUFFERS a write and the barrier after it
 *   are one step, since a delayed write is the same as a write that was made later.
 * - With GUARD, a session also writes rows with keys that come from anywhere, each checked by the
 *   guard.  After an error of the guard the transaction may continue, from a savepoint.
 * - With CHANGES, the generator gets another lease of any machine ID, or is closed, and may then
 *   get a lease.  A lease may end below the reservation; otherwise its end is left out.  A start of
 *   the server may be one with another machine ID.
 * - With EVICTION, the entry of a database in the table of returned horizons may be given to
 *   another database at any time.  Then the horizon may decrease, which is not checked.
 * - With PROMISES, readers promise horizons to other servers, by any proposals.  Horizons are then not
 *   compared, since an answer is not above its proposal.
 * - snowflake_move_back() is left out.  It closes the generator, which CHANGES has.  After the next
 *   start, horizons that were returned before and are above the new start are void.
 * - Sessions and readers do not read the fields of the generator out of order; litmus/ checks that.
 *
 * Macros: the bounds below; BUFFERS, GUARD, EVICTION, PROMISES and REACH, see there.  READ_BACKWARD lets a
 * reader read cursor, machine ID and reserved_until in the opposite order.  Any other introduces one
 * mistake, for which spin has to find a row that breaks the promise, a horizon that decreases, or a
 * session that holds the horizon back while it waits.  PREPARED_FIRST is two: the order in which a
 * reader looks at slots and entries matters only if entries are added without the lock.
 * test/model/run shows with which macros it is run.
 */

#ifndef WRITERS
#define WRITERS		2
#endif
#ifndef READERS
#define READERS		1
#endif
#ifndef DATABASES
#define DATABASES	1
#endif
#ifndef TICKS
#define TICKS		2
#endif
#ifndef SEQUENCES
#define SEQUENCES	2			/* positions of a tick */
#endif
#ifndef CRASHES
#define CRASHES		0
#endif
#ifndef PREPARES
#define PREPARES	0			/* 0 or 1 */
#endif
#ifndef CHANGES
#define CHANGES		0			/* of the lease, also the end of one */
#endif
#ifndef FLOORS
#define FLOORS		0			/* calls of snowflake_set_floor */
#endif

#define POSITION(tick)	((tick) * SEQUENCES)
#define TICK(position)	((position) / SEQUENCES)
#define NEXT_TICK(position)	POSITION(TICK(position) + 1)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/* If there are three, the middle one is the first, so that others are lower and higher. */
#ifndef MACHINES
#if CHANGES > 0
#define MACHINES		3
#else
#define MACHINES		1			/* 1 or 3 */
#endif
#endif
#define COMPOSE(position, machine) \
	((TICK(position) * MACHINES + (machine)) * SEQUENCES + (position) % SEQUENCES)

#define NONE			255		/* no ID; as a slot it does not hold the horizon back */
#define EMPTY			254		/* nothing in a buffer */

#if CHANGES > 0 || FLOORS > 0
#define CHANGING
#endif

/* Shared memory: the generator. */
byte cursor;
byte reserved_until;
byte generation = 1;				/* 1: not open; otherwise odd while a change is in progress */
byte machine_id = MACHINES / 2;
bool locked;
#define OPENED			(generation > 1)
#define IS_ODD(value)	((value) % 2 == 1)
#if CHANGES > 0
byte lease_start;				/* a tick */
bool closed;					/* lease_end is 0 */
#define IS_CLOSED	closed
#else
#define IS_CLOSED	false
#endif

/* Shared memory: the horizon. */
byte slot[WRITERS] = NONE;
byte candidate;					/* the greatest horizon that any cursor has allowed */
byte returned[DATABASES];		/* the last horizon of a database */
byte bound;						/* horizons of earlier runs of the server were not above it */
bool horizon_locked;
#if PREPARES > 0
byte prepared_slot = NONE;
bool filled;					/* prepared slots, from the locks */
#endif

/* Buffers of writes. */
#ifdef BUFFERS
byte slot_buffer[WRITERS] = EMPTY;
byte candidate_buffer = EMPTY;
#endif

/* The state that survives a crash. */
byte origin;
#ifdef PROMISES
byte promise;
#endif
#if PREPARES > 0
byte prepared_lock = NONE;		/* the first ID that the lock of the prepared transaction carries */
byte preparing;					/* the writer */
mtype = { not_prepared, being_prepared, prepared, ended };
mtype transaction = not_prepared;
#define IN_PROGRESS	(transaction == being_prepared || transaction == prepared)
#endif

/* The state of the checker. */
byte promised[DATABASES];		/* the greatest horizon that was returned */
byte watched = NONE;			/* the ID of the row */
byte watched_writer;
#define PREPARED_WRITER	WRITERS
#define DATABASE(writer)	((writer) % DATABASES)

byte crashes;
byte changes;
byte floors;

/* The processes that have not noticed a crash yet, one bit each. */
byte down;
#define RUNNING	(down == 0)
#define READER	WRITERS
#define CHANGER	(WRITERS + READERS)
#ifdef CHANGING
#define PROCESSES	(CHANGER + 1)
#else
#define PROCESSES	CHANGER
#endif

#ifdef REACH
bool held_back;
bool held_back_by_prepared;
bool filled_from_lock;
bool guard_refused;
bool guard_passed_under_lock;
bool unsure;
bool raised;
#endif

/* The least ID that can still be taken from a cursor, of whatever machine ID is next. */
#ifdef HORIZON_OF_NEXT
#define HORIZON_ID(cursor, machine)	COMPOSE(cursor, machine)
#else
#define HORIZON_ID(cursor, machine) \
	((cursor) % SEQUENCES == 0 -> COMPOSE(cursor, 0) : COMPOSE((cursor) - 1, machine) + 1)
#endif

#ifdef BUFFERS
#define write_slot(value)	slot_buffer[me] = (value)
#define SLOT_AS_WRITTEN		(slot_buffer[me] != EMPTY -> slot_buffer[me] : slot[me])
#else
#define write_slot(value)	slot[me] = (value)
#define SLOT_AS_WRITTEN		slot[me]
#endif

/* World makes writes leave the buffer. */
inline drain_slot(writer)
{
#ifdef BUFFERS
	if
	:: slot_buffer[writer] != EMPTY ->
		slot[writer] = slot_buffer[writer];
		slot_buffer[writer] = EMPTY
	:: else
	fi
#else
	skip
#endif
}

inline drain_candidate()
{
#ifdef BUFFERS
	if
	:: candidate_buffer != EMPTY ->
		candidate = candidate_buffer;
		candidate_buffer = EMPTY
	:: else
	fi
#else
	skip
#endif
}

/*
 * Publish an ID as the slot, if it is less than the transaction's first ID, with a full barrier.
 */
inline publish()
{
	write_slot(MIN(first, id));
#ifndef NO_BARRIER_OF_WRITER
	drain_slot(me)
#endif
}

/* The slot is the transaction's first ID. */
inline withdraw()
{
	write_slot(first)
}

/* A row with the ID is written. */
inline write_row()
{
	if
	:: watched == NONE ->
		watched = id;
		watched_writer = me
	:: true
	fi
}

/* The transaction leaves the process array. */
inline become_visible(writer, database)
{
	if
	:: watched != NONE && watched_writer == writer ->
		assert(watched >= promised[database]);
		watched = NONE
	:: else
	fi
}

inline vanish(writer)
{
	if
	:: watched != NONE && watched_writer == writer -> watched = NONE
	:: else
	fi
}

inline forget_seen()
{
	id = 0;
	generation_seen = 0;
	machine_id_seen = 0;
	cursor_seen = 0;
	reserved_until_seen = 0;
	start = 0;
	end = 0
}

inline drop_batch()
{
	held_next = 0;
	held_end = 0;
	held_machine = 0;
	held_generation = 0
}

/* The first ID of the batch that is held is issued; the slot covers it. */
inline issue_next()
{
	id = COMPOSE(held_next, held_machine);
	first = MIN(first, id);
	write_row();
	id = 0;
	held_next++;
	if
	:: held_next == held_end -> drop_batch()
	:: else
	fi
}

#ifdef GUARD
#define KEYS	(COMPOSE(POSITION(TICKS), 0))

inline any_key()
{
	id = 0;
	do
	:: id + 1 < KEYS -> id++
	:: break
	od
}
#endif

inline any_tick(tick)
{
	if
	:: tick = 0
	:: tick = 1
#if TICKS > 2
	:: tick = 2
#endif
	fi
}

/*
 * issue/reservation.c: open_locked, extend_locked
 *
 * The reservation is on disk, also if the generator is opened at the start of a lease.  The
 * candidate and the bound are raised before the generation is written, as all others.
 */
inline raise_bound()
{
#ifdef PROMISES
#ifndef PROMISE_FORGOTTEN
	returned[0] = promise;
	candidate = MAX(candidate, promise)
#else
	skip
#endif
#elif !defined(NO_BOUND)
	bound = COMPOSE(cursor, 0);
	candidate = MAX(candidate, bound)
#else
	skip
#endif
}

inline open_generator()
{
	cursor = origin;
#if CHANGES > 0
	cursor = MAX(cursor, POSITION(lease_start));
#ifndef OPEN_NOT_DURABLE
	origin = cursor;
#endif
#endif
	reserved_until = (IS_CLOSED -> 0 : cursor);
#ifndef BOUND_AFTER_OPEN
	raise_bound();
#endif
	generation = 2
}

inline extend_reservation(position)
{
	reserved_until = MAX(position, cursor);
	reserved_until = MIN(NEXT_TICK(reserved_until), POSITION(TICKS));
	origin = MAX(origin, reserved_until)
}

/* The greatest horizon that may have been returned in the database of a session. */
#ifdef BOUND_FORGOTTEN
#define RETURNED_OR_BOUND	(returned[DATABASE(me)] > 0 -> returned[DATABASE(me)] : bound)
#else
#define RETURNED_OR_BOUND	MAX(returned[DATABASE(me)], bound)
#endif

#ifdef TAKE_IN_CHANGE
#define IS_CHANGING	false
#else
#define IS_CHANGING	IS_ODD(generation)
#endif

/* A session: its transactions, one after another. */
proctype Writer(byte me)
{
	byte first = NONE;			/* the transaction's ID in its slot */
	byte held_next, held_end, held_machine, held_generation;
	byte generation_seen, machine_id_seen, cursor_seen, reserved_until_seen, start, end, id;

idle:
	{
		/* Sleeping, or between two statements: the slot holds the transaction's first ID. */
		assert(SLOT_AS_WRITTEN >= first);
		if
		:: atomic { RUNNING && OPENED && !IS_CHANGING -> generation_seen = generation }
			goto take
		:: atomic { RUNNING && !OPENED && !locked -> open_generator() }
#ifdef BOUND_AFTER_OPEN
			atomic { raise_bound() }
#endif
			goto idle
		:: atomic {
				RUNNING && held_next < held_end && held_generation == generation ->
				issue_next()
			}
			goto idle
#ifdef GUARD
		:: atomic { RUNNING && OPENED -> any_key() }
			goto guard
#endif
		:: atomic {
				RUNNING && first != NONE ->
#ifdef CLEARED_BEFORE_COMMIT
				write_slot(NONE)
			}
			atomic {
#endif
				become_visible(me, DATABASE(me))
			}
			goto clear
		:: atomic {				/* the row is elsewhere, and not visible yet */
				RUNNING && first != NONE ->
#ifdef CLEARED_IN_CALLBACK
				write_slot(NONE)
#else
				skip
#endif
			}
			goto elsewhere
		:: atomic {
				RUNNING && first != NONE -> vanish(me)
			}
			goto clear
#ifdef WORKER_ENDS_FIRST
		:: atomic {				/* a parallel worker that has issued the IDs ends */
				RUNNING && first != NONE && SLOT_AS_WRITTEN == first -> write_slot(NONE)
			}
			atomic { become_visible(me, DATABASE(me)) }
			goto clear
#endif
#if PREPARES > 0
		:: atomic {
				RUNNING && first != NONE && transaction == not_prepared ->
				transaction = being_prepared;
				preparing = me
			}
			goto prepare
#endif
		fi;

		/* take_batch, after its read of the generation */
take:
#ifdef CHANGING
		machine_id_seen = machine_id;
		cursor_seen = cursor;
		atomic {
#else
		atomic {
			machine_id_seen = machine_id;
			cursor_seen = cursor;
#endif
			reserved_until_seen = reserved_until;
			any_tick(start);
			start = MAX(cursor_seen, POSITION(start));
			if
			:: start >= POSITION(TICKS) ->
				forget_seen();
				goto idle
			:: start < POSITION(TICKS) && start >= reserved_until_seen -> goto extend
			:: else
			fi;
			if
			:: end = start + 1
			:: end = start + 2
			fi;
			end = MIN(end, MIN(NEXT_TICK(start), reserved_until_seen));
			reserved_until_seen = 0
		}
#ifdef PUBLISHED_AFTER_SWAP
		atomic {
			if
			:: cursor != cursor_seen ->
				forget_seen();
				goto idle
			:: else -> cursor = end
			fi
		}
#endif
		atomic {
			id = COMPOSE(start, machine_id_seen);
			publish();
			id = 0
		}
		atomic {
#ifndef PUBLISHED_AFTER_SWAP
			if
			:: cursor != cursor_seen ->
#ifndef NOT_WITHDRAWN
				withdraw();
#endif
				forget_seen();
				goto idle
			:: else -> cursor = end
			fi;
#endif
#if defined(CHANGING) && !defined(NO_LOOK_AFTER_SWAP)
			cursor_seen = 0
		}
		atomic {
			if
			:: generation != generation_seen ->
				withdraw();
				forget_seen();
				goto idle
			:: else
			fi;
#endif
			held_next = start;
			held_end = end;
			held_machine = machine_id_seen;
			held_generation = generation_seen;
			issue_next();
			forget_seen();
			goto idle
		}

extend:
		atomic {
			!locked;
			if
			:: reserved_until == reserved_until_seen && !IS_CLOSED -> extend_reservation(start)
			:: else
			fi;
			forget_seen();
			goto idle
		}

#ifdef GUARD
		/* horizon/horizon.c: sf_horizon_admit of a row with a key */
guard:
		atomic {
			if
#ifdef COVERED_BY_ANY_SLOT
			:: first != NONE ->
#else
			:: first <= id ->
#endif
				write_row();
				id = 0;
				goto idle
			:: else
			fi
#ifndef GUARD_PUBLISHED_FIRST
			;
#ifndef GUARD_WITHOUT_LOOK
			if
			:: candidate > id -> goto under_lock
			:: else
			fi
#else
			skip
#endif
#endif
		}
		atomic { publish() }
		atomic {
#ifndef GUARD_WITHOUT_LOOK
			if
			:: candidate > id -> goto under_lock
			:: else
			fi;
#endif
			first = id;
			write_row();
			id = 0;
			goto idle
		}
under_lock:
		atomic {
#ifndef GUARD_UNLOCKED
			!horizon_locked;
#endif
			if
			:: RETURNED_OR_BOUND > id ->
				id = 0;
#ifdef REACH
				guard_refused = true;
#endif
				goto refused
			:: else
			fi;
			publish();
			first = id;
			write_row();
			id = 0;
#ifdef REACH
			guard_passed_under_lock = true;
#endif
			goto idle
		}
refused:
		atomic {
#ifdef GUARD_NOT_WITHDRAWN
			first = SLOT_AS_WRITTEN;
#else
			withdraw();
#endif
			goto idle
		}
#endif

#if PREPARES > 0
		/* PRE_PREPARE; PREPARE after the transaction is on disk */
prepare:
#ifdef OWN_CLEARED_FIRST
		atomic {
			write_slot(NONE);
			drain_slot(me)
		}
#endif
		atomic { prepared_lock = first }
		atomic {
#ifndef PREPARED_FIRST
			!horizon_locked;
#endif
			prepared_slot = first
		}
		if
		:: atomic {
				transaction = prepared;
				if
				:: watched != NONE && watched_writer == me -> watched_writer = PREPARED_WRITER
				:: else
				fi
			}
		:: atomic {
				transaction = ended;
				prepared_lock = NONE;
				vanish(me)
			}
		fi;
		goto clear;
#endif

		/* a callback of another extension, after the transaction has left the process array */
elsewhere:
		atomic { become_visible(me, DATABASE(me)) }
clear:
		atomic {
			first = NONE;
			write_slot(NONE);
#ifndef BATCH_KEPT
			drop_batch();
#endif
			goto idle
		}
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			first = NONE;
			drop_batch();
			forget_seen();
			goto idle
		}
	}
}

/*
 * Whether the machine ID may be of another state than the cursor, or the cursor is not on disk.  A
 * cursor above the reservation is one that a lease, a close or a floor has moved.
 */
#if defined(NO_SECOND_LOOK)
#define UNSURE	(cursor_seen > reserved_until_seen || IS_ODD(generation_seen))
#elif defined(ODD_TRUSTED)
#define UNSURE	(cursor_seen > reserved_until_seen || generation != generation_seen)
#elif defined(NO_LOOK_AT_RESERVATION)
#define UNSURE	(IS_ODD(generation_seen) || generation != generation_seen)
#else
#define UNSURE	(cursor_seen > reserved_until_seen || IS_ODD(generation_seen) || generation != generation_seen)
#endif
#ifdef NOT_DURABLE
#define ALLOWED_UNSURE	cursor_seen
#else
#define ALLOWED_UNSURE	MIN(cursor_seen, reserved_until_seen)
#endif

#ifdef ONE_MAXIMUM
#define RETURNED	returned[0]
#else
#define RETURNED	returned[database]
#endif

inline scan(writer)
{
	if
	:: DATABASE(writer) == database -> value = MIN(value, slot[writer])
	:: else
	fi
}

/* A prepared slot is dropped if its transaction has ended. */
inline scan_prepared()
{
#if PREPARES > 0
	atomic {
		if
		:: IN_PROGRESS && DATABASE(preparing) == database ->
#ifdef REACH
			held_back_by_prepared = held_back_by_prepared || prepared_slot < value;
#endif
			value = MIN(value, prepared_slot)
		:: !IN_PROGRESS -> prepared_slot = NONE
		:: else
		fi
	}
#else
	skip
#endif
}

inline forget_read()
{
	database = 0;
	value = 0;
	generation_seen = 0;
	cursor_seen = 0;
	machine_id_seen = 0;
	reserved_until_seen = 0;
#ifdef PROMISES
	proposal = 0
#endif
}

#ifdef PROMISES
inline any_proposal()
{
	do
	:: proposal < COMPOSE(POSITION(TICKS), 0) -> proposal++
	:: break
	od
}
#endif

/* snowflake_horizon(), or snowflake_promise_horizon() */
proctype Reader(byte me)
{
	byte database, value, generation_seen, cursor_seen, machine_id_seen, reserved_until_seen;
#ifdef PROMISES
	byte proposal;
#endif

idle:
	{
		if
#ifndef NOT_OPENED
		:: atomic {
				RUNNING && !OPENED && !locked -> open_generator()
			}
#ifdef BOUND_AFTER_OPEN
			atomic { raise_bound() }
#endif
			goto idle
		:: atomic {
				RUNNING && OPENED && !horizon_locked -> horizon_locked = true
#else
		:: atomic {
				RUNNING && !horizon_locked -> horizon_locked = true
#endif
#if DATABASES > 1
				if
				:: database = 0
				:: database = 1
				fi;
#endif
#if PREPARES > 0
				if
#ifndef NOT_FILLED
				:: !filled && transaction == prepared && prepared_slot == NONE ->
					prepared_slot = prepared_lock;
#ifdef REACH
					filled_from_lock = true;
#endif
					filled = true
#endif
				:: else -> filled = true
				fi
#endif
			}
		fi;
#ifdef CHANGING
		generation_seen = generation;
#ifdef READ_BACKWARD
		reserved_until_seen = reserved_until;
		machine_id_seen = machine_id;
		cursor_seen = cursor;
#else
		cursor_seen = cursor;
		machine_id_seen = machine_id;
		reserved_until_seen = reserved_until;
#endif
		atomic {
#else
		atomic {
			generation_seen = generation;
			cursor_seen = cursor;
			machine_id_seen = machine_id;
			reserved_until_seen = reserved_until;
#endif
			if
			:: UNSURE -> value = COMPOSE(POSITION(TICK(ALLOWED_UNSURE)), 0)
			:: else -> value = HORIZON_ID(cursor_seen, machine_id_seen)
			fi;
#ifdef REACH
			unsure = unsure || UNSURE;
#endif
			generation_seen = 0;
			cursor_seen = 0;
			machine_id_seen = 0;
			reserved_until_seen = 0
		}
#ifdef PROMISES
		atomic { any_proposal() }
#endif
		atomic {
#ifdef CANDIDATE_NOT_USED
			candidate = MAX(candidate, value)
#else
			value = MAX(candidate, value);
#ifdef PROMISES
			value = MIN(proposal, value);
#endif
#ifdef BUFFERS
			candidate_buffer = MAX(candidate, value);
#ifndef NO_BARRIER_OF_READER
			drain_candidate()
#endif
#else
			candidate = MAX(candidate, value)
#endif
#endif
		}
#ifdef PREPARED_FIRST
		scan_prepared();
#endif
		atomic { scan(0) }
#if WRITERS > 1
		atomic { scan(1) }
#endif
#ifdef SCANNED_TWICE			/* to compare, and then for the value */
		atomic { value = (value < candidate -> NONE : value) }
		atomic { scan(0) }
#if WRITERS > 1
		atomic { scan(1) }
#endif
#endif
#ifndef PREPARED_FIRST
		scan_prepared();
#endif
		atomic {
#ifdef REACH
			held_back = held_back || value < candidate;
#endif
#ifdef MAXIMUM_LEFT_OUT
			RETURNED = value;
#else
			RETURNED = MAX(RETURNED, value);
#endif
#ifdef PROMISES
			value = MIN(RETURNED, proposal);
#ifdef PROMISE_NOT_NOTED
			RETURNED = 0;
#endif
#ifdef ANSWERED_FIRST
			promised[0] = MAX(promised[0], value);
#endif
			drain_candidate();
			horizon_locked = false
		}
#ifndef PROMISE_NOT_WRITTEN
		atomic { promise = MAX(promise, value) }
#endif
		atomic {
			promised[0] = MAX(promised[0], value);
			forget_read();
			goto idle
		}
#else
#ifndef EVICTION
			assert(RETURNED >= promised[database]);
#endif
			promised[database] = MAX(promised[database], RETURNED);
			drain_candidate();
			forget_read();
			horizon_locked = false;
			goto idle
		}
#endif
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			forget_read();
			goto idle
		}
	}
}

#ifdef CHANGING

/* state/generator_state.c: sf_begin_change, sf_end_change */
inline begin_change()
{
#ifndef NOT_ODD
	if
	:: OPENED -> generation++
	:: else
	fi
#else
	skip
#endif
}

inline end_change()
{
	if
#ifdef NOT_ODD
	:: OPENED -> generation = generation + 2
#else
	:: OPENED -> generation++
#endif
	:: else
	fi
}

/* The registry worker, or an administrator. */
proctype Changer(byte me)
{
	byte position, machine;
	bool leaves;

idle:
	{
		if
#if CHANGES > 0
		:: atomic {
				RUNNING && !locked && changes < CHANGES ->
				changes++;
				locked = true;
				if
				:: machine = 2
				:: machine = 1
				:: machine = 0
				fi;
				any_tick(position)
			}
			goto lease
		:: atomic {
				RUNNING && !locked && changes < CHANGES && !IS_CLOSED ->
				changes++;
				locked = true
			}
			goto close
#endif
#if FLOORS > 0
		:: atomic {
				RUNNING && OPENED && !locked && floors < FLOORS ->
				floors++;
				locked = true;
				any_tick(position);
				position = POSITION(position)
			}
			goto raise
#endif
		fi;

#if CHANGES > 0
		/* issue/change.c: sf_change_lease */
lease:
		atomic {
			leaves = machine != machine_id;
			begin_change()
		}
#ifdef EVEN_EARLY
		atomic { end_change() }
#endif
		atomic {
			machine_id = machine;
			lease_start = position;
			closed = false
		}
		atomic {
			if
			:: OPENED && leaves -> cursor = MAX(MIN(NEXT_TICK(cursor), POSITION(TICKS)), POSITION(position))
			:: OPENED && !leaves -> cursor = MAX(cursor, POSITION(position))
			:: else
			fi
		}
		atomic {
			if				/* the end of the lease */
			:: true
			:: reserved_until = MIN(reserved_until, NEXT_TICK(POSITION(position)))
			fi
		}
#ifndef EVEN_EARLY
		atomic { end_change() }
#endif
		goto unlock;

		/* sf_change_close */
close:
		atomic { begin_change() }
		atomic {
			closed = true;
			reserved_until = 0
		}
		atomic { cursor = (OPENED -> MIN(NEXT_TICK(cursor), POSITION(TICKS)) : cursor) }
		atomic { end_change() }
		goto unlock;
#endif

#if FLOORS > 0
		/* sf_raise_floor */
raise:
#ifndef FLOOR_NOT_DURABLE
		atomic { origin = MAX(origin, position) }
#endif
		atomic { reserved_until = MAX(reserved_until, position) }
		atomic { cursor = MAX(cursor, position) }
		atomic {
			generation = generation + 2;
#ifdef REACH
			raised = true;
#endif
		}
#endif
unlock:
		atomic {
			locked = false;
			position = 0;
			machine = 0;
			leaves = false;
			goto idle
		}
	} unless {
		atomic {
			down & (1 << me);
			down = down - (1 << me);
			position = 0;
			machine = 0;
			leaves = false;
			goto idle
		}
	}
}

#endif

/* Shared memory is new. */
inline restart()
{
	cursor = 0;
	reserved_until = 0;
	generation = 1;
	locked = false;
#if CHANGES > 0
	closed = false;
#ifndef LEASE_START_KEPT
	lease_start = 0;
#endif
#endif
	slot[0] = NONE;
#if WRITERS > 1
	slot[1] = NONE;
#endif
	candidate = 0;
	bound = 0;
	returned[0] = 0;
#if DATABASES > 1
	returned[1] = 0;
#endif
	horizon_locked = false;
#ifdef BUFFERS
	slot_buffer[0] = EMPTY;
#if WRITERS > 1
	slot_buffer[1] = EMPTY;
#endif
	candidate_buffer = EMPTY;
#endif
#if PREPARES > 0
	prepared_slot = NONE;
#ifdef FILLED_IN_RECOVERY
	filled = true;
#else
	filled = false;
#endif
	if
	:: transaction == being_prepared ->
		transaction = ended;
		prepared_lock = NONE
	:: else
	fi;
	if
	:: watched != NONE && watched_writer != PREPARED_WRITER -> watched = NONE
	:: else
	fi;
#else
	watched = NONE;
#endif
	down = (1 << PROCESSES) - 1
}

/* All other events of a server. */
active proctype World()
{
end:
	do
	:: atomic {
			RUNNING && crashes < CRASHES ->
			crashes++;
#if MACHINES > 1
			if
			:: machine_id = 0
			:: machine_id = 1
			:: machine_id = 2
			fi;
#endif
			restart()
		}
#if PREPARES > 0
	:: atomic {					/* COMMIT PREPARED */
			RUNNING && transaction == prepared ->
			become_visible(PREPARED_WRITER, DATABASE(preparing));
			transaction = ended;
			prepared_lock = NONE
		}
#endif
#ifdef EVICTION
	:: atomic {					/* horizon/horizon.c: the entry is given to another database */
			RUNNING && !horizon_locked && returned[0] > 0 ->
			bound = MAX(bound, returned[0]);
			returned[0] = 0
		}
#endif
#ifdef BUFFERS
	:: atomic { slot_buffer[0] != EMPTY -> drain_slot(0) }
#if WRITERS > 1
	:: atomic { slot_buffer[1] != EMPTY -> drain_slot(1) }
#endif
	:: atomic { candidate_buffer != EMPTY -> drain_candidate() }
#endif
#ifdef REACH
	:: atomic { REACH -> assert(!(REACH)) }
#endif
	od
}

init
{
	atomic {
		run Writer(0);
#if WRITERS > 1
		run Writer(1);
#endif
		run Reader(READER);
#if READERS > 1
		run Reader(READER + 1);
#endif
#ifdef CHANGING
		run Changer(CHANGER);
#endif
	}
}
