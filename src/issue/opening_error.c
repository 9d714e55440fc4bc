/*
 * opening_error.c
 *	  Errors of calls that need an ID from a generator that cannot be opened.
 */
#include "postgres.h"

#include "issue/opening_error.h"

/*
 * Without slots, PostgreSQL does not load the progress of origins.  With slots, the progress is
 * loaded again.
 */
static void
report_no_slots(const SfGenerator *generator)
{
	ereport(ERROR,
			errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			errmsg("could not read the durable state of %s IDs", sf_generator_name(generator)),
			errdetail("The state is kept as the progress of replication origins, which is not loaded because \"%s\" is 0.",
					  SF_MAX_ORIGINS_NAME),
			errhint("Set \"%s\" to at least %d, and restart the server.",
					SF_MAX_ORIGINS_NAME, SF_DURABLE_COUNT));
}

const char *
sf_floor_function(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno_set_floor" : "snowflake_set_floor";
}

const char *
sf_back_function(SfGeneratorKind kind)
{
	return kind == SF_GENERATOR_SNO ? "sno_move_back" : "snowflake_move_back";
}

static void
report_lost(const SfGenerator *generator)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the durable state of %s IDs is missing", sf_generator_name(generator)),
			errdetail("The server cannot determine which IDs it has issued.  pg_upgrade and pg_dumpall do not preserve this state."),
			errhint("Use %s() with a time after the newest existing ID, or with now() if the clock is after that ID.  With an earlier time, IDs are issued twice.",
					sf_floor_function(generator->kind)));
}

static void
report_invalid(void)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the recorded layout of Snowflake IDs is invalid"),
			errdetail("The recorded numbers do not describe a layout."),
			errhint("Set \"snowflake.layout\" to the layout of the existing IDs, and use snowflake_accept_layout()."));
}

static void
report_moved_back(const SfGenerator *generator)
{
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the generator of %s IDs is closed until the server is restarted",
				   sf_generator_name(generator)),
			errdetail("The generator was moved back by %s().", sf_back_function(generator->kind)),
			errhint("Restart the server."));
}

static void
report_other_layout(const SfGenerator *generator)
{
	SfLayout	recorded;
	char		recorded_text[SF_LAYOUT_TEXT_SIZE] = "";
	char		text[SF_LAYOUT_TEXT_SIZE];

	if (sf_durable_layout_read(&recorded) == SF_OPENING_DONE)
		sf_layout_format(&recorded, recorded_text);
	sf_layout_format(&generator->layout, text);
	ereport(ERROR,
			errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("\"snowflake.layout\" does not match the layout of this cluster"),
			errdetail("Snowflake IDs are issued in the layout \"%s\", but the setting is \"%s\".",
					  recorded_text, text),
			errhint("Change \"snowflake.layout\" back, or use snowflake_accept_layout().  IDs of the two layouts can be equal, and do not sort by time."));
}

void
sf_report_not_opened(const SfGenerator *generator, SfOpening reason)
{
	if (sf_max_origins() == 0)
		report_no_slots(generator);
	sf_durable_refuse_dropped();
	switch (reason)
	{
		case SF_OPENING_LOST:
			report_lost(generator);
			break;
		case SF_OPENING_INVALID:
			report_invalid();
			break;
		case SF_OPENING_OTHER_LAYOUT:
			report_other_layout(generator);
			break;
		case SF_OPENING_MOVED_BACK:
			report_moved_back(generator);
			break;
		case SF_OPENING_DONE:
			break;
	}
	elog(ERROR, "unexpected result of opening a generator: %d", (int) reason);
}

/* The barrier pairs with the barrier in sf_change_stop. */
void
sf_refuse_moved_back(SfGenerator *generator)
{
	pg_read_barrier();
	if (pg_atomic_read_u32(&generator->moved_back) != 0)
		sf_report_not_opened(generator, SF_OPENING_MOVED_BACK);
}
