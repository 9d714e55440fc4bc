/*
 * expression.h
 *	  Expressions that are a constant or a column.
 */
#ifndef SF_EXPRESSION_H
#define SF_EXPRESSION_H

#include "postgres.h"

#include "nodes/primnodes.h"

/* Whether an expression is a constant that is not null. */
static inline bool
sf_is_constant(Node *node)
{
	return IsA(node, Const) && !((Const *) node)->constisnull;
}

/*
 * An expression as a column of any type; NULL if it is not a column.  A column of a
 * domain may be relabelled as its base type, which does not change its value.
 */
static inline Var *
sf_column(Node *expression)
{
	while (expression && IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	return expression && IsA(expression, Var) ? (Var *) expression : NULL;
}

#endif							/* SF_EXPRESSION_H */
