/*
 * identity.c
 *	  Which registry the leases of this server come from.
 *
 * Leases of one registry do not overlap, but those of two registries can: if some servers lease
 * from one registry and some from another, two servers can be granted the same machine ID.  So a
 * server records the identity of its registry before its first claim there, and claims from no
 * other registry until an administrator calls snowflake_accept_registry().
 *
 * The identity must be present wherever the data is: on standbys, after a crash, and in a restored
 * backup.  So it is one of the numbers that a server must not forget (durable.h).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"

#include "registry/identity.h"
#include "state/durable.h"

int64
sf_identity_recorded(void)
{
	return (int64) sf_durable_read(SF_DURABLE_REGISTRY);
}

/* Keep the message of the current error, and recover from the error, outside of a transaction. */
static void
recover(MemoryContext context, char *error, Size size)
{
	ErrorData  *data;

	HOLD_INTERRUPTS();
	LWLockReleaseAll();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(context);
	data = CopyErrorData();
	FlushErrorState();
	strlcpy(error, data->message, size);
	FreeErrorData(data);
}

bool
sf_identity_record(int64 identity, char *error, Size size)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool written = false;

	PG_TRY();
	{
		sf_durable_set(SF_DURABLE_REGISTRY, (uint64) identity);
		written = true;
	}
	PG_CATCH();
	{
		recover(context, error, size);
	}
	PG_END_TRY();
	return written;
}
