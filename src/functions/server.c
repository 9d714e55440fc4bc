/*
 * server.c
 *	  SQL functions that describe this server: its machine ID, and the generator of type sno.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "generator/generator.h"
#include "functions/arguments.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(snowflake_server_machine_id);
PG_FUNCTION_INFO_V1(sno_snapshot);

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

static Datum
tick_datum(const SfGenerator *generator, uint64 tick)
{
	return TimestampTzGetDatum(sf_layout_tick_start(&generator->layout, tick));
}

/*
 * The state of the generator.  While other sessions issue IDs, the columns can be of slightly
 * different moments.
 */
Datum
sno_snapshot(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfGenerator *generator = &shared->generators[SF_GENERATOR_SNO];
	SfSequenceRange range = sf_sequence_range_within(&generator->layout, generator->range);
	uint32		partition = pg_atomic_read_u32(&generator->machine_id);
	uint64		position = sf_generator_position(generator);
	Datum		values[8];
	bool		nulls[8] = {false};

	values[0] = Int32GetDatum((int32) partition);
	nulls[0] = partition == SF_MACHINE_ID_NOT_PINNED;
	values[1] = Int32GetDatum((int32) range.min);
	values[2] = Int32GetDatum((int32) range.max);
	nulls[3] = nulls[5] = position == 0;
	values[3] = Int32GetDatum((int32) sf_position_sequence(&generator->layout, position - 1));
	values[4] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[5] = tick_datum(generator, sf_position_tick(&generator->layout, position - 1));
	nulls[6] = pg_atomic_read_u64(&generator->wall_safe) == 0;
	values[6] = tick_datum(generator, pg_atomic_read_u64(&generator->wall_safe));
	values[7] = Int64GetDatum((int64) pg_atomic_read_u32(&generator->drifts));
	PG_RETURN_DATUM(sf_row(fcinfo, values, nulls));
}
