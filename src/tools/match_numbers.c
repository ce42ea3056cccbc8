/*
 * match_numbers: an old text pasted with the line numbers of a reading ("12<tab>text").
 * They are taken out when the rest then stands exactly once, and exactly where the
 * numbers say.
 */
#include "tools/match.h"

#include <stdint.h>
#include <string.h>

/* The number and tab that LINE begins with: their size, 0 when it has none. */
static size_t number_size(struct str line, size_t *number)
{
	size_t at = 0;
	size_t value = 0;

	while (at < line.size && line.data[at] == ' ')
		at++;
	if (at == line.size || line.data[at] < '1' || line.data[at] > '9')
		return 0;
	for (; at < line.size && line.data[at] >= '0' && line.data[at] <= '9'; at++) {
		if (value > SIZE_MAX / 100)
			return 0;
		value = value * 10 + (size_t)(line.data[at] - '0');
	}
	if (at == line.size || line.data[at] != '\t')
		return 0;
	*number = value;
	return at + 1;
}

bool match_is_numbered(struct str text, size_t *first)
{
	struct str rest = text;
	struct str line;
	size_t expected = 0;

	while (str_next_line(&rest, &line)) {
		size_t number;

		if (number_size(line, &number) == 0 || (expected && number != expected))
			return false;
		if (!expected)
			*first = number;
		expected = number + 1;
	}
	return expected > 0;
}

static void strip(struct str text, struct buf *out)
{
	struct str rest = text;
	struct str line;

	while (str_next_line(&rest, &line)) {
		size_t number;
		size_t size = number_size(line, &number);

		buf_addstr(out, str_part(line, size, line.size));
		buf_addc(out, '\n');
	}
	if (!str_ends(text, STR("\n")) && out->size)
		buf_truncate(out, out->size - 1);
}

/* Has any line of TEXT a number? Then it must have them all. */
static bool has_numbers(struct str text)
{
	struct str line;
	size_t number;

	while (str_next_line(&text, &line)) {
		if (number_size(line, &number))
			return true;
	}
	return false;
}

void match_numbers(struct str text, struct str old, struct str replacement,
		   struct match *match)
{
	struct buf plain;
	size_t first = 0;
	size_t unused;

	if (!match_is_numbered(old, &first))
		return;
	buf_init(&plain, SIZE_MAX);
	strip(old, &plain);
	if (plain.size)
		match_exact(text, buf_str(&plain), false, match);
	if (match->count == 1 && match_line(text, match->spans[0].start) != first)
		match->count = 0;
	if (match_is_numbered(replacement, &unused))
		strip(replacement, &match->replacement);
	else if (has_numbers(replacement))
		match->count = 0;
	else
		buf_addstr(&match->replacement, replacement);
	buf_fini(&plain);
}
