/*
 * arguments.c
 *	  Arguments and result rows of SQL functions.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "core/sno.h"
#include "functions/arguments.h"
#include "issue/shared.h"
#include "settings.h"

/*
 * What a call site keeps from one call to the next.  Kept in fn_extra, and allocated in fn_mcxt, so
 * that it lives as long as the call site.
 */
typedef struct SfCallSite
{
	char	   *layout_text;	/* the last layout argument, or NULL */
	SfLayout	layout;			/* the same, parsed */
	TupleDesc	row;			/* the type of the returned row, or NULL */
} SfCallSite;

static SfCallSite *
call_site(FunctionCallInfo fcinfo)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	if (flinfo->fn_extra == NULL)
		flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(SfCallSite));
	return flinfo->fn_extra;
}

static void
parse_layout(SfCallSite *site, MemoryContext context, const text * argument)
{
	char	   *string = text_to_cstring(argument);
	char	   *old = site->layout_text;
	SfLayout	layout;
	SfParseError error;

	if (!sf_layout_parse(string, &layout, &error))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("invalid Snowflake layout \"%s\"", string),
				errdetail("At character %zu, %s.", error.position, error.message),
				errhint("%s", SF_LAYOUT_HINT));
	site->layout_text = MemoryContextStrdup(context, string);
	site->layout = layout;
	pfree(string);
	if (old)
		pfree(old);
}

const SfLayout *
sf_layout_argument(FunctionCallInfo fcinfo, int argno)
{
	SfCallSite *site;
	text	   *argument;
	Size		length;

	if (PG_NARGS() <= argno)
		return sf_layout_in_force();
	site = call_site(fcinfo);
	argument = PG_GETARG_TEXT_PP(argno);
	length = VARSIZE_ANY_EXHDR(argument);
	if (site->layout_text == NULL ||
		strncmp(site->layout_text, VARDATA_ANY(argument), length) != 0 ||
		site->layout_text[length] != '\0')
		parse_layout(site, fcinfo->flinfo->fn_mcxt, argument);
	PG_FREE_IF_COPY(argument, argno);
	return &site->layout;
}

int
sf_layout_errhint(FunctionCallInfo fcinfo)
{
	if (call_site(fcinfo)->layout_text)
		return 0;
	return errhint("To use another layout than \"snowflake.layout\", pass it as the last argument.");
}

uint64
sf_tick_argument(FunctionCallInfo fcinfo, const SfLayout *layout)
{
	TimestampTz created_at = PG_GETARG_TIMESTAMPTZ(0);
	int64		tick = sf_layout_tick_floor(layout, created_at);
	uint64		last_tick = sf_layout_last_tick(layout);
	bool		is_sno = layout == &sf_sno_layout;

	if (TIMESTAMP_NOT_FINITE(created_at) || tick < 0 || (uint64) tick > last_tick)
	{
		/* timestamptz_to_str has one buffer, so its result is copied */
		char	   *first = pstrdup(timestamptz_to_str(layout->epoch));
		char	   *last = pstrdup(timestamptz_to_str(sf_layout_tick_start(layout, last_tick)));

		ereport(ERROR,
				errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
				errmsg(is_sno ? "timestamp %s is out of range for type sno" :
					   "timestamp %s is out of range for the Snowflake layout",
					   timestamptz_to_str(created_at)),
				errdetail(is_sno ? "The range is from %s to %s." :
						  "The first tick of the layout begins at %s, and the last one at %s.",
						  first, last),
				is_sno ? 0 : sf_layout_errhint(fcinfo));
	}
	return (uint64) tick;
}

uint32
sf_sno_field_argument(FunctionCallInfo fcinfo, int argno, const char *name, int max)
{
	int32		value = PG_GETARG_INT32(argno);

	if (value < 0 || value > max)
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("argument \"%s\" is out of range for type sno", name),
				errdetail("The argument is %d.  The range is from 0 to %d.", value, max));
	return (uint32) value;
}

/*
 * The type is looked up once for each call site, because the look-up in the catalogs takes longer
 * than all else that the functions do.
 */
TupleDesc
sf_row_type(FunctionCallInfo fcinfo)
{
	SfCallSite *site = call_site(fcinfo);

	if (site->row == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (get_call_result_type(fcinfo, NULL, &site->row) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		BlessTupleDesc(site->row);
		MemoryContextSwitchTo(old);
	}
	return site->row;
}
