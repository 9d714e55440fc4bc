/*
 * discard.h
 *	  DISCARD ALL and DISCARD SEQUENCES.
 */
#ifndef SF_DISCARD_H
#define SF_DISCARD_H

/* Install the hook with which these commands clear the value of snowflake_currval(). */
extern void sf_discard_init(void);

#endif							/* SF_DISCARD_H */
