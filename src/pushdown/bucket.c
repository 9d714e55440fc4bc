/*
 * bucket.c
 *	  Functions that round an instant down: date_trunc(), date_bin() and casts to date.
 *
 * Such a function b maps an instant to the beginning of its bucket.  Let w be the width of the
 * widest bucket, so that b(t) <= t < b(t) + w.  Then, for an instant c:
 *
 *		b(t) >= c, b(t) > c		imply	t >= c
 *		b(t) <  c, b(t) <= c	imply	t < c + w
 *
 * If b is monotonic, and c is the beginning of a bucket, a condition on b(t) is equivalent to one
 * on t.  The bucket of c ends where the bucket of c + w begins, since no bucket is longer than w,
 * or as short as half of it.
 *
 * Days and longer units follow a time zone.  A clock that is set back can repeat a midnight: then
 * b is not monotonic, and b(t) can be after t.  No clock is set back by more than a day, and no
 * time zone is more than a day from UTC, so a day is added on both sides.  An hour and shorter
 * units keep the offset from UTC that t has.
 */
#include "postgres.h"

#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "pushdown/bucket.h"
#include "pushdown/expression.h"

/* The units of date_trunc() with the width of the widest bucket. */
static const struct
{
	int			unit;
	int64		width;			/* in us */
}			units[] = {
	{DTK_MICROSEC, 1},
	{DTK_MILLISEC, 1000},
	{DTK_SECOND, USECS_PER_SEC},
	{DTK_MINUTE, USECS_PER_MINUTE},
	{DTK_HOUR, USECS_PER_HOUR},
	{DTK_DAY, USECS_PER_DAY},
	{DTK_WEEK, 7 * USECS_PER_DAY},
	{DTK_MONTH, 31 * USECS_PER_DAY},
	{DTK_QUARTER, 92 * USECS_PER_DAY},
	{DTK_YEAR, 366 * USECS_PER_DAY},
	{DTK_DECADE, 3653 * USECS_PER_DAY},
	{DTK_CENTURY, 36525 * USECS_PER_DAY},
	{DTK_MILLENNIUM, 365243 * USECS_PER_DAY},
};

/* Whether an instant is within five thousand years of 2000, far from all limits. */
static bool
is_moderate(TimestampTz instant)
{
	const TimestampTz most = INT64CONST(36525) * 50 * USECS_PER_DAY;

	return instant > -most && instant < most;
}

/* The width of a unit of date_trunc(); 0 if it is not a constant, or not known. */
static int64
width_of_unit(Node *node)
{
	char	   *name;
	int			unit;

	if (!sf_is_constant(node))
		return 0;
	name = TextDatumGetCString(((Const *) node)->constvalue);
	name = downcase_truncate_identifier(name, (int) strlen(name), false);
	if (DecodeUnits(0, name, &unit) != UNITS)
		return 0;
	for (size_t i = 0; i < lengthof(units); i++)
	{
		if (units[i].unit == unit)
			return units[i].width;
	}
	return 0;
}

/* The width of the buckets of date_bin(); 0 if it is not a constant, or not valid. */
static int64
width_of_stride(Node *stride, Node *origin)
{
	Interval   *interval;

	if (!sf_is_constant(stride) || !sf_is_constant(origin) ||
		!is_moderate(DatumGetTimestampTz(((Const *) origin)->constvalue)))
		return 0;
	interval = DatumGetIntervalP(((Const *) stride)->constvalue);
	if (interval->month != 0 || interval->day < 0 || interval->day > 1000000 ||
		interval->time < 0 || interval->time > 1000000 * USECS_PER_DAY)
		return 0;
	return interval->day * USECS_PER_DAY + interval->time;
}

/* Whether a time zone is UTC, whose clock is never set back. */
static bool
is_utc(Node *zone)
{
	return sf_is_constant(zone) &&
		pg_strcasecmp(TextDatumGetCString(((Const *) zone)->constvalue), "UTC") == 0;
}

/* A call to date_trunc() or a cast to date. */
static void
set_bucket_of_zone(SfBucket *bucket, int64 width, bool utc)
{
	bucket->width = width;
	bucket->is_monotonic = utc;
	bucket->slack = utc || width <= USECS_PER_HOUR ? 0 : USECS_PER_DAY;
}

Node *
sf_unrounded(Node *node, SfBucket *bucket)
{
	static const SfBucket none = {.width = 1,.is_monotonic = true};
	FuncExpr   *function = (FuncExpr *) node;
	int			argument = 1;

	*bucket = none;
	if (!IsA(node, FuncExpr))
		return node;
	switch (function->funcid)
	{
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
			set_bucket_of_zone(bucket, width_of_unit(linitial(function->args)), false);
			break;
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			set_bucket_of_zone(bucket, width_of_unit(linitial(function->args)),
							   is_utc(lthird(function->args)));
			break;
		case F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ:
			bucket->width = width_of_stride(linitial(function->args), lthird(function->args));
			bucket->slack = 1;	/* some minor releases put c + w into the
								 * bucket of c */
			break;
		case F_DATE_TIMESTAMPTZ:
			set_bucket_of_zone(bucket, USECS_PER_DAY, false);
			argument = 0;
			break;
		default:
			return node;
	}
	bucket->function = function;
	return bucket->width > 0 ? list_nth(function->args, argument) : node;
}

/* The bucket of an instant.  Monotonic functions have two other arguments, which are constants. */
static TimestampTz
bucket_of(const SfBucket *bucket, TimestampTz instant)
{
	List	   *arguments = bucket->function->args;

	return DatumGetTimestampTz(OidFunctionCall3(bucket->function->funcid,
												((Const *) linitial(arguments))->constvalue,
												TimestampTzGetDatum(instant),
												((Const *) lthird(arguments))->constvalue));
}

bool
sf_bucket_begins(const SfBucket *bucket, TimestampTz instant, int64 *width)
{
	TimestampTz next;

	if (!bucket->is_monotonic || !is_moderate(instant) || bucket_of(bucket, instant) != instant)
		return false;
	next = bucket_of(bucket, instant + bucket->width);
	if (next <= instant)
		return false;
	*width = next - instant;
	return true;
}
