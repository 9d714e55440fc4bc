/*
 * scheduler.c
 *	  Processes as coroutines, of which one runs at a time, and the schedule.
 *
 * A process runs until a point at which it yields or waits.  The variables of the extension are in
 * two sections of the program, into which the linker (run) puts nothing else; each process has a
 * copy of them, which is swapped in when it runs.  Time passes at points, and jumps to the next
 * instant for which a process waits when all of them wait.
 *
 * The schedule is random, or by priorities that change at a few random points: the first finds
 * races of a few steps, the second those in which a process is stopped for long.
 */
#include "world.h"

#include <ucontext.h>

#include "common/pg_prng.h"

#include "oracles.h"

#define STACK_SIZE	131072

extern char __start_sfdata[],
			__stop_sfdata[],
			__start_sfbss[],
			__stop_sfbss[];

#define DATA_SIZE	((size_t) (__stop_sfdata - __start_sfdata))
#define BSS_SIZE	((size_t) (__stop_sfbss - __start_sfbss))

/* The compiler must not make assumptions about the contents of the sections. */
#define SECTIONS_CHANGE()	__asm__ volatile("" ::: "memory")

Config		config;
Process		processes[PROCESSES];
Process    *current = NULL;
PGPROC		procs[PROCESSES];
int64		now,
			wall_offset,
			steps,
			next_fault;
bool		quiet,
			weak,
			tracing;
uint64		random_state;

static char *stacks[PROCESSES];
static char *new_image,
		   *postmaster_image;
static jmp_buf scheduler;
static char failure[600];
static int64 next_change,
			lowest_priority,
			end_step;

void
trace_line(const char *format,...)
{
	static const char *const names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "worker", "walwriter", "checkpt", "startup"};
	va_list		arguments;

	printf("%6lld %11.3f ms  %-9s ", (long long) steps, (double) now / 1000.0,
		   current == NULL ? "-" : names[current->number]);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

void
fail(const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(failure, sizeof(failure), format, arguments);
	va_end(arguments);
	trace("FAILURE: %s", failure);
	_longjmp(scheduler, 2);
}

static void
save_image(char *image)
{
	SECTIONS_CHANGE();
	memcpy(image, __start_sfdata, DATA_SIZE);
	memcpy(image + DATA_SIZE, __start_sfbss, BSS_SIZE);
}

static void
load_image(const char *image)
{
	memcpy(__start_sfdata, image, DATA_SIZE);
	memcpy(__start_sfbss, image + DATA_SIZE, BSS_SIZE);
	SECTIONS_CHANGE();
}

void
init_images(void)
{
	new_image = malloc(DATA_SIZE + BSS_SIZE);
	postmaster_image = malloc(DATA_SIZE + BSS_SIZE);
	save_image(new_image);
	for (int i = 0; i < PROCESSES; i++)
	{
		processes[i].image = malloc(DATA_SIZE + BSS_SIZE);
		stacks[i] = malloc(STACK_SIZE);
	}
}

void
save_postmaster(void)
{
	save_image(postmaster_image);
}

void
load_postmaster(bool new)
{
	load_image(new ? new_image : postmaster_image);
}

/* Fork a process from the postmaster. */
void
start_process(int number, void (*main) (void))
{
	Process    *process = &processes[number];
	char	   *image = process->image;

	memset(process, 0, sizeof(*process));
	process->number = number;
	process->alive = true;
	process->main = main;
	process->image = image;
	process->priority = 1000 + below(1000);
	memcpy(image, postmaster_image, DATA_SIZE + BSS_SIZE);
	memset(&procs[number], 0, sizeof(PGPROC));
#if PG_VERSION_NUM < 170000
	procs[number].pgprocno = number;
#endif
	procs[number].pid = 100 + number;
}

void
end_processes(void)
{
	current = NULL;
	for (int i = 0; i < PROCESSES; i++)
		processes[i].alive = false;
}

/* End this process, and start another one in its place. */
void
restart_process(void (*main) (void))
{
	start_process(current->number, main);
	_longjmp(scheduler, 1);
}

