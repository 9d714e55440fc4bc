/*
 * comparison.h
 *	  Comparisons of snowflake_timestamp(id) and sno_timestamp(id) in a query.
 */
#ifndef SF_COMPARISON_H
#define SF_COMPARISON_H

#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/primnodes.h"

#include "core/layout.h"

/* A comparison of the time of an ID, a column, with an instant. */
typedef struct SfComparison
{
	Expr	   *id;				/* relabelled, if it is of a domain */
	Oid			id_type;		/* bigint or sno */
	StrategyNumber strategy;	/* as if the call were on the left */
	Node	   *instant;		/* a timestamptz; if a constant, not null */
	Oid			function;		/* the one that gives the time */
	bool		is_sno;			/* sno_timestamp; else there is a layout */
	Const	   *layout_text;
	SfLayout	layout;
} SfComparison;

/* Whether an operator compares the time of an ID with anything. */
extern bool sf_compares_time(OpExpr *operator);

/*
 * The column that an expression is, of whatever type; NULL if it is anything else.
 * One of a domain is read as the type below it without a change of its value.
 */
extern Var *sf_column(Node *expression);

/*
 * Whether an operator is a comparison that is worth replacing, and which one.
 */
extern bool sf_match_comparison(OpExpr *operator, SfComparison *comparison);

/*
 * A function of the extension that the comparison's function belongs to: in the
 * same schema, with the name, address and argument types given.  InvalidOid where
 * it is not found, or where the user may not call it.
 */
extern Oid	sf_sibling(const SfComparison *comparison, const char *name,
					   PGFunction address, int nargs, Oid *types);

#endif							/* SF_COMPARISON_H */
