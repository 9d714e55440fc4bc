/*
 * tap.h
 *	  Checks of the unit tests, reported in the Test Anything Protocol.
 */
#ifndef SF_TAP_H
#define SF_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int	tap_checks;
static int	tap_failures;

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static bool
ok(bool passed, const char *name,...)
{
	va_list		arguments;

	tap_checks++;
	if (!passed)
		tap_failures++;
	printf("%sok %d - ", passed ? "" : "not ", tap_checks);
	va_start(arguments, name);
	vprintf(name, arguments);
	va_end(arguments);
	printf("\n");
	return passed;
}

static inline bool
is_int(int64_t got, int64_t expected, const char *name)
{
	if (ok(got == expected, "%s", name))
		return true;
	printf("#      got: %" PRId64 "\n# expected: %" PRId64 "\n", got, expected);
	return false;
}

static inline bool
is_text(const char *got, const char *expected, const char *name)
{
	if (ok(strcmp(got, expected) == 0, "%s", name))
		return true;
	printf("#      got: %s\n# expected: %s\n", got, expected);
	return false;
}

/* Reports the number of checks; a test program ends with return done_testing(). */
static inline int
done_testing(void)
{
	printf("1..%d\n", tap_checks);
	return tap_failures > 0;
}

/* Pseudorandom numbers, which are the same in each run (xorshift64*). */
static inline uint64_t
random_number(void)
{
	static uint64_t state = UINT64_C(88172645463325252);

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

#endif							/* SF_TAP_H */
