/*
 * instant.h
 *	  Instants and spans of time, in microseconds, and their text forms.
 *
 * An instant is a count of microseconds since 2000-01-01T00:00:00Z, leap
 * seconds not counted: the same number that PostgreSQL keeps in a timestamptz,
 * so that no conversion, and no overflow of one, stands between the two.
 */
#ifndef SF_INSTANT_H
#define SF_INSTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t SfInstant;

/* The Unix epoch, 10 957 days before 2000-01-01. */
#define SF_UNIX_EPOCH	(-INT64_C(946684800000000))

/* End of timestamptz: the first instant of the year 294277, exclusive. */
#define SF_INSTANT_END	INT64_C(9223371331200000000)

/* Room for any text that the two format functions below write. */
#define SF_INSTANT_TEXT_SIZE	40

/*
 * Read an instant: an ISO 8601 date, "2024-01-01", which means its midnight in
 * UTC, or a date and time in UTC, "2024-01-01T00:00:00Z" with up to six
 * decimals of a second; or a span since the Unix epoch, "1288834974657ms".
 * Years are 0001 to 9999 of the proleptic Gregorian calendar.
 *
 * Returns false, *instant untouched, when the text is none of these.
 */
extern bool sf_instant_parse(const char *text, size_t length, SfInstant *instant);

/*
 * Write an instant of the years 0001 to 9999 as sf_instant_parse reads it.
 * buffer has SF_INSTANT_TEXT_SIZE bytes.
 */
extern void sf_instant_format(SfInstant instant, char *buffer);

typedef enum SfDurationStatus
{
	SF_DURATION_OK,
	SF_DURATION_BAD_SYNTAX,		/* not a number and a unit, or out of range */
	SF_DURATION_NOT_WHOLE,		/* not a whole number of microseconds */
} SfDurationStatus;

/*
 * Read a span of time: a decimal number and a unit of ns, us, ms or s, never
 * left out: an epoch of "2024" is a mistake.  *span is microseconds, at least
 * 0, and untouched unless the result is SF_DURATION_OK.  The longest is
 * 2^63 - 1 ns, 292 years.
 */
extern SfDurationStatus sf_duration_parse(const char *text, size_t length, int64_t *span);

/*
 * Write a span of microseconds in the largest unit that holds it whole.
 * buffer has SF_INSTANT_TEXT_SIZE bytes.
 */
extern void sf_duration_format(int64_t span, char *buffer);

/* The instant a microsecond later, of an instant that has one. */
static inline SfInstant
sf_instant_after(SfInstant instant)
{
	return instant == INT64_MIN || instant == INT64_MAX ? instant : instant + 1;
}

#endif							/* SF_INSTANT_H */
