/*
 * match.h
 *	  Finding comparisons of snowflake_timestamp(id) and sno_timestamp(id) in a query.
 */
#ifndef SF_MATCH_H
#define SF_MATCH_H

#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/primnodes.h"

#include "core/layout.h"

/* A comparison of the time of an ID, which is a column, with an instant. */
typedef struct SfComparison
{
	Expr	   *id;				/* the column, relabelled if of a domain */
	Oid			id_type;		/* bigint or sno */
	StrategyNumber strategy;	/* with the call on the left side */
	Node	   *instant;		/* a timestamptz; not a constant null */
	Oid			function;		/* returns the time of the ID */
	bool		is_sno;			/* the function is sno_timestamp */
	Const	   *layout_text;	/* not for sno */
	SfLayout	layout;			/* not for sno */
} SfComparison;

/* Whether one side of an operator is the time of an ID. */
extern bool sf_compares_time(OpExpr *operator);

/*
 * An expression as a column of any type; NULL if it is not a column.  A column of a
 * domain may be relabelled as its base type, which does not change its value.
 */
extern Var *sf_column(Node *expression);

/*
 * Whether an operator is a comparison of the time of an ID that is worth replacing.  If so,
 * *comparison is filled.
 */
extern bool sf_match_comparison(OpExpr *operator, SfComparison *comparison);

/*
 * Another function of the extension: the one in the schema of the comparison's function
 * with the given name, address and argument types.  InvalidOid if it is not found, or if
 * the user may not call it.
 */
extern Oid	sf_sibling(const SfComparison *comparison, const char *name,
					   PGFunction address, int nargs, Oid *types);

#endif							/* SF_MATCH_H */
