/*
 * register.h
 *	  The one number of a line that outlives the server: its durable ceiling, and what else
 *	  belongs to it.
 */
#ifndef SF_REGISTER_H
#define SF_REGISTER_H

#include "postgres.h"

#include "replication/origin.h"

#include "compat.h"
#include "line.h"

/*
 * The number of a register that was made and not written since.  It is not 0: PostgreSQL sets
 * the number to 0 when a register is dropped, and a drop that is rolled back leaves it so.
 */
#define SF_REGISTER_NEW		UINT64CONST(1)

/* The number in the register; 0 if it was lost. */
extern uint64 sf_register_read(RepOriginId origin);

typedef enum SfRegisterHold
{
	SF_REGISTER_HELD,
	SF_REGISTER_BUSY,			/* somebody is about to change it */
	SF_REGISTER_GONE,			/* it is not what sf_register_find gave any
								 * more */
} SfRegisterHold;

/*
 * Find the register of a line, which must carry its layout, and hold it, if
 * SF_REGISTER_HELD is returned.  The other result is SF_REGISTER_BUSY, never if wait is
 * true.
 *
 * Raises object_not_in_prerequisite_state when there is none, when it carries
 * another layout, or when this very transaction changed it.  Needs a transaction.
 */
extern SfRegisterHold sf_register_find(const SfLine *line, bool wait, RepOriginId *origin);

/*
 * Keep the register from being dropped or renamed until sf_register_release or
 * the end of the transaction.  Never returns SF_REGISTER_BUSY if wait is true.
 */
extern SfRegisterHold sf_register_hold(RepOriginId origin, const SfLine *line, bool wait);
extern void sf_register_release(RepOriginId origin);

/*
 * Write a number, log it, and return when the log is on disk.  A register that
 * holds a greater one keeps it, unless back is true.  The register is held.
 *
 * Raises object_in_use when a session has acquired the register, and
 * configuration_limit_exceeded when there is no slot for it.
 */
extern void sf_register_write(RepOriginId origin, uint64 number, bool back);

/*
 * Raises object_not_in_prerequisite_state: the register is missing; or its number was lost
 * (configuration_limit_exceeded if that is because there are no slots).
 */
pg_noreturn extern void sf_register_report_missing(SfLineKind kind);
pg_noreturn extern void sf_register_report_lost(SfLineKind kind);

/*
 * Whether each kind of line has a register, whatever layout it carries.
 */
extern bool sf_register_all_exist(void);

/*
 * Make the register of a kind of line if there is none, and write SF_REGISTER_NEW to it.  If
 * it carries another layout, then with accept let it carry this one.  Returns whether
 * anything was changed; *before is the layout that it carried before, NULL if there was no
 * register.
 *
 * Raises configuration_limit_exceeded when there is no slot for it.
 */
extern bool sf_register_make(SfLineKind kind, const SfLayout *layout, bool accept, char **before);

#endif							/* SF_REGISTER_H */
