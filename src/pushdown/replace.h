/*
 * replace.h
 *	  Conditions on the time or text of an ID become conditions on the ID.
 */
#ifndef SF_REPLACE_H
#define SF_REPLACE_H

#include "postgres.h"

#include "pushdown/match.h"

/*
 * A list of conditions that are connected by AND, as the planner keeps them, with all conditions in
 * them replaced; a new list.  Returns the list itself if nothing was replaced.
 */
extern List *sf_replace_in_list(SfPass *pass, List *conditions);

/*
 * The same for the conditions of WHERE and JOIN ON, in place: lists if the planner has begun, and
 * otherwise expressions.
 */
extern void sf_replace_in_joins(SfPass *pass, Node *join);

#endif							/* SF_REPLACE_H */
