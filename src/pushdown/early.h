/*
 * early.h
 *	  Replacements before the planner begins.
 */
#ifndef SF_EARLY_H
#define SF_EARLY_H

#include "postgres.h"

/* Install the planner hook. */
extern void sf_early_init(void);

#endif							/* SF_EARLY_H */
