/*
 * sno_nextval.c
 *	  SQL functions that issue IDs of type sno.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "generator.h"
#include "machine.h"
#include "nextval.h"
#include "row.h"
#include "sno.h"
#include "sno_argument.h"

PG_FUNCTION_INFO_V1(sno_nextval);
PG_FUNCTION_INFO_V1(sno_nextval_set);
PG_FUNCTION_INFO_V1(sno_at);
PG_FUNCTION_INFO_V1(sno_snapshot);

Datum
sno_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_SNO(sf_generator_next_sno(sf_metabyte_argument(fcinfo, 0)));
}

Datum
sno_nextval_set(PG_FUNCTION_ARGS)
{
	return sf_nextval_set(fcinfo, 1, sno_nextval);
}

/*
 * For a time of the caller's: the sequence is counted by the session, within its
 * bounds, and neither the clock nor any other session is asked.  The partition is that of
 * sno_nextval(), and fixed by this as well.
 */
Datum
sno_at(PG_FUNCTION_ARGS)
{
	static uint32 counter = 0;
	SfShared   *shared = sf_shared_required();
	SfSequenceRange range = sf_sequence_range_within(&sf_sno_layout, shared->lines[SF_LINE_SNO].range);
	SfSnoFields fields;
	uint32		partition;

	PreventCommandDuringRecovery("sno_at()");
	fields.metabyte = sf_metabyte_argument(fcinfo, 0);
	fields.units = sf_units_argument(fcinfo, 1);
	fields.tick_tock = false;
	partition = sf_machine_id(shared, SF_LINE_SNO);
	if (partition == SF_MACHINE_ID_NOT_PINNED)
		sf_span_report_none(shared, &shared->lines[SF_LINE_SNO]);
	fields.partition = (uint16) partition;
	fields.sequence = (uint16) (range.min + counter++ % (range.max - range.min + 1));
	PG_RETURN_SNO(sf_sno_compose(fields));
}

static Datum
tick_datum(const SfLine *line, uint64 tick)
{
	return TimestampTzGetDatum(sf_layout_tick_start(&line->layout, tick));
}

/*
 * The state of the generator, as of some moment: while others issue IDs, the parts
 * may be of slightly different ones.
 */
Datum
sno_snapshot(PG_FUNCTION_ARGS)
{
	SfShared   *shared = sf_shared_required();
	SfLine	   *line = &shared->lines[SF_LINE_SNO];
	SfSequenceRange range = sf_sequence_range_within(&line->layout, line->range);
	uint32		partition = pg_atomic_read_u32(&line->machine_id);
	uint64		position = sf_line_position(line);
	Datum		values[8];
	bool		nulls[8] = {false};

	values[0] = Int32GetDatum((int32) partition);
	nulls[0] = partition == SF_MACHINE_ID_NOT_PINNED;
	values[1] = Int32GetDatum((int32) range.min);
	values[2] = Int32GetDatum((int32) range.max);
	nulls[3] = nulls[5] = position == 0;
	values[3] = Int32GetDatum((int32) sf_position_sequence(&line->layout, position - 1));
	values[4] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[5] = tick_datum(line, sf_position_tick(&line->layout, position - 1));
	nulls[6] = pg_atomic_read_u64(&line->wall_safe) == 0;
	values[6] = tick_datum(line, pg_atomic_read_u64(&line->wall_safe));
	values[7] = Int64GetDatum((int64) pg_atomic_read_u32(&line->drifts));
	PG_RETURN_DATUM(sf_row(fcinfo, values, nulls));
}
