/*
 * base32.h
 *	  IDs as text of 13 characters.
 *
 * The digits are from Douglas Crockford's Base 32 (crockford.com/base32.html): the decimal digits,
 * then the letters without i, l, o and u.  The digits are in ASCII order and all texts have the
 * same length, so texts sort in the order of their numbers.
 */
#ifndef SF_BASE32_H
#define SF_BASE32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parse_error.h"

#define SF_BASE32_LENGTH	13

/*
 * Write a number, which must not be negative, in lower case.  No terminating zero is
 * written.
 */
extern void sf_base32_encode(int64_t number, char *text);

/*
 * Read a number.  Letters of either case are accepted; o is read as 0, i and l as 1.
 * Returns false and fills *error if the text does not consist of 13 such digits, or if
 * the number is above INT64_MAX.  *overflow is true in the second case only.
 */
extern bool sf_base32_decode(const char *text, size_t length, int64_t *number,
							 bool *overflow, SfParseError *error);

/* Whether a text is, byte for byte, the result of sf_base32_encode for a number. */
extern bool sf_base32_is_text_of(const char *text, size_t length, int64_t number);

/*
 * The least number whose text is not below a text of any bytes, which are compared as unsigned
 * numbers; a text is above its beginning.  Returns false if all texts of numbers are below it.
 */
extern bool sf_base32_bound(const char *text, size_t length, int64_t *bound);

#endif							/* SF_BASE32_H */
