/*
 * registry_loop.c
 *	  When attempts begin, advance and time out.
 *
 * A server that waits for its next attempt is in a heap.  The attempt begins when it is due and a
 * place in the array of attempts is free.  So the size of this array is the largest number of
 * connections that are open at once.  An attempt advances when its connection has an event.
 *
 * A run calls begin_due() and wait_for_events() in turn.  When an attempt has ended, the run's
 * function attempt_ended is called.  It pushes the server again if another attempt is to be made.
 */
#include <sys/epoll.h>

#include "registry.h"

#define TIMEOUT			5.0		/* s, to connect and for each answer, as in
								 * src/registry */
#define INTERVAL		0.1		/* s; the longest time between two checks */

/*
 * The heap of servers, by the times of their next attempts
 */

void
push(Fleet *fleet, Server *server)
{
	Server	  **heap = fleet->heap;
	int			i = fleet->heap_size++;

	for (; i > 0 && heap[(i - 1) / 2]->due > server->due; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = server;
}

static Server *
pop(Fleet *fleet)
{
	Server	  **heap = fleet->heap;
	Server	   *first = heap[0];
	Server	   *last = heap[--fleet->heap_size];
	int			i = 0;

	for (int child = 1; child < fleet->heap_size; child = 2 * i + 1)
	{
		if (child + 1 < fleet->heap_size && heap[child + 1]->due < heap[child]->due)
			child++;
		if (heap[child]->due >= last->due)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/*
 * Attempts
 */

/* Begin the attempts that are due.  Returns the number of attempts that are not over. */
int
begin_due(Fleet *fleet, double now)
{
	static int	next;
	int			open = 0;

	for (int i = 0; i < fleet->attempt_count; i++)
		open += fleet->attempts[i].server != NULL;
	while (fleet->heap_size > 0 && fleet->heap[0]->due <= now && open < fleet->attempt_count)
	{
		while (fleet->attempts[next].server)
			next = (next + 1) % fleet->attempt_count;
		begin_attempt(fleet, &fleet->attempts[next], pop(fleet));
		open += fleet->attempts[next].server != NULL;
	}
	return open;
}

/* Wait for events until the next attempt is due, or for a tenth of a second. */
void
wait_for_events(Fleet *fleet, double now)
{
	static struct epoll_event events[1024];
	double		due = fleet->heap_size > 0 ? fleet->heap[0]->due - now : INTERVAL;
	int			timeout = due < INTERVAL ? (int) (due * 1000) + 1 : (int) (INTERVAL * 1000);
	int			count = epoll_wait(fleet->poll_set, events, 1024, timeout > 0 ? timeout : 1);

	for (int i = 0; i < count; i++)
	{
		Attempt    *attempt = events[i].data.ptr;

		if (attempt->server)
			advance_attempt(fleet, attempt);
	}
}

/* End the attempts for which the registry has not answered in time. */
void
end_timeouts(Fleet *fleet, double now)
{
	static double last;

	if (fleet->keep_open || now - last < INTERVAL)
		return;
	last = now;
	for (int i = 0; i < fleet->attempt_count; i++)
	{
		if (fleet->attempts[i].server && now - fleet->attempts[i].began > TIMEOUT)
		{
			fleet->totals.timeouts++;
			end_attempt(fleet, &fleet->attempts[i], false);
		}
	}
}
