/*
 * order.c
 *	  "P3: In a session, each ID is greater than the previous one.  Across the sessions of a server,
 *	  the later of two IDs is greater if the time between them exceeds the sum of max_ahead, a
 *	  tick, and the durations of both calls."  IDs of type sno do not increase when the clock
 *	  steps back, and a transaction can then use a batch from before.  Each change of a lease
 *	  leaves a tick, so that many changes in a moment are like a step back for sno.
 */
#include "record.h"

static int	line_used;			/* of sno, since the start; or -1 */

/* Of each session. */
static OF_PROCESS int64 last_bigint = -1;
static OF_PROCESS SfSno last_sno = {{0}};
static OF_PROCESS int64 last_sno_at = 0;
static OF_PROCESS int transaction_steps_back = 0;

void
order_start(void)
{
	line_used = -1;
}

void
order_of_transaction(void)
{
	transaction_steps_back = steps_back;
}

void
check_order(const Issued *id, int64 tick)
{
	int64		least = microseconds(config.max_ahead) + tick + id->duration;

	for (int i = Max(0, issued_count - 40); i < issued_count; i++)
	{
		const Issued *other = &issued[i];
		int64		between = id->returned - id->duration - other->returned;

		if (other->steps_back != steps_back || transaction_steps_back != steps_back)
			continue;			/* it can use a batch from before the step */
		if (other->kind == SF_GENERATOR_BIGINT && other->run == run && other->key > id->key &&
			between > least + other->duration)
			fail("P3: ID %lld is lower than %lld, which was issued %lld us before",
				 (long long) id->key, (long long) other->key, (long long) between);
	}
}

void
check_order_of_session(int64 id)
{
	if (id <= last_bigint)
		fail("P3: ID %lld of a session after %lld", (long long) id, (long long) last_bigint);
	last_bigint = id;
}

void
check_order_of_snos(const SfSno *id)
{
	int			line = sf_sno_decompose(id).tick_tock;

	if (line != Max(line_used, 0) && steps_back == 0 && !config.leased &&
		(line_used >= 0 || is_undisturbed()))
		fail("P3: the line of sno has changed although the clock has not stepped back");
	if (sf_sno_compare(id, &last_sno) <= 0 && last_sno_at >= behind_until && !config.leased)
		fail("P3: the snos of a session decrease");
	line_used = line;
	last_sno = *id;
	last_sno_at = now;
}
