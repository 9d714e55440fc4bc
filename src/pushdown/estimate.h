/*
 * estimate.h
 *	  Estimates of conditions that stay beside a range of IDs.
 */
#ifndef SF_ESTIMATE_H
#define SF_ESTIMATE_H

#include "postgres.h"

/* Install the hook that sets these estimates. */
extern void sf_estimate_init(void);

#endif							/* SF_ESTIMATE_H */
