/*
 * test_base32.c
 *	  IDs as text: published values, invalid texts, and the order of texts.
 */
#include "base32.h"
#include "tap.h"

static void
test_known(void)
{
	static const struct
	{
		int64_t		number;
		const char *text;
	}			known[] = {
		{0, "0000000000000"},
		{1234, "000000000016j"},	/* README of the Python module
									 * base32-crockford */
		{INT64_C(1469918176385), "00001aryz6s41"},	/* README of
													 * ulid/javascript */
		{INT64_C(1541815603606036480), "1asd13xh1f800"},	/* by a calculation in
															 * Python */
		{INT64_MAX, "7zzzzzzzzzzzz"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
	{
		char		text[SF_BASE32_LENGTH + 1] = "";
		int64_t		number;
		bool		overflow;
		SfParseError error;

		sf_base32_encode(known[i].number, text);
		is_text(text, known[i].text, "the text of a number");
		ok(sf_base32_decode(text, SF_BASE32_LENGTH, &number, &overflow, &error), "is a number");
		is_int(number, known[i].number, "which is the same");
	}
}

static void
test_look_alikes(void)
{
	int64_t		plain;
	int64_t		other;
	bool		overflow;
	SfParseError error;

	ok(sf_base32_decode("00001aryz6s41", 13, &plain, &overflow, &error), "lower case");
	ok(sf_base32_decode("OoO0IARYZ6S4l", 13, &other, &overflow, &error), "upper case and look-alikes");
	is_int(other, plain, "are the same number");
	ok(sf_base32_decode("0000LARYZ6s4i", 13, &other, &overflow, &error), "other look-alikes");
	is_int(other, plain, "are the same number");
}

static void
test_bad(void)
{
	static const struct
	{
		const char *text;
		size_t		length;
		size_t		position;
		bool		overflow;
		const char *message;
	}			bad[] = {
		{"", 0, 1, false, "the text ends before its 13th digit"},
		{"000000000000", 12, 13, false, "the text ends before its 13th digit"},
		{"00000000000000", 14, 14, false, "there are more than 13 digits"},
		{"8000000000000", 13, 1, true, "the first digit is above 7"},
		{"zzzzzzzzzzzzz", 13, 1, true, "the first digit is above 7"},
		{"u000000000000", 13, 1, false, "there is no digit of base 32"},
		{"000000000000U", 13, 13, false, "there is no digit of base 32"},
		{"000000-000000", 13, 7, false, "there is no digit of base 32"},
		{"000000 000000", 13, 7, false, "there is no digit of base 32"},
		{"00000\0000000", 13, 6, false, "there is no digit of base 32"},
		{"0000\303\24400000000", 14, 5, false, "there is no digit of base 32"},
		{"\200\377[`{@/:", 8, 1, false, "there is no digit of base 32"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		int64_t		number;
		bool		overflow;
		SfParseError error;

		ok(!sf_base32_decode(bad[i].text, bad[i].length, &number, &overflow, &error), "\"%s\" is no number", bad[i].text);
		is_int((int64_t) error.position, (int64_t) bad[i].position, "where");
		is_text(error.message, bad[i].message, "why");
		ok(overflow == bad[i].overflow, "and whether it is too large");
	}
}

/* Every byte that is neither a digit nor a look-alike of one is refused. */
static void
test_alphabet(void)
{
	int			accepted = 0;

	for (int byte = 0; byte < 256; byte++)
	{
		char		text[SF_BASE32_LENGTH + 1] = "0000000000000";
		int64_t		number;
		bool		overflow;
		SfParseError error;

		text[6] = (char) byte;
		accepted += sf_base32_decode(text, SF_BASE32_LENGTH, &number, &overflow, &error);
	}
	is_int(accepted, 10 + 2 * 25,
		   "bytes that are digits: decimal ones, and all letters except u in either case");
}

static void
test_random(void)
{
	int			wrong = 0;
	int			disordered = 0;

	for (int i = 0; i < 100000; i++)
	{
		int64_t		a = (int64_t) (random_number() >> (1 + random_number() % 63));
		int64_t		b = (int64_t) (random_number() >> (1 + random_number() % 63));
		char		text_a[SF_BASE32_LENGTH + 1] = "";
		char		text_b[SF_BASE32_LENGTH + 1] = "";
		int64_t		number;
		bool		overflow;
		SfParseError error;

		sf_base32_encode(a, text_a);
		sf_base32_encode(b, text_b);
		if (!sf_base32_decode(text_a, SF_BASE32_LENGTH, &number, &overflow, &error) || number != a)
			wrong++;
		if ((strcmp(text_a, text_b) < 0) != (a < b))
			disordered++;
	}
	is_int(wrong, 0, "random numbers are encoded and decoded");
	is_int(disordered, 0, "and their texts sort as the numbers do");
}

/* As memcmp, and a text is above its beginning. */
static int
compare_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int			result = memcmp(a, b, a_length < b_length ? a_length : b_length);

	return result != 0 ? result : (a_length > b_length) - (a_length < b_length);
}

/*
 * Whether a bound is correct: its text is not below the text, and the text of the previous number
 * is.
 */
static bool
is_bound(const char *text, size_t length)
{
	char		written[SF_BASE32_LENGTH];
	int64_t		bound;

	if (!sf_base32_bound(text, length, &bound))
		return compare_bytes("7zzzzzzzzzzzz", SF_BASE32_LENGTH, text, length) < 0;
	sf_base32_encode(bound, written);
	if (bound < 0 || compare_bytes(written, SF_BASE32_LENGTH, text, length) < 0)
		return false;
	if (bound == 0)
		return true;
	sf_base32_encode(bound - 1, written);
	return compare_bytes(written, SF_BASE32_LENGTH, text, length) < 0;
}

static void
test_bounds(void)
{
	static const char alphabet[] = "0012789aizAOILlouyz{~ \x01\x80\xff";
	int			wrong = 0;
	int			wrong_text = 0;

	for (int i = 0; i < 300000; i++)
	{
		char		text[17] = "";
		size_t		length = random_number() % 16;
		int64_t		number;
		bool		overflow;
		SfParseError error;

		for (size_t k = 0; k < length; k++)
			text[k] = alphabet[random_number() % (random_number() % 4 ? 9 : sizeof(alphabet) - 1)];
		if (!is_bound(text, length))
			wrong++;
		if (sf_base32_decode(text, length, &number, &overflow, &error) &&
			sf_base32_is_text_of(text, length, number) != (strspn(text, "0123456789abcdefghjkmnpqrstvwxyz") >= 13))
			wrong_text++;
	}
	is_int(wrong, 0, "the bounds of random texts");
	is_int(wrong_text, 0, "texts with other digits than those written are not texts of a number");
	ok(is_bound("", 0), "the empty text");
	ok(is_bound("7zzzzzzzzzzzz", 13), "the text of the greatest number");
	ok(is_bound("7zzzzzzzzzzzz0", 14), "one above it");
	ok(is_bound("8", 1), "a first digit above 7");
	ok(is_bound("7zzzzzzzzzzz{", 13), "a character after the last digit");
}

int
main(void)
{
	test_bounds();
	test_known();
	test_look_alikes();
	test_bad();
	test_alphabet();
	test_random();
	return done_testing();
}
