/*
 * wait_event.c
 *	  Wait events of this extension, which pg_stat_activity shows.
 */
#include "postgres.h"

#include "compat.h"
#include "wait_event.h"

static const char *const names[] = {
	[SF_WAIT_CLOCK] = "SnowflakeClock",
	[SF_WAIT_RESERVATION] = "SnowflakeReservation",
	[SF_WAIT_HORIZON] = "SnowflakeHorizon",
	[SF_WAIT_LEASE] = "SnowflakeLease",
	[SF_WAIT_REGISTRY] = "SnowflakeRegistry",
	[SF_WAIT_REGISTRY_WORKER] = "SnowflakeRegistryWorker",
	[SF_WAIT_SETTINGS] = "SnowflakeSettings",
	[SF_WAIT_SETTINGS_WORKER] = "SnowflakeSettingsWorker",
};

uint32
sf_wait_event(SfWaitEvent event)
{
	static uint32 numbers[lengthof(names)] = {0};

	if (numbers[event] == 0)
		numbers[event] = sf_named_wait_event(names[event]);
	return numbers[event];
}
