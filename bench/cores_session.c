/*
 * cores_session.c
 *	  The steps of a simulated session, as those of src/generator.  The rules are at the top of
 *	  cores.c.
 */
#include "cores.h"

/* As in wait.c; in us, except MAX_SLICE. */
#define TIMER_SLACK		50
#define MAX_SLACK		5000
#define TIME_TO_WAKE	5000
#define MAX_SLICE		100		/* ms */
#define LONGEST_YIELD	(MAX_SLICE * 1000 + TIME_TO_WAKE)

/* As in clock.c; us. */
#define LATEST_GRAIN	1000

/* The numbers on the cache lines. */
static uint64_t cursor;
static int64_t yield_until;
static int64_t latest_clock;

static uint64_t taken_until;	/* the end of the highest batch */

/*
 * Sessions, as in generator.c
 */

static void begin_transaction(Session *session);
static void begin_attempt(Session *session);
static void begin_call(Session *session);

static int64_t
clock_now(void)
{
	return START + now_ns / 1000;
}

int64_t
tick_length(void)
{
	return layout.tick_length;
}

/* ns until the tick of the held batch has passed; not positive if it has. */
static int64_t
ns_of_tick(const Session *session)
{
	return (session->tick_start + tick_length() - START) * 1000 - now_ns;
}

static bool
can_use_batch(const Session *session)
{
	int64_t		ahead = session->tick_start - session->now;

	if (session->left == 0)
		return false;
	return ahead <= parameters.max_ahead &&
		(ahead > -tick_length() || parameters.mutant == 3);
}

static void
note_use(Session *session)
{
	if (session->first_tick)
		session->used = session->taken - session->left;
	session->first_tick = false;
}

static void
end_transaction(Session *session)
{
	if (session->taken > 0)
		note_use(session);
	session->left = 0;
	session->taken = 0;
	if (counts())
		session->transactions++;
	begin_transaction(session);
}

/* Issue IDs of the batch: in bulk as many as the tick lasts, otherwise one. */
static void
issue(Session *session)
{
	int64_t		cost = parameters.clock + parameters.call;
	int64_t		count = 1;

	if (parameters.ids_min == 0 && parameters.work == 0 && cost > 0)
	{
		count = (ns_of_tick(session) + cost - 1) / cost;
		if (count > session->left)
			count = session->left;
		if (count < 1)
			count = 1;
	}
	if (session->now >= session->tick_start + tick_length() ||
		(count > 1 && (count - 1) * cost >= ns_of_tick(session)))
		fail("the tick of an ID has passed");
	if (session->next <= session->last && session->last != 0)
		fail("the IDs of a session do not increase");
	session->last = session->next + (uint64_t) count - 1;
	session->next += (uint64_t) count;
	session->left -= (uint32_t) count;
	if (counts())
		session->ids += count;
	note_latency(now_ns + parameters.call - session->called_at, 1);
	note_latency(cost, count - 1);
	if (parameters.ids_min > 0)
		session->ids_left--;
	after_exactly(session, parameters.call + (count - 1) * cost, begin_call);
}

static void
complete_call(Session *session)
{
	if (session->waits_since != NEVER)
	{
		session->wait_time += counted(session->waits_since);
		session->waits_since = NEVER;
	}
	session->slept = false;
	session->yield_set = 0;
	issue(session);
}

static void
count_overflow(Session *session)
{
	change_line(session, LINE_CLOCK, complete_call);
}

static void
count_ids(Session *session)
{
	if (sf_batch_ends_tick(&session->terms, &session->batch))
		change_line(session, LINE_COUNTERS, count_overflow);
	else
		complete_call(session);
}

static void
count_batch(Session *session)
{
	change_line(session, LINE_COUNTERS, count_ids);
}

static void
end_wait(Session *session)
{
	if (yield_until == session->yield_set)
		yield_until = 0;
	change_line(session, LINE_COUNTERS, count_batch);
}

static void
hold_batch(Session *session)
{
	int64_t		tick_start = sf_layout_tick_start(&layout, session->batch.tick);
	uint32_t	count = (uint32_t) (session->batch.end - session->batch.start);

	if (session->taken == 0)
		session->first_tick = true;
	else if (tick_start != session->tick_start)
		note_use(session);
	if (session->first_tick)
		session->taken += count;
	session->next = session->batch.start;
	session->left = count;
	session->size = session->terms.size;
	session->tick_start = tick_start;
	if (counts())
	{
		session->batches++;
		session->allocated += count;
	}
}

