/*
 * lease.c
 *	  The lease of this server, and the state of its communication with the registry.
 *
 * A registry grants a lease: a machine ID and a span of ID time.  IDs are issued with the
 * machine ID of the lease, and with times in it.  Leases of one machine ID do not overlap, and so
 * no other server issues the same ID, whatever the clocks of the two servers show, and even if one
 * server is a copy of the other.
 *
 * The registry worker (registry/worker.c) asks the registry and writes the answer here, before it
 * changes the generators.  Sessions read the state to explain why no ID can be issued
 * (issue/lease_error.c), and the view shows it.  For an ID, sessions need only the machine ID
 * and the bounds, which the generators contain.
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "state/lease.h"

/*
 * The message is made one line of ASCII.  libpq ends its messages with a newline.  The
 * message can be in any encoding, and a database with another one can show it, so
 * characters outside of ASCII are replaced.  It can contain the previous one.
 */
void
sf_answer_fail(SfAnswer *answer, SfLeaseStatus state, const char *format,...)
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

void
sf_lease_init(SfLeaseState *registry)
{
	sf_lock_init(&registry->lock, SF_LOCK_LEASE, SF_WAIT_LEASE);
	registry->last.state = SF_LEASE_CLAIMING;
	registry->last.lease = sf_postmaster_lease();
	registry->since = GetCurrentTimestamp();
}

/*
 * The worker does not note that the lease has ended: an attempt that hangs, for example in the
 * resolver, can last longer than the lease.
 */
SfLeaseState
sf_lease_state(SfLeaseState *registry)
{
	SfLeaseState copy;

	sf_lock_acquire(&registry->lock);
	copy = *registry;
	sf_lock_release(&registry->lock);
	if (copy.last.state == SF_LEASE_HELD && copy.last.lease.until <= GetCurrentTimestamp())
		copy.last.state = SF_LEASE_EXPIRED;
	return copy;
}

const char *
sf_lease_state_name(SfLeaseStatus state)
{
	static const char *const names[] = {
		[SF_LEASE_CLAIMING] = "claiming",
		[SF_LEASE_HELD] = "held",
		[SF_LEASE_REFUSED] = "refused",
		[SF_LEASE_UNREACHABLE] = "unreachable",
		[SF_LEASE_RELEASED] = "released",
		[SF_LEASE_EXPIRED] = "expired",
	};

	return names[state];
}

/*
 * The lease is kept in the postmaster's memory before it applies: if all processes are restarted in
 * between, it applies after the restart.
 */
SfLeaseStatus
sf_lease_record(SfLeaseState *registry, const SfAnswer *answer)
{
	SfLeaseStatus before;

	if (answer->state == SF_LEASE_HELD)
		sf_postmaster_keep_lease(&answer->lease);
	sf_lock_acquire(&registry->lock);
	before = registry->last.state;
	if (before != answer->state)
		registry->since = GetCurrentTimestamp();
	registry->last = *answer;
	sf_lock_release(&registry->lock);
	return before;
}

void
sf_lease_forget(SfLeaseState *registry)
{
	SfAnswer	released = sf_lease_state(registry).last;

	sf_postmaster_forget_lease();
	memset(&released.lease, 0, sizeof(released.lease));
	released.state = SF_LEASE_RELEASED;
	released.error[0] = '\0';
	sf_lease_record(registry, &released);
}

/* Sessions that fail repeatedly wake the worker only once. */
void
sf_lease_request(SfLeaseState *registry, SfLeaseRequest request)
{
	sf_lock_acquire(&registry->lock);
	if (registry->request < request)
	{
		registry->request = request;
		if (registry->worker)
			SetLatch(registry->worker);
	}
	sf_lock_release(&registry->lock);
}

void
sf_lease_request_taken(SfLeaseState *registry)
{
	sf_lock_acquire(&registry->lock);
	registry->request = SF_REQUEST_NONE;
	sf_lock_release(&registry->lock);
}

bool
sf_lease_hurry(SfLeaseState *registry)
{
	SfLeaseState state = sf_lease_state(registry);

	if (state.last.state != SF_LEASE_CLAIMING && state.last.state != SF_LEASE_HELD &&
		state.last.state != SF_LEASE_EXPIRED)
		return false;
	if (state.worker)
		SetLatch(state.worker);
	return true;
}
