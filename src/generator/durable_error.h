/*
 * durable_error.h
 *	  Errors of a generator whose durable state does not allow it to be opened.
 */
#ifndef SF_DURABLE_ERROR_H
#define SF_DURABLE_ERROR_H

#include "state/reservation.h"

/*
 * Raise object_not_in_prerequisite_state, with the reason for which the generator of a kind, with a
 * layout, could not be opened; or configuration_limit_exceeded, if its durable state cannot be
 * read.
 */
pg_noreturn extern void sf_report_not_opened(SfGeneratorKind kind, const SfLayout *layout,
											 SfOpening reason);

#endif							/* SF_DURABLE_ERROR_H */
