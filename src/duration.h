/*
 * duration.h
 *	  Durations in messages.
 */
#ifndef SF_DURATION_H
#define SF_DURATION_H

#include "postgres.h"

#include "core/instant.h"

/* A duration, in microseconds, for people to read, in newly allocated memory. */
static inline const char *
sf_duration_text(int64 duration)
{
	return sf_duration_describe(duration, palloc(SF_INSTANT_TEXT_SIZE));
}

#endif							/* SF_DURATION_H */
