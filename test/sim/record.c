/*
 * record.c
 *	  What the oracles remember: the call of each process, what administrators do, and the starts of
 *	  the server.
 */
#include "record.h"

OF_PROCESS Call call = {0};
int			run;
TimestampTz moved_to[2];
bool		move_begun[2];
int			changes[2];
int			restoring[2];
static TimestampTz floors[2];
static bool move_done[2];

SfGenerator *
generator_of(SfGeneratorKind kind)
{
	return &((SfShared *) shmem)->generators[kind];
}

const char *
name_of_kind(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno" : "bigint";
}

int64
microseconds(int64 milliseconds)
{
	return milliseconds * 1000;
}

/* A process is between the first and the last write of the layout, which is 0 meanwhile. */
static bool writes_layout;

/* Whether a durable number of a kind is lost. */
bool
oracle_is_lost(SfGeneratorKind kind)
{
	if (kind == SF_GENERATOR_SNO)
		return in_memory[NUMBER(TICK)] == 0 || in_memory[NUMBER(TOCK)] == 0;
	return in_memory[NUMBER(BIGINT)] == 0 || in_memory[NUMBER(LAYOUT)] == 0;
}

bool
layout_is_recorded(void)
{
	SfPackedLayout packed = sf_layout_pack(sf_layout_in_force());

	return in_memory[NUMBER(EPOCH)] == packed.epoch && in_memory[NUMBER(LAYOUT)] == packed.fields;
}

/* The state of a line in memory, as an instant. */
TimestampTz
end_of(int number)
{
	return (TimestampTz) (in_memory[number] + (uint64) SF_UNIX_EPOCH);
}

/*
 * The number on disk was lowered: the generator is closed since.  With weak memory, other
 * sessions may not see this before the move ends.
 */
static bool
is_lowered(SfGeneratorKind kind)
{
	return move_begun[kind] && !weak &&
		lowered_at[kind == SF_GENERATOR_BIGINT ? NUMBER(BIGINT) : NUMBER(TICK)] != 0;
}

Call *
oracle_begin(SfGeneratorKind kind, bool counts)
{
	if (kind == SF_GENERATOR_SNO && machine_used[SF_GENERATOR_BIGINT] < 0)
		sno_was_first = true;
	call = (Call)
	{
		.kind = kind,
			.counts = counts,
			.in_recovery = in_recovery,
			.quiet = quiet && sf_settings_max_wait < 0,
			.moved = move_done[kind] || is_lowered(kind),
			.lost = oracle_is_lost(kind),
			.stays_lost = oracle_is_lost(kind) && !in_recovery && !writes_layout,
			.floor = floors[kind],
			.reached = reached_time(kind),
			.difference = accepted_difference(kind),
			.began = now,
			.steps_back = steps_back,
			.run = run,
			.promised = promised,
			.ends = promise_ends,
			.returned = returned[MyDatabaseId],
			.calls_ended = calls_ended,
			.changes = changes[kind],
			.other_line_is_free = kind == SF_GENERATOR_SNO && other_line_is_free(),
			.lease_start = generator_of(kind)->lease_start.value,
			.bigint_machine = generator_of(SF_GENERATOR_SNO)->machine_id.value == SF_MACHINE_ID_NOT_PINNED ?
			machine_used[SF_GENERATOR_BIGINT] : -1,
	};
	current->least_clock = PG_INT64_MAX;
	current->greatest_clock = PG_INT64_MIN;
	current->waited = 0;
	if (weak)
		full_barrier();			/* a new statement reads nothing old */
	return &call;
}

/*
 * What administrators do
 */

void
oracle_floor_begins(SfGeneratorKind kind, TimestampTz instant)
{
	if (kind == SF_GENERATOR_BIGINT && call.lost)
	{
		horizons_of_new_layout();
		oracle_layout_accepted();
	}
	changes[kind]++;
	restoring[kind]++;
	call.restores = true;
	oracle_time(kind, instant + generator_of(kind)->layout.tick_length);
}

