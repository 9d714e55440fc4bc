/*
 * text.h
 *	  Conditions on an ID in base 32 become conditions on the ID.
 */
#ifndef SF_TEXT_H
#define SF_TEXT_H

#include "postgres.h"

#include "pushdown/match.h"

/*
 * The replacements of comparisons of an ID in base 32 with a text, in a collation, and with the
 * elements of an array; NULL if there is none.
 */
extern Expr *sf_replace_text(SfPass *pass, const SfComparison *comparison, Node *text,
							 Oid collation);
extern Expr *sf_replace_text_any(SfPass *pass, const SfComparison *comparison,
								 ScalarArrayOpExpr *any);

#endif							/* SF_TEXT_H */
