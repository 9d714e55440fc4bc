/*
 * pushdown.h
 *	  Queries by the time of an ID are answered by the ID.
 */
#ifndef SF_PUSHDOWN_H
#define SF_PUSHDOWN_H

/* Install the hooks that rewrite queries. */
extern void sf_pushdown_init(void);

#endif							/* SF_PUSHDOWN_H */
