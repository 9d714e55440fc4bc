/*
 * call.h
 *	  Calls that return the time of an ID, and the functions of the extension.
 */
#ifndef SF_CALL_H
#define SF_CALL_H

#include "postgres.h"

#include "nodes/primnodes.h"

#include "core/layout.h"
#include "pushdown/bucket.h"

/*
 * A call that returns the time of an ID, which is a column.  The layout is the same for all
 * rows, so the IDs have the same order as their times, and the time is null exactly if the ID is.
 * The time can be rounded to a bucket.  Or a call that returns the ID in base 32 (text.c).
 */
typedef struct SfCall
{
	Oid			function;
	bool		is_sno;
	bool		is_text;		/* the call returns the ID as text */
	Oid			collation;		/* of the text */
	SfBucket	bucket;
	Expr	   *id;				/* the column, relabelled if its type is a
								 * domain */
	Oid			id_type;		/* bigint or sno */
	Var		   *column;			/* the column without the relabelling */
	Expr	   *layout_argument;	/* a constant; NULL if none */
	SfLayout	layout;
} SfCall;

/*
 * Whether an expression is snowflake_timestamp(id), sno_timestamp(id), created_at of
 * snowflake_decode(id) or sno_decode(id), one of these rounded to a bucket, or
 * snowflake_to_base32(id) in any collation, for an id that is a column and a layout that is known.
 * If so, *call is filled.  All replacements begin here, and rely on the rules at SfCall.
 */
extern bool sf_time_call(Node *node, SfCall *call);

/* The layout of the server, as an argument. */
extern Expr *sf_layout_constant(void);

/* Whether a function is snowflake_between(). */
extern bool sf_is_between(Oid function);

/* Whether a tree contains one of these functions, in any query of it. */
extern bool sf_mentions_time(Node *node);

/*
 * A call to another function of the extension, in the schema of a function, with the given name,
 * address and types of arguments.  NULL if it is not found, or if the user may not call it.
 */
extern FuncExpr *sf_call_sibling(Oid function, const char *name, PGFunction address,
								 List *arguments, Oid collation, bool *depends_on_role);

/*
 * Whether the current user may call a function.  If this depends on the user, *depends_on_role
 * becomes true.
 */
extern bool sf_may_call(Oid function, bool *depends_on_role);

#endif							/* SF_CALL_H */
