/*
 * layout_parse.c
 *	  Reading a layout from the name of a preset or from a definition.
 *
 * A definition is read in one pass, which fills a Draft: the value of each key
 * and its place in the text.  The rules over several keys (the sum of the bits,
 * the last instant) are checked afterwards.  Their errors use the places.
 */
#include "layout.h"

#include <stdio.h>
#include <string.h>

#define MAX_ID_BITS			63
#define MAX_SMALL_FIELD_BITS	31	/* machine and sequence are SQL integers */
#define MAX_TICK_LENGTH		INT64_C(1000000)

typedef enum Key
{
	KEY_EPOCH,
	KEY_TICK,
	KEY_TIMESTAMP,
	KEY_MACHINE,
	KEY_SEQUENCE,
	KEY_COUNT
} Key;

static const char *const key_names[KEY_COUNT] = {
	"epoch", "tick", "timestamp", "machine", "sequence"
};

/* A part of the text. */
typedef struct Piece
{
	const char *at;
	size_t		length;
} Piece;

typedef struct Draft
{
	const char *text;
	SfParseError *error;
	Piece		values[KEY_COUNT];	/* at is NULL if the key is not given */
	Key			fields[KEY_COUNT];	/* keys of bits, in their order */
	int			field_count;
	SfInstant	epoch;
	int64_t		tick_length;
	int			bits[KEY_COUNT];	/* for keys of bits; 0 if not given */
} Draft;

/* Fill the error, for a place in the text. */
#define fail(draft, at, ...) \
	sf_parse_fail((draft)->error, (size_t) ((at) - (draft)->text), __VA_ARGS__)

/*
 * A part of the user's text, to be quoted in a message: its first 32 bytes.  Bytes
 * outside of printable ASCII are shown as '?', because the limit could cut a multibyte
 * character in two.
 */
typedef struct Quote
{
	char		text[33];
} Quote;

