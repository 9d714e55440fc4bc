/*
 * settings.h
 *	  The values of the settings, and the rules over several of them.
 */
#ifndef SF_SETTINGS_H
#define SF_SETTINGS_H

#include "postgres.h"

#include "core/layout.h"
#include "core/sequence_range.h"

#define SF_MACHINE_ID_UNSET	(-1)

/* The hint of every error about a layout's text. */
#define SF_LAYOUT_HINT \
	"Use the name of a layout in the view snowflake_layouts, or a definition such as " \
	"\"epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=8 sequence=14\"."

/* Of this process: sessions use the published values (issue/shared.h). */
extern int	sf_settings_machine_id;
extern int	sf_settings_sno_partition;
extern int	sf_settings_max_ahead;	/* ms */
extern int	sf_settings_max_clock_step; /* ms; 0: no check */
extern int	sf_settings_sequence_jitter;

extern int	sf_settings_max_wait;	/* ms; 0: fail at once; -1: no limit */
extern bool sf_settings_enable_timestamp_pushdown;

extern char *sf_settings_registry;	/* connection string, empty for none */
extern int	sf_settings_registry_lease; /* s; 0: see registry/worker.c */
extern bool sf_settings_registry_standby;	/* a standby leases as well */

/*
 * The parsed values of snowflake.layout and of the sequence ranges, and the text of the layout, as
 * short as possible if it is too long for messages.  Set by hooks (snowflake.c).
 */
extern SfLayout sf_settings_layout;
extern char sf_settings_layout_text[SF_LAYOUT_TEXT_SIZE];
extern SfSequenceRange sf_settings_sequence_range;
extern SfSequenceRange sf_settings_sno_sequence_range;

/* Whether this server leases its machine ID from a registry; fixed when the server starts. */
extern bool sf_settings_has_registry(void);

/*
 * Whether a machine ID (if set) and the sequence range fit the bits of the layout.  If they do not,
 * this is reported at elevel: WARNING at start and reload, ERROR (invalid_parameter_value) at use,
 * DEBUG1 if the caller reports it in another way.
 */
extern bool sf_settings_fit(int machine_id, int elevel);

#endif							/* SF_SETTINGS_H */
