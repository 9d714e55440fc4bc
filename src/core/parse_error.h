/*
 * parse_error.h
 *	  What a parser of a setting found wrong, and where.
 */
#ifndef SF_PARSE_ERROR_H
#define SF_PARSE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct SfParseError
{
	/* The character at which the wrong part starts, counted from 1. */
	size_t		position;

	/* A clause without capital letter or period, in printable ASCII. */
	char		message[160];
} SfParseError;

/* Say what is wrong, at an offset from 0; returns false. */
static inline bool
sf_parse_fail(SfParseError *error, size_t offset, const char *message)
{
	error->position = offset + 1;
	snprintf(error->message, sizeof(error->message), "%s", message);
	return false;
}

#endif							/* SF_PARSE_ERROR_H */
