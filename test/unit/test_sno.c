/*
 * test_sno.c
 *	  IDs of 80 bits: values that the Go library printed, invalid texts, the order of
 *	  IDs, of their texts and of their sort keys, and distances.
 */
#include <stdlib.h>

#include "csv.h"
#include "sno.h"

static unsigned
hex_digit(char digit)
{
	return (unsigned) (digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static SfSno
from_hex(const char *hex)
{
	SfSno		id;

	for (int i = 0; i < SF_SNO_SIZE; i++)
		id.bytes[i] = (unsigned char) (hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
	return id;
}

static bool
equal(SfSno a, SfSno b)
{
	return memcmp(a.bytes, b.bytes, SF_SNO_SIZE) == 0;
}

/* bin_hex,text,time,unix_ms,tick,meta,partition,sequence */
static void
check_codec(char *columns[MAX_COLUMNS])
{
	SfSno		id = from_hex(columns[0]);
	SfSno		read;
	SfInstant	instant = 0;
	SfSnoFields fields = sf_sno_decompose(&id);
	char		text[SF_SNO_TEXT_LENGTH + 1] = "";

	sf_sno_to_text(&id, text);
	is_text(text, columns[1], "text");
	ok(sf_sno_from_text(columns[1], &read) && equal(read, id), "and back");
	ok(sf_instant_parse(columns[2], strlen(columns[2]), &instant), "time");
	is_int(sf_sno_instant(&id), instant, columns[2]);
	is_int((sf_sno_instant(&id) - SF_UNIX_EPOCH) / 1000, strtoll(columns[3], NULL, 10), "milliseconds");
	is_int(fields.tick_tock, atoi(columns[4]), "tick-tock");
	is_int(fields.metabyte, atoi(columns[5]), "metabyte");
	is_int(fields.partition, atoi(columns[6]), "partition");
	is_int(fields.sequence, atoi(columns[7]), "sequence");

	fields.units = (uint64_t) sf_layout_tick_floor(&sf_sno_layout, instant);
	ok(equal(sf_sno_compose(fields), id), "composed again");
}

static int
sign(int number)
{
	return (number > 0) - (number < 0);
}

/* Whether the sort keys of two IDs, with some reference, are in the order of the IDs. */
static bool
sorts(SfSno a, SfSno b, SfSno reference)
{
	uint64_t	key_a = sf_sno_sort_key(&a, &reference);
	uint64_t	key_b = sf_sno_sort_key(&b, &reference);
	int			order = sign(sf_sno_compare(&a, &b));

	return order == 0 ? key_a == key_b : order < 0 ? key_a <= key_b : key_a >= key_b;
}

/* a_hex,b_hex,a_text,b_text,cmp */
static void
check_compare(char *columns[MAX_COLUMNS])
{
	SfSno		a = from_hex(columns[0]);
	SfSno		b = from_hex(columns[1]);
	int			order = atoi(columns[4]);

	is_int(sign(sf_sno_compare(&a, &b)), order, "order");
	is_int(sign(sf_sno_compare(&b, &a)), -order, "turned around");
	is_int(sign(strcmp(columns[2], columns[3])), order, "order of texts");
	ok(sorts(a, b, a) && sorts(a, b, b), "order of sort keys");
}

/* input_hex,valid,binary_hex */
static void
check_accepts(char *columns[MAX_COLUMNS])
{
	char		input[1024];
	size_t		length = strlen(columns[0]) / 2;
	SfSno		id;
	bool		valid;

	for (size_t i = 0; i < length; i++)
		input[i] = (char) (hex_digit(columns[0][2 * i]) << 4 | hex_digit(columns[0][2 * i + 1]));
	valid = length == SF_SNO_TEXT_LENGTH && sf_sno_from_text(input, &id);
	is_int(valid, atoi(columns[1]), columns[0]);
	if (valid)
		ok(equal(id, from_hex(columns[2])), "is %s", columns[2]);
}

/* Each byte at each place of a text is accepted exactly if it is in the alphabet. */
static void
test_alphabet(void)
{
	static const char alphabet[] = "23456789abcdefghijklmnopqrstuvwx";
	int			wrong = 0;

	for (int place = 0; place < SF_SNO_TEXT_LENGTH; place++)
		for (int byte = 0; byte < 256; byte++)
		{
			char		text[SF_SNO_TEXT_LENGTH + 1] = "brpk4q72xwf2m63l";
			bool		valid = byte != 0 && strchr(alphabet, byte) != NULL;
			SfSno		id;

			text[place] = (char) byte;
			wrong += sf_sno_from_text(text, &id) != valid;
		}
	is_int(wrong, 0, "bytes that are wrongly accepted or refused");
}

static SfSno
random_id(void)
{
	return sf_sno_of(random_number(), (uint16_t) random_number());
}

static void
test_random(void)
{
	int			wrong = 0;

	for (int i = 0; i < 100000; i++)
	{
		SfSno		id = random_id();
		SfSno		read;
		char		text[SF_SNO_TEXT_LENGTH];

		sf_sno_to_text(&id, text);
		wrong += !sf_sno_from_text(text, &read) || !equal(read, id) ||
			!equal(sf_sno_compose(sf_sno_decompose(&id)), id);
	}
	is_int(wrong, 0, "random IDs that their text or their fields do not reproduce");
}

/* Often the first or the last one. */
static uint16_t
random_sequence(void)
{
	uint16_t	sequence = (uint16_t) random_number();

	switch (random_number() % 8)
	{
		case 0:
			return 0;
		case 1:
			return UINT16_MAX;
		default:
			return sequence;
	}
}

/*
 * Two IDs and a reference that are near each other, in any of their fields.  The keys are in
 * the order of the IDs, and different IDs of the reference's partition have different keys.
 */
static void
test_sort_key(void)
{
	int			wrong = 0;
	int			same = 0;

	for (int i = 0; i < 300000; i++)
	{
		SfSno		reference = random_id();
		SfSno		ids[2];

		for (int k = 0; k < 2; k++)
		{
			uint64_t	upper = sf_sno_upper(&reference);

			switch (random_number() % 4)
			{
				case 0:
					upper += random_number() % 5 - 2;
					break;
				case 1:
					upper ^= UINT64_C(1) << random_number() % 64;
					break;
				case 2:
					upper = random_number() % 2 ? upper | 0xffffff : upper & ~UINT64_C(0xffffff);
					break;
			}
			ids[k] = sf_sno_of(upper, random_sequence());
		}
		wrong += !sorts(ids[0], ids[1], reference);
		same += ((sf_sno_upper(&ids[0]) ^ sf_sno_upper(&reference)) & 0xffffff) == 0 &&
			((sf_sno_upper(&ids[1]) ^ sf_sno_upper(&reference)) & 0xffffff) == 0 &&
			!equal(ids[0], ids[1]) &&
			sf_sno_sort_key(&ids[0], &reference) == sf_sno_sort_key(&ids[1], &reference);
	}
	is_int(wrong, 0, "pairs that sort keys put in another order");
	is_int(same, 0, "pairs of the reference's partition with one sort key");
}

static void
test_boundary(void)
{
	SfInstant	first = sf_sno_layout.epoch;
	SfInstant	last = sf_layout_tick_start(&sf_sno_layout, sf_layout_last_tick(&sf_sno_layout));
	SfSno		zero = sf_sno_of(0, 0);
	SfSno		greatest = sf_sno_of(UINT64_MAX, UINT16_MAX);
	int			wrong = 0;

	ok(equal(sf_sno_boundary(INT64_MIN), zero), "-infinity");
	ok(equal(sf_sno_boundary(first), zero), "the epoch");
	ok(!equal(sf_sno_boundary(first + 1), zero), "and after it");
	ok(equal(sf_sno_boundary(last + 1), greatest), "past the last unit");
	ok(equal(sf_sno_boundary(INT64_MAX), greatest), "infinity");
	is_int(sf_sno_instant(&greatest), last, "the time of the greatest ID");
	for (int i = 0; i < 100000; i++)
	{
		SfSno		id = random_id();
		SfInstant	instant = i % 2 ? sf_sno_instant(&id) + (int64_t) (random_number() % 9) - 4 :
		first + (int64_t) (random_number() % (uint64_t) (last - first));
		SfSno		boundary = sf_sno_boundary(instant);

		wrong += (sf_sno_compare(&id, &boundary) >= 0) != (sf_sno_instant(&id) >= instant);
	}
	is_int(wrong, 0, "random IDs on the wrong side of a boundary");
}

int
main(void)
{
	is_int(for_each_row("test/vectors/sno_codec.csv", 8, check_codec), 160, "IDs");
	is_int(for_each_row("test/vectors/sno_compare.csv", 5, check_compare), 60, "pairs");
	is_int(for_each_row("test/vectors/sno_text_accepts.csv", 3, check_accepts), 80, "inputs");
	test_alphabet();
	test_random();
	test_sort_key();
	test_boundary();
	return done_testing();
}
