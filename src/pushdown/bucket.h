/*
 * bucket.h
 *	  Calls that round an instant down to the beginning of a bucket.
 */
#ifndef SF_BUCKET_H
#define SF_BUCKET_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "nodes/primnodes.h"

/* How a call rounds an instant down to the beginning of a bucket. */
typedef struct SfBucket
{
	FuncExpr   *function;		/* NULL if the instant is not rounded */
	int64		width;			/* of the widest bucket, in us; 1 if the
								 * instant is not rounded */
	int64		slack;			/* by which the ends of a bucket can be off */
	bool		is_monotonic;	/* buckets have the order of the instants */
} SfBucket;

/*
 * The expression that a call rounds, and how; the node itself if it is no such call, or one whose
 * width is not known.
 */
extern Node *sf_unrounded(Node *node, SfBucket *bucket);

/*
 * Whether a bucket of a call that rounds surely begins at an instant, so that conditions on the
 * rounded instant are equivalent to those on the instant itself.  If so, *width becomes the width
 * of this bucket.
 */
extern bool sf_bucket_begins(const SfBucket *bucket, TimestampTz instant, int64 *width);

#endif							/* SF_BUCKET_H */
