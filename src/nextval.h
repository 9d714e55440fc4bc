/*
 * nextval.h
 *	  SQL functions that issue a set of IDs.
 */
#ifndef SF_NEXTVAL_H
#define SF_NEXTVAL_H

#include "postgres.h"
#include "fmgr.h"

/*
 * The body of a function that returns a set of as many IDs as its int4 argument number
 * argno says, one a call, so that a select list can stream any number of them in constant
 * memory.  next is what issues one, for the arguments of the call.
 *
 * Raises invalid_parameter_value when the count is negative, and what next raises.
 */
extern Datum sf_nextval_set(FunctionCallInfo fcinfo, int argno, PGFunction next);

#endif							/* SF_NEXTVAL_H */
