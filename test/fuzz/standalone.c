/*
 * standalone.c
 *	  Runs a fuzz target without libFuzzer: on a million inputs that are random, or near
 *	  what the target takes, the same in each run.
 */
#include "../unit/tap.h"

#define LENGTH	16
#define RUNS	1000000

int			LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Inputs are of this alphabet, but for some bytes in some of them. */
static const char alphabet[] = "23456789abcdefghijklmnopqrstuvwx";

int
main(void)
{
	unsigned char input[LENGTH];

	for (int run = 0; run < RUNS; run++)
	{
		for (int i = 0; i < LENGTH; i++)
			input[i] = (unsigned char) alphabet[random_number() % (sizeof(alphabet) - 1)];
		for (int changes = (int) (random_number() % 4); changes > 0; changes--)
			input[random_number() % LENGTH] = (unsigned char) random_number();
		LLVMFuzzerTestOneInput(input, LENGTH);
	}
	ok(true, "%d inputs", RUNS);
	return done_testing();
}
