/*
 * boundary.c
 *	  sf_layout_boundary is at most the IDs whose time is not before an instant, and above all others.
 *
 * Any instant and any ID.  So the boundary of the start of a tick is the least ID of that tick.  The
 * code has no loop.
 */
#define EPOCHS_MATTER
#include "proof.h"

int
main(void)
{
	SfLayout	layout = any_layout();
	int64_t		id = nondet_int64();
	SfInstant	instant = nondet_int64();
	int64_t		boundary = sf_layout_boundary(&layout, instant);

	assume(sf_layout_holds(&layout, id));
	/* The greatest bigint is not below any boundary. */
	always((id < boundary) == (sf_layout_instant(&layout, id) < instant) || id == INT64_MAX);
	always(boundary >= 0 && boundary - 1 <= sf_layout_last_id(&layout));

	sometimes(id < boundary);
	sometimes(id >= boundary && instant > layout.epoch);
	sometimes(instant == INT64_MAX && boundary - 1 <= sf_layout_last_id(&layout));
}
