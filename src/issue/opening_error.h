/*
 * opening_error.h
 *	  Errors of calls that need an ID from a generator that cannot be opened.
 */
#ifndef SF_OPENING_ERROR_H
#define SF_OPENING_ERROR_H

#include "compat.h"
#include "state/durable.h"

/*
 * Raise object_not_in_prerequisite_state, with the reason for which a generator is not open; or
 * configuration_limit_exceeded, if its durable state cannot be read.
 */
pg_noreturn extern void sf_report_not_opened(const SfGenerator *generator, SfOpening reason);

/* Raise the same error if a generator, which was found closed, was moved back. */
extern void sf_refuse_moved_back(SfGenerator *generator);

/* The names of the functions that set the floor and move the generator back, for hints. */
extern const char *sf_floor_function(SfGeneratorKind kind);
extern const char *sf_back_function(SfGeneratorKind kind);

#endif							/* SF_OPENING_ERROR_H */
