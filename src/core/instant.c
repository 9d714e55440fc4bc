/*
 * instant.c
 *	  Instants and durations, in microseconds, and their text forms.
 *
 * Dates are converted to days by the algorithm of Howard Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms", days_from_civil.  It counts
 * years from March, so that the leap day is a year's last, and eras of 400
 * years (146 097 days), after which the Gregorian calendar repeats.
 */
#include "instant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define US_PER_SECOND	INT64_C(1000000)
#define US_PER_HOUR		(INT64_C(3600) * US_PER_SECOND)
#define US_PER_DAY		(INT64_C(86400) * US_PER_SECOND)
#define DAYS_PER_ERA	INT64_C(146097)

/* Days from 0000-03-01, the start of era 0, to 2000-01-01. */
#define DAYS_BEFORE_2000	INT64_C(730425)

static int64_t
days_from_civil(int year, int month, int day)
{
	int			march_year = year - (month <= 2);
	int			era = march_year / 400;
	int			year_of_era = march_year % 400;
	int			march_month = (month + 9) % 12;
	int			day_of_year = (153 * march_month + 2) / 5 + day - 1;
	int			day_of_era = year_of_era * 365 + year_of_era / 4 -
	year_of_era / 100 + day_of_year;

	return era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_2000;
}

/* An instant of the years 0001 to 9999 is written in full in this form. */
#define FULL_FORM	"0000-00-00T00:00:00.000000Z"

static void
format_in_full(SfInstant instant, char *buffer)
{
	int64_t		since_unix_epoch = instant - SF_UNIX_EPOCH;
	int			decimals = (int) (since_unix_epoch % US_PER_SECOND);
	time_t		seconds;
	const struct tm *utc;
	size_t		length;

	if (decimals < 0)
		decimals += (int) US_PER_SECOND;
	seconds = (time_t) ((since_unix_epoch - decimals) / US_PER_SECOND);
	utc = gmtime(&seconds);
	length = (size_t) snprintf(buffer, SF_INSTANT_TEXT_SIZE, "%04d", utc->tm_year + 1900);
	length += strftime(buffer + length, SF_INSTANT_TEXT_SIZE - length, "-%m-%dT%H:%M:%S", utc);
	snprintf(buffer + length, SF_INSTANT_TEXT_SIZE - length, ".%06dZ", decimals);
}

/* The value of a number of digits; any value if they are not digits. */
static int
number_at(const char *digits, int count)
{
	int			number = 0;

	for (int i = 0; i < count; i++)
		number = number * 10 + (digits[i] - '0');
	return number;
}

/*
 * The text is completed to the full form.  If it is malformed, or has a day or an hour that does
 * not exist, the instant that is computed from its digits is written in another way.
 */
static bool
parse_iso_8601(const char *text, size_t length, SfInstant *instant)
{
	char		full[] = FULL_FORM;
	char		written[SF_INSTANT_TEXT_SIZE];
	bool		is_date = length == strlen("0000-00-00");
	SfInstant	result;

	if (!is_date && (length < strlen("0000-00-00T00:00:00Z") || length > strlen(FULL_FORM) ||
					 text[length - 2] == '.' || text[length - 1] != 'Z'))
		return false;
	memcpy(full, text, is_date ? length : length - 1);
	result = days_from_civil(number_at(full, 4), number_at(full + 5, 2), number_at(full + 8, 2)) *
		US_PER_DAY + number_at(full + 11, 2) * US_PER_HOUR +
		(number_at(full + 14, 2) * 60 + number_at(full + 17, 2)) * US_PER_SECOND +
		number_at(full + 20, 6);
	format_in_full(result, written);
	if (number_at(full, 4) < 1 || strcmp(full, written) != 0)
		return false;
	*instant = result;
	return true;
}

bool
sf_instant_parse(const char *text, size_t length, SfInstant *instant)
{
	int64_t		since_unix_epoch;

	if (parse_iso_8601(text, length, instant))
		return true;
	if (sf_duration_parse(text, length, &since_unix_epoch) != SF_DURATION_OK)
		return false;
	*instant = SF_UNIX_EPOCH + since_unix_epoch;
	return true;
}