void
oracle_floor(SfGeneratorKind kind, TimestampTz instant)
{
	changes[kind]++;
	restoring[kind]--;
	call.restores = false;
	if (call.moved)
		fail("P6: a floor was set after a move back");
	if (!move_begun[kind])
		floors[kind] = Max(floors[kind], instant);
}

bool
oracle_move_back_begins(SfGeneratorKind kind, TimestampTz instant)
{
	if (move_begun[kind])
		return move_done[kind];
	moved_to[kind] = instant;
	move_begun[kind] = call.moves = true;
	return true;
}

void
oracle_moved_back(SfGeneratorKind kind, TimestampTz instant)
{
	const SfGenerator *generator = generator_of(kind);

	if (config.leased && call.lease_start == generator->lease_start.value &&
		sf_position_at(&generator->layout, instant) < call.lease_start)
		fail("P1: moved back before the lease");
	move_done[kind] = true;
}

/* If another layout was recorded, IDs of the two can be equal. */
void
oracle_layout_accepted(void)
{
	changes[SF_GENERATOR_BIGINT]++;
	if (layout_is_recorded() || !config.relayout)
		return;
	run++;
	horizons_of_new_layout();
	forget_layout();
	forget_horizons();
}

/*
 * What the world does
 */

void
oracle_run_begins(void)
{
	run = 0;
	ids_begin();
	clocks_begin();
	waits_begin();
	forget_horizons();
	memset(move_begun, 0, sizeof(move_begun));
	memset(move_done, 0, sizeof(move_done));
	floors[0] = floors[1] = PG_INT64_MIN;
}

static void
end_move_back(SfGeneratorKind kind)
{
	if (!move_begun[kind])
		return;
	forget_moved(kind);
	floors[kind] = PG_INT64_MIN;
	if (kind == SF_GENERATOR_BIGINT)
		forget_horizons();
	if (move_done[kind] && !in_recovery &&
		end_of(kind == SF_GENERATOR_BIGINT ? NUMBER(BIGINT) : NUMBER(TICK)) > moved_to[kind] + 1)
		fail("P6: a move back was lost");
	move_begun[kind] = move_done[kind] = false;
}

void
oracle_server_starts(bool new_postmaster)
{
	SfLease		kept = registry_kept();

	run++;
	if (new_postmaster)
	{
		end_move_back(SF_GENERATOR_BIGINT);
		end_move_back(SF_GENERATOR_SNO);
		memset(lowered_at, 0, sizeof(lowered_at));
	}
	restoring[0] = restoring[1] = 0;
	writes_layout = false;
	ids_start(new_postmaster);
	clocks_start();
	order_start();
	horizons_start();
	if (!new_postmaster && kept.number != 0 && !move_begun[0] &&
		generator_of(0)->lease_end.value == 0 &&
		sf_position_at(&config.layouts[config.layout], kept.until) > 0)
		fail("P6: the lease was lost in a crash");
}

void
oracle_promoted(int64 lsn)
{
	forget_horizons();
	floors[0] = floors[1] = PG_INT64_MIN;
	if (!config.leased)
		forget_after(lsn);
	move_done[0] = move_done[1] = false;
}

void
oracle_number_written(int number)
{
	if (number == NUMBER(LAYOUT))
		writes_layout = in_memory[number] == 0;
}

/* A loss of the reservation can be a loss of the horizon, which it is above. */
void
oracle_number_lost(int number)
{
	SfGeneratorKind kind = number == NUMBER(TICK) || number == NUMBER(TOCK) ?
	SF_GENERATOR_SNO : SF_GENERATOR_BIGINT;

	if (kind == SF_GENERATOR_BIGINT)
		forget_horizons();
	if (number != NUMBER(PROMISE))
		floors[kind] = PG_INT64_MIN;
}