static void
check_batch(const Session *session)
{
	const SfBatch *batch = &session->batch;

	if (batch->start < taken_until)
		fail("two batches overlap");
	if (batch->end <= batch->start ||
		sf_position_tick(&layout, batch->start) != sf_position_tick(&layout, batch->end - 1) ||
		sf_position_sequence(&layout, batch->end - 1) > range.max)
		fail("a batch is not in its tick");
	if (sf_layout_tick_start(&layout, batch->tick) > clock_now() + parameters.max_ahead)
		fail("a batch is too far ahead of the clock");
	taken_until = batch->end;
}

/* The time that passes after a failed swap, as in sf_back_off. */
static int64_t
back_off(Session *session)
{
	int64_t		longest = parameters.backoff * sf_batch_longest_backoff(++session->failed_in_row);

	return longest > 0 ? draw(session, longest + 1) : 0;
}

/* The line of the cursor belongs to the session: swap it. */
static void
swap_cursor(Session *session)
{
	if (cursor != session->read_cursor && parameters.mutant != 1)
	{
		if (counts())
			session->failed++;
		after(session, back_off(session) + parameters.clock, begin_attempt);
		return;
	}
	check_batch(session);
	session->failed_in_row = 0;
	cursor = session->batch.end;
	hold_batch(session);
	if (session->yield_set != 0)
		change_line(session, LINE_CURSOR, end_wait);
	else
		change_line(session, LINE_COUNTERS, count_batch);
}

static void
try_swap(Session *session)
{
	change_line(session, LINE_CURSOR, swap_cursor);
}

/*
 * Waits, as in wait.c
 */

static bool
is_asked(int64_t until, int64_t now)
{
	return until > now && until <= now + LONGEST_YIELD;
}

/* The clock is read for the next attempt. */
static void
wake(Session *session)
{
	session->slept = true;
	after(session, parameters.clock, begin_attempt);
}

static void
count_wait_time(Session *session)
{
	session->sleep_time += counted(session->sleeps_since);
	session->sleeps_since = NEVER;
	change_line(session, LINE_WAIT_TIME, wake);
}

/* From a millisecond on, a latch sleeps for whole milliseconds. */
static void
go_to_sleep(Session *session)
{
	int64_t		time = session->remaining;

	if (time >= 1000)
		time = time / 1000 < MAX_SLICE ? time / 1000 * 1000 : MAX_SLICE * 1000;
	session->sleeps_since = now_ns;
	after_exactly(session, time * 1000 + parameters.wake + draw(session, parameters.wake_random),
				  count_wait_time);
}

static void
swap_yield(Session *session)
{
	if (!is_asked(yield_until, session->now) || yield_until < session->request_until)
		session->yield_set = yield_until = session->request_until;
	go_to_sleep(session);
}

static void
ask_to_yield(Session *session)
{
	session->request_until = session->now + session->remaining + TIME_TO_WAKE;
	if (!is_asked(yield_until, session->now) || yield_until < session->request_until)
		change_line(session, LINE_CURSOR, swap_yield);
	else
		go_to_sleep(session);
}

/* Sleep, or try again at once if little time is left. */
static void
wait_for_tick(Session *session)
{
	int64_t		allowed = sf_layout_tick_start(&layout, session->batch.tick) - session->allowance;
	int64_t		quarter = parameters.max_ahead / 4;
	int64_t		slack = session->slept ? 0 : quarter < MAX_SLACK ? quarter : MAX_SLACK;

	session->remaining = allowed - session->now + slack;
	if (session->remaining > MAX_SLICE * 1000)
		session->remaining = MAX_SLICE * 1000;
	if (session->remaining >= TIMER_SLACK)
		read_line(session, LINE_CURSOR, ask_to_yield);
	else
		after(session, parameters.clock, begin_attempt);
}

static void
judge_wait(Session *session)
{
	int64_t		allowed = sf_layout_tick_start(&layout, session->batch.tick) - session->allowance;

	session->now = clock_now();
	if (allowed <= session->now)
		after(session, parameters.clock, begin_attempt);
	else if (session->waits_since == NEVER)
	{
		session->waits_since = now_ns;
		if (counts())
			session->waits++;
		change_line(session, LINE_COUNTERS, wait_for_tick);
	}
	else
		wait_for_tick(session);
}

/*
 * A batch, as in take_batch
 */

static uint32_t
wanted_size(const Session *session)
{
	if (session->taken == 0)
		return sf_batch_size_first(session->used, sf_batch_size_max(range));
	return sf_batch_size_next(session->size, session->left,
							  session->now >= session->tick_start + tick_length(),
							  sf_batch_size_max(range));
}

