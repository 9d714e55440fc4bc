/*
 * discard.h
 *	  DISCARD ALL and DISCARD SEQUENCES.
 */
#ifndef SF_DISCARD_H
#define SF_DISCARD_H

/* Install the hook by which these commands forget the value of snowflake_currval(). */
extern void sf_discard_init(void);

#endif							/* SF_DISCARD_H */
