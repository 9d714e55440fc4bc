/*
 * slots.h
 *	  The slots for replication origins that the durable state takes.
 */
#ifndef SF_SLOTS_H
#define SF_SLOTS_H

#include "state/durable.h"

/*
 * Drop the origin of a number, which gives back its slot.  The number is lost at once, even if the
 * transaction is rolled back.  Raises object_in_use if a session uses the origin.
 */
extern void sf_slot_give_back(SfDurable number);

#endif							/* SF_SLOTS_H */
