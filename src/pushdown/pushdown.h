/*
 * pushdown.h
 *	  Replacing comparisons of an ID's time by comparisons of the ID.
 */
#ifndef SF_PUSHDOWN_H
#define SF_PUSHDOWN_H

/* Install the planner hook that replaces such comparisons in each query. */
extern void sf_pushdown_init(void);

#endif							/* SF_PUSHDOWN_H */
