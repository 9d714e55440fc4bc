/*
 * pushdown.h
 *	  Comparisons of an ID's time become comparisons of the ID.
 */
#ifndef SF_PUSHDOWN_H
#define SF_PUSHDOWN_H

/* Have the planner look for such comparisons in each query from now on. */
extern void sf_pushdown_init(void);

#endif							/* SF_PUSHDOWN_H */
