/*
 * port/atomics.h
 *	  PostgreSQL's header for atomic variables and barriers, in which each operation is replaced by
 *	  a step of the simulator.  This directory is before PostgreSQL's in the include path.
 */
#include_next "port/atomics.h"
#ifndef SIM_ATOMICS_H
#define SIM_ATOMICS_H

/* memory.c; the last argument is the function of the extension, for the trace. */
extern uint64 sim_load(const volatile void *p, int size, const char *function);
extern void sim_store(volatile void *p, int size, uint64 value, const char *function);
extern bool sim_swap(volatile void *p, int size, void *expected, uint64 value,
					 const char *function);
extern uint64 sim_add(volatile void *p, int size, uint64 value, const char *function);
extern uint64 sim_exchange(volatile void *p, int size, uint64 value, const char *function);
extern void sim_barrier(bool reads, bool writes);

#define pg_atomic_read_u32(p)	((uint32) sim_load(&(p)->value, 4, __func__))
#define pg_atomic_read_u64(p)	sim_load(&(p)->value, 8, __func__)
#define pg_atomic_write_u32(p, v)	sim_store(&(p)->value, 4, (uint32) (v), __func__)
#define pg_atomic_write_u64(p, v)	sim_store(&(p)->value, 8, (v), __func__)
#define pg_atomic_compare_exchange_u32(p, e, v)	sim_swap(&(p)->value, 4, (e), (v), __func__)
#define pg_atomic_compare_exchange_u64(p, e, v)	sim_swap(&(p)->value, 8, (e), (v), __func__)
#define pg_atomic_fetch_add_u32(p, v)	sim_add(&(p)->value, 4, (uint64) (v), __func__)
#define pg_atomic_fetch_add_u64(p, v)	sim_add(&(p)->value, 8, (uint64) (v), __func__)
#define pg_atomic_exchange_u64(p, v)	sim_exchange(&(p)->value, 8, (v), __func__)

#undef pg_memory_barrier
#undef pg_read_barrier
#undef pg_write_barrier
#define pg_memory_barrier()	sim_barrier(true, true)
#define pg_read_barrier()	sim_barrier(true, false)
#define pg_write_barrier()	sim_barrier(false, true)

#endif							/* SIM_ATOMICS_H */
