/*
 * postmaster.c
 *	  The start of a server: the postmaster's variables, its memory, and the shared segment.
 */
#include "world.h"

#include "access/twophase.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "issue/generator.h"
#include "state/postmaster_memory.h"

shmem_request_hook_type shmem_request_hook;
shmem_startup_hook_type shmem_startup_hook;

static char postmaster_memory[4096] __attribute__((aligned(128)));

/* The kernel: anonymous memory, which forks share. */
void *
sim_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
	if (size > sizeof(postmaster_memory))
		abort();
	memset(postmaster_memory, 0, sizeof(postmaster_memory));
	return postmaster_memory;
}

/* ipci.c */
void
RequestAddinShmemSpace(Size size)
{
	if (size > SHMEM_SIZE)
		abort();
}

/* shmem.c: a segment is new after the start of the postmaster, and after the crash of a process. */
void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	*found = false;
	return shmem;
}

static void
apply_settings(void)
{
	sf_settings_layout = config.layouts[config.layout];
	sf_layout_format(&sf_settings_layout, sf_settings_layout_text);
	sf_settings_sequence_range = config.range;
	sf_settings_sno_sequence_range = config.sno_range;
	sf_settings_registry = config.leased ? "host=registry" : "";
	sf_settings_machine_id = config.machine_id;
	sf_settings_sno_partition = config.partition;
	sf_settings_max_ahead = config.max_ahead;
	sf_settings_max_wait = config.max_wait;
	sf_settings_max_clock_step = config.max_clock_step;
	sf_settings_sequence_jitter = config.jitter;
}

/* postmaster.c, PostmasterMain: the library is loaded (_PG_init in snowflake.c). */
void
start_postmaster(void)
{
	end_processes();
	load_postmaster(true);
	apply_settings();
	shmem_request_hook = NULL;
	shmem_startup_hook = NULL;
	sf_shared_init();
	sf_postmaster_memory_init();
	sf_transactions_init();
	shmem_request_hook();
	save_postmaster();
}

/* postmaster.c, reset_shared: at the start, and after the crash of a process. */
void
make_shared_memory(void)
{
	end_processes();
	load_postmaster(false);
	apply_settings();
	forget_lwlocks();
	forget_memory();
	shmem_startup_hook();
	save_postmaster();
}
