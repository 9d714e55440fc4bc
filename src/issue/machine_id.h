/*
 * machine_id.h
 *	  The machine ID of this server.
 */
#ifndef SF_MACHINE_ID_H
#define SF_MACHINE_ID_H

#include "issue/shared.h"

/*
 * The number of this server in the IDs of a generator: the machine ID, 0 if the layout has no bits
 * for one; or the partition of IDs of type sno, which is snowflake.sno_partition or, if that is not
 * set, the machine ID.  The first call in a run of the server fixes the number until the server is
 * restarted.  With a registry it is the number of the lease, SF_MACHINE_ID_NOT_PINNED before the
 * first lease, and it changes only together with the generator's generation.
 *
 * Raises object_not_in_prerequisite_state when snowflake.machine_id (for sno: and
 * snowflake.sno_partition) is not set, invalid_parameter_value when the settings are inconsistent.
 */
extern uint32 sf_machine_id(SfShared *shared, SfGeneratorKind kind);

/* The same, but not fixed: the result or the error of the next call to sf_machine_id. */
extern uint32 sf_next_machine_id(SfShared *shared, SfGeneratorKind kind);

/* The number that is in use, or SF_MACHINE_ID_UNSET if it is not fixed yet. */
extern int	sf_machine_id_in_use(SfShared *shared, SfGeneratorKind kind);

/* The value of snowflake.machine_id, or SF_MACHINE_ID_UNSET. */
extern int	sf_configured_machine_id(SfShared *shared);

#endif							/* SF_MACHINE_ID_H */
