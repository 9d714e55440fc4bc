/*
 * registrar.h
 *	  The background worker that leases a machine ID for this server from a registry.
 */
#ifndef SF_REGISTRAR_H
#define SF_REGISTRAR_H

#include "postgres.h"

/*
 * Raises invalid_parameter_value when snowflake.registry is malformed: the server does
 * not start, or the library does not load.
 */
extern void sf_registrar_check(void);

/*
 * Define snowflake.registry and snowflake.registry_lease, and have the registrar started
 * where the server is, and a registry is set.  Comes after sf_settings_init and
 * sf_kept_init.
 */
extern void sf_registrar_init(void);

/* Whether this server leases its machine ID; fixed by its start. */
extern bool sf_registrar_wanted(void);

/* Main function of the worker. */
extern PGDLLEXPORT void snowflake_registrar_main(Datum argument);

#endif							/* SF_REGISTRAR_H */
