/*
 * reservation.c
 *	  sf_reservation_next: an extension is as long as it is asked to be, less than a tick longer, and
 *	  beyond the cursor.  sf_reservation_is_near has no overflow.
 *
 * Any cursor from 0 to the position after the last one, any time of the clock that a timestamptz can
 * have, any length from the least one to SF_RESERVATION_LONGEST.  With 63 bits of timestamp, the
 * extension ends at the last tick or before.  A position and the end of a reservation that are
 * compared are less than 2^63 microseconds apart.  The code has no loop.
 */
#define EPOCHS_MATTER
#include "reserved_time.h"
#include "proof.h"

static SfInstant
start_of(const SfLayout *layout, uint64_t position)
{
	return sf_layout_tick_start(layout, sf_position_tick(layout, position));
}

int
main(void)
{
	SfLayout	layout = any_layout();
	uint64_t	end = sf_position(&layout, sf_layout_last_tick(&layout) + 1, 0);
	uint64_t	cursor = nondet_uint64();
	uint64_t	other_end = nondet_uint64();
	SfInstant	now = nondet_int64();
	int64_t		length = nondet_int64();
	SfInstant	from;
	uint64_t	until;

	assume(cursor <= end && now >= -INT64_C(211813488000000000) && now < SF_INSTANT_END);
	assume(length >= sf_reservation_least(&layout) && length <= SF_RESERVATION_LONGEST);
	from = start_of(&layout, cursor) > now ? start_of(&layout, cursor) : now;
	until = sf_reservation_next(&layout, now, cursor, length);

	assume(is_within_int64(&layout, from + length));
	always(until <= end);
	always(until > cursor || until == end);
	always(start_of(&layout, until) >= from + length || until == end);

	/*
	 * Before the epoch, the first tick is the first that does not begin
	 * before any instant.
	 */
	always(until == 0 || start_of(&layout, until) - layout.tick_length < from + length);

	assume(other_end <= end && cursor <= other_end);
	assume((uint64_t) start_of(&layout, other_end) - (uint64_t) start_of(&layout, cursor) <= INT64_MAX);
	always(sf_reservation_is_near(&layout, cursor, other_end, length) ==
		   (start_of(&layout, other_end) <= start_of(&layout, cursor) + length / 2));

	sometimes(until < end && now < layout.epoch);
	sometimes(until == end);
	sometimes(sf_reservation_is_near(&layout, cursor, other_end, length) && cursor < other_end);
}
