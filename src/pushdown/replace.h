/*
 * replace.h
 *	  Conditions on the ID in place of conditions on its time.
 */
#ifndef SF_REPLACE_H
#define SF_REPLACE_H

#include "postgres.h"

#include "pushdown/match.h"

/* A condition with all conditions in it replaced; a new tree. */
extern Node *sf_replace_in_condition(SfPass *pass, Node *condition);

/*
 * As sf_replace_in_condition, for a list of conditions that are connected by AND, as the planner
 * keeps them.  Returns the list itself if nothing was replaced.
 */
extern List *sf_replace_in_list(SfPass *pass, List *conditions);

#endif							/* SF_REPLACE_H */
