/*
 * server_machine_id.c
 *	  The SQL function that returns the machine ID of this server.
 */
#include "postgres.h"

#include "fmgr.h"

#include "generator/machine_id.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_server_machine_id);

/*
 * The number in IDs of type bigint; SF_MACHINE_ID_UNSET if there is none.  Reading a configured
 * number does not fix it.
 */
static int
server_machine_id(SfShared *shared)
{
	SfGenerator *generator = &shared->generators[SF_GENERATOR_BIGINT];
	int			in_use = sf_machine_id_in_use(shared, SF_GENERATOR_BIGINT);

	if (in_use != SF_MACHINE_ID_UNSET || generator->leased)
		return in_use;
	if (generator->layout.machine_bits == 0)
		return 0;
	return sf_configured_machine_id(shared);
}

Datum
snowflake_server_machine_id(PG_FUNCTION_ARGS)
{
	int			machine_id = server_machine_id(sf_shared_required());

	if (machine_id == SF_MACHINE_ID_UNSET)
		PG_RETURN_NULL();
	PG_RETURN_INT32(machine_id);
}
