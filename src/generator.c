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
 * above the cursor, and so above all earlier leases.
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
#include "clock.h"
#include "core/reserve.h"
#include "generator.h"
#include "machine.h"
#include "overflow.h"
#include "settings.h"
#include "shared.h"
#include "wait.h"

/* What a backend has in hand. */
typedef struct Hand
{
	int64		next_id;
	int64		id_step;		/* from one ID to the next */
	uint32		left;			/* IDs not handed out yet */
	uint32		size;			/* positions asked for */
	TimestampTz tick_start;
	int64		tick_length;	/* us; 0 before the first lease */
	uint32		generation;		/* of the line that the lease was taken from */
	pg_atomic_uint32 *line_generation;	/* what it is now; valid if left > 0 */
	int64		last_id;		/* -1 before the first ID */
} Hand;

static Hand hand = {.last_id = -1};

/*
 * Whether the lease's tick has begun no more than one tick ago, and begins no
 * more than max_ahead from now.
 */
static inline bool
tick_is_current(TimestampTz now)
{
	int64		ahead = hand.tick_start - now;

	return ahead <= (int64) sf_max_ahead * 1000 && ahead > -hand.tick_length;
}

/* The size of lease to ask for, from how the last one went. */
static uint32
wanted_size(SfSequenceRange range, TimestampTz now)
{
	return sf_lease_size_next(hand.size, hand.left,
							  now >= hand.tick_start + hand.tick_length,
							  sf_lease_size_max(range));
}

static void
take_in_hand(const SfLayout *layout, uint32 machine_id, const SfLease *lease, uint32 size)
{
	SfFields	fields;

	fields.tick = lease->tick;
	fields.machine = machine_id;
	fields.sequence = sf_position_sequence(layout, lease->start);

	hand.next_id = sf_layout_compose(layout, fields);
	hand.id_step = INT64CONST(1) << layout->sequence_shift;
	hand.left = (uint32) (lease->end - lease->start);
	hand.size = size;
	hand.tick_start = sf_layout_tick_start(layout, lease->tick);
	hand.tick_length = layout->tick_length;
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
report_exhausted(const SfLayout *layout)
{
	TimestampTz end = sf_layout_tick_start(layout, sf_layout_last_tick(layout) + 1);

	ereport(ERROR,
			errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			errmsg("the timestamp bits of the Snowflake layout \"%s\" are used up",
				   sf_settings_layout_text()),
			errdetail("The layout's last tick ends at %s.", timestamptz_to_str(end)),
			errhint("Check the clock of this server, or change snowflake.layout."));
}

static void
take_lease(TimestampTz now)
{
	SfShared   *shared = sf_shared_required();
	SfLine	   *line = &shared->lines[SF_LINE_BIGINT];
	const SfLayout *layout = &line->layout;
	uint32		machine_id;
	SfWait		wait = {0};
	SfLeaseTerms terms = {.layout = layout};

	PreventCommandDuringRecovery("snowflake_nextval()");
	machine_id = sf_machine_id(shared);
	sf_ceiling_open(line, machine_id);
	terms.range = sf_sequence_range_within(layout, line->range);
	terms.size = wanted_size(terms.range, now);

	for (;;)
	{
		uint32		generation = pg_atomic_read_u32(&line->generation);
		uint64		cursor;
		SfLease		lease;

		/* In this order: see move_back in ceiling.c. */
		pg_read_barrier();
		cursor = pg_atomic_read_u64(&line->cursor);
		pg_read_barrier();
		terms.ceiling = pg_atomic_read_u64(&line->ceiling);

		sf_clock_check(line, now);
		terms.now_tick = sf_layout_tick_floor(layout, now);
		terms.last_allowed_tick =
			sf_layout_tick_floor(layout, now + (int64) sf_max_ahead * 1000);
		if (sf_sequence_jitter > 0)
			terms.jitter = (uint32) pg_prng_uint64_range(&pg_global_prng_state,
														 0, sf_sequence_jitter);

		switch (sf_lease_next(&terms, cursor, &lease))
		{
			case SF_LEASE_OK:
				if (!pg_atomic_compare_exchange_u64(&line->cursor, &cursor, lease.end))
					break;		/* somebody was faster; look again */
				if (pg_atomic_read_u32(&line->generation) != generation)
					break;		/* of a line that is no more; it is lost */
				take_in_hand(layout, machine_id, &lease, terms.size);
				hand.generation = generation;
				hand.line_generation = &line->generation;
				count_lease(line, &terms, &lease);
				if (sf_ceiling_is_near(layout, lease.start, terms.ceiling))
					sf_ceiling_raise_early(line, terms.ceiling, now);
				return;
			case SF_LEASE_AHEAD:
				sf_wait_for_clock(line, &wait, sf_layout_tick_start(layout, lease.tick) -
								  (int64) sf_max_ahead * 1000);
				break;
			case SF_LEASE_AT_CEILING:
				if (!sf_ceiling_raise(line, machine_id, terms.ceiling, now))
					sf_wait_for_register(line, &wait);
				break;
			case SF_LEASE_EXHAUSTED:
				report_exhausted(layout);
				break;
		}
		now = GetCurrentTimestamp();
	}
}

int64
sf_generator_next(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (unlikely(hand.left == 0 || !tick_is_current(now) ||
				 hand.generation != pg_atomic_read_u32(hand.line_generation)))
		take_lease(now);
	hand.left--;
	hand.last_id = hand.next_id;
	hand.next_id += hand.id_step;
	return hand.last_id;
}

bool
sf_generator_last(int64 *id)
{
	*id = hand.last_id;
	return hand.last_id >= 0;
}
