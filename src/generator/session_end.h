/*
 * session_end.h
 *	  The end of a session that has issued IDs.
 */
#ifndef SF_SESSION_END_H
#define SF_SESSION_END_H

#include "postgres.h"

/* A callback for before_shmem_exit: returns the reservation if the server is being stopped. */
extern void sf_session_end(int code, Datum argument);

#endif							/* SF_SESSION_END_H */
