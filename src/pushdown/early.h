/*
 * early.h
 *	  Conditions that are replaced before the planner begins.
 */
#ifndef SF_EARLY_H
#define SF_EARLY_H

/* Install the planner hook. */
extern void sf_early_init(void);

#endif							/* SF_EARLY_H */
