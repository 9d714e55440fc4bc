/*
 * snowflake.c
 *	  Initialization of the library, and its version.
 *
 * README.md in this directory describes all parts and the order in which to read them.  To follow
 * one ID, begin with functions/nextval.c.  It calls generator/generator.c, which takes a batch
 * (core/batch.h) from the generator in shared memory (state/generator_state.h).
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "compat.h"
#include "functions/functions.h"
#include "guc.h"
#include "state/postmaster_memory.h"
#include "pushdown/pushdown.h"
#include "registry/worker.h"
#include "state/shared.h"

SF_MODULE_MAGIC("snowflake", SF_VERSION);

/* PostgreSQL calls this function when it has loaded the library. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern PGDLLEXPORT void _PG_init(void);

/*
 * The calls that can raise an error come first.  After an error the next call in the session
 * loads the library again, and a setting cannot be defined twice.
 */
void
_PG_init(void)
{
	sf_guc_check();
	sf_postmaster_memory_init();
	sf_guc_init();
	sf_registry_worker_init();
	sf_shared_init();
	sf_pushdown_init();
	sf_discard_init();
}

/*
 * snowflake_version() returns text
 *
 * The release of the loaded library.  A preloaded library was loaded when the server started;
 * a release that was installed since then is loaded by a restart.
 */
PG_FUNCTION_INFO_V1(snowflake_version);

Datum
snowflake_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(SF_VERSION));
}
