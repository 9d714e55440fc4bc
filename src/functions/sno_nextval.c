/*
 * sno_nextval.c
 *	  SQL functions that issue IDs of type sno.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "core/hot.h"
#include "generator/generator.h"
#include "functions/nextval.h"
#include "functions/result_row.h"
#include "functions/sno_type.h"
#include "functions/sno_argument.h"

PG_FUNCTION_INFO_V1(sno_nextval);
PG_FUNCTION_INFO_V1(sno_nextvals);
PG_FUNCTION_INFO_V1(sno_snapshot);

SF_HOT Datum
sno_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_SNO(sf_next_sno(sf_metabyte_argument(fcinfo, 0)));
}

/* Issue one ID of sno_nextvals(), whose second argument is the metabyte. */
static Datum
next_of_set(PG_FUNCTION_ARGS)
{
	PG_RETURN_SNO(sf_next_sno(sf_metabyte_argument(fcinfo, 1)));
}

Datum
sno_nextvals(PG_FUNCTION_ARGS)
{
	return sf_nextval_set(fcinfo, next_of_set);
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
