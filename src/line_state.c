/*
 * line_state.c
 *	  What of a line outlives the server, in its register.
 *
 * That is one number, so that one record of the log writes it, and a crash leaves all of
 * the old one or all of the new: the ceiling as microseconds since the Unix epoch, or, of a
 * line with timelines, their whole state, packed (core/timeline.h).  A ceiling at the epoch
 * is rounded up, since 0 and SF_REGISTER_NEW say that there is none.
 */
#include "postgres.h"

#include "core/reserve.h"
#include "line_state.h"
#include "stopwatch.h"

static uint64
to_number(const SfLine *line, SfInstant ceiling, uint64 wall_safe, uint32 drifts)
{
	SfTimelineState state;

	if (!sf_line_has_timelines(line))
		return Max((uint64) (ceiling - SF_UNIX_EPOCH), SF_REGISTER_NEW + 1);
	state.ceiling_tick = Max((uint64) sf_layout_tick_ceil(&line->layout, ceiling), 1);
	state.wall_safe = wall_safe;
	state.drifts = drifts;
	return sf_timeline_pack(state);
}

bool
sf_line_state_read(const SfLine *line, RepOriginId origin, SfTimelineState *state)
{
	uint64		number = sf_register_read(origin);

	memset(state, 0, sizeof(*state));
	if (number == 0 || number == SF_REGISTER_NEW)
		return number != 0;
	if (sf_line_has_timelines(line))
		*state = sf_timeline_unpack(number);
	else
		state->ceiling_tick = sf_position_tick(&line->layout,
											   sf_position_at(&line->layout, (SfInstant) number + SF_UNIX_EPOCH));
	return true;
}

void
sf_line_state_write(SfLine *line, RepOriginId origin, SfInstant ceiling, uint64 wall_safe, uint32 drifts, bool back)
{
	instr_time	before = sf_start_stopwatch();

	sf_register_write(origin, to_number(line, ceiling, wall_safe, drifts), back);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITES, 1);
	sf_stats_add(&line->stats, SF_STAT_REGISTER_WRITE_TIME, sf_stopwatch(before));
}