static void
run_process(void)
{
	MyProc = &procs[current->number];
	MyLatch = &MyProc->procLatch;
	MyProcPid = MyProc->pid;
#if PG_VERSION_NUM >= 170000
	MyProcNumber = current->number;
#endif
	MyDatabaseId = (Oid) (1 + below(config.databases));
	MyProc->databaseId = MyDatabaseId;
	pg_global_prng_state.s0 = rnd();
	pg_global_prng_state.s1 = rnd() | 1;
	current->main();
	current->alive = false;
	_longjmp(scheduler, 1);
}

static void
resume(Process *process)
{
	static ucontext_t start;

	current = process;
	load_image(process->image);
	if (process->started)
		_longjmp(process->context, 1);
	process->started = true;
	getcontext(&start);
	start.uc_stack.ss_sp = stacks[process->number];
	start.uc_stack.ss_size = STACK_SIZE;
	start.uc_link = NULL;
	makecontext(&start, run_process, 0);
	setcontext(&start);
}

void
yield_now(void)
{
	if (weak && (current->waits_for != NOTHING || chance(2)))
		drain(current, BUFFERED);
	save_image(current->image);
	if (_setjmp(current->context) == 0)
		_longjmp(scheduler, 1);
}

void
wait_for(WaitsFor waits_for, int64 until)
{
	int64		began = now;

	current->waits_for = waits_for;
	current->wake = until;
	current->woken = PG_INT64_MAX;
	yield_now();
	current->waits_for = NOTHING;
	if (!current->flushing)
		current->waited += Max(Min(Min(now, until), current->woken) - began, 0);
	if (weak)
		full_barrier();
}

void
sleep_until(int64 instant)
{
	wait_for(TIME, instant);
}

void
point(void)
{
	steps++;
	if (current == NULL)
		return;
	now += below(config.step + 1);
	if (weak)
		memory_point();
	if (steps >= next_fault || steps >= end_step)
		yield_now();
	else if (config.switch_rate > 0)
	{
		if (below(1024) < config.switch_rate)
			yield_now();
	}
	else if (steps % 4 == 0)
	{
		if (steps >= next_change)
		{
			current->priority = --lowest_priority;
			next_change = steps + 1 + below(config.patience);
		}
		yield_now();
	}
}

/* The processes that can run; the least instant for which another one waits. */
static int
find_ready(Process *ready[], int64 *wake)
{
	int			count = 0;

	*wake = PG_INT64_MAX;
	for (int i = 0; i < PROCESSES; i++)
	{
		Process    *process = &processes[i];

		if (!process->alive)
			continue;
		if (weak && process->view.buffered > 0 && steps - process->view.buffered_since > 40)
			drain(process, BUFFERED);
		if (is_ready(process))
			ready[count++] = process;
		else
			*wake = Min(*wake, process->wake);
	}
	return count;
}

static Process *
choose(Process *ready[], int count)
{
	Process    *chosen = ready[below(count)];

	if (config.switch_rate > 0 || chance(50))
		return chosen;
	for (int i = 0; i < count; i++)
		if (ready[i]->priority > chosen->priority)
			chosen = ready[i];
	return chosen;
}

/* Each process comes back here, by a jump, when it yields. */
const char *
run_processes(int64 longest)
{
	Process    *ready[PROCESSES];

	failure[0] = '\0';
	end_step = steps + longest;
	lowest_priority = 0;
	next_change = steps + below(300);
	if (_setjmp(scheduler) == 2)
	{
		current = NULL;
		return failure;
	}
	for (;;)
	{
		int64		wake;
		int			count;

		current = NULL;
		if (steps >= next_fault)
			fault();
		if (scenario_is_over() || steps >= end_step)
		{
			if (quiet && steps >= end_step)
				fail("P6: sessions make no progress");
			oracle_phase_ends();
			return NULL;
		}
		count = find_ready(ready, &wake);
		if (count > 0)
			resume(choose(ready, count));
		if (wake == PG_INT64_MAX)
			fail("P6: all processes wait for each other");
		check_sleepers();
		now = wake;
	}
}
