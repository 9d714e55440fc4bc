/*
 * sno_type.h
 *	  Datums of type sno: ten bytes, passed by reference, not aligned.
 */
#ifndef SF_SNO_TYPE_H
#define SF_SNO_TYPE_H

#include "postgres.h"
#include "fmgr.h"

#include "core/sno.h"

static inline const SfSno *
DatumGetSno(Datum datum)
{
	return (const SfSno *) DatumGetPointer(datum);
}

/* The datum of a copy of an ID, in newly allocated memory. */
static inline Datum
sf_sno_result(SfSno id)
{
	SfSno	   *result = palloc(sizeof(SfSno));

	*result = id;
	return PointerGetDatum(result);
}

#define PG_GETARG_SNO(argno)	DatumGetSno(PG_GETARG_DATUM(argno))
#define PG_RETURN_SNO(id)		return sf_sno_result(id)

#endif							/* SF_SNO_TYPE_H */
