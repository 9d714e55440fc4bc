/*
 * generator.c
 *	  Issues Snowflake IDs in a session.
 *
 * A session holds a batch, a range of positions within one tick that no other session
 * will ever use (core/batch.h).  To issue an ID of the batch it needs one reading of the clock and
 * one addition; from shared memory it reads only the generation and max_ahead, which rarely change.
 * The reading of the clock keeps the times of IDs correct: a batch whose tick has passed, or is too
 * far ahead because the clock was set back, is not used.
 *
 * The IDs of a session increase, because its batches do: each batch starts at or above the cursor,
 * and so above all earlier batches, and in a later tick if the machine ID has changed
 * (issue/change.c).  IDs of type sno increase within a line (core/line.h).
 *
 * A batch ends with its transaction.  So the IDs of a transaction are above all IDs that this
 * server had issued, in any session, when the transaction took its first one, and a client whose
 * transactions are run by different sessions has increasing IDs too.  A session takes no more IDs
 * than its transaction is expected to use (core/demand.h), so that few are lost when it ends.
 *
 * If a batch cannot be used, take_batch takes another one.  It changes the state of the session in
 * one place, when it has the batch: an error before that has no effect, and after an error past
 * that point, the next call in the transaction uses the batch.  The rest of a batch is lost when
 * its tick has passed or its transaction ends.
 *
 * issue/change.c explains what a session may rely on while the generator changes.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "core/demand.h"
#include "core/hot.h"
#include "horizon/horizon.h"
#include "issue/clock.h"
#include "issue/generator.h"
#include "issue/machine_id.h"
#include "issue/opening_error.h"
#include "issue/reservation.h"
#include "issue/shared.h"
#include "issue/wait.h"

/* The batch that this session holds of a generator. */
typedef struct HeldBatch
{
	uint64		next;			/* the next ID; for sno, its sequence */
	uint64		step;			/* from one ID to the next */
	uint64		upper;			/* for sno, the upper bits without the
								 * metabyte */
	uint32		left;			/* IDs not issued yet */
	TimestampTz tick_start;
	int64		tick_length;	/* us; 0 before the first batch */
	uint32		generation;		/* generation of the generator when the batch
								 * was taken */
	SfGenerator *generator;		/* its generator; valid if left > 0 */
	TimestampTz taken_at;
	SfDemand	demand;
} HeldBatch;

/* The state of a generator that this session has read. */
typedef struct StateRead
{
	uint32		switches;
	int			line;			/* the active one */
	uint32		generation;
	uint32		machine_id;
	uint64		cursor;
	uint64		reserved_until;
	int64		allowance;		/* us that the next ID may be ahead of the
								 * clock */
} StateRead;

static HeldBatch held_batches[SF_GENERATOR_COUNT];

static int64 last_id = -1;		/* of bigint; -1 before the first */

/*
 * Whether the batch's tick has begun no more than one tick ago, and begins no
 * more than max_ahead from now.
 */
static inline bool
tick_is_current(const HeldBatch *held, TimestampTz now)
{
	int64		ahead = held->tick_start - now;

	return ahead <= sf_generator_max_ahead(held->generator) && ahead > -held->tick_length;
}

static inline bool
is_of_generation(const HeldBatch *held)
{
	return held->generation == pg_atomic_read_u32(&held->generator->generation);
}

static void
prepare_transaction(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_PRE_PREPARE)
		sf_horizon_prepare();
}

/*
 * The transaction has ended, and all callbacks of transactions have run: see horizon/README.md.
 * The slot and the batches end together, so that an ID that such a callback issues is published
 * too.
 */
static SF_HOT void
end_transaction(ResourceReleasePhase phase, bool commit, bool top_level, void *argument)
{
	if (phase != RESOURCE_RELEASE_BEFORE_LOCKS ||
		CurrentResourceOwner != TopTransactionResourceOwner)
		return;
	sf_horizon_end();
	for (int kind = 0; kind < SF_GENERATOR_COUNT; kind++)
	{
		HeldBatch  *held = &held_batches[kind];

		sf_demand_end_transaction(&held->demand, held->left);
		held->left = 0;
	}
}

/*
 * PostgreSQL calls the newest callbacks first.  These are registered before any session exists, so
 * the callbacks of modules that sessions load, which can issue IDs and write rows, have run before.
 */
void
sf_transactions_init(void)
{
	RegisterXactCallback(prepare_transaction, NULL);
	RegisterResourceReleaseCallback(end_transaction, NULL);
}

/* The first ID of a batch of type bigint. */
static int64
first_id(const SfGenerator *generator, const StateRead *state, const SfBatch *batch)
{
	SfFields	fields = {
		.tick = batch->tick,
		.machine = state->machine_id,
		.sequence = sf_position_sequence(&generator->layout, batch->start)
	};

	return sf_layout_compose(&generator->layout, fields);
}

