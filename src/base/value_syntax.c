/* value_syntax: the grammar of JSON; see value_syntax.h. */
#include "base/value_syntax_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

/* As much as a sentence repeats of the text: enough to find the place. */
enum { VALUE_NEAR = 40 };

bool value_syntax_fail(struct str text, size_t at, const char *what, struct err *err)
{
	size_t line = 1, column = 1;
	struct str near;
	struct buf quoted;

	if (at > text.size)
		at = text.size;
	for (size_t i = 0; i < at; i++) {
		if (text.data[i] == '\n') {
			line++;
			column = 1;
		} else if (((unsigned char)text.data[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	near = str_part(text, at, text.size);
	near.size = text_character_border(near, VALUE_NEAR);
	if (near.size && memchr(near.data + 1, '\n', near.size - 1))
		near.size =
			(size_t)((const char *)memchr(near.data + 1, '\n', near.size - 1) -
				 near.data);
	if (near.size == 0)
		return err_set(err, EINVAL,
			       "line %zu, column %zu: %s at the end of the text", line,
			       column, what);
	/* No ceiling needed: six bytes for one at most. */
	buf_init(&quoted, (size_t)8 * VALUE_NEAR);
	(void)value_quote(near, &quoted);
	err_set(err, EINVAL, "line %zu, column %zu: %s near %s", line, column, what,
		quoted.data);
	buf_fini(&quoted);
	return false;
}

/* All bits in the lanes of bytes that a JSON string cannot hold as they are, or above ASCII. */
static byte_vector value_specials(byte_vector bytes)
{
	return (byte_vector)(bytes < 0x20) | (byte_vector)(bytes == '"') |
	       (byte_vector)(bytes == '\\') | (byte_vector)(bytes >= 0x80);
}

static bool value_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

size_t value_syntax_skip_plain(struct str text, size_t from)
{
	for (;;) {
		size_t length;

		while (text.size - from >= BYTE_VECTOR) {
			byte_vector bytes = byte_vector_load(text.data + from);
			size_t first = byte_vector_first(value_specials(bytes));

			from += first;
			if (first < BYTE_VECTOR)
				break;
		}
		while (from < text.size && value_is_plain((unsigned char)text.data[from]))
			from++;
		if (from == text.size || (unsigned char)text.data[from] < 0x80)
			return from;
		/* Other scripts come in runs. */
		while (from < text.size && (unsigned char)text.data[from] >= 0x80) {
			length = text_utf8_length(str_part(text, from, 4));
			if (length == 0 || value_syntax_is_control(text, from))
				return from;
			from += length;
		}
	}
}

bool value_syntax_is_control(struct str text, size_t at)
{
	return text.size - at >= 2 && (unsigned char)text.data[at] == 0xc2 &&
	       (unsigned char)text.data[at + 1] >= 0x80 &&
	       (unsigned char)text.data[at + 1] < 0xa0;
}

size_t value_syntax_skip_string(struct str text, size_t at)
{
	for (at++; at < text.size; at++) {
		if (text.data[at] == '\\')
			at++;
		else if (text.data[at] == '"')
			return at + 1;
	}
	return text.size;
}

bool value_syntax_depth(struct str text, struct err *err)
{
	char what[64];
	size_t depth = 0, parts = 0;

	for (size_t at = 0; at < text.size; at++) {
		switch (text.data[at]) {
		case '"':
			at = value_syntax_skip_string(text, at) - 1;
			break;
		case ',':
			if (++parts <= VALUE_PARTS_MAX)
				break;
			(void)snprintf(what, sizeof(what), "more than %d values",
				       VALUE_PARTS_MAX);
			return value_syntax_fail(text, at, what, err);
		case '{':
		case '[':
			if (++depth <= VALUE_DEPTH_MAX)
				break;
			(void)snprintf(what, sizeof(what), "nested deeper than %d levels",
				       VALUE_DEPTH_MAX);
			return value_syntax_fail(text, at, what, err);
		case '}':
		case ']':
			depth -= depth > 0;
			break;
		default:
			break;
		}
	}
	return true;
}

/* A reader of the grammar: recursion is bounded by value_syntax_depth before it. */
struct value_reader {
	struct str text;
	size_t at;
	struct err *err;
};

static bool value_read(struct value_reader *reader);

static bool value_wrong(const struct value_reader *reader, const char *what)
{
	return value_syntax_fail(reader->text, reader->at, what, reader->err);
}

/* The byte at hand; 0 at the end (a NUL in the text is no JSON either). */
static char value_peek(const struct value_reader *reader)
{
	return reader->at < reader->text.size ? reader->text.data[reader->at] : '\0';
}

static void value_skip_blanks(struct value_reader *reader)
{
	while (value_peek(reader) && strchr(" \t\r\n", value_peek(reader)))
		reader->at++;
}

bool value_syntax_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int value_syntax_unit(struct str text, size_t at)
{
	int unit = 0;

	for (size_t i = at; i < at + 4; i++) {
		int digit = i < text.size ? text_hex_digit(text.data[i]) : -1;

		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

bool value_syntax_is_paired(struct str text, size_t at, int unit)
{
	int low = str_starts(str_part(text, at + 6, 2), STR("\\u"))
			  ? value_syntax_unit(text, at + 8)
			  : -1;

	return unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff;
}

static bool value_read_escape(struct value_reader *reader)
{
	char c = reader->at + 1 < reader->text.size ? reader->text.data[reader->at + 1]
						    : '\0';
	int unit;

	if (c == '\0' || !strchr("\"\\/bfnrtu", c))
		return value_wrong(reader, "an escape JSON does not have");
	if (c != 'u') {
		reader->at += 2;
		return true;
	}
	unit = value_syntax_unit(reader->text, reader->at + 2);
	if (unit < 0)
		return value_wrong(reader, "expected four hex digits after \\u");
	if (unit >= 0xd800 && unit <= 0xdfff) {
		if (!value_syntax_is_paired(reader->text, reader->at, unit))
			return value_wrong(reader, "half of a surrogate pair");
		reader->at += 6;
	}
	reader->at += 6;
	return true;
}

static bool value_read_string(struct value_reader *reader)
{
	size_t start = reader->at++;

	while (reader->at < reader->text.size) {
		unsigned char c = (unsigned char)value_peek(reader);
		size_t length;

		if (c == '"') {
			reader->at++;
			return true;
		}
		if (c == '\\') {
			if (!value_read_escape(reader))
				return false;
			continue;
		}
		if (c == '\n' || c == '\r')
			return value_wrong(reader, "a line end inside a string; write \\n");
		if (c < 0x20)
			return value_wrong(reader, "a control byte inside a string");
		length = text_utf8_length(str_part(reader->text, reader->at, 4));
		if (length == 0)
			return value_wrong(reader, "bytes that are not UTF-8");
		reader->at += length;
	}
	reader->at = start;
	return value_wrong(reader, "a string without its closing quote");
}

static void value_skip_digits(struct value_reader *reader)
{
	while (value_syntax_is_digit(value_peek(reader)))
		reader->at++;
}

static bool value_read_number(struct value_reader *reader)
{
	size_t start = reader->at;

	reader->at += value_peek(reader) == '-';
	if (!value_syntax_is_digit(value_peek(reader)))
		return value_wrong(reader, "expected a digit");
	if (value_peek(reader) == '0') {
		reader->at++;
		if (value_syntax_is_digit(value_peek(reader))) {
			reader->at = start;
			return value_wrong(reader, "a number with a leading zero");
		}
	}
	value_skip_digits(reader);
	if (value_peek(reader) == '.') {
		reader->at++;
		if (!value_syntax_is_digit(value_peek(reader)))
			return value_wrong(reader, "expected a digit after the point");
		value_skip_digits(reader);
	}
	if (value_peek(reader) == 'e' || value_peek(reader) == 'E') {
		reader->at++;
		reader->at += value_peek(reader) == '+' || value_peek(reader) == '-';
		if (!value_syntax_is_digit(value_peek(reader)))
			return value_wrong(reader, "expected a digit of the exponent");
		value_skip_digits(reader);
	}
	return true;
}

static bool value_read_member(struct value_reader *reader)
{
	if (value_peek(reader) != '"')
		return value_wrong(reader, "expected a key in double quotes");
	if (!value_read_string(reader))
		return false;
	value_skip_blanks(reader);
	if (value_peek(reader) != ':')
		return value_wrong(reader, "expected ':' after the key");
	reader->at++;
	value_skip_blanks(reader);
	return value_read(reader);
}

static bool value_read_container(struct value_reader *reader, char close)
{
	const bool object = close == '}';

	reader->at++;
	value_skip_blanks(reader);
	if (value_peek(reader) == close) {
		reader->at++;
		return true;
	}
	for (;;) {
		if (!(object ? value_read_member(reader) : value_read(reader)))
			return false;
		value_skip_blanks(reader);
		if (value_peek(reader) == close) {
			reader->at++;
			return true;
		}
		if (value_peek(reader) != ',')
			return value_wrong(reader, object ? "expected ',' or '}'"
							  : "expected ',' or ']'");
		reader->at++;
		value_skip_blanks(reader);
		if (value_peek(reader) == close)
			return value_wrong(reader, "a comma with nothing after it");
	}
}

static bool value_read(struct value_reader *reader)
{
	static const struct str words[] = {STR("true"), STR("false"), STR("null")};
	char c = value_peek(reader);

	if (c == '{' || c == '[')
		return value_read_container(reader, c == '{' ? '}' : ']');
	if (c == '"')
		return value_read_string(reader);
	if (c == '-' || value_syntax_is_digit(c))
		return value_read_number(reader);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_equal(str_part(reader->text, reader->at, words[i].size), words[i])) {
			reader->at += words[i].size;
			return true;
		}
	}
	return value_wrong(reader, "expected a value");
}

bool value_syntax_check(struct str text, struct err *err)
{
	struct value_reader reader = {.text = text, .err = err};

	value_skip_blanks(&reader);
	if (!value_read(&reader))
		return false;
	value_skip_blanks(&reader);
	if (reader.at < text.size)
		return value_wrong(&reader, "expected the end of the text");
	return true;
}
