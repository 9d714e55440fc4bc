/*
 * fuzz.h
 *	  What fuzz targets share.
 *
 * A target is a function of a text that aborts if something is wrong.  The unit tests run
 * it on texts near those in its directory of test/fuzz/corpus (standalone.c), and
 * script/test-deep by libFuzzer, which looks for texts that take new paths (libfuzzer.c).
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

/* A parser says what is wrong, and where in the text, or right behind it. */
static inline void
check_error(const char *text, const SfParseError *error)
{
	check(error->position >= 1 && error->position <= strlen(text) + 1);
	check(error->message[0] != '\0' && strlen(error->message) < sizeof(error->message));
	for (const char *c = error->message; *c; c++)
		check(*c >= ' ' && *c <= '~');
}

#endif							/* FUZZ_H */
