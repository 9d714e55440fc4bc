/*
 * sno_fields.c
 *	  SQL functions that decode values of type sno, and compose them.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "functions/arguments.h"
#include "functions/sno_type.h"

PG_FUNCTION_INFO_V1(sno_decode);
PG_FUNCTION_INFO_V1(sno_timestamp);
PG_FUNCTION_INFO_V1(sno_metabyte);
PG_FUNCTION_INFO_V1(sno_partition);
PG_FUNCTION_INFO_V1(sno_sequence);
PG_FUNCTION_INFO_V1(sno_encode);
PG_FUNCTION_INFO_V1(sno_boundary);

Datum
sno_decode(PG_FUNCTION_ARGS)
{
	const SfSno *id = PG_GETARG_SNO(0);
	SfSnoFields fields = sf_sno_decompose(id);
	Datum		values[5];
	bool		nulls[5] = {false};

	values[0] = TimestampTzGetDatum(sf_sno_instant(id));
	values[1] = Int32GetDatum(fields.metabyte);
	values[2] = Int32GetDatum(fields.partition);
	values[3] = Int32GetDatum(fields.sequence);
	values[4] = BoolGetDatum(fields.tick_tock);
	PG_RETURN_DATUM(sf_row(fcinfo, values, nulls));
}

Datum
sno_timestamp(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(sf_sno_instant(PG_GETARG_SNO(0)));
}

Datum
sno_metabyte(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(sf_sno_decompose(PG_GETARG_SNO(0)).metabyte);
}

Datum
sno_partition(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(sf_sno_decompose(PG_GETARG_SNO(0)).partition);
}

Datum
sno_sequence(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(sf_sno_decompose(PG_GETARG_SNO(0)).sequence);
}

Datum
sno_encode(PG_FUNCTION_ARGS)
{
	SfSnoFields fields;

	fields.units = sf_tick_argument(fcinfo, 0, &sf_sno_layout, -1);
	fields.metabyte = sf_metabyte_argument(fcinfo, 1);
	fields.partition = (uint16) sf_sno_field_argument(fcinfo, 2, "partition", PG_UINT16_MAX);
	fields.sequence = (uint16) sf_sno_field_argument(fcinfo, 3, "sequence", PG_UINT16_MAX);
	fields.tick_tock = PG_GETARG_BOOL(4);
	PG_RETURN_SNO(sf_sno_compose(fields));
}

Datum
sno_boundary(PG_FUNCTION_ARGS)
{
	PG_RETURN_SNO(sf_sno_boundary(PG_GETARG_TIMESTAMPTZ(0)));
}
