/*
 * fields.c
 *	  sf_layout_compose and sf_layout_decompose are inverse to each other, and IDs have the order of
 *	  their fields.
 *
 * Any layout, any two IDs of it, given by their fields, and any number.  The code has no loop.
 */
#include "proof.h"

/* Whether fields are before others: by tick, and then in the order of the layout. */
static bool
is_before(const SfLayout *layout, SfFields a, SfFields b)
{
	bool		machine_first = layout->machine_shift > 0;

	if (a.tick != b.tick)
		return a.tick < b.tick;
	if (machine_first && a.machine != b.machine)
		return a.machine < b.machine;
	if (a.sequence != b.sequence)
		return a.sequence < b.sequence;
	return a.machine < b.machine;
}

static bool
is_same(SfFields a, SfFields b)
{
	return a.tick == b.tick && a.machine == b.machine && a.sequence == b.sequence;
}

int
main(void)
{
	SfLayout	layout = any_layout();
	SfFields	fields = any_fields(&layout);
	SfFields	others = any_fields(&layout);
	int64_t		id = sf_layout_compose(&layout, fields);
	int64_t		other = sf_layout_compose(&layout, others);
	int64_t		number = nondet_int64();

	always(sf_layout_holds(&layout, id));
	always(is_same(sf_layout_decompose(&layout, id), fields));
	always((id < other) == is_before(&layout, fields, others));

	if (sf_layout_holds(&layout, number))
	{
		SfFields	parts = sf_layout_decompose(&layout, number);

		always(parts.tick <= sf_layout_last_tick(&layout));
		always(parts.machine <= sf_field_max(layout.machine_bits));
		always(parts.sequence <= sf_field_max(layout.sequence_bits));
		always(sf_layout_compose(&layout, parts) == number);
	}

	sometimes(number < 0);
	sometimes(sf_layout_holds(&layout, number) && number == sf_layout_last_id(&layout));
	sometimes(id < other && fields.tick == others.tick);
}
