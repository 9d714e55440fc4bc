/*
 * guc.h
 *	  Definition of all settings, with their hooks.
 */
#ifndef SF_GUC_H
#define SF_GUC_H

/*
 * Raises invalid_parameter_value if the configuration file, or a SET that was run before the
 * library was loaded, has a malformed layout, sequence range or connection string.  The server
 * then does not start, or the library is not loaded.  Raises cant_change_runtime_param if a session
 * would decode IDs in another layout than others.
 */
extern void sf_guc_check(void);

/* Define the settings.  At the start of the server, warns if they are inconsistent. */
extern void sf_guc_init(void);

#endif							/* SF_GUC_H */
