/*
 * horizon.c
 *	  sf_horizon_at separates the IDs before a cursor from the ones after it, and only rises.
 *
 * Any layout, any two cursors (up to the position after the last one), any two machine IDs.  The code
 * has no loop.
 */
#include "batch.h"
#include "proof.h"

/*
 * Whether two positions can have IDs of these machine IDs: a generator that changes its machine ID
 * leaves the tick.
 */
static bool
can_both_be(const SfLayout *layout, uint64_t position, uint32_t machine, uint64_t other,
			uint32_t other_machine)
{
	return machine == other_machine ||
		sf_position_tick(layout, position) != sf_position_tick(layout, other) ||
		sf_position_sequence(layout, other) == 0;
}

int
main(void)
{
	SfLayout	layout = any_layout();
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	SfFields	fields = any_fields(&layout);
	uint64_t	position = sf_position(&layout, fields.tick, fields.sequence);
	int64_t		id = sf_layout_compose(&layout, fields);
	uint64_t	cursor = nondet_uint64();
	uint64_t	later = nondet_uint64();
	uint32_t	machine = nondet_uint32();
	uint32_t	later_machine = nondet_uint32();
	int64_t		horizon;
	int64_t		later_horizon;

	assume(cursor <= later && later <= end);
	assume(machine <= sf_field_max(layout.machine_bits));
	assume(later_machine <= sf_field_max(layout.machine_bits));
	horizon = sf_horizon_at(&layout, cursor, machine);
	later_horizon = sf_horizon_at(&layout, later, later_machine);

	/* The last of 63 bits is not below any number that a horizon can be. */
	if (can_both_be(&layout, position, fields.machine, cursor, machine))
		always((id < horizon) == (position < cursor) || id == INT64_MAX);
	if (can_both_be(&layout, later, later_machine, cursor, machine))
		always(horizon <= later_horizon);
	always(horizon >= 0);

	sometimes(position < cursor && fields.machine > machine);
	sometimes(position >= cursor && fields.machine < machine);
	sometimes(horizon == later_horizon && cursor < later);
	sometimes(horizon == INT64_MAX && cursor == end);
}
