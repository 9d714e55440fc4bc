/*
 * call.h
 *	  Calls that return the time of an ID, and the functions of the extension.
 *
 * Functions are recognized by the name and address of their C code.  So their names in
 * SQL and their schema do not matter, and no cache of OIDs has to be invalidated.  A function in
 * SQL is recognized by its name and its extension.
 */
#ifndef SF_CALL_H
#define SF_CALL_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "core/layout.h"

/*
 * A call that returns the time of an ID, which is a column.  The layout is the same for all
 * rows, so the order of the IDs is that of their times, and the time is null exactly if the ID
 * is.
 */
typedef struct SfTimeCall
{
	Oid			function;
	bool		is_sno;
	Expr	   *id;				/* the column, relabelled if its type is a
								 * domain */
	Var		   *column;			/* the column without the relabelling */
	Expr	   *layout_argument;	/* a constant; NULL if none */
	SfLayout	layout;
} SfTimeCall;

/*
 * Whether an expression is snowflake_timestamp(id), sno_timestamp(id), or created_at of
 * snowflake_decode(id) or sno_decode(id), for an id that is a column and a layout that is known.
 * If so, *call is filled.  All replacements begin here, and rely on what is said at SfTimeCall.
 */
extern bool sf_time_call(Node *node, SfTimeCall *call);

/* The layout of the server, as an argument. */
extern Expr *sf_layout_constant(void);

/* Whether a function is snowflake_between(). */
extern bool sf_is_between(Oid function);

/* Whether a tree contains one of these functions, in any query of it. */
extern bool sf_mentions_time(Node *node);

/* Whether two calls return the same time of a row: same function, column and layout. */
extern bool sf_same_call(const SfTimeCall *a, const SfTimeCall *b);

/*
 * An expression as a column of any type; NULL if it is not a column.  A column of a
 * domain may be relabelled as its base type, which does not change its value.
 */
extern Var *sf_column(Node *expression);

/*
 * Another function of the extension: the one in the schema of a function with the given name,
 * address and argument types.  InvalidOid if it is not found, or if the user may not call it.
 */
extern Oid	sf_sibling(Oid function, const char *name, PGFunction address,
					   int nargs, Oid *types, bool *depends_on_role);

/*
 * Whether the current user may call a function.  If this depends on the user, *depends_on_role
 * becomes true.
 */
extern bool sf_may_call(Oid function, bool *depends_on_role);

#endif							/* SF_CALL_H */
