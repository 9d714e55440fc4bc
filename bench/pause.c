/*
 * pause.c
 *	  Pauses sessions inside a function of the extension, for bench/chaos.
 *
 *	pause LIBRARY START LENGTH STEPS SEED PID...
 *
 * The function begins at address START of LIBRARY and has LENGTH bytes, as nm -S prints them in
 * hexadecimal.  Each process is executed instruction by instruction until it enters the function,
 * then for a random number of instructions below STEPS, in the function and in the functions that
 * it calls, and is left stopped there, as by SIGSTOP.  SIGCONT lets it continue.  The numbers are
 * drawn from SEED.
 *
 * A process that is paused at a random time is seldom between two certain instructions.  A process
 * that is paused by this program is there in one of STEPS tries.
 *
 * A process that does not enter the function within a second is not paused, and continues.  The
 * status is 0 if at least one was paused.  Uses ptrace() of Linux.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS		1			/* that a process has to enter the function */

typedef struct Function
{
	const char *library;
	uintptr_t	start;
	uintptr_t	length;
} Function;

/* The address at which a process has mapped a library; ends this process if it has not. */
static uintptr_t
address_of_library(pid_t pid, const char *library)
{
	char		path[64];
	char		line[4096];
	FILE	   *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int) pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, library))
			return strtoull(line, NULL, 16);
	exit(1);
}

/*
 * Let a process execute one instruction, and return the address of its next one.  A signal that
 * it is sent meanwhile is delivered to it.  Ends this process if the other one ends.
 */
static uintptr_t
step(pid_t pid)
{
	int			signal = 0;

	for (;;)
	{
		int			status;
		siginfo_t	info;

		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, signal) != 0 ||
			waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			exit(1);
		signal = 0;
		if (status >> 16 != 0)
			continue;			/* the stop that began all this */
		signal = WSTOPSIG(status);
		if (signal == SIGTRAP)
		{
			if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) != 0)
				exit(1);
			return (uintptr_t) info.si_addr;
		}
	}
}

/* The kernel lets the process continue if this one ends before it is stopped. */
static void
pause_in_function(pid_t pid, const Function *function, long steps)
{
	uintptr_t	start = address_of_library(pid, function->library) + function->start;

	alarm(SECONDS);
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 ||
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, NULL, 0) != pid)
		exit(1);
	while (step(pid) - start >= function->length)
		;
	while (steps-- > 0)
		(void) step(pid);
	exit(ptrace(PTRACE_DETACH, pid, NULL, SIGSTOP) != 0);
}

int
main(int argc, char **argv)
{
	Function	function;
	long		steps;
	bool		paused = false;
	int			status;

	if (argc < 6)
	{
		fprintf(stderr, "usage: pause LIBRARY START LENGTH STEPS SEED PID...\n");
		return 2;
	}
	function.library = argv[1];
	function.start = strtoull(argv[2], NULL, 16);
	function.length = strtoull(argv[3], NULL, 16);
	steps = strtol(argv[4], NULL, 10);
	srandom((unsigned) strtoul(argv[5], NULL, 10));
	for (int i = 6; i < argc; i++)
	{
		long		chosen = random() % steps;

		if (fork() == 0)
			pause_in_function((pid_t) strtol(argv[i], NULL, 10), &function, chosen);
	}
	while (wait(&status) > 0)
		paused = paused || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return paused ? 0 : 1;
}
