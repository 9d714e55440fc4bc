/*
 * kept.h
 *	  What this run of the postmaster keeps over a restart of all its processes.
 */
#ifndef SF_KEPT_H
#define SF_KEPT_H

#include "postgres.h"

#include "utils/uuid.h"

#include "line.h"
#include "span.h"

/*
 * Make it, by the postmaster when it preloads the library; without that there is none.  All
 * but the machine ID is for servers that lease, and for the registrar alone where nothing
 * else is said.
 */
extern void sf_kept_init(void);

/* The token under which spans are held: random, of this run of the postmaster alone. */
extern pg_uuid_t sf_kept_token(void);

/* Keep a span; the one that is kept, or grant 0.  The postmaster asks as well. */
extern void sf_kept_put_span(const SfSpan *span);
extern SfSpan sf_kept_span(void);

/* Forget the span, and draw another token. */
extern void sf_kept_forget(void);

/* Note, under the lock of a line, that it was opened; whether it ever was. */
extern void sf_kept_put_opened(SfLineKind kind);
extern bool sf_kept_opened(SfLineKind kind);

/*
 * Fix the machine ID of a line for this run of the postmaster.  Of several callers the first
 * one decides; returns the number that it has.  Where nothing is kept that is the caller's.
 */
extern uint32 sf_kept_pin_machine_id(SfLineKind kind, uint32 machine_id);

/* The number that was fixed, or SF_MACHINE_ID_NOT_PINNED. */
extern uint32 sf_kept_machine_id(SfLineKind kind);

#endif							/* SF_KEPT_H */
