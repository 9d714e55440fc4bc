/*
 * settings.h
 *	  The settings of the generator, and the rules over several of them.
 */
#ifndef SF_SETTINGS_H
#define SF_SETTINGS_H

#include "postgres.h"

#include "core/layout.h"
#include "core/sequence_range.h"

#define SF_MACHINE_ID_UNSET	(-1)

/* The hint of every error about a layout's text. */
#define SF_LAYOUT_HINT \
	"Name a preset of the view snowflake_layouts, or define a layout as in " \
	"\"epoch=2024-01-01T00:00:00Z tick=1ms timestamp=41 machine=8 sequence=14\"."

extern int	sf_settings_machine_id; /* what this process has, perhaps late */
extern int	sf_settings_sno_partition;	/* the same */
extern int	sf_max_ahead;		/* ms; what holds is sf_line_max_ahead() */
extern int	sf_max_wait;		/* ms; 0: fail at once; -1: no limit */
extern int	sf_max_clock_step;	/* ms; 0: no check */
extern int	sf_sequence_jitter;
extern bool sf_enable_timestamp_pushdown;

/*
 * Raises invalid_parameter_value when the configuration file, or a SET of before the
 * library was loaded, has a malformed layout or sequence range: the server does not start,
 * or the library does not load.
 */
extern void sf_settings_check(void);

/* Define the settings, except those that machine.c and registrar.c have. */
extern void sf_settings_init(void);

/* What snowflake.layout and snowflake.sequence_range say, parsed. */
extern const SfLayout *sf_settings_layout(void);
extern const char *sf_settings_layout_text(void);
extern SfSequenceRange sf_settings_sequence_range(void);
extern SfSequenceRange sf_settings_sno_sequence_range(void);

/* Warn if the layout's timestamp bits are used up in a few years. */
extern void sf_settings_warn_of_end(void);

/*
 * Whether settings fit each other: a machine ID (if set) and a sequence range within
 * the bits of a layout, which has this text in messages.  What does not is reported at
 * elevel: WARNING at start and reload, ERROR (invalid_parameter_value) at use, DEBUG1 where
 * the caller tells in another way.
 */
extern bool sf_settings_fit(const SfLayout *fitted, const char *text, SfSequenceRange range,
							int machine_id, int elevel);

#endif							/* SF_SETTINGS_H */
