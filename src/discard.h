/*
 * discard.h
 *	  DISCARD ALL and DISCARD SEQUENCES.
 */
#ifndef SF_DISCARD_H
#define SF_DISCARD_H

/* Have them forget what snowflake_currval() would return. */
extern void sf_discard_init(void);

#endif							/* SF_DISCARD_H */
