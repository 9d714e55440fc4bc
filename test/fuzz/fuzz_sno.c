/*
 * fuzz_sno.c
 *	  The parser of a sno's text, against any 16 bytes: what it takes is what it writes,
 *	  and nothing else.  A target of libFuzzer:
 *
 *	clang -g -fsanitize=fuzzer,address,undefined -Isrc/core test/fuzz/fuzz_sno.c src/core/sno.c src/core/layout.c
 */
#include <stdlib.h>
#include <string.h>

#include "sno.h"

int			LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char alphabet[] = "23456789abcdefghijklmnopqrstuvwx";
	char		text[SF_SNO_TEXT_LENGTH];
	char		written[SF_SNO_TEXT_LENGTH];
	bool		valid = true;
	SfSno		id;

	if (size < SF_SNO_TEXT_LENGTH)
		return 0;
	memcpy(text, data, SF_SNO_TEXT_LENGTH);
	for (int i = 0; i < SF_SNO_TEXT_LENGTH; i++)
		valid = valid && memchr(alphabet, text[i], sizeof(alphabet) - 1) != NULL;
	if (sf_sno_from_text(text, &id) != valid)
		abort();
	if (!valid)
		return 0;
	sf_sno_to_text(&id, written);
	if (memcmp(text, written, SF_SNO_TEXT_LENGTH) != 0)
		abort();
	return 0;
}
