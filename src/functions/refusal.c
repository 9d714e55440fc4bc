/*
 * refusal.c
 *	  Why the next ID of a generator would be refused, or would wait.
 *
 * The steps are the steps of take_batch in issue/generator.c, in the same order, up to the swap of
 * the cursor.  They call the functions that a session calls, so that there is no second list of
 * reasons: each raises its error, whose message is the result.  Steps that open the generator, fix
 * the machine ID or accept the clock are replaced by those parts of them that only refuse.
 *
 * The state can change while it is read, and a moment later the next call may succeed.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "utils/timestamp.h"

#include "core/batch.h"
#include "duration.h"
#include "functions/refusal.h"
#include "issue/clock.h"
#include "issue/generator.h"
#include "issue/lease_error.h"
#include "issue/machine_id.h"
#include "issue/opening_error.h"
#include "issue/reservation.h"

/* The state in which the next call would take a batch. */
typedef struct NextState
{
	int			line;
	uint64		cursors[SF_LINES];
	uint64		reserved_until;
} NextState;

static void
refuse_for_lease(SfShared *shared, SfGenerator *generator)
{
	sf_refuse_moved_back(generator);
	sf_lease_refuse(&shared->lease, sf_generator_name(generator));
}

/* The current state, or the state with which the generator would be opened. */
static NextState
read_next_state(SfGenerator *generator)
{
	NextState	state = {.line = sf_generator_line(generator)};
	SfOpening	status;

	if (!sf_generator_is_open(generator))
	{
		status = sf_opening_positions(generator, state.cursors, &state.line);
		if (status != SF_OPENING_DONE)
			sf_report_not_opened(generator, status);
		return state;			/* nothing is reserved */
	}
	for (int line = 0; line < sf_generator_lines(generator); line++)
		state.cursors[line] = pg_atomic_read_u64(&generator->cursor[line]);
	state.reserved_until = pg_atomic_read_u64(&generator->reserved_until[state.line]);
	return state;
}

/* The tick from which the next batch is taken, and whether it is allowed now. */
static SfBatchStatus
next_batch(SfGenerator *generator, const NextState *state, TimestampTz now, SfBatch *batch)
{
	SfBatchTerms terms = {
		.layout = &generator->layout,
		.range = generator->range,
		.now_tick = sf_layout_tick_floor(&generator->layout, now),
		.last_allowed_tick = sf_layout_tick_floor(&generator->layout,
												  now + sf_generator_max_ahead(generator)),
		.last_tick = sf_layout_last_tick(&generator->layout),
		.reserved_until = state->reserved_until,
		.size = 1,
	};

	return sf_batch_next(&terms, state->cursors[state->line], batch);
}

/*
 * The tick is not allowed yet: a session waits for it, unless the clock has stepped back and the
 * other line can be used.
 */
static const char *
wait_for_tick(SfShared *shared, SfGenerator *generator, const NextState *state, uint64 tick)
{
	TimestampTz start = sf_layout_tick_start(&generator->layout, tick);
	TimestampTz allowed = start - sf_generator_max_ahead(generator);
	TimestampTz other = DT_NOEND;
	SfLineChoice choice = sf_clock_choose_line(generator, state->cursors[state->line],
											   state->reserved_until,
											   state->cursors[!state->line], &other);

	if (choice == SF_LINE_KEEP && tick > sf_layout_last_tick(&generator->layout))
		sf_report_exhausted(generator);
	if (sf_generator_is_closed(generator))
		refuse_for_lease(shared, generator);
	if (choice == SF_LINE_WAIT)
		allowed = Min(allowed, other);
	if (choice == SF_LINE_SWITCH || allowed <= GetCurrentTimestamp())
		return NULL;
	return psprintf("the next ID can be issued in %s",
					sf_duration_text(allowed - GetCurrentTimestamp()));
}

/* Raises the error of the next call, or returns what the call waits for. */
static const char *
check_next(SfShared *shared, SfGenerator *generator)
{
	TimestampTz now = GetCurrentTimestamp();
	NextState	state;
	SfBatch		batch;
	SfBatchStatus status;
	int			holder;

	if (sf_next_machine_id(shared, generator->kind) == SF_MACHINE_ID_NOT_PINNED)
		refuse_for_lease(shared, generator);
	state = read_next_state(generator);
	sf_clock_refuse(generator, Max(state.cursors[0], state.cursors[1]), now);
	status = next_batch(generator, &state, now, &batch);
	if (status == SF_BATCH_AHEAD || status == SF_BATCH_EXHAUSTED)
		return wait_for_tick(shared, generator, &state, batch.tick);
	if (status == SF_BATCH_OK)
		return NULL;
	if (sf_generator_is_past_lease(generator, batch.tick))
		refuse_for_lease(shared, generator);
	holder = sf_lock_holder(&generator->lock);
	return holder == 0 ? NULL :
		psprintf("the process with PID %d is writing the reservation to WAL", holder);
}

/* Whether an error is a refusal of an ID, and not an error of this query. */
static bool
is_refusal(int code)
{
	return code == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE ||
		code == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED ||
		code == ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED ||
		code == ERRCODE_INVALID_PARAMETER_VALUE;
}

/* The called functions raise errors before they have any effect, so nothing has to be undone. */
const char *
sf_refusal(SfShared *shared, SfGenerator *generator)
{
	MemoryContext context = CurrentMemoryContext;
	const char *volatile refusal = NULL;

	if (RecoveryInProgress())
		return "in recovery";
	PG_TRY();
	{
		refusal = check_next(shared, generator);
	}
	PG_CATCH();
	{
		if (!is_refusal(geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		refusal = CopyErrorData()->message;
		FlushErrorState();
	}
	PG_END_TRY();
	return refusal;
}