void
sf_instant_format(SfInstant instant, char *buffer)
{
	char	   *decimals = buffer + strlen("0000-00-00T00:00:00");

	format_in_full(instant, buffer);
	if (strcmp(decimals, ".000000Z") == 0)
		memcpy(decimals, "Z", sizeof("Z"));
	else if (strcmp(decimals + 4, "000Z") == 0)
		memcpy(decimals + 4, "Z", sizeof("Z"));
}

/* The longest duration: 2^63 - 1 ns. */
#define LONGEST_DURATION	(INT64_MAX / 1000)

/* Find the unit with a name: the power of ten by which it differs from a microsecond. */
static bool
find_unit(const char *name, size_t length, int *power)
{
	static const char *const names[] = {"ns", "us", "ms", "s"};

	for (int i = 0; i < 4; i++)
	{
		*power = 3 * i - 3;
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return true;
	}
	return false;
}

SfDurationStatus
sf_duration_parse(const char *text, size_t length, int64_t *duration)
{
	const char *end = text;
	const char *point = NULL;
	int64_t		number = 0;
	int			power;

	for (; end < text + length && ((*end >= '0' && *end <= '9') || *end == '.'); end++)
	{
		if (*end == '.' && point != NULL)
			return SF_DURATION_BAD_SYNTAX;
		if (*end == '.')
			point = end;
	}
	if (end == text || point == text || point == end - 1 ||
		!find_unit(end, (size_t) (text + length - end), &power))
		return SF_DURATION_BAD_SYNTAX;
	while (point && end[-1] == '0')
		end--;

	for (const char *c = text; c < end; c++)
	{
		if (c == point)
			continue;
		if (number > (INT64_MAX - 9) / 10)
			return point && c > point ? SF_DURATION_NOT_WHOLE : SF_DURATION_BAD_SYNTAX;
		number = number * 10 + (*c - '0');
		power -= point && c > point;
	}
	for (; power > 0 && number <= LONGEST_DURATION; power--)
		number *= 10;
	for (; power < 0; power++)
	{
		if (number % 10 != 0)
			return SF_DURATION_NOT_WHOLE;
		number /= 10;
	}
	if (number > LONGEST_DURATION)
		return SF_DURATION_BAD_SYNTAX;
	*duration = number;
	return SF_DURATION_OK;
}

void
sf_duration_format(int64_t duration, char *buffer)
{
	int64_t		per_unit = 1;
	const char *unit = "us";

	if (duration % US_PER_SECOND == 0)
	{
		per_unit = US_PER_SECOND;
		unit = "s";
	}
	else if (duration % 1000 == 0)
	{
		per_unit = 1000;
		unit = "ms";
	}
	snprintf(buffer, SF_INSTANT_TEXT_SIZE, "%" PRId64 "%s", duration / per_unit, unit);
}

const char *
sf_duration_describe(int64_t duration, char *buffer)
{
	/* A unit is used from this number of microseconds on. */
	static const struct
	{
		int64_t		from;
		int64_t		us;
		const char *name;
	}			units[] = {
		{2 * US_PER_DAY, US_PER_DAY, "days"},
		{US_PER_HOUR, US_PER_HOUR, "h"},
		{120 * US_PER_SECOND, 60 * US_PER_SECOND, "min"},
		{US_PER_SECOND, US_PER_SECOND, "s"},
		{1000, 1000, "ms"},
		{1, 1, "us"},
		{0, 1000, "ms"},
	};
	const char *sign = duration < 0 ? "-" : "";
	uint64_t	length = duration < 0 ? -(uint64_t) duration : (uint64_t) duration;
	size_t		unit = 0;
	uint64_t	whole;
	unsigned	tenth;

	while (length < (uint64_t) units[unit].from)
		unit++;
	whole = length / (uint64_t) units[unit].us;
	tenth = (unsigned) (length % (uint64_t) units[unit].us * 10 / (uint64_t) units[unit].us) % 10;
	if (tenth == 0)
		snprintf(buffer, SF_INSTANT_TEXT_SIZE, "%s%" PRIu64 " %s", sign, whole, units[unit].name);
	else
		snprintf(buffer, SF_INSTANT_TEXT_SIZE, "%s%" PRIu64 ".%u %s",
				 sign, whole, tenth, units[unit].name);
	return buffer;
}
