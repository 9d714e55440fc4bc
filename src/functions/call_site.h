/*
 * call_site.h
 *	  What a call site keeps from one call to the next.
 */
#ifndef SF_CALL_SITE_H
#define SF_CALL_SITE_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "fmgr.h"

/* Kept in fn_extra, and allocated in fn_mcxt, so that it lives as long as the call site. */
typedef struct SfCallSite
{
	struct SfLayoutCache *layout;	/* the last layout argument; NULL before
									 * the first call */
	TupleDesc	row;			/* the row that is returned; NULL before the
								 * first call */
} SfCallSite;

static inline SfCallSite *
sf_call_site(FunctionCallInfo fcinfo)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;

	if (flinfo->fn_extra == NULL)
		flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(SfCallSite));
	return flinfo->fn_extra;
}

#endif							/* SF_CALL_SITE_H */
