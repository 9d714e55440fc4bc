/*
 * parse_error.h
 *	  The error of a parser: its message and its place in the text.
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

/* Fill an error at an offset, counted from 0.  Returns false, so that a caller can return it. */
static inline bool
sf_parse_fail(SfParseError *error, size_t offset, const char *message)
{
	error->position = offset + 1;
	snprintf(error->message, sizeof(error->message), "%s", message);
	return false;
}

#endif							/* SF_PARSE_ERROR_H */
