/*
 * nextval.h
 *	  SQL functions that issue a set of IDs.
 */
#ifndef SF_NEXTVAL_H
#define SF_NEXTVAL_H

#include "postgres.h"
#include "fmgr.h"

/*
 * The body of a set-returning function.  Its first argument, an int4, is the number of IDs
 * to return.  Each call returns one ID, so a select list streams any number of them in
 * constant memory.  The function next issues one ID; it gets the arguments of the call.
 *
 * Raises invalid_parameter_value if the count is negative, and the errors of next.
 */
extern Datum sf_nextval_set(FunctionCallInfo fcinfo, PGFunction next);

#endif							/* SF_NEXTVAL_H */
