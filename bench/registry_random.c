/*
 * registry_random.c
 *	  The random numbers of a run.  They all come from one generator, so that a run has one seed.
 */
#include "registry.h"

#define MULTIPLIER	UINT64_C(2685821657736338717)

static uint64_t state;

void
seed_random(uint64_t seed)
{
	state = seed * MULTIPLIER + 1;
}

/* xorshift64*, as in test/unit/tap.h */
uint64_t
random_number(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * MULTIPLIER;
}

/* A draw, as the functions of src/core/attempt.h take it. */
uint32_t
random_draw(void)
{
	return (uint32_t) (random_number() >> 32);
}
