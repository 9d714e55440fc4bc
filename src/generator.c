/*
 * generator.c
 *	  Snowflake IDs, one after the other.
 *
 * A backend holds a lease, a range of positions within one tick that nobody
 * else will ever use (core/lease.h), and hands it out by one look at the clock and
 * one addition an ID; of what is shared it only reads a number that hardly ever
 * changes.  The look at the clock is what keeps IDs true: a lease whose tick has
 * passed, or is too far ahead because the clock was set back, is not used.
 *
 * Within a session IDs increase, because leases do: the start of each is at or
 * above the cursor, and so above all earlier leases; and in a later tick if the
 * machine ID is another one (line_span.c).  A sno does so within a timeline
 * (core/timeline.h).
 *
 * When a lease cannot be used, take_lease gets another one.  It changes the
 * state of the backend in one place, when it has the lease: an error before that
 * leaves nothing behind, one after it leaves a lease for the next call.  A lease
 * taken and not used up is simply lost with its tick.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "ceiling.h"
#include "change_over.h"
#include "clock.h"
#include "core/reserve.h"
#include "generator.h"
#include "machine.h"
#include "overflow.h"
#include "settings.h"
#include "shared.h"
#include "wait.h"

/* What a backend has in hand of a line. */
typedef struct Hand
{
	uint64		next;			/* the next ID; of a sno its sequence */
	uint64		step;			/* from one ID to the next */
	uint64		upper;			/* of a sno, but for the metabyte */
	uint32		left;			/* IDs not handed out yet */
	uint32		size;			/* positions asked for */
	TimestampTz tick_start;
	int64		tick_length;	/* us; 0 before the first lease */
	uint32		generation;		/* of the line that the lease was taken from */
	SfLine	   *line;			/* that it was taken from; valid if left > 0 */
} Hand;

/* A line as a backend has seen it. */
typedef struct Sight
{
	uint32		generation;
	uint32		machine_id;
	uint64		cursor;
	uint64		ceiling;
	int64		allowance;		/* us that the next ID may be ahead of the
								 * clock */
} Sight;

static Hand hands[SF_LINE_COUNT];

static int64 last_id = -1;		/* of bigint; -1 before the first */

/*
 * Whether the lease's tick has begun no more than one tick ago, and begins no
 * more than max_ahead from now.
 */
static inline bool
tick_is_current(const Hand *hand, TimestampTz now)
{
	int64		ahead = hand->tick_start - now;

	return ahead <= sf_line_max_ahead(hand->line) && ahead > -hand->tick_length;
}

/* The size of lease to ask for, from how the last one went. */
static uint32
wanted_size(const Hand *hand, SfSequenceRange range, TimestampTz now)
{
	return sf_lease_size_next(hand->size, hand->left,
							  now >= hand->tick_start + hand->tick_length,
							  sf_lease_size_max(range));
}

static void
take_in_hand(Hand *hand, SfLine *line, const Sight *sight, const SfLease *lease, uint32 size)
{
	const SfLayout *layout = &line->layout;
	uint32		sequence = sf_position_sequence(layout, lease->start);

	if (line->kind == SF_LINE_SNO)
	{
		SfSnoFields fields = {
			.units = lease->tick,
			.tick_tock = sf_line_timeline_of(line, sight->cursor),
			.partition = (uint16) sight->machine_id,
		};
		SfSno		id = sf_sno_compose(fields);

		hand->upper = sf_sno_upper(&id);
		hand->next = sequence;
		hand->step = 1;
	}
	else
	{
		SfFields	fields = {.tick = lease->tick,.machine = sight->machine_id,.sequence = sequence};

		hand->next = (uint64) sf_layout_compose(layout, fields);
		hand->step = UINT64CONST(1) << layout->sequence_shift;
	}
	hand->left = (uint32) (lease->end - lease->start);
	hand->size = size;
	hand->tick_start = sf_layout_tick_start(layout, lease->tick);
	hand->tick_length = layout->tick_length;
	hand->generation = sight->generation;
	hand->line = line;
}

static void
count_lease(SfLine *line, const SfLeaseTerms *terms, const SfLease *lease)
{
	sf_stats_add(&line->stats, SF_STAT_LEASES, 1);
	sf_stats_add(&line->stats, SF_STAT_IDS_LEASED, (int64) (lease->end - lease->start));
	if (sf_lease_ends_tick(terms, lease))
		sf_overflow_count(line, lease->tick);
}

