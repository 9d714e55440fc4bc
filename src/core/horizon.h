/*
 * horizon.h
 *	  From a position of the generator to the IDs below and above it.
 */
#ifndef SF_CORE_HORIZON_H
#define SF_CORE_HORIZON_H

#include "batch.h"

/*
 * The least number that is above all IDs of positions below a cursor, and not above any ID of
 * the cursor's position or a later one.  The machine ID must fit the layout.
 *
 * At the start of a tick that is the first number of the tick, and so the same for all
 * machine IDs.  Within a tick it is the number after the last ID before the cursor: IDs of
 * another machine ID can follow only in a later tick, since a generator that changes its
 * machine ID leaves the tick.
 */
static inline int64_t
sf_horizon_at(const SfLayout *layout, uint64_t cursor, uint32_t machine_id)
{
	SfFields	fields = {.tick = sf_position_tick(layout, cursor)};
	uint32_t	sequence = sf_position_sequence(layout, cursor);
	int64_t		last_id = sf_layout_last_id(layout);

	if (fields.tick > sf_layout_last_tick(layout))
		return last_id == INT64_MAX ? last_id : last_id + 1;
	if (sequence == 0)
		return sf_layout_compose(layout, fields);
	fields.machine = machine_id;
	fields.sequence = sequence - 1;
	return sf_layout_compose(layout, fields) + 1;
}

#endif							/* SF_CORE_HORIZON_H */
