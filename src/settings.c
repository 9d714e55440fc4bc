/*
 * settings.c
 *	  The values of the settings, and the rules over several of them.
 */
#include "postgres.h"

#include "settings.h"

int			sf_settings_machine_id = SF_MACHINE_ID_UNSET;
int			sf_settings_sno_partition = SF_MACHINE_ID_UNSET;
int			sf_settings_max_ahead = 10;
int			sf_settings_max_wait = 5000;
int			sf_settings_max_clock_step = 3600 * 1000;
int			sf_settings_sequence_jitter = 0;
bool		sf_settings_enable_timestamp_pushdown = true;

char	   *sf_settings_registry;
int			sf_settings_registry_lease;
bool		sf_settings_registry_standby;
char		sf_settings_layout_text[SF_LAYOUT_TEXT_SIZE];
SfLayout	sf_settings_layout;
SfSequenceRange sf_settings_sequence_range;
SfSequenceRange sf_settings_sno_sequence_range;

bool
sf_settings_has_registry(void)
{
	return sf_settings_registry[0] != '\0';
}

bool
sf_settings_fit(int machine_id, int elevel)
{
	const SfLayout *layout = &sf_settings_layout;
	const char *text = sf_settings_layout_text;
	SfSequenceRange range = sf_settings_sequence_range;
	int64		machine_max = (int64) sf_field_max(layout->machine_bits);
	int64		sequence_max = (int64) sf_field_max(layout->sequence_bits);
	bool		all_sequences = range.min == 0 && range.max == SF_SEQUENCE_MAX;

	if (layout->machine_bits > 0 && machine_id > machine_max)
	{
		ereport(elevel,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("machine ID %d does not fit the Snowflake layout \"%s\"", machine_id, text),
				errdetail("The layout has %d bits for the machine ID, which allow 0 to %lld.",
						  layout->machine_bits, (long long) machine_max),
				errhint("Change \"snowflake.machine_id\".  If no ID has been issued yet, you can change \"snowflake.layout\" instead."));
		return false;
	}
	if (!all_sequences && range.max > sequence_max)
	{
		ereport(elevel,
				errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("sequence range \"%u-%u\" does not fit the Snowflake layout \"%s\"",
					   range.min, range.max, text),
				errdetail("The layout has %d bits for the sequence number, which allow 0 to %lld.",
						  layout->sequence_bits, (long long) sequence_max),
				errhint("Change \"snowflake.sequence_range\".  If no ID has been issued yet, you can change \"snowflake.layout\" instead."));
		return false;
	}
	return true;
}
