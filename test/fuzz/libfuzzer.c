/*
 * libfuzzer.c
 *	  Runs a fuzz target with libFuzzer.
 */
#include "fuzz.h"

int			LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char	   *text = malloc(size + 1);

	check(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	fuzz_text(text);
	free(text);
	return 0;
}