static void
report_exhausted(const SfLine *line)
{
	TimestampTz end = sf_layout_tick_start(&line->layout, sf_line_last_tick(line) + 1);

	ereport(ERROR,
			errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			line->kind == SF_LINE_SNO ?
			errmsg("the timestamp bits of type sno are used up") :
			errmsg("the timestamp bits of the Snowflake layout \"%s\" are used up",
				   line->layout_text),
			errdetail("The layout's last tick ends at %s.", timestamptz_to_str(end)),
			line->kind == SF_LINE_SNO ?
			errhint("Check the clock of this server.") :
			errhint("Check the clock of this server, or change snowflake.layout."));
}

/*
 * The next free tick is not allowed yet: wait for it, unless the clock is behind, and
 * the line has another timeline to go on in.  The clock is read again, after the cursor:
 * a reading from before others moved it would look like a step back.
 */
static void
wait_or_change_over(SfLine *line, SfWait *wait, const Sight *sight, const SfLease *lease)
{
	TimestampTz allowed = sf_layout_tick_start(&line->layout, lease->tick) - sight->allowance;
	TimestampTz safe;

	switch (sf_line_judge_clock(line, sight->cursor, GetCurrentTimestamp()))
	{
		case SF_STEP_BACK_NONE:
			sf_wait_for_clock(line, wait, allowed);
			break;
		case SF_STEP_BACK_WAIT:
			if (pg_atomic_read_u64(&line->cursor) != sight->cursor)
				break;			/* somebody has changed over meanwhile */
			safe = sf_layout_tick_start(&line->layout, pg_atomic_read_u64(&line->wall_safe) + 1);
			sf_wait_for_clock(line, wait, Min(allowed, safe));
			break;
		case SF_STEP_BACK_CHANGE:
			if (!sf_line_change_over(line, sight->cursor))
				sf_wait_for_register(line, wait);
			break;
	}
}

typedef enum Look
{
	SEEN,
	NO_MACHINE_ID,				/* none is leased yet */
	REGISTER_LOCKED,			/* the line cannot be opened now */
} Look;

/*
 * Look at the line, and open it if that has not been done.  The generation is read first and
 * the ceiling last: see line_span.c and line_move.c.
 *
 * Changes of the line write the generation after all else but the ceiling, and a ceiling of 0
 * before all else.  The first barrier pairs with the addition to the generation: if that is
 * the new one, so is everything read after it.  The second pairs with what follows a ceiling of
 * 0, the swap of the cursor or a barrier: if cursor or machine ID is the new one, the ceiling is
 * not the old one.  Each is in a litmus test, see test/model/litmus.
 */
static Look
look(SfShared *shared, SfLine *line, Sight *sight)
{
	sight->generation = pg_atomic_read_u32(&line->generation);
	pg_read_barrier();
	sight->machine_id = sf_machine_id(shared, line->kind);
	if (sight->machine_id == SF_MACHINE_ID_NOT_PINNED)
		return NO_MACHINE_ID;
	if (!sf_ceiling_open(line))
		return REGISTER_LOCKED;
	sight->cursor = pg_atomic_read_u64(&line->cursor);
	if (sight->cursor == SF_CURSOR_CLOSED)
		sf_span_report_none(shared, line);
	pg_read_barrier();
	sight->ceiling = pg_atomic_read_u64(&line->ceiling);
	return SEEN;
}

static void
set_terms(SfLeaseTerms *terms, const Sight *sight, TimestampTz now)
{
	terms->ceiling = sight->ceiling;
	terms->now_tick = sf_layout_tick_floor(terms->layout, now);
	terms->last_allowed_tick = sf_layout_tick_floor(terms->layout, now + sight->allowance);
	if (sf_sequence_jitter > 0)
		terms->jitter = (uint32) pg_prng_uint64_range(&pg_global_prng_state, 0, sf_sequence_jitter);
}

/*
 * Take a lease off the line, if the line is still what was seen.
 *
 * The barrier lets the generation be read after the ceiling, and pairs with the one before the
 * new ceiling in sf_line_begin_span: if the ceiling was the new one, so is the generation.  On
 * machines that swap by exclusive loads and stores, the swap alone does not order the two.
 */
