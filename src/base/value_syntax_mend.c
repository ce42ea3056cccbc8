/*
 * value_syntax_mend: what is written over in a text, or into its copy, so that it is JSON as the
 * grammar has it: comments, fences and commas, halves of characters, integers beyond 64 bits.
 */
#include "base/value_syntax_parts.h"

#include <string.h>

#include "base/text/text.h"
#include "base/value.h"

bool value_syntax_mend(struct str text, struct buf *out)
{
	while (text.size) {
		size_t good = 0, length = 1;

		while (good < text.size && length) {
			length = text_utf8_length(str_part(text, good, 4));
			good += length;
		}
		if (!buf_add(out, text.data, good))
			return false;
		text = str_part(text, good, text.size);
		if (text.size && !buf_adds(out, "\xef\xbf\xbd"))
			return false;
		text = str_part(text, 1, text.size);
	}
	return true;
}

static void value_blank(char *text, size_t from, size_t to)
{
	for (; from < to; from++) {
		if (text[from] != '\n' && text[from] != '\r')
			text[from] = ' ';
	}
}

/*
 * Blank a comment that opens at AT; returns its end, or AT when it is none or has no end.
 */
static size_t value_blank_comment(char *text, size_t size, size_t at)
{
	struct str whole = {text, size};
	size_t end;

	if (at + 1 >= size || (text[at + 1] != '/' && text[at + 1] != '*'))
		return at;
	if (text[at + 1] == '/') {
		end = str_find(whole, STR("\n"), at);
		end = end == (size_t)-1 ? size : end;
	} else {
		end = str_find(whole, STR("*/"), at + 2);
		if (end == (size_t)-1)
			return at;
		end += 2;
	}
	value_blank(text, at, end);
	return end;
}

/* A model's "```json … ```" around the value: both fences go, or none. */
static void value_blank_fence(char *text, size_t size)
{
	struct str inside = str_trim((struct str){text, size});
	size_t start = (size_t)(inside.data - text), opened, closed;

	if (!str_starts(inside, STR("```")) || !str_ends(inside, STR("```")))
		return;
	opened = str_find((struct str){text, size}, STR("\n"), start);
	closed = start + inside.size - 3;
	if (opened == (size_t)-1 || opened > closed)
		return;
	value_blank(text, start, opened);
	value_blank(text, closed, closed + 3);
}

bool value_syntax_blank(char *text, size_t size, unsigned flags, struct err *err)
{
	const size_t none = (size_t)-1;
	/* A comma that waits for what follows it, and what stood before that comma. */
	size_t comma = none;
	char before = '[';

	if (flags & VALUE_REPAIR)
		value_blank_fence(text, size);
	for (size_t at = 0; at < size;) {
		char c = text[at];

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			at++;
			continue;
		}
		if (c == '/' && (flags & VALUE_COMMENTS)) {
			size_t end = value_blank_comment(text, size, at);

			if (end == at && at + 1 < size && text[at + 1] == '*')
				return value_syntax_fail((struct str){text, size}, at,
							 "a comment without end", err);
			if (end > at) {
				at = end;
				continue;
			}
		}
		if ((c == ']' || c == '}') && comma != none)
			text[comma] = ' ';
		comma = none;
		/*
		 * "[,]" and "[1,,]" are no trailing commas: something would be missing.
		 */
		if (c == ',' && before != '[' && before != '{' && before != ',' &&
		    before != ':')
			comma = at;
		before = c;
		at = c == '"' ? value_syntax_skip_string((struct str){text, size}, at)
			      : at + 1;
	}
	return true;
}

void value_syntax_mend_halves(char *text, size_t size)
{
	const struct str whole = {text, size};

	/* A backslash that stands in no string is no JSON whatever follows it. */
	for (size_t at = 0; at + 1 < size;) {
		const int unit = str_starts(str_part(whole, at, 2), STR("\\u"))
					 ? value_syntax_unit(whole, at + 2)
					 : -1;
		const bool half = unit >= 0xd800 && unit <= 0xdfff;
		const bool paired = half && value_syntax_is_paired(whole, at, unit);

		for (size_t i = 0; half && !paired && i < 6; i++)
			text[at + i] = "\\ufffd"[i];
		at += paired ? 12 : text[at] == '\\' ? 2 : 1;
	}
}

/* Of the DIGITS of an integer, without a sign. */
static bool value_fits(struct str digits, bool negative)
{
	static const char least[] = "9223372036854775808", most[] = "9223372036854775807";
	const size_t room = sizeof(most) - 1;

	return digits.size < room ||
	       (digits.size == room &&
		memcmp(digits.data, negative ? least : most, room) <= 0);
}

void value_syntax_mend_integers(char *text, size_t size)
{
	const struct str whole = {text, size};

	for (size_t at = 0; at < size;) {
		const bool negative = text[at] == '-';
		const size_t start = at + negative;
		size_t end = start;

		if (!negative && !value_syntax_is_digit(text[at])) {
			at = text[at] == '"' ? value_syntax_skip_string(whole, at) : at + 1;
			continue;
		}
		while (end < size && value_syntax_is_digit(text[end]))
			end++;
		at = end;
		while (at < size && text[at] != '\0' && strchr("+-.eE0123456789", text[at]))
			at++;
		/* The rest of a number makes a real of it. */
		if (at > end || value_fits(str_part(whole, start, end - start), negative))
			continue;
		text[end - 2] = 'e';
		text[end - 1] = '2';
	}
}
