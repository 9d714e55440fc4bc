/*
 * line.h
 *	  A line of positions from which this server issues IDs, in shared memory.
 *
 * There are two, of IDs that are bigint and of IDs that are sno.  They have nothing in
 * common but the code.
 */
#ifndef SF_LINE_H
#define SF_LINE_H

#include "postgres.h"

#include "port/atomics.h"
#include "replication/origin.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "core/timeline.h"
#include "log_limit.h"
#include "stats.h"

typedef enum SfLineKind
{
	SF_LINE_BIGINT,
	SF_LINE_SNO,
} SfLineKind;

#define SF_LINE_COUNT	(SF_LINE_SNO + 1)

typedef struct SfLine
{
	/* Written once, before any backend can see the struct. */
	SfLineKind	kind;
	SfLayout	layout;
	SfSequenceRange range;		/* not yet cut to the layout */
	char		layout_text[SF_LAYOUT_TEXT_SIZE];
	LWLock		lock;

	/*
	 * Whether a registry leases machine IDs, and spans of time to issue in
	 * (span.h).
	 */
	bool		leased;

	/*
	 * The machine ID, or partition, in use, or SF_MACHINE_ID_NOT_PINNED.
	 * Without a registry it changes once, from that to a number, by
	 * compare-and-swap; with one, when the line is given another span.
	 */
	pg_atomic_uint32 machine_id;

	/*
	 * The register, 0 until the line has been opened in this run of the
	 * server, and while a register that was dropped is not found again.  Set
	 * under the lock, after cursor and ceiling.
	 */
	pg_atomic_uint32 origin;

	/*
	 * Not 0 when the register may have lost its value since it was written:
	 * some origin was dropped, and that may have been rolled back
	 * (register.c).  Set by whoever sees the change, and cleared by who
	 * writes the register.
	 */
	pg_atomic_uint32 register_doubtful;

	/*
	 * Changes when the line is moved or changes its timeline, is given
	 * another span, or the register is lost, so that backends drop the leases
	 * that they have of the line as it was.
	 */
	pg_atomic_uint32 generation;

	/*
	 * The latest reading of the wall clock (clock.c), a TimestampTz, or
	 * SF_CLOCK_NOT_SEEN.
	 */
	pg_atomic_uint64 latest_clock;

	/*
	 * snowflake.max_ahead, in microseconds: of the postmaster, or where the
	 * library was not preloaded of the session that was the last to see a
	 * reload (settings.c).  Not each session's own, so that one that is in
	 * the middle of a long statement does not go by a longer one.
	 */
	pg_atomic_uint32 max_ahead;

	/*
	 * Where the line was opened, or its floor was set, an SfInstant; for the
	 * view alone.
	 */
	pg_atomic_uint64 floor;

	/*
	 * The second that is looked at for an overflow (overflow.c): its first
	 * tick, and how many of its ticks are used up.
	 */
	pg_atomic_uint64 overflow_begin;
	pg_atomic_uint64 overflow_ticks;

	SfLogLimit	regression_logged;
	SfLogLimit	overflow_logged;
	SfLogLimit	raise_logged;

	/*
	 * A position; it and those above must not be issued.  Written under the
	 * lock, read without it: a reader that sees an old value asks for a raise
	 * too early, never issues too much, because the ceiling rises; where it
	 * is lowered, line_move.c and the like say why that holds.
	 */
	pg_atomic_uint64 ceiling;

	/*
	 * The span: positions from start on, and below end.  Without a registry
	 * all of them; with one none, at first.  Written under the lock, see
	 * line_span.c.
	 */
	pg_atomic_uint64 span_start;
	pg_atomic_uint64 span_end;

	/*
	 * See core/timeline.h; written under the lock.  wall_safe is a tick, that
	 * a line without timelines has as well, since nothing is issued there
	 * before a floor or a span.
	 */
	pg_atomic_uint64 wall_safe;
	pg_atomic_uint32 drifts;

	/* The cursor as the line was opened or moved: nothing issued since. */
	pg_atomic_uint64 opened;

	/* The cursor as the line was closed. */
	pg_atomic_uint64 closed_at;

	/*
	 * The next free position, on a cache line of its own: it changes with
	 * every lease, while all of the above is read with every lease.  Changed
	 * by compare-and-swap alone, see core/lease.h, but for line_span.c, which
	 * sets it to SF_CURSOR_CLOSED, a value that nobody swaps, and back.  Of a
	 * line with timelines it has the timeline as well.
	 */
	char		pad[PG_CACHE_LINE_SIZE];
	pg_atomic_uint64 cursor;

	/*
	 * Until when those who have not waited leave what is free to those who
	 * have (wait.c), a TimestampTz.  Looked at with each lease, as the cursor
	 * is.
	 */
	pg_atomic_uint64 yield_until;
	char		pad_stats[PG_CACHE_LINE_SIZE - 2 * sizeof(pg_atomic_uint64)];
	SfStats		stats;
} SfLine;

