/*
 * order.h
 *	  The order of IDs is the order of their times.
 */
#ifndef SF_ORDER_H
#define SF_ORDER_H

#include "postgres.h"

/* Install the hooks that offer paths in the order of the time of an ID. */
extern void sf_order_init(void);

#endif							/* SF_ORDER_H */
