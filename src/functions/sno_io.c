/*
 * sno_io.c
 *	  Input and output of type sno, and its conversions to and from other types.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "compat.h"
#include "functions/sno_type.h"

PG_FUNCTION_INFO_V1(sno_in);
PG_FUNCTION_INFO_V1(sno_out);
PG_FUNCTION_INFO_V1(sno_recv);
PG_FUNCTION_INFO_V1(sno_send);
PG_FUNCTION_INFO_V1(sno_from_bytea);
PG_FUNCTION_INFO_V1(sno_to_uuid);
PG_FUNCTION_INFO_V1(sno_from_uuid);

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
				errdetail("Its bytes must be %d characters, each of which is 2 to 9 or a to x.",
						  SF_SNO_TEXT_LENGTH));
	PG_RETURN_SNO(id);
}
