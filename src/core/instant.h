/*
 * instant.h
 *	  Instants and durations, in microseconds, and their text forms.
 *
 * An instant is the number of microseconds since 2000-01-01T00:00:00Z, without
 * leap seconds.  PostgreSQL keeps the same number in a timestamptz, so nothing
 * is converted between the two, and no conversion can overflow.
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

/* Room for any text that sf_instant_format and sf_duration_format write. */
#define SF_INSTANT_TEXT_SIZE	40

/*
 * Read an instant, in one of three forms: an ISO 8601 date, "2024-01-01", which
 * means midnight in UTC; a date and time in UTC, "2024-01-01T00:00:00Z", with up
 * to six decimals of a second; or a duration since the Unix epoch,
 * "1288834974657ms".  Years are 0001 to 9999 of the proleptic Gregorian
 * calendar.
 *
 * Returns false and leaves *instant unchanged if the text has none of these forms.
 */
extern bool sf_instant_parse(const char *text, size_t length, SfInstant *instant);

/*
 * Write an instant of the years 0001 to 9999 in a form that sf_instant_parse reads.
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
 * Read a duration: a decimal number and one of the units ns, us, ms and s.  The
 * unit is required, because an epoch of "2024" would be a mistake.  *duration is
 * in microseconds and at least 0; it is unchanged unless the result is
 * SF_DURATION_OK.  The longest duration is 2^63 - 1 ns, 292 years.
 */
extern SfDurationStatus sf_duration_parse(const char *text, size_t length, int64_t *duration);

/*
 * Write a duration in the largest unit of which it is a whole number.  buffer has
 * SF_INSTANT_TEXT_SIZE bytes.
 */
extern void sf_duration_format(int64_t duration, char *buffer);

/*
 * Write a duration for people to read, with at most one decimal: "12.5 ms", "119.6 s", "1 h",
 * "3650 days".  buffer has SF_INSTANT_TEXT_SIZE bytes.  Returns buffer.
 */
extern const char *sf_duration_describe(int64_t duration, char *buffer);

/*
 * The instant that is a number of microseconds later, or earlier if the number is negative.
 * -infinity and infinity (INT64_MIN, INT64_MAX) stay, and are the results beyond the range.
 */
static inline SfInstant
sf_instant_later(SfInstant instant, int64_t us)
{
	if (instant == INT64_MIN || instant == INT64_MAX)
		return instant;
	if (us > 0)
		return instant > INT64_MAX - us ? INT64_MAX : instant + us;
	return instant < INT64_MIN - us ? INT64_MIN : instant + us;
}

#endif							/* SF_INSTANT_H */