static bool
swap_cursor(SfLine *line, const Sight *sight, const SfLease *lease)
{
	uint64		cursor = sight->cursor;

	if (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor,
										sf_cursor(sf_line_timeline_of(line, cursor), lease->end)))
		return false;			/* somebody was faster */
	pg_read_barrier();
	if (pg_atomic_read_u32(&line->generation) != sight->generation)
		return false;			/* of a line that is no more; it is lost */
	return true;
}

static void
take_lease(SfLineKind kind, TimestampTz now)
{
	SfShared   *shared = sf_shared_required();
	SfLine	   *line = &shared->lines[kind];
	Hand	   *hand = &hands[kind];
	SfWait		wait = {0};
	SfLeaseTerms terms = {.layout = &line->layout};

	PreventCommandDuringRecovery(kind == SF_LINE_SNO ? "sno_nextval()" : "snowflake_nextval()");
	terms.range = sf_sequence_range_within(&line->layout, line->range);
	terms.last_tick = sf_line_last_tick(line);
	terms.size = wanted_size(hand, terms.range, now);

	for (;; now = GetCurrentTimestamp())
	{
		Sight		sight;
		SfLease		lease;

		CHECK_FOR_INTERRUPTS();
		switch (look(shared, line, &sight))
		{
			case SEEN:
				break;
			case NO_MACHINE_ID:
				sf_wait_for_span(shared, line, &wait);
				continue;
			case REGISTER_LOCKED:
				sf_wait_for_register(line, &wait);
				continue;
		}

		/*
		 * A reading from before a change over would take the other timeline
		 * to where the clock no longer is.
		 */
		if (sf_line_has_timelines(line))
			now = GetCurrentTimestamp();
		sf_clock_check(line, now);
		sight.allowance = sf_wait_allowance(line, &wait, now);
		set_terms(&terms, &sight, now);

		switch (sf_lease_next(&terms, sf_line_position_of(line, sight.cursor), &lease))
		{
			case SF_LEASE_OK:
				if (!swap_cursor(line, &sight, &lease))
					break;
				take_in_hand(hand, line, &sight, &lease, terms.size);
				sf_wait_end(line, &wait);
				count_lease(line, &terms, &lease);
				if (sf_ceiling_is_near(&line->layout, lease.start, terms.ceiling) || sf_line_doubts_register(line))
					sf_ceiling_raise_early(line, terms.ceiling, now);
				return;
			case SF_LEASE_AHEAD:
				wait_or_change_over(line, &wait, &sight, &lease);
				break;
			case SF_LEASE_AT_CEILING:
				if (sf_line_is_past_span(line, lease.tick))
					sf_wait_for_span(shared, line, &wait);
				else if (!sf_ceiling_raise(line, terms.ceiling, now))
					sf_wait_for_register(line, &wait);
				break;
			case SF_LEASE_EXHAUSTED:
				if (sf_line_judge_clock(line, sight.cursor, now) == SF_STEP_BACK_NONE)
					report_exhausted(line);
				wait_or_change_over(line, &wait, &sight, &lease);
				break;
		}
	}
}

/* What the next ID of a line is made of. */
static inline uint64
issue(SfLineKind kind)
{
	Hand	   *hand = &hands[kind];
	TimestampTz now = GetCurrentTimestamp();
	uint64		next;

	if (unlikely(hand->left == 0 || !tick_is_current(hand, now) ||
				 hand->generation != pg_atomic_read_u32(&hand->line->generation)))
		take_lease(kind, now);
	hand->left--;
	next = hand->next;
	hand->next += hand->step;
	return next;
}

int64
sf_generator_next(void)
{
	last_id = (int64) issue(SF_LINE_BIGINT);
	return last_id;
}

void
sf_generator_forget_last(void)
{
	last_id = -1;
}

bool
sf_generator_last(int64 *id)
{
	*id = last_id;
	return last_id >= 0;
}

SfSno
sf_generator_next_sno(uint8 metabyte)
{
	uint16		sequence = (uint16) issue(SF_LINE_SNO);

	return sf_sno_of(hands[SF_LINE_SNO].upper | (uint64) metabyte << 16, sequence);
}
