/*
 * errors.c
 *	  "P6: If a promise cannot be kept, the call fails with an error that states the cause.  No ID is
 *	  issued."  And a call that fails has a cause to fail.
 */
#include "record.h"

#include "access/parallel.h"

/* An ID is issued: none is after a move back, in a state that is lost, or in a parallel worker. */
void
check_no_error(void)
{
	SfGeneratorKind kind = call.kind;

	if (call.moved)
		fail("P6: an ID was issued after a move back");
	if (call.stays_lost && call.changes == changes[kind] && restoring[kind] == 0)
		fail("P6: an ID was issued although the durable state is lost");
	if (ParallelWorkerNumber >= 0)
		fail("P3: an ID was issued in a parallel worker");
}

static bool
has(const char *text)
{
	return strstr(current->error, text) != NULL;
}

/* Whether an error has a cause.  In the quiet phase each wait ends. */
static bool
is_right(void)
{
	if (has("canceled") || has("terminated") || has("maximum number of prepared"))
		return true;
	if (has("during recovery"))
		return call.in_recovery;
	if (has("is closed until"))
		return move_begun[call.kind];
	if (has("jumped forward"))
		return jump_is_right();
	if (has("below the horizon"))
		return refusal_is_right();
	if (has("is missing"))
		return call.lost || oracle_is_lost(call.kind);
	if (has("does not match"))
		return config.relayout;
	if (has("parallel"))
		return ParallelWorkerNumber >= 0;
	if (has("no horizon is known"))
		return call.unknown;
	if (has("lease") || has("registry") || has("release of the machine ID"))
		return config.leased;
	if (has("within the layout"))
		return true;
	if (has("within"))
		return sf_settings_max_wait >= 0 &&
			now - call.began >= microseconds(sf_settings_max_wait);
	return has("as a horizon") || has("last timestamp") || has("move the generator");
}

void
oracle_error(void)
{
	if (!is_right())
		fail("P6: an error without a cause: %s", current->error);
	check_wait();
	if (call.restores)
		restoring[call.kind]--;
	if (call.accepts)
		oracle_acceptance_ends();
	if (call.reads)
		reader_fails();
	if (call.moves && generator_of(call.kind)->moved_back.value == 0)
		move_begun[call.kind] = false;
	memset(&call, 0, sizeof(call));
}

/* It leaves a state that is lost alone. */
void
oracle_created(void)
{
	if (call.stays_lost && !oracle_is_lost(call.kind) && changes[call.kind] == call.changes &&
		restoring[call.kind] == 0)
		fail("P6: a state that is lost was created");
}
