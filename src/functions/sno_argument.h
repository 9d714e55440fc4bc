/*
 * sno_argument.h
 *	  Arguments of SQL functions that are fields of a sno.
 */
#ifndef SF_SNO_ARGUMENT_H
#define SF_SNO_ARGUMENT_H

#include "postgres.h"
#include "fmgr.h"

/*
 * The units of the timestamptz argument number argno.  Raises datetime_field_overflow if
 * the time is before 2010 or after the last unit.
 */
extern uint64 sf_units_argument(FunctionCallInfo fcinfo, int argno);

/*
 * The int4 argument number argno, as the value of a field with this name.  Raises
 * invalid_parameter_value if the value is not within 0 and max.
 */
extern uint32 sf_sno_field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int max);

static inline uint8
sf_metabyte_argument(FunctionCallInfo fcinfo, int argno)
{
	return (uint8) sf_sno_field_argument(fcinfo, argno, "metabyte", PG_UINT8_MAX);
}

#endif							/* SF_SNO_ARGUMENT_H */
