/*
 * kept.h
 *	  What this run of the postmaster keeps over a restart of all its processes.
 */
#ifndef SF_KEPT_H
#define SF_KEPT_H

#include "postgres.h"

#include "utils/uuid.h"

#include "span.h"

/* Make it; by the postmaster, when it starts. */
extern void sf_kept_init(void);

/* The token of this run: no other run of any postmaster has the same. */
extern const pg_uuid_t *sf_kept_token(void);

/* Keep a span (grant 0: none); by the registrar alone. */
extern void sf_kept_put(const SfSpan *span);

/* The span that was kept, or grant 0. */
extern SfSpan sf_kept_get(void);

#endif							/* SF_KEPT_H */
