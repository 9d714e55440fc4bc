/*
 * wait_event.h
 *	  Wait events of this extension, which pg_stat_activity shows.
 */
#ifndef SF_WAIT_EVENT_H
#define SF_WAIT_EVENT_H

#include "postgres.h"

#include "compat.h"

typedef enum SfWaitEvent
{
	SF_WAIT_CLOCK,				/* a session waits for the clock */
	SF_WAIT_RESERVATION,		/* a process waits until another one has
								 * written a reservation */
	SF_WAIT_HORIZON,			/* a session waits until another one has
								 * computed the horizon */
	SF_WAIT_NEW_ROWS,			/* a session waits until the horizon has
								 * passed an ID */
	SF_WAIT_LEASE,				/* a session waits for the lease of a machine
								 * ID; or a process, for the state of the
								 * lease */
	SF_WAIT_REGISTRY,			/* the registry worker waits for an answer */
	SF_WAIT_REGISTRY_WORKER,	/* the registry worker waits until the next
								 * attempt is due */
} SfWaitEvent;

/* PostgreSQL's number of an event.  Before 17 all extensions have the same number. */
static inline uint32
sf_wait_event(SfWaitEvent event)
{
	static const char *const names[] = {
		[SF_WAIT_CLOCK] = "SnowflakeClock",
		[SF_WAIT_RESERVATION] = "SnowflakeReservation",
		[SF_WAIT_HORIZON] = "SnowflakeHorizon",
		[SF_WAIT_NEW_ROWS] = "SnowflakeNewRows",
		[SF_WAIT_LEASE] = "SnowflakeLease",
		[SF_WAIT_REGISTRY] = "SnowflakeRegistry",
		[SF_WAIT_REGISTRY_WORKER] = "SnowflakeRegistryWorker",
	};
	static uint32 numbers[lengthof(names)] = {0};

	if (numbers[event] == 0)
		numbers[event] = sf_named_wait_event(names[event]);
	return numbers[event];
}

#endif							/* SF_WAIT_EVENT_H */
