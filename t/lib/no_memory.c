/*
 * no_memory.c
 *	  A library with which an allocation fails: the next one of a given size in TopMemoryContext.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(fail_allocation);

static const MemoryContextMethods *true_methods;
static MemoryContextMethods methods;
static Size failing_size;

/* The size and, since 17, flags. */
#if PG_VERSION_NUM >= 170000
static void *
fail(MemoryContext context, Size size, int flags)
#else
static void *
fail(MemoryContext context, Size size)
#endif
{
	if (size == failing_size)
	{
		context->methods = true_methods;
		ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
	}
#if PG_VERSION_NUM >= 170000
	return true_methods->alloc(context, size, flags);
#else
	return true_methods->alloc(context, size);
#endif
}

/* fail_allocation(size int) returns void */
Datum
fail_allocation(PG_FUNCTION_ARGS)
{
	failing_size = (Size) PG_GETARG_INT32(0);
	true_methods = TopMemoryContext->methods;
	methods = *true_methods;
	methods.alloc = fail;
	TopMemoryContext->methods = &methods;
	PG_RETURN_VOID();
}
