/*
 * answer.c
 *	  The answers of the registry, and their checks.
 *
 * The address of snowflake.registry can lead to anything: to another database, to a function of the
 * same name, to a program that is no server.  No answer may do more than leave an error in the log.
 * So each value is read by read_number, which accepts a whole number within bounds and nothing
 * else, and all other code relies on these bounds: a machine ID fits the layout, a lease has begun
 * and not ended, and the arithmetic with its times does not overflow.
 *
 * A registry that lies within these bounds cannot be recognized here; see docs/security.md.
 */
#include "postgres.h"

#include <ctype.h>

#include "datatype/timestamp.h"
#include "libpq-fe.h"

#include "core/instant.h"
#include "core/layout.h"
#include "registry/answer.h"
#include "settings.h"

/* The columns of the row of a claim or a renewal. */
#define MACHINE_ID		0
#define LEASE_FROM		1
#define LEASE_UNTIL		2
#define LEASE_NUMBER	3
#define SKEW			4
#define REFUSAL			5
#define FREE_AT			6

/*
 * Microseconds since 1970.  The earliest is that of the type timestamptz.  The latest is within
 * that type.
 */
#define EARLIEST		(MIN_TIMESTAMP - SF_UNIX_EPOCH)
#define LATEST			PG_INT64_MAX

/*
 * The limits of a registry are 365 days for a lease, and one day for the difference of clocks; a
 * lease can end later than the limits allow if the clocks were set back.
 */
#define LONGEST_LEASE	(2 * 365 * USECS_PER_DAY)
#define GREATEST_SKEW	USECS_PER_DAY

typedef struct Bounds
{
	int64		least;
	int64		greatest;
} Bounds;

static Bounds
between(int64 least, int64 greatest)
{
	Bounds		bounds = {least, greatest};

	return bounds;
}

/*
 * The message is made one line of ASCII.  libpq ends its messages with a newline.  The
 * message can be in any encoding, and a database with another one can show it, so
 * characters outside of ASCII are replaced.  It can contain the previous one.
 */
void
sf_answer_fail(SfAnswer *answer, SfRegistryState state, const char *format,...)
{
	char		text[sizeof(answer->error)];
	size_t		length;
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	answer->state = state;
	answer->free_at = DT_NOEND;
	length = strlen(text);
	while (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	for (char *c = text; *c; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
		else if (iscntrl((unsigned char) *c))
			*c = ' ';
	}
	strlcpy(answer->error, text, sizeof(answer->error));
}

static bool
read_number(const PGresult *row, int column, Bounds bounds, int64 *number, SfAnswer *answer)
{
	const char *text = PQgetisnull(row, 0, column) ? "null" : PQgetvalue(row, 0, column);
	char	   *end;

	errno = 0;
	*number = (int64) strtoll(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' &&
		*number >= bounds.least && *number <= bounds.greatest)
		return true;
	sf_answer_fail(answer, SF_REGISTRY_UNREACHABLE,
				   "the registry sent an invalid answer: column %d is \"%.40s\", and not a number from %lld to %lld",
				   column + 1, text, (long long) bounds.least, (long long) bounds.greatest);
	return false;
}

bool
sf_answer_read_identity(const PGresult *row, int64 *identity, SfAnswer *answer)
{
	return read_number(row, 0, between(1, PG_INT64_MAX), identity, answer);
}

static bool
read_refusal(const PGresult *row, SfAnswer *answer)
{
	TimestampTz free_at = DT_NOEND;
	int64		number;

	if (!PQgetisnull(row, 0, FREE_AT))
	{
		if (!read_number(row, FREE_AT, between(EARLIEST, LATEST), &number, answer))
			return false;
		free_at = number + SF_UNIX_EPOCH;
	}
	sf_answer_fail(answer, SF_REGISTRY_REFUSED, "%s", PQgetvalue(row, 0, REFUSAL));
	answer->free_at = free_at;
	return true;
}

/* A renewal continues the lease.  A claim is for the machine ID that was asked for, if any. */
static Bounds
machine_id_bounds(const SfClaim *claim, bool renewal)
{
	if (renewal)
		return between(claim->held.machine_id, claim->held.machine_id);
	if (claim->wanted != SF_MACHINE_ID_UNSET)
		return between(claim->wanted, claim->wanted);
	return between(0, (int64) sf_field_max(claim->machine_bits));
}

/* A new lease has begun: the registry refuses a claim of one that has not. */
static Bounds
from_bounds(const SfClaim *claim, bool renewal, int64 now)
{
	int64		held = claim->held.from - SF_UNIX_EPOCH;

	return renewal ? between(held, held) : between(EARLIEST, now);
}

/* A lease is not empty, and has not ended. */
static Bounds
until_bounds(int64 from, int64 now)
{
	return between(Max(from, now) + 1, now + LONGEST_LEASE);
}

bool
sf_answer_read_lease(const PGresult *row, const SfClaim *claim, bool renewal, SfAnswer *answer)
{
	int64		now = GetCurrentTimestamp() - SF_UNIX_EPOCH;
	int64		machine_id;
	int64		from;
	int64		until;
	int64		number;

	if (!PQgetisnull(row, 0, REFUSAL))
		return read_refusal(row, answer);
	if (!read_number(row, MACHINE_ID, machine_id_bounds(claim, renewal), &machine_id, answer) ||
		!read_number(row, LEASE_FROM, from_bounds(claim, renewal, now), &from, answer) ||
		!read_number(row, LEASE_UNTIL, until_bounds(from, now), &until, answer) ||
		!read_number(row, LEASE_NUMBER, between(1, PG_INT64_MAX), &number, answer) ||
		!read_number(row, SKEW, between(-GREATEST_SKEW, GREATEST_SKEW), &answer->skew, answer))
		return false;
	answer->state = SF_REGISTRY_HELD;
	answer->error[0] = '\0';
	memset(&answer->lease, 0, sizeof(answer->lease));
	answer->lease.machine_id = (uint32) machine_id;
	answer->lease.from = from + SF_UNIX_EPOCH;
	answer->lease.until = until + SF_UNIX_EPOCH;
	answer->lease.number = number;
	return true;
}
