/*
 * instant.c
 *	  Instants and durations, in microseconds, and their text forms.
 *
 * Dates are converted to days and back by the algorithms of Howard Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms", days_from_civil and
 * civil_from_days.  They count years from March, so that the leap day is a
 * year's last, and eras of 400 years (146 097 days), after which the Gregorian
 * calendar repeats.
 */
#include "instant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

static void
civil_from_days(int64_t days, int *year, int *month, int *day)
{
	int64_t		since_era_0 = days + DAYS_BEFORE_2000;
	int			era = (int) (since_era_0 / DAYS_PER_ERA);
	int			day_of_era = (int) (since_era_0 % DAYS_PER_ERA);
	int			year_of_era = (day_of_era - day_of_era / 1460 +
							   day_of_era / 36524 - day_of_era / 146096) / 365;
	int			day_of_year = day_of_era -
	(365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int			march_month = (5 * day_of_year + 2) / 153;

	*day = day_of_year - (153 * march_month + 2) / 5 + 1;
	*month = march_month < 10 ? march_month + 3 : march_month - 9;
	*year = era * 400 + year_of_era + (*month <= 2);
}

static int
days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool		leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* The rest of a text that is being read; it has no terminating zero. */
typedef struct Reader
{
	const char *at;
	const char *end;
} Reader;

static bool
take_char(Reader *reader, char c)
{
	if (reader->at == reader->end || *reader->at != c)
		return false;
	reader->at++;
	return true;
}

/* Read exactly width digits, whose value must be from least to most. */
static bool
take_number(Reader *reader, int width, int least, int most, int *number)
{
	int			value = 0;

	for (int i = 0; i < width; i++, reader->at++)
	{
		if (reader->at == reader->end || *reader->at < '0' || *reader->at > '9')
			return false;
		value = value * 10 + (*reader->at - '0');
	}
	*number = value;
	return value >= least && value <= most;
}

/* Read one to six decimals of a second, as microseconds. */
static bool
take_decimals(Reader *reader, int *microseconds)
{
	int			value = 0;
	int			digits = 0;
	int			digit;

	while (digits < 6 && take_number(reader, 1, 0, 9, &digit))
	{
		value = value * 10 + digit;
		digits++;
	}
	if (digits == 0)
		return false;
	for (; digits < 6; digits++)
		value *= 10;
	*microseconds = value;
	return true;
}

/* Read "Thh:mm:ss[.ffffff]Z", as microseconds since midnight. */
static bool
take_time(Reader *reader, int64_t *time)
{
	int			hour;
	int			minute;
	int			second;
	int			microseconds = 0;

	if (!take_char(reader, 'T') || !take_number(reader, 2, 0, 23, &hour) ||
		!take_char(reader, ':') || !take_number(reader, 2, 0, 59, &minute) ||
		!take_char(reader, ':') || !take_number(reader, 2, 0, 59, &second))
		return false;
	if (take_char(reader, '.') && !take_decimals(reader, &microseconds))
		return false;
	*time = ((hour * 60 + minute) * 60 + second) * US_PER_SECOND + microseconds;
	return take_char(reader, 'Z');
}

static bool
parse_iso_8601(const char *text, size_t length, SfInstant *instant)
{
	Reader		reader = {text, text + length};
	int			year;
	int			month;
	int			day;
	int64_t		time = 0;

	if (!take_number(&reader, 4, 1, 9999, &year) ||
		!take_char(&reader, '-') || !take_number(&reader, 2, 1, 12, &month) ||
		!take_char(&reader, '-') || !take_number(&reader, 2, 1, 31, &day) ||
		day > days_in_month(year, month))
		return false;
	if (reader.at != reader.end && !take_time(&reader, &time))
		return false;
	if (reader.at != reader.end)
		return false;
	*instant = days_from_civil(year, month, day) * US_PER_DAY + time;
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
	int64_t		time = instant % US_PER_DAY;
	int64_t		days = instant / US_PER_DAY;
	int			year;
	int			month;
	int			day;
	int			second;
	int			decimals;
	int			length;

	if (time < 0)
	{
		time += US_PER_DAY;
		days--;
	}
	civil_from_days(days, &year, &month, &day);
	second = (int) (time / US_PER_SECOND);
	decimals = (int) (time % US_PER_SECOND);
	length = snprintf(buffer, SF_INSTANT_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d",
					  year, month, day,
					  second / 3600, second / 60 % 60, second % 60);
	if (decimals != 0)
		length += snprintf(buffer + length, SF_INSTANT_TEXT_SIZE - length,
						   decimals % 1000 == 0 ? ".%03d" : ".%06d",
						   decimals % 1000 == 0 ? decimals / 1000 : decimals);
	snprintf(buffer + length, SF_INSTANT_TEXT_SIZE - length, "Z");
}

/* The nanoseconds of the unit with the name [unit, end); 0 if it is not a unit. */
static int64_t
unit_in_ns(const char *unit, const char *end)
{
	static const struct
	{
		const char *name;
		int64_t		ns;
	}			units[] = {
		{"ns", 1},
		{"us", 1000},
		{"ms", 1000000},
		{"s", 1000000000},
	};
	size_t		length = (size_t) (end - unit);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strlen(units[i].name) == length &&
			memcmp(units[i].name, unit, length) == 0)
			return units[i].ns;
	}
	return 0;
}

/*
 * Each digit is multiplied by the nanoseconds that its place stands for, so the unit is
 * read first.
 */
SfDurationStatus
sf_duration_parse(const char *text, size_t length, int64_t *duration)
{
	const char *end = text + length;
	const char *number_end = text;
	const char *c = text;
	int64_t		unit;
	int64_t		whole = 0;
	int64_t		place;
	int64_t		rest = 0;
	bool		below_ns = false;

	while (number_end < end &&
		   ((*number_end >= '0' && *number_end <= '9') || *number_end == '.'))
		number_end++;
	unit = unit_in_ns(number_end, end);
	if (unit == 0 || number_end == text || *text == '.' || number_end[-1] == '.')
		return SF_DURATION_BAD_SYNTAX;

	for (; c < number_end && *c != '.'; c++)
	{
		if (whole > (INT64_MAX - 9) / 10)
			return SF_DURATION_BAD_SYNTAX;
		whole = whole * 10 + (*c - '0');
	}
	if (c < number_end)
		c++;
	for (place = unit; c < number_end; c++)
	{
		if (*c == '.')
			return SF_DURATION_BAD_SYNTAX;
		below_ns = below_ns || (place <= 1 && *c != '0');
		place /= 10;
		rest += place * (*c - '0');
	}
	if (whole > (INT64_MAX - rest) / unit)
		return SF_DURATION_BAD_SYNTAX;
	whole = whole * unit + rest;
	if (below_ns || whole % 1000 != 0)
		return SF_DURATION_NOT_WHOLE;
	*duration = whole / 1000;
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
