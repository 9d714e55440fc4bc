/*
 * base32.h
 *	  IDs as text of 13 characters.
 *
 * The digits are those of Douglas Crockford's Base 32 (crockford.com/base32.html):
 * the decimal digits, then the letters without i, l, o and u.  They are in the order
 * of ASCII, and all texts are of one length, so texts sort as the numbers do.
 */
#ifndef SF_BASE32_H
#define SF_BASE32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parse_error.h"

#define SF_BASE32_LENGTH	13

/* Write a number that is not negative, in lower case, without a zero at the end. */
extern void sf_base32_encode(int64_t number, char *text);

/*
 * Read a number: letters of either case, o as 0, i and l as 1.  Returns false and
 * fills *error when the text is not of 13 such digits, or the number is above
 * INT64_MAX; then *overflow tells which.
 */
extern bool sf_base32_decode(const char *text, size_t length, int64_t *number,
							 bool *overflow, SfParseError *error);

#endif							/* SF_BASE32_H */