static Quote
quote(Piece piece)
{
	Quote		quote;
	size_t		length = piece.length < 32 ? piece.length : 32;

	for (size_t i = 0; i < length; i++)
	{
		char		c = piece.at[i];

		if (c < ' ' || c > '~')
			c = '?';
		quote.text[i] = c;
	}
	quote.text[length] = '\0';
	return quote;
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Read the next word of *rest and move *rest behind it; false at the end of the text. */
static bool
take_word(const char **rest, Piece *word)
{
	while (is_space(**rest))
		(*rest)++;
	word->at = *rest;
	while (**rest != '\0' && !is_space(**rest))
		(*rest)++;
	word->length = (size_t) (*rest - word->at);
	return word->length > 0;
}

static bool
read_bits(Draft *draft, Key key)
{
	Piece		value = draft->values[key];
	int			bits = 0;

	for (size_t i = 0; i < value.length; i++)
	{
		if (value.at[i] < '0' || value.at[i] > '9')
			return fail(draft, value.at, "\"%s\" is not a number of bits",
						quote(value).text);
		if (bits <= MAX_ID_BITS)	/* otherwise it is too large already */
			bits = bits * 10 + (value.at[i] - '0');
	}
	if (bits > MAX_ID_BITS)
		return fail(draft, value.at, "field \"%s\" has more than %d bits",
					key_names[key], MAX_ID_BITS);
	if (key != KEY_TIMESTAMP && bits > MAX_SMALL_FIELD_BITS)
		return fail(draft, value.at, "field \"%s\" has %d bits, more than %d",
					key_names[key], bits, MAX_SMALL_FIELD_BITS);
	draft->bits[key] = bits;
	draft->fields[draft->field_count++] = key;
	return true;
}

static bool
read_tick(Draft *draft)
{
	Piece		value = draft->values[KEY_TICK];

	switch (sf_duration_parse(value.at, value.length, &draft->tick_length))
	{
		case SF_DURATION_OK:
			break;
		case SF_DURATION_BAD_SYNTAX:
			return fail(draft, value.at, "tick \"%s\" is not a number followed by ns, us, ms or s",
						quote(value).text);
		case SF_DURATION_NOT_WHOLE:
			return fail(draft, value.at, "tick \"%s\" is not a whole number of microseconds",
						quote(value).text);
	}
	if (draft->tick_length < 1 || draft->tick_length > MAX_TICK_LENGTH)
		return fail(draft, value.at, "tick \"%s\" is not within 1us and 1s",
					quote(value).text);
	return true;
}

static bool
read_epoch(Draft *draft)
{
	Piece		value = draft->values[KEY_EPOCH];

	if (!sf_instant_parse(value.at, value.length, &draft->epoch))
		return fail(draft, value.at,
					"epoch \"%s\" is neither a UTC time such as 2024-01-01T00:00:00Z"
					" nor a Unix time such as 1704067200000ms",
					quote(value).text);
	return true;
}

/* Read one key=value. */
static bool
read_word(Draft *draft, Piece word)
{
	const char *equals = memchr(word.at, '=', word.length);
	Piece		name = {word.at, equals ? (size_t) (equals - word.at) : word.length};
	int			key = 0;

	while (key < KEY_COUNT &&
		   (strlen(key_names[key]) != name.length ||
			memcmp(key_names[key], name.at, name.length) != 0))
		key++;
	if (key == KEY_COUNT)
		return fail(draft, word.at, "unknown key \"%s\"", quote(name).text);
	if (draft->values[key].at != NULL)
		return fail(draft, word.at, "key \"%s\" is given twice", key_names[key]);
	if (equals == NULL || name.length + 1 == word.length)
		return fail(draft, word.at, "key \"%s\" has no value", key_names[key]);
	draft->values[key].at = equals + 1;
	draft->values[key].length = word.length - name.length - 1;

	if (key == KEY_EPOCH)
		return read_epoch(draft);
	if (key == KEY_TICK)
		return read_tick(draft);
	return read_bits(draft, (Key) key);
}

/* Check the rules over several keys. */
static bool
check_draft(Draft *draft, const char *end)
{
	uint64_t	ticks_left;
	int			bits = 0;

	for (int i = 0; i < draft->field_count; i++)
	{
		bits += draft->bits[draft->fields[i]];
		if (bits > MAX_ID_BITS)
			return fail(draft, draft->values[draft->fields[i]].at,
						"the fields have more than %d bits together", MAX_ID_BITS);
	}
	if (draft->bits[KEY_TIMESTAMP] == 0)
		return fail(draft, end, "field \"timestamp\" is missing or has no bits");
	if (draft->fields[0] != KEY_TIMESTAMP)
		return fail(draft,
					draft->values[draft->fields[0]].at - strlen(key_names[draft->fields[0]]) - 1,
					"field \"timestamp\" is not first: \"%s\" is before it",
					key_names[draft->fields[0]]);
	if (draft->values[KEY_EPOCH].at == NULL)
		return fail(draft, end, "key \"epoch\" is missing");
	if (draft->values[KEY_TICK].at == NULL)
		return fail(draft, end, "key \"tick\" is missing");

	/* The last tick must begin before the end of timestamptz. */
	ticks_left = ((uint64_t) (SF_INSTANT_END - 1) - (uint64_t) draft->epoch) /
		(uint64_t) draft->tick_length;
	if (sf_field_max(draft->bits[KEY_TIMESTAMP]) > ticks_left)
		return fail(draft, draft->values[KEY_TIMESTAMP].at,
					"the last instant of %d timestamp bits is outside of timestamptz",
					draft->bits[KEY_TIMESTAMP]);
	return true;
}

static void
build_layout(const Draft *draft, SfLayout *layout)
{
	int			shifts[KEY_COUNT] = {0};
	int			shift = 0;

	for (int i = draft->field_count; i-- > 0;)
	{
		shifts[draft->fields[i]] = shift;
		shift += draft->bits[draft->fields[i]];
	}
	memset(layout, 0, sizeof(*layout));
	layout->epoch = draft->epoch;
	layout->tick_length = (int32_t) draft->tick_length;
	layout->timestamp_bits = (uint8_t) draft->bits[KEY_TIMESTAMP];
	layout->machine_bits = (uint8_t) draft->bits[KEY_MACHINE];
	layout->sequence_bits = (uint8_t) draft->bits[KEY_SEQUENCE];

	/* The shift of a field without bits is 0, so equal layouts look alike. */
	layout->timestamp_shift = (uint8_t) shifts[KEY_TIMESTAMP];
	layout->machine_shift = layout->machine_bits ? (uint8_t) shifts[KEY_MACHINE] : 0;
	layout->sequence_shift = layout->sequence_bits ? (uint8_t) shifts[KEY_SEQUENCE] : 0;
}

bool
sf_layout_parse(const char *text, SfLayout *layout, SfParseError *error)
{
	Draft		draft = {.text = text,.error = error};
	const char *rest = text;
	Piece		word;

	for (int i = 0; i < sf_preset_count; i++)
	{
		if (strcmp(text, sf_presets[i].name) == 0)
			return sf_layout_parse(sf_presets[i].definition, layout, error);
	}
	if (!take_word(&rest, &word))
		return fail(&draft, text, "the text is empty");
	if (memchr(word.at, '=', word.length) == NULL)
		return fail(&draft, word.at, "no preset is named \"%s\"", quote(word).text);
	do
	{
		if (!read_word(&draft, word))
			return false;
	} while (take_word(&rest, &word));
	if (!check_draft(&draft, rest))
		return false;
	build_layout(&draft, layout);
	return true;
}
