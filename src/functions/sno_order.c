/*
 * sno_order.c
 *	  Comparison, sorting, hashing and distance of values of type sno.
 *
 * A sort compares keys of 64 bits (core/sno.h), and compares the IDs themselves only if
 * the keys are equal.  A key costs less than a comparison, so the sort never stops using
 * keys, however many of them are equal.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/sortsupport.h"

#include "functions/sno_type.h"

PG_FUNCTION_INFO_V1(sno_cmp);
PG_FUNCTION_INFO_V1(sno_smaller);
PG_FUNCTION_INFO_V1(sno_larger);
PG_FUNCTION_INFO_V1(sno_sortsupport);
PG_FUNCTION_INFO_V1(sno_distance);
PG_FUNCTION_INFO_V1(sno_hash);
PG_FUNCTION_INFO_V1(sno_hash_extended);

static inline int
compare_arguments(FunctionCallInfo fcinfo)
{
	return sf_sno_compare(PG_GETARG_SNO(0), PG_GETARG_SNO(1));
}

#define COMPARISON(name, condition) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		int			order = compare_arguments(fcinfo); \
\
		PG_RETURN_BOOL((condition)); \
	}

COMPARISON(sno_lt, order < 0)
COMPARISON(sno_le, order <= 0)
COMPARISON(sno_eq, order == 0)
COMPARISON(sno_ne, order != 0)
COMPARISON(sno_ge, order >= 0)
COMPARISON(sno_gt, order > 0)

Datum
sno_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare_arguments(fcinfo));
}

Datum
sno_smaller(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(compare_arguments(fcinfo) < 0 ? 0 : 1));
}

Datum
sno_larger(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(compare_arguments(fcinfo) > 0 ? 0 : 1));
}

static int
compare_in_sort(Datum x, Datum y, SortSupport ssup)
{
	return sf_sno_compare(DatumGetSno(x), DatumGetSno(y));
}

/* The first ID of a sort is the reference of its keys. */
static Datum
sort_key(Datum original, SortSupport ssup)
{
	if (ssup->ssup_extra == NULL)
	{
		SfSno	   *reference = MemoryContextAlloc(ssup->ssup_cxt, sizeof(SfSno));

		*reference = *DatumGetSno(original);
		ssup->ssup_extra = reference;
	}
	return UInt64GetDatum(sf_sno_sort_key(DatumGetSno(original), ssup->ssup_extra));
}

static bool
never_abort_abbreviation(int count, SortSupport ssup)
{
	return false;
}

static void
use_sort_keys(SortSupport ssup)
{
	ssup->comparator = ssup_datum_unsigned_cmp;
	ssup->abbrev_converter = sort_key;
	ssup->abbrev_abort = never_abort_abbreviation;
	ssup->abbrev_full_comparator = compare_in_sort;
}

Datum
sno_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	ssup->comparator = compare_in_sort;
	if (ssup->abbreviate)
		use_sort_keys(ssup);
	PG_RETURN_VOID();
}

/*
 * The difference of the second ID and the first, as numbers.  BRIN minmax-multi merges the
 * ranges that are closest to each other.
 */
Datum
sno_distance(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(sf_sno_distance(PG_GETARG_SNO(0), PG_GETARG_SNO(1)));
}

Datum
sno_hash(PG_FUNCTION_ARGS)
{
	return hash_any(PG_GETARG_SNO(0)->bytes, SF_SNO_SIZE);
}

Datum
sno_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended(PG_GETARG_SNO(0)->bytes, SF_SNO_SIZE, PG_GETARG_INT64(1));
}
