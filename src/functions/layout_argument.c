/*
 * layout_argument.c
 *	  Arguments of SQL functions that are layouts, or IDs of a layout.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "compat.h"
#include "functions/call_site.h"
#include "functions/layout_argument.h"
#include "settings.h"
#include "state/shared.h"

/* The last layout argument of a call site, parsed. */
typedef struct SfLayoutCache
{
	SfLayout	layout;
	Size		length;
	char		text[FLEXIBLE_ARRAY_MEMBER];
}			SfLayoutCache;

static SfLayoutCache *
parse_layout(FmgrInfo *flinfo, text * argument)
{
	Size		length = VARSIZE_ANY_EXHDR(argument);
	SfLayoutCache *cache;
	SfLayout	layout;
	SfParseError error;
	char	   *string = text_to_cstring(argument);

	if (!sf_layout_parse(string, &layout, &error))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("invalid Snowflake layout \"%s\"", string),
				errdetail("At character %zu, %s.", error.position, error.message),
				errhint("%s", SF_LAYOUT_HINT));
	pfree(string);

	cache = MemoryContextAlloc(flinfo->fn_mcxt, offsetof(SfLayoutCache, text) + length);
	cache->layout = layout;
	cache->length = length;
	memcpy(cache->text, VARDATA_ANY(argument), length);
	return cache;
}

const SfLayout *
sf_layout_argument(FunctionCallInfo fcinfo, int argno)
{
	SfCallSite *site;
	SfLayoutCache *cache;
	text	   *argument;

	if (PG_NARGS() <= argno)
		return sf_layout_in_force();
	site = sf_call_site(fcinfo);
	cache = site->layout;
	argument = PG_GETARG_TEXT_PP(argno);
	if (cache == NULL ||
		cache->length != VARSIZE_ANY_EXHDR(argument) ||
		memcmp(cache->text, VARDATA_ANY(argument), cache->length) != 0)
	{
		SfLayoutCache *old = cache;

		cache = parse_layout(fcinfo->flinfo, argument);
		site->layout = cache;
		if (old)
			pfree(old);
	}
	PG_FREE_IF_COPY(argument, argno);
	return &cache->layout;
}

int
sf_layout_errhint(FunctionCallInfo fcinfo, int argno)
{
	if (PG_NARGS() > argno)
		return 0;
	return errhint("The layout is that of \"snowflake.layout\".  Pass another layout as the last argument.");
}

int64
sf_id_argument(FunctionCallInfo fcinfo, int argno, const SfLayout *layout, int layout_argno)
{
	int64		number = PG_GETARG_INT64(argno);

	sf_check_not_negative(number);
	if (unlikely(!sf_layout_holds(layout, number)))
		ereport(ERROR,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("%lld is not a Snowflake ID", (long long) number),
				errdetail("The greatest ID of the layout is %lld.",
						  (long long) sf_layout_last_id(layout)),
				sf_layout_errhint(fcinfo, layout_argno));
	return number;
}
