/*
 * ceiling.c
 *	  Raising the position up to which this server has reserved the line.
 *
 * A position at or above the ceiling is not issued.  Whoever wants one raises
 * the ceiling first; to spare callers the wait, the one who takes a lease past
 * the middle of the reserve raises it early.  Raises are serialised by the
 * shared lock, and a raise looks again under the lock whether it is still
 * wanted, so that of many who meet the ceiling at once only one works.
 *
 * The ceiling lives in shared memory alone so far: it does not outlive the
 * server.  To make it durable, raise_locked has one place for it, between
 * working out the new ceiling and publishing it.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ceiling.h"
#include "core/ceiling.h"

static void
raise_locked(SfShared *shared, uint64 seen)
{
	uint64		ceiling;

	if (pg_atomic_read_u64(&shared->ceiling) != seen)
		return;
	ceiling = sf_ceiling_next(&shared->layout, GetCurrentTimestamp(),
							  pg_atomic_read_u64(&shared->cursor));

	/* Here the ceiling becomes durable, before anyone can see it. */

	if (ceiling > seen)
		pg_atomic_write_u64(&shared->ceiling, ceiling);
}

void
sf_ceiling_raise(SfShared *shared, uint64 seen)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	raise_locked(shared, seen);
	LWLockRelease(shared->lock);
}

void
sf_ceiling_raise_early(SfShared *shared, uint64 seen)
{
	if (!LWLockConditionalAcquire(shared->lock, LW_EXCLUSIVE))
		return;
	raise_locked(shared, seen);
	LWLockRelease(shared->lock);
}
