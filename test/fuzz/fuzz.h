/*
 * fuzz.h
 *	  Common parts of the fuzz targets.
 *
 * A target is a function of a text, which aborts on an error.  The unit tests run it on
 * variations of the texts in its directory of test/fuzz/corpus (standalone.c).
 * script/prove runs it with libFuzzer, which searches for texts that reach new code
 * (libfuzzer.c).
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "parse_error.h"

extern void fuzz_text(const char *text);

static inline void
check(bool condition)
{
	if (!condition)
		abort();
}

/* An error of a parser has a message and a place, in the text or right behind it. */
static inline void
check_error(const char *text, const SfParseError *error)
{
	check(error->position >= 1 && error->position <= strlen(text) + 1);
	check(error->message[0] != '\0' && strlen(error->message) < sizeof(error->message));
	for (const char *c = error->message; *c; c++)
		check(*c >= ' ' && *c <= '~');
}

#endif							/* FUZZ_H */
