/*
 * worker.h
 *	  The background worker that leases a machine ID for this server from a registry.
 */
#ifndef SF_REGISTRY_WORKER_H
#define SF_REGISTRY_WORKER_H

#include "postgres.h"

/*
 * Register the worker, which then starts with the server, if a registry is set.  The settings must
 * have been defined.
 */
extern void sf_registry_worker_init(void);

/* Main function of the worker. */
extern PGDLLEXPORT void snowflake_registry_worker_main(Datum argument);

#endif							/* SF_REGISTRY_WORKER_H */
