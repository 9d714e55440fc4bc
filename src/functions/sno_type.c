/*
 * sno_type.c
 *	  The functions of type sno: input and output, fields, and order.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "compat.h"
#include "functions/arguments.h"
#include "functions/sno_type.h"

PG_FUNCTION_INFO_V1(sno_in);
PG_FUNCTION_INFO_V1(sno_out);
PG_FUNCTION_INFO_V1(sno_recv);
PG_FUNCTION_INFO_V1(sno_send);
PG_FUNCTION_INFO_V1(sno_from_bytea);
PG_FUNCTION_INFO_V1(sno_to_uuid);
PG_FUNCTION_INFO_V1(sno_from_uuid);
PG_FUNCTION_INFO_V1(sno_decode);
PG_FUNCTION_INFO_V1(sno_timestamp);
PG_FUNCTION_INFO_V1(sno_encode);
PG_FUNCTION_INFO_V1(sno_boundary);
PG_FUNCTION_INFO_V1(sno_cmp);
PG_FUNCTION_INFO_V1(sno_smaller);
PG_FUNCTION_INFO_V1(sno_larger);
PG_FUNCTION_INFO_V1(sno_sortsupport);
PG_FUNCTION_INFO_V1(sno_hash);
PG_FUNCTION_INFO_V1(sno_hash_extended);

Datum
sno_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	SfSno		id;

	if (strlen(text) != SF_SNO_TEXT_LENGTH || !sf_sno_from_text(text, &id))
		sf_soft_error(fcinfo, (Datum) 0,
					  errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					  errmsg("invalid input syntax for type %s: \"%s\"", "sno", text),
					  errdetail("A sno has %d characters, each of which is 2 to 9 or a to x.",
								SF_SNO_TEXT_LENGTH));
	PG_RETURN_SNO(id);
}

Datum
sno_out(PG_FUNCTION_ARGS)
{
	char	   *text = palloc(SF_SNO_TEXT_LENGTH + 1);

	sf_sno_to_text(PG_GETARG_SNO(0), text);
	text[SF_SNO_TEXT_LENGTH] = '\0';
	PG_RETURN_CSTRING(text);
}

Datum
sno_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	SfSno		id;

	pq_copymsgbytes(message, (char *) id.bytes, SF_SNO_SIZE);
	PG_RETURN_SNO(id);
}

/* Also the cast to bytea: the ten bytes, the most significant first. */
Datum
sno_send(PG_FUNCTION_ARGS)
{
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, (const char *) PG_GETARG_SNO(0)->bytes, SF_SNO_SIZE);
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

Datum
sno_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	SfSno		id;

	if (VARSIZE_ANY_EXHDR(bytes) != SF_SNO_SIZE)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("invalid length for type sno"),
				errdetail("A sno has %d bytes, but the value has %zu.",
						  SF_SNO_SIZE, VARSIZE_ANY_EXHDR(bytes)));
	memcpy(id.bytes, VARDATA_ANY(bytes), SF_SNO_SIZE);
	PG_RETURN_SNO(id);
}

/* The text has as many characters as a uuid has bytes. */
StaticAssertDecl(SF_SNO_TEXT_LENGTH == UUID_LEN, "the text of a sno fits a uuid");

Datum
sno_to_uuid(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	sf_sno_to_text(PG_GETARG_SNO(0), (char *) uuid->data);
	PG_RETURN_UUID_P(uuid);
}

Datum
sno_from_uuid(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = PG_GETARG_UUID_P(0);
	SfSno		id;

	if (!sf_sno_from_text((const char *) uuid->data, &id))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("uuid \"%s\" does not contain a sno",
					   DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(uuid)))),
				errdetail("The bytes of the uuid must be %d characters, each of which is 2 to 9 or a to x.",
						  SF_SNO_TEXT_LENGTH));
	PG_RETURN_SNO(id);
}

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

#define FIELD(name, field) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_INT32(sf_sno_decompose(PG_GETARG_SNO(0)).field); \
	}

FIELD(sno_metabyte, metabyte)
FIELD(sno_partition, partition)
FIELD(sno_sequence, sequence)

Datum
sno_encode(PG_FUNCTION_ARGS)
{
	SfSnoFields fields;

	fields.units = sf_tick_argument(fcinfo, &sf_sno_layout);
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

/*
 * Comparison, sorting, hashing and distance
 *
 * A sort compares keys of 64 bits (core/sno.h), and compares the IDs themselves only if
 * the keys are equal.  A key costs less than a comparison, so the sort never stops using
 * keys, however many of them are equal.
 */

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

Datum
sno_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	ssup->comparator = compare_in_sort;
	if (ssup->abbreviate)
	{
		ssup->comparator = ssup_datum_uint64_cmp;
		ssup->abbrev_converter = sort_key;
		ssup->abbrev_abort = never_abort_abbreviation;
		ssup->abbrev_full_comparator = compare_in_sort;
	}
	PG_RETURN_VOID();
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
