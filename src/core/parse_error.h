/*
 * parse_error.h
 *	  What a parser of a setting found wrong, and where.
 */
#ifndef SF_PARSE_ERROR_H
#define SF_PARSE_ERROR_H

#include <stddef.h>

typedef struct SfParseError
{
	/* The character at which the wrong part starts, counted from 1. */
	size_t		position;

	/* A clause without capital letter or period, in printable ASCII. */
	char		message[160];
} SfParseError;

#endif							/* SF_PARSE_ERROR_H */
