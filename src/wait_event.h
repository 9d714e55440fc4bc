/*
 * wait_event.h
 *	  What processes wait for, as pg_stat_activity shows it.
 */
#ifndef SF_WAIT_EVENT_H
#define SF_WAIT_EVENT_H

#include "postgres.h"

typedef enum SfWaitEvent
{
	SF_WAIT_CLOCK,				/* a session, for the clock */
	SF_WAIT_REGISTER,			/* a session, for who has locked the register */
	SF_WAIT_SPAN,				/* a session, for a machine ID to be leased */
	SF_WAIT_REGISTRY,			/* the registrar, for the registry's answer */
	SF_WAIT_REGISTRAR,			/* the registrar, until something is due */
} SfWaitEvent;

/* The number that PostgreSQL knows an event by: before 17 that of all extensions. */
extern uint32 sf_wait_event(SfWaitEvent event);

#endif							/* SF_WAIT_EVENT_H */