#define SF_CLOCK_NOT_SEEN			((uint64) PG_INT64_MIN)
#define SF_MACHINE_ID_NOT_PINNED	PG_UINT32_MAX

/* The cursor of a line that is closed: the server stops. */
#define SF_CURSOR_CLOSED			PG_UINT64_MAX

/*
 * Make a line, in new memory: not opened, all numbers 0.  The text of the layout is for
 * messages.  Raises nothing.
 */
extern void sf_line_init(SfLine *line, SfLineKind kind, const SfLayout *layout,
						 const char *layout_text, SfSequenceRange range, bool leased, int tranche);

/*
 * Write the machine ID and the bounds of a span: times from one instant to before
 * another.
 */
extern void sf_line_set_span(SfLine *line, uint32 machine_id, TimestampTz from, TimestampTz until);

/* Whether a line goes on in another timeline when the clock steps back. */
static inline bool
sf_line_has_timelines(const SfLine *line)
{
	return line->kind == SF_LINE_SNO;
}

/* The last tick that is issued in. */
static inline uint64
sf_line_last_tick(const SfLine *line)
{
	return sf_line_has_timelines(line) ? SF_TIMELINE_TICKS - 1 : sf_layout_last_tick(&line->layout);
}

/* What a cursor of the line says.  One without timelines may need all of its bits. */
static inline uint64
sf_line_position_of(const SfLine *line, uint64 cursor)
{
	return sf_line_has_timelines(line) ? sf_cursor_position(cursor) : cursor;
}

static inline bool
sf_line_timeline_of(const SfLine *line, uint64 cursor)
{
	return sf_line_has_timelines(line) && sf_cursor_timeline(cursor);
}

/* How far the time of an ID may be ahead of the clock, in microseconds. */
static inline int64
sf_line_max_ahead(SfLine *line)
{
	return pg_atomic_read_u32(&line->max_ahead);
}

/* When the tick of a position begins. */
static inline TimestampTz
sf_line_time(const SfLine *line, uint64 position)
{
	return sf_layout_tick_start(&line->layout, sf_position_tick(&line->layout, position));
}

/* The last tick before that of a position; 0 where there is none. */
static inline uint64
sf_line_tick_before(const SfLine *line, uint64 position)
{
	uint64		tick = sf_position_tick(&line->layout, position);

	return tick > 0 ? tick - 1 : 0;
}

/* The next free position; 0 where there is none any more. */
static inline uint64
sf_line_position(SfLine *line)
{
	uint64		cursor = pg_atomic_read_u64(&line->cursor);

	return cursor == SF_CURSOR_CLOSED ? 0 : sf_line_position_of(line, cursor);
}

/* Whether a tick is after the span. */
static inline bool
sf_line_is_past_span(SfLine *line, uint64 tick)
{
	return tick >= sf_position_tick(&line->layout, pg_atomic_read_u64(&line->span_end));
}

/* Whether the server stops, and issues nothing any more. */
static inline bool
sf_line_is_closed(SfLine *line)
{
	return pg_atomic_read_u64(&line->cursor) == SF_CURSOR_CLOSED;
}

/* Whether the register may have lost what was written to it. */
static inline bool
sf_line_doubts_register(SfLine *line)
{
	return pg_atomic_read_u32(&line->register_doubtful) != 0;
}

/* The register, or InvalidRepOriginId. */
static inline RepOriginId
sf_line_origin(SfLine *line)
{
	return (RepOriginId) pg_atomic_read_u32(&line->origin);
}

/*
 * Whether the line has been opened in this run of the server, and so may have issued IDs,
 * though its register may be missing now.
 */
static inline bool
sf_line_was_opened(SfLine *line)
{
	return pg_atomic_read_u64(&line->cursor) != 0 || sf_line_origin(line) != InvalidRepOriginId;
}

/*
 * Move the cursor, which others may be moving, to a position in its timeline; to an earlier
 * one only if back is true.  The lock is taken.
 */
extern void sf_line_move_cursor(SfLine *line, uint64 position, bool back);

/*
 * Move the cursor, which others may be moving, to the next tick: whatever has been leased, and
 * whatever can still be leased by a backend that has read the cursor before, is in earlier
 * ticks.  The lock is taken.
 */
extern void sf_line_leave_tick(SfLine *line);

/* Let nothing before a position be issued, in any timeline.  The lock is taken. */
extern void sf_line_start_at(SfLine *line, uint64 position);

/* What IDs of a line are called in messages. */
static inline const char *
sf_line_kind_name(SfLineKind kind)
{
	return kind == SF_LINE_SNO ? "sno" : "Snowflake";
}

static inline const char *
sf_line_name(const SfLine *line)
{
	return sf_line_kind_name(line->kind);
}

#endif							/* SF_LINE_H */
