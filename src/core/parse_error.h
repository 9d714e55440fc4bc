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

/*
 * Fill an error at an offset, counted from 0, with a message as printf() writes it.  The result is
 * false, so that a caller can return it.
 */
#define sf_parse_fail(error, offset, ...) \
	((error)->position = (offset) + 1, \
	 (void) snprintf((error)->message, sizeof((error)->message), __VA_ARGS__), \
	 false)

#endif							/* SF_PARSE_ERROR_H */
