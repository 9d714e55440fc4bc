/*
 * snowflake.c
 *	  Start of the module, and its version.
 *
 * How an ID comes about, file by file: nextval.c is called from SQL and asks
 * generator.c, which hands out what this backend holds.  When that is used up,
 * generator.c takes the next lease (core/lease.c) from the cursor of a line in
 * shared memory (line.h, shared.c), waits where the clock demands it (wait.c), has the ceiling
 * raised where the line is not reserved far enough (ceiling.c), and composes
 * IDs (core/layout.h) with the machine ID (machine.c).  IDs of type sno come the
 * same way, from sno_nextval.c and a line of their own (core/timeline.h).
 *
 * A line is moved, while others lease from it, by an administrator (admin.c, line_move.c),
 * by a clock that has stepped back (change_over.c), and by a registry that leases machine
 * IDs: registrar.c asks it, by the calls of registry_client.c, span.c has what was leased,
 * and line_span.c gives it to the lines.  What outlives the server is in line_state.c, in
 * a register (register.c) that PostgreSQL keeps.
 *
 * IDs are taken apart by decode.c and sno_fields.c, times become IDs in encode.c, and
 * conditions on times conditions on IDs in pushdown.c.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "compat.h"
#include "discard.h"
#include "kept.h"
#include "machine.h"
#include "pushdown.h"
#include "registrar.h"
#include "settings.h"
#include "shared.h"

SF_MODULE_MAGIC("snowflake", SF_VERSION);

/* The name that PostgreSQL looks for. */
extern PGDLLEXPORT void _PG_init(void); /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/*
 * All that can raise comes first: a library that fails to load is loaded again by the next
 * call in the session, and a setting that was defined cannot be defined once more.
 */
void
_PG_init(void)
{
	sf_settings_check();
	sf_registrar_check();
	sf_kept_init();
	sf_settings_init();
	sf_registrar_init();
	sf_shared_init();
	sf_machine_init();
	sf_pushdown_init();
	sf_discard_init();
	MarkGUCPrefixReserved("snowflake");
}

/*
 * snowflake_version() returns text
 *
 * The release of the loaded library.  Where it is preloaded, that is the one of the server's
 * start: a newer one that was installed meanwhile is loaded by a restart.
 */
PG_FUNCTION_INFO_V1(snowflake_version);

Datum
snowflake_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(SF_VERSION));
}