static void
set_terms(Session *session)
{
	SfBatchTerms *terms = &session->terms;

	terms->layout = &layout;
	terms->range = range;
	terms->now_tick = sf_layout_tick_floor(&layout, session->now);
	terms->last_allowed_tick = sf_layout_tick_floor(&layout, session->now + session->allowance) +
		(parameters.mutant == 2);
	terms->last_tick = sf_layout_last_tick(&layout);
	terms->reserved_until = UINT64_MAX;
}

/* The session has read yield_until: compute the batch. */
static void
choose_batch(Session *session)
{
	session->allowance = parameters.max_ahead;
	if (!session->slept && is_asked(yield_until, session->now))
		session->allowance /= 2;
	set_terms(session);
	switch (sf_batch_next(&session->terms, session->read_cursor, &session->batch))
	{
		case SF_BATCH_OK:
			after(session, parameters.batch + parameters.fence, try_swap);
			break;
		case SF_BATCH_AHEAD:
			after(session, 2 * parameters.clock, judge_wait);
			break;
		default:
			fail("the layout is exhausted");
	}
}

static void
read_yield(Session *session)
{
	read_line(session, LINE_CURSOR, choose_batch);
}

static void
swap_latest(Session *session)
{
	if (latest_clock == session->read_latest)
		latest_clock = clock_now();
	read_yield(session);
}

static void
try_latest(Session *session)
{
	change_line(session, LINE_CLOCK, swap_latest);
}

static void
note_reading(Session *session)
{
	session->read_latest = latest_clock;
	if (session->now >= latest_clock && session->now < latest_clock + LATEST_GRAIN)
		read_yield(session);
	else
		after(session, parameters.clock, try_latest);
}

static void
check_clock(Session *session)
{
	read_line(session, LINE_CLOCK, note_reading);
}

/* The session reads the cursor, and then the clock that is never set. */
static void
see_cursor(Session *session)
{
	session->read_cursor = cursor;
	after(session, parameters.clock, check_clock);
}

static void
begin_attempt(Session *session)
{
	session->now = clock_now();
	read_line(session, LINE_CURSOR, see_cursor);
}

/* The clock was read. */
static void
see_clock(Session *session)
{
	session->now = clock_now();
	if (can_use_batch(session))
	{
		issue(session);
		return;
	}
	session->terms.size = wanted_size(session);
	begin_attempt(session);
}

static void
read_clock(Session *session)
{
	session->called_at = now_ns;
	after(session, parameters.clock, see_clock);
}

static void
begin_call(Session *session)
{
	if (parameters.ids_min > 0 && session->ids_left == 0)
		end_transaction(session);
	else
		after_exactly(session, around(session, parameters.work), read_clock);
}

static void
begin_transaction(Session *session)
{
	session->ids_left = parameters.ids_min +
		draw(session, parameters.ids_max - parameters.ids_min + 1);
	after_exactly(session, around(session, parameters.end_work), begin_call);
}

/*
 * Sessions that only read and swap, for comparison with bench/swap.c
 */

static void bare_read(Session *session);

static void
bare_swap(Session *session)
{
	if (cursor == session->read_cursor)
	{
		cursor++;
		session->batches += counts();
	}
	else
		session->failed += counts();
	read_line(session, LINE_CURSOR, bare_read);
}

static void
bare_read(Session *session)
{
	session->read_cursor = cursor;
	change_line(session, LINE_CURSOR, bare_swap);
}

static void
bare_add(Session *session)
{
	session->batches += counts();
	change_line(session, LINE_CURSOR, bare_add);
}

static void
bare_pass(Session *session)
{
	if ((cursor & 1) == (uint64_t) session->core)
	{
		cursor++;
		session->batches += counts();
	}
	change_line(session, LINE_CURSOR, bare_pass);
}

/*
 * The start
 */

static const Step first_steps[] = {begin_transaction, bare_read, bare_add, bare_pass};

void
start_sessions(void)
{
	cursor = sf_position(&layout, (uint64_t) sf_layout_tick_floor(&layout, START), 0);
	latest_clock = START;
	for (int i = 0; i < parameters.cores; i++)
	{
		Session    *session = &sessions[i];

		session->core = i;
		session->random = (uint64_t) parameters.seed * 1000 + (uint64_t) i;
		session->holds = NO_LINE;
		session->waits_since = NEVER;
		session->sleeps_since = NEVER;
		after(session, draw(session, 1000000), first_steps[parameters.bare]);
	}
}