static void
hold_batch(HeldBatch *held, SfGenerator *generator, const StateRead *state,
		   const SfBatch *batch, const SfDemand *demand, bool contended, TimestampTz now)
{
	const SfLayout *layout = &generator->layout;
	uint32		count = (uint32) (batch->end - batch->start);

	if (generator->kind == SF_GENERATOR_SNO)
	{
		SfSnoFields fields = {
			.units = batch->tick,
			.tick_tock = state->line == 1,
			.partition = (uint16) state->machine_id,
		};
		SfSno		id = sf_sno_compose(fields);

		held->upper = sf_sno_upper(&id);
		held->next = sf_position_sequence(layout, batch->start);
		held->step = 1;
	}
	else
	{
		held->next = (uint64) first_id(generator, state, batch);
		held->step = UINT64CONST(1) << layout->sequence_shift;
	}
	held->left = count;
	held->tick_start = sf_layout_tick_start(layout, batch->tick);
	held->tick_length = layout->tick_length;
	held->generation = state->generation;
	held->generator = generator;
	held->taken_at = now;
	held->demand = *demand;
	sf_demand_add_batch(&held->demand, count, contended, held->tick_start > now);
}

static void
count_batch(SfGenerator *generator, const SfBatchTerms *terms, const SfBatch *batch)
{
	sf_counter_add(&generator->stats, SF_COUNTER_BATCHES, 1);
	sf_counter_add(&generator->stats, SF_COUNTER_IDS_ALLOCATED,
				   (int64) (batch->end - batch->start));
	if (sf_batch_ends_tick(terms, batch))
		sf_wait_note_used_up(generator, batch->tick);
}

/* If the clock or the floor was wrong, the generator is at the end although the clock is not. */
void
sf_report_exhausted(SfGenerator *generator)
{
	uint64		last_tick = sf_layout_last_tick(&generator->layout);
	TimestampTz end = sf_layout_tick_start(&generator->layout, last_tick + 1);
	bool		was_wrong = GetCurrentTimestamp() + sf_generator_max_ahead(generator) <
	sf_layout_tick_start(&generator->layout, last_tick);

	ereport(ERROR,
			errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			generator->kind == SF_GENERATOR_SNO ?
			errmsg("reached the last timestamp of type sno") :
			errmsg("reached the last timestamp of the Snowflake layout \"%s\"",
				   generator->layout_text),
			was_wrong ?
			errdetail("The last tick of the layout ends at %s.  The clock is before that time.  The clock was wrong before, or the floor was set to that time.",
					  timestamptz_to_str(end)) :
			errdetail("The last tick of the layout ends at %s.", timestamptz_to_str(end)),
			was_wrong ?
			errhint("Check the clock of this server.  If it is correct, use %s() with a time after the newest existing ID.  With an earlier time, IDs are issued twice.",
					sf_back_function(generator->kind)) :
			generator->kind == SF_GENERATOR_SNO ?
			errhint("Check the clock of this server.") :
			errhint("Check the clock of this server.  If it is correct, change \"snowflake.layout\".  IDs of two layouts can be equal, and do not sort by time."));
}

/*
 * The next free tick of the active line is not allowed yet, or is after the last one: wait for it,
 * unless the clock has stepped back and the other line can be used.
 */
static void
wait_or_switch(SfShared *shared, SfGenerator *generator, SfWait *wait, const StateRead *state,
			   const SfBatch *batch)
{
	TimestampTz allowed = sf_layout_tick_start(&generator->layout, batch->tick) - state->allowance;
	TimestampTz other;
	uint32		switches = state->switches;
	uint64		other_cursor;
	SfLineChoice choice;

	pg_read_barrier();			/* the active line is raised last (change.c) */
	other_cursor = pg_atomic_read_u64(&generator->cursor[!state->line]);
	choice = sf_clock_choose_line(generator, state->cursor, state->reserved_until, other_cursor,
								  &other);

	if (choice == SF_LINE_KEEP && batch->tick > sf_layout_last_tick(&generator->layout))
		sf_report_exhausted(generator);
	if (sf_generator_is_closed(generator))
	{
		sf_wait_for_lease(shared, generator, wait);
		return;
	}
	switch (choice)
	{
		case SF_LINE_KEEP:
			sf_wait_for_clock(generator, wait, allowed);
			break;
		case SF_LINE_WAIT:
			sf_wait_for_clock(generator, wait, Min(allowed, other));
			break;
		case SF_LINE_SWITCH:
			(void) pg_atomic_compare_exchange_u32(&generator->switches, &switches, switches + 1);
			break;
	}
}

