/*
 * functions.h
 *	  SQL functions that pushdown/ recognizes by their address, and the hook of snowflake_currval().
 */
#ifndef SF_FUNCTIONS_H
#define SF_FUNCTIONS_H

#include "postgres.h"
#include "fmgr.h"

extern PGDLLEXPORT Datum snowflake_timestamp(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum snowflake_to_base32(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum snowflake_base32_id(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum snowflake_decode(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum sno_decode(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum snowflake_boundary(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum snowflake_later(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum sno_timestamp(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum sno_boundary(PG_FUNCTION_ARGS);

/* Install the hook with which DISCARD clears the value of snowflake_currval() (nextval.c). */
extern void sf_discard_init(void);

#endif							/* SF_FUNCTIONS_H */
