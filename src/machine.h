/*
 * machine.h
 *	  The machine ID of this server.
 */
#ifndef SF_MACHINE_H
#define SF_MACHINE_H

#include "shared.h"

/* Define snowflake.machine_id and snowflake.sno_partition; comes after all others. */
extern void sf_machine_init(void);

/*
 * The machine ID to issue IDs with, 0 where the layout has no bits for one.
 * The first call of a server's run fixes it until the server is restarted.
 *
 * Raises object_not_in_prerequisite_state when snowflake.machine_id is not set,
 * invalid_parameter_value when the settings do not fit each other.
 */
extern uint32 sf_machine_id(SfShared *shared);

/*
 * The partition to issue IDs of type sno with: snowflake.sno_partition, or where that
 * is not set, snowflake.machine_id.  Fixed as the machine ID is.
 *
 * Raises object_not_in_prerequisite_state when neither is set,
 * invalid_parameter_value when it is more than 65535.
 */
extern uint32 sf_sno_partition(SfShared *shared);

#endif							/* SF_MACHINE_H */