/* Open the generator, or wait a moment if that cannot be done now. */
static void
open_or_wait(SfGenerator *generator, SfWait *wait)
{
	if (!sf_generator_open(generator))
		sf_wait_for_writer(generator, wait);
}

/*
 * The generation is odd.  The machine ID is fixed before the generator is opened, so that a server
 * without one reports that.
 */
static void
await_generation(SfShared *shared, SfGenerator *generator, SfWait *wait)
{
	if (sf_generator_is_open(generator))
		sf_wait_for_writer(generator, wait);
	else if (sf_machine_id(shared, generator->kind) == SF_MACHINE_ID_NOT_PINNED)
		sf_wait_for_lease(shared, generator, wait);
	else
		open_or_wait(generator, wait);
}

/*
 * Read the state of the generator (invariant 4).  If it is not open or is being changed, open it or
 * wait a moment, and return false.
 *
 * The barrier pairs with the barrier in sf_end_change: later reads return nothing older than the
 * change that has written the generation.
 */
static SF_HOT bool
read_or_wait(SfShared *shared, SfGenerator *generator, SfWait *wait, StateRead *state)
{
	state->switches = pg_atomic_read_u32(&generator->switches);
	state->line = (int) (state->switches & 1);
	state->generation = pg_atomic_read_u32(&generator->generation);
	if (unlikely(state->generation & 1))
	{
		await_generation(shared, generator, wait);
		return false;
	}
	pg_read_barrier();
	state->machine_id = sf_machine_id(shared, generator->kind);
	state->cursor = pg_atomic_read_u64(&generator->cursor[state->line]);
	state->reserved_until = pg_atomic_read_u64(&generator->reserved_until[state->line]);
	if (unlikely(state->machine_id == SF_MACHINE_ID_NOT_PINNED))
	{
		sf_wait_for_lease(shared, generator, wait);
		return false;
	}
	return true;
}

static void
set_terms(SfBatchTerms *terms, const StateRead *state, uint32 jitter, TimestampTz now)
{
	terms->reserved_until = state->reserved_until;
	terms->now_tick = sf_layout_tick_floor(terms->layout, now);
	terms->last_allowed_tick = sf_layout_tick_floor(terms->layout, now + state->allowance);
	if (jitter > 0)
		terms->jitter = (uint32) pg_prng_uint64_range(&pg_global_prng_state, 0, jitter);
}

/*
 * Take a batch, if the generator has not changed since its state was read.
 *
 * The barrier lets the generation be read after the swap, and pairs with the barrier in
 * sf_begin_change: if the swapped cursor was written by a change, the generation differs from the
 * generation that was read.  On machines that swap by exclusive loads and stores, the swap alone
 * does not order the two.
 */
static bool
swap_cursor(SfGenerator *generator, const StateRead *state, const SfBatch *batch)
{
	uint64		cursor = state->cursor;

	Assert(batch->start < batch->end && batch->end <= state->reserved_until);
	Assert(batch->start >= cursor);
	if (!pg_atomic_compare_exchange_u64(&generator->cursor[state->line], &cursor, batch->end))
		return false;			/* another session was faster */
	pg_read_barrier();
	return pg_atomic_read_u32(&generator->generation) == state->generation;
}

/*
 * As swap_cursor, but the first ID of the batch is published before.  If the swap fails, as *failed
 * others did before, the session backs off.
 */
static bool
publish_and_swap(SfGenerator *generator, const StateRead *state, const SfBatch *batch,
				 uint32 *failed)
{
	bool		is_bigint = generator->kind == SF_GENERATOR_BIGINT;
	int64		before = SF_NO_ID;

	if (is_bigint)
		before = sf_horizon_publish(first_id(generator, state, batch));
	if (swap_cursor(generator, state, batch))
		return true;
	if (is_bigint)
		sf_horizon_withdraw(before);
	sf_back_off(++*failed);
	return false;
}

static void
check_may_issue(SfGeneratorKind kind)
{
	const char *function = kind == SF_GENERATOR_SNO ? "sno_nextval()" : "snowflake_id()";

	PreventCommandDuringRecovery(function);
	if (IsParallelWorker())
		ereport(ERROR,
				errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				errmsg("cannot execute %s during a parallel operation", function));
}

/*
 * The reservation ends before the batch: extend it.  If the flush takes longer than the time that
 * is reserved, the extension has passed when it is published, and the caller extends it again, for
 * longer.  snowflake.max_wait limits the time of all these attempts.
 */
