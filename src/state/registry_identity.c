/*
 * registry_identity.c
 *	  Which registry the leases of this server come from.
 *
 * Leases of one registry do not overlap, but those of two registries can: if some servers lease
 * from one registry and some from another, two servers can be granted the same machine ID.  So a
 * server records the identity of its registry before its first claim there, and claims from no
 * other registry until an administrator calls snowflake_accept_registry().
 *
 * The identity must be present wherever the data is: on standbys, after a crash, and in a restored
 * backup.  So it is kept in the same way as the state of the generators, as the progress of a
 * replication origin.  The registry worker has no database, and cannot read the catalog of origins,
 * so this origin has a fixed number and no row in the catalog.  The number is the last one that
 * PostgreSQL can assign, which it does only if all others are in use.
 *
 * The origin takes one of max_replication_slots (18: max_active_replication_origins) from its
 * first write on.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"

#include "compat.h"
#include "state/origin.h"
#include "state/registry_identity.h"

#define IDENTITY_ORIGIN	((ReplOriginId) (DoNotReplicateId - 1))

int64
sf_registry_identity_read(void)
{
	return (int64) sf_origin_read(IDENTITY_ORIGIN);
}

void
sf_registry_identity_write(int64 identity)
{
	sf_origin_write(IDENTITY_ORIGIN, (uint64) identity, true);
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
sf_registry_identity_try_write(int64 identity, char *error, Size size)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool written = false;

	PG_TRY();
	{
		sf_registry_identity_write(identity);
		written = true;
	}
	PG_CATCH();
	{
		recover(context, error, size);
	}
	PG_END_TRY();
	return written;
}