static void
extend_or_wait(SfGenerator *generator, SfWait *wait, const StateRead *state, TimestampTz now)
{
	uint64		extended;

	sf_wait_begin(wait);
	if (!sf_reservation_extend(generator, state->line, state->reserved_until, now))
		sf_wait_for_writer(generator, wait);
	extended = pg_atomic_read_u64(&generator->reserved_until[state->line]);
	if (extended > state->reserved_until &&
		extended <= sf_position_at(&generator->layout, GetCurrentTimestamp()))
		sf_wait_limit(generator, wait);
}

static SF_HOT void
take_batch(SfGeneratorKind kind, TimestampTz now, SfWait *wait)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator = &shared->generators[kind];
	HeldBatch  *held = &held_batches[kind];
	SfBatchTerms terms = {.layout = &generator->layout,.range = generator->range};
	SfDemand	demand = held->demand;
	uint32		failed = 0;

	check_may_issue(kind);
	terms.last_tick = sf_layout_last_tick(&generator->layout);
	sf_demand_end_batch(&demand, held->left, now - held->taken_at, held->tick_length);
	terms.size = sf_demand_size(&demand, sf_demand_max(terms.range));

	for (;; now = GetCurrentTimestamp())
	{
		StateRead	state;
		SfBatch		batch;

		CHECK_FOR_INTERRUPTS();
		if (!read_or_wait(shared, generator, wait, &state))
			continue;

		/*
		 * A reading from before a switch would move the other line to a time
		 * at which the clock no longer is.
		 */
		if (sf_generator_lines(generator) > 1)
			now = GetCurrentTimestamp();
		sf_clock_check(generator, now);
		state.allowance = sf_wait_allowance(generator, wait, now);
		set_terms(&terms, &state, pg_atomic_read_u32(&shared->sequence_jitter), now);

		switch (sf_batch_next(&terms, state.cursor, &batch))
		{
			case SF_BATCH_OK:
				if (!publish_and_swap(generator, &state, &batch, &failed))
					break;
				hold_batch(held, generator, &state, &batch, &demand, failed > 0, now);
				sf_wait_end(generator, wait);
				count_batch(generator, &terms, &batch);
				if (sf_reservation_is_near(&generator->layout, batch.start, terms.reserved_until,
										   generator->reserved.length))
					sf_reservation_extend_early(generator, state.line, terms.reserved_until, now);
				return;
			case SF_BATCH_AHEAD:
			case SF_BATCH_EXHAUSTED:
				wait_or_switch(shared, generator, wait, &state, &batch);
				break;
			case SF_BATCH_NOT_RESERVED:
				if (sf_generator_is_past_lease(generator, batch.tick))
					sf_wait_for_lease(shared, generator, wait);
				else
					extend_or_wait(generator, wait, &state, now);
				break;
		}
	}
}

SfGenerator *
sf_await_open(SfShared *shared)
{
	SfGenerator *generator = &shared->generators[SF_GENERATOR_BIGINT];
	SfWait		wait = {0};
	uint64		reserved_until;
	TimestampTz now;

	while (!sf_generator_is_open(generator))
		open_or_wait(generator, &wait);
	reserved_until = pg_atomic_read_u64(&generator->reserved_until[0]);
	if (reserved_until < sf_generator_position(generator) && !sf_generator_is_closed(generator))
	{
		now = GetCurrentTimestamp();
		sf_clock_check(generator, now);
		(void) sf_reservation_extend(generator, 0, reserved_until, now);
	}
	return generator;
}

/* The next ID of a generator; for sno, its sequence. */
static inline uint64
issue_position(SfGeneratorKind kind)
{
	HeldBatch  *held = &held_batches[kind];
	TimestampTz now = GetCurrentTimestamp();
	uint64		next;

	if (unlikely(held->left == 0 || !tick_is_current(held, now) || !is_of_generation(held)))
	{
		SfWait		wait = {0};

		take_batch(kind, now, &wait);
		while (unlikely(!is_of_generation(held)))
			take_batch(kind, GetCurrentTimestamp(), &wait);
	}
	Assert(held->left > 0);
	held->left--;
	next = held->next;
	held->next += held->step;
	return next;
}

SF_HOT int64
sf_next_id(void)
{
	last_id = (int64) issue_position(SF_GENERATOR_BIGINT);
	return last_id;
}

void
sf_forget_last_id(void)
{
	last_id = -1;
}

bool
sf_last_id(int64 *id)
{
	*id = last_id;
	return last_id >= 0;
}

SF_HOT SfSno
sf_next_sno(uint8 metabyte)
{
	uint16		sequence = (uint16) issue_position(SF_GENERATOR_SNO);

	return sf_sno_of(held_batches[SF_GENERATOR_SNO].upper | (uint64) metabyte << 16, sequence);
}
