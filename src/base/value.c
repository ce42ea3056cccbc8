/* value: JSON values, kept by jansson; the grammar of JSON; and printing. */

#include "base/value.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks a text against the grammar of JSON. */

/* Bytes of the text in a sentence: enough to find the place. */
enum { VALUE_NEAR = 40 };

/* Fill ERR with "line L, column C: WHAT near "…"". Always returns false. */
static bool value_syntax_fail(struct str text, size_t at, const char *what, struct err *err)
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
	/* The ceiling is never reached: a byte becomes at most six. */
	buf_init(&quoted, (size_t)8 * VALUE_NEAR);
	(void)value_quote(near, &quoted);
	(void)err_set(err, EINVAL, "line %zu, column %zu: %s near %s", line, column, what,
		      quoted.data);
	buf_fini(&quoted);
	return false;
}

/*
 * Sets all bits in the lanes of bytes that a JSON string cannot contain unescaped, or
 * that are above ASCII.
 */
static byte_vector value_specials(byte_vector bytes)
{
	return (byte_vector)(bytes < 0x20) | (byte_vector)(bytes == '"') |
	       (byte_vector)(bytes == '\\') | (byte_vector)(bytes >= 0x80);
}

static bool value_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static bool value_syntax_is_control(struct str text, size_t at);

/*
 * Offset of the first byte at or after FROM that must not stand unescaped in a JSON
 * string: a quote, a backslash, a control character, or invalid UTF-8.
 */
static size_t value_syntax_skip_plain(struct str text, size_t from)
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
		/* Characters of other scripts come in runs. */
		while (from < text.size && (unsigned char)text.data[from] >= 0x80) {
			length = text_utf8_length(str_part(text, from, 4));
			if (length == 0 || value_syntax_is_control(text, from))
				return from;
			from += length;
		}
	}
}

/* Are the two bytes at AT one of the control characters U+0080 to U+009F? */
static bool value_syntax_is_control(struct str text, size_t at)
{
	return text.size - at >= 2 && (unsigned char)text.data[at] == 0xc2 &&
	       (unsigned char)text.data[at + 1] >= 0x80 &&
	       (unsigned char)text.data[at + 1] < 0xa0;
}

/* Offset behind the string that opens at AT; the size of the text when it has no end. */
static size_t value_syntax_skip_string(struct str text, size_t at)
{
	for (at++; at < text.size; at++) {
		if (text.data[at] == '\\')
			at++;
		else if (text.data[at] == '"')
			return at + 1;
	}
	return text.size;
}

/*
 * False when TEXT nests deeper than VALUE_DEPTH_MAX or has more than VALUE_PARTS_MAX
 * values.
 */
static bool value_syntax_depth(struct str text, struct err *err)
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

/*
 * The state of the grammar check. value_syntax_depth runs before and bounds its
 * recursion.
 */
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

/* The current byte; 0 at the end (a NUL in the text is not JSON either). */
static char value_peek(const struct value_reader *reader)
{
	return reader->at < reader->text.size ? reader->text.data[reader->at] : '\0';
}

static void value_skip_blanks(struct value_reader *reader)
{
	while (value_peek(reader) && strchr(" \t\r\n", value_peek(reader)))
		reader->at++;
}

static bool value_syntax_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The four digits of a \u escape, or -1. */
static int value_syntax_unit(struct str text, size_t at)
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

/* Does UNIT, from the escape at AT, form a character together with the next escape? */
static bool value_syntax_is_paired(struct str text, size_t at, int unit)
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

/* False, with a sentence, at the first place that violates the grammar. */
static bool value_syntax_check(struct str text, struct err *err)
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

/* Prints values as JSON text. Strings are copied run by run, not byte by byte. */

static bool value_print_at(const struct value *value, unsigned flags, size_t depth,
			   struct buf *buf);

static bool value_quote_special(unsigned char c, struct buf *buf)
{
	switch (c) {
	case '"':
		return buf_adds(buf, "\\\"");
	case '\\':
		return buf_adds(buf, "\\\\");
	case '\n':
		return buf_adds(buf, "\\n");
	case '\t':
		return buf_adds(buf, "\\t");
	case '\r':
		return buf_adds(buf, "\\r");
	case '\b':
		return buf_adds(buf, "\\b");
	case '\f':
		return buf_adds(buf, "\\f");
	default:
		break;
	}
	if (c < 0x20)
		return buf_addf(buf, "\\u%04x", c);
	return buf_adds(buf, "\xef\xbf\xbd");
}

bool value_quote(struct str text, struct buf *buf)
{
	size_t start = buf->size;
	bool fits = buf_addc(buf, '"');

	while (fits && text.size) {
		size_t run = value_syntax_skip_plain(text, 0);

		fits = buf_add(buf, text.data, run);
		if (fits && run < text.size && value_syntax_is_control(text, run)) {
			fits = buf_addf(buf, "\\u%04x", (unsigned char)text.data[run + 1]);
			run += 2;
		} else if (fits && run < text.size) {
			fits = value_quote_special((unsigned char)text.data[run++], buf);
		}
		text = str_part(text, run, text.size);
	}
	if (fits && buf_addc(buf, '"'))
		return true;
	buf_truncate(buf, start);
	return false;
}

/* Print with the lowest of some precisions that reads back as the same number. */
static bool value_print_real(double number, struct buf *buf)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	/* A locale may have a comma in place of the point. */
	if (strchr(text, ','))
		*strchr(text, ',') = '.';
	/* Add ".0", so that 1.0 is read back as a real. */
	return buf_adds(buf, text) && (strpbrk(text, ".e") || buf_adds(buf, ".0"));
}

static bool value_print_line(unsigned flags, size_t depth, struct buf *buf)
{
	if (!(flags & VALUE_PRETTY))
		return true;
	return buf_addf(buf, "\n%*s", (int)(2 * depth), "");
}

static bool value_print_array(const struct value *array, unsigned flags, size_t depth,
			      struct buf *buf)
{
	size_t count = value_count(array);

	for (size_t i = 0; i < count; i++) {
		if (!buf_addc(buf, i ? ',' : '[') ||
		    !value_print_line(flags, depth + 1, buf) ||
		    !value_print_at(value_item(array, i), flags, depth + 1, buf))
			return false;
	}
	if (count == 0)
		return buf_adds(buf, "[]");
	return value_print_line(flags, depth, buf) && buf_addc(buf, ']');
}

static int value_compare_members(const void *a, const void *b)
{
	return strcmp(value_key(*(void *const *)a), value_key(*(void *const *)b));
}

static bool value_print_object(const struct value *object, unsigned flags, size_t depth,
			       struct buf *buf)
{
	const char *colon = flags & VALUE_PRETTY ? ": " : ":";
	size_t count = value_count(object), used = 0;
	auto_free void **members = NULL;

	if (count == 0)
		return buf_adds(buf, "{}");
	members = memory_array(count, sizeof(*members));
	for (void *at = value_first(object); at; at = value_next(object, at))
		members[used++] = at;
	if (flags & VALUE_SORTED)
		qsort(members, count, sizeof(*members), value_compare_members);
	for (size_t i = 0; i < count; i++) {
		if (!buf_addc(buf, i ? ',' : '{') ||
		    !value_print_line(flags, depth + 1, buf) ||
		    !value_quote(str_of(value_key(members[i])), buf) ||
		    !buf_adds(buf, colon) ||
		    !value_print_at(value_at(members[i]), flags, depth + 1, buf))
			return false;
	}
	return value_print_line(flags, depth, buf) && buf_addc(buf, '}');
}

static bool value_print_at(const struct value *value, unsigned flags, size_t depth,
			   struct buf *buf)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		return buf_adds(buf, "null");
	case VALUE_BOOLEAN:
		return buf_adds(buf, value_is_true(value) ? "true" : "false");
	case VALUE_INTEGER:
		return buf_addf(buf, "%lld", (long long)value_integer(value));
	case VALUE_REAL:
		return value_print_real(value_number(value), buf);
	case VALUE_STRING:
		return value_quote(value_str(value), buf);
	case VALUE_ARRAY:
		return value_print_array(value, flags, depth, buf);
	case VALUE_OBJECT:
		return value_print_object(value, flags, depth, buf);
	}
	return false;
}

bool value_print(const struct value *value, unsigned flags, struct buf *buf)
{
	size_t start = buf->size;

	if (value_print_at(value, flags, 0, buf))
		return true;
	buf_truncate(buf, start);
	return false;
}

/*
 * Makes a text valid JSON by overwriting parts of it or of its copy: comments, code
 * fences and extra commas, halves of surrogate pairs, integers of more than 64 bits.
 */

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
 * Blank the comment that begins at AT. Returns its end, or AT when there is none or it
 * has no end.
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

/* Blank a model's code fence "```json … ```" around the value: both lines, or none. */
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

/*
 * Overwrite with blanks what FLAGS (enum value_flags) allow besides JSON. Line ends
 * stay, so that positions are the same in both texts. False when a comment has no end.
 */
static bool value_syntax_blank(char *text, size_t size, unsigned flags, struct err *err)
{
	const size_t none = (size_t)-1;
	/* A comma that may be a trailing one, and the byte before that comma. */
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
		/* "[,]" and "[1,,]" have no trailing comma: a value is missing there. */
		if (c == ',' && before != '[' && before != '{' && before != ',' &&
		    before != ':')
			comma = at;
		before = c;
		at = c == '"' ? value_syntax_skip_string((struct str){text, size}, at)
			      : at + 1;
	}
	return true;
}

/* Write \ufffd over each escaped half of a surrogate pair whose other half is missing. */
static void value_syntax_mend_halves(char *text, size_t size)
{
	const struct str whole = {text, size};

	/*
	 * A backslash outside of strings is never JSON, so strings need not be tracked
	 * here.
	 */
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

/* Does an integer of DIGITS (without sign) fit into 64 bits? */
static bool value_fits(struct str digits, bool negative)
{
	static const char least[] = "9223372036854775808", most[] = "9223372036854775807";
	const size_t room = sizeof(most) - 1;

	return digits.size < room ||
	       (digits.size == room &&
		memcmp(digits.data, negative ? least : most, room) <= 0);
}

/* Put 1e308 in place of the NUMBER, with its sign, when it is too large for a real. */
static void value_syntax_mend_real(char *number, size_t size)
{
	static const char largest[] = "1e308";
	const size_t sign = number[0] == '-';
	char *end;

	/* A number that is too large is at least as long as 1e309. Blanks may follow one. */
	if (size - sign < sizeof(largest) - 1)
		return;
	auto_free char *text = memory_copy_str((struct str){number, size});
	if (!isinf(strtod(text, &end)) || *end != '\0')
		return;
	memset(number + sign, ' ', size - sign);
	memcpy(number + sign, largest, sizeof(largest) - 1);
}

/*
 * Turn each integer that does not fit into 64 bits into a real, by "e2" in place of its
 * last two digits. FLAGS say whether reals are bounded as well.
 */
static void value_syntax_mend_numbers(char *text, size_t size, unsigned flags)
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
		/* A number with a fraction or an exponent is already a real. */
		if (at == end && !value_fits(str_part(whole, start, end - start), negative)) {
			text[end - 2] = 'e';
			text[end - 1] = '2';
		}
		if (flags & VALUE_SEARCHED)
			value_syntax_mend_real(text + start - negative,
					       at - start + negative);
	}
}

/* 2^63, the first number above int64_t. INT64_MAX itself is no double. */
#define VALUE_INTEGERS_END 9223372036854775808.0

/* jansson's iterators and counts do not take const, although they change nothing. */
static json_t *value_json(const struct value *value)
{
	return (json_t *)(uintptr_t)value;
}

static struct value *value_of(json_t *json)
{
	return (struct value *)json;
}

/*
 * NULL from a constructor means out of memory, because all other errors were excluded
 * before.
 */
static struct value *value_new(json_t *json)
{
	if (!json)
		memory_exhausted(sizeof(json_t));
	return value_of(json);
}

/*
 * Set ERR for a text that the JSON library refused, since it also checks keys and
 * numbers. Always returns false.
 */
static bool value_refuse(struct str text, const json_error_t *error, struct err *err)
{
	size_t at = error->position > 0 ? (size_t)error->position : 0;

	switch (json_error_code(error)) {
	case json_error_out_of_memory:
		memory_exhausted(text.size);
	case json_error_duplicate_key:
		return value_syntax_fail(text, at, "the key occurs twice in its object",
					 err);
	case json_error_numeric_overflow:
		return value_syntax_fail(text, at, "a number that does not fit 64 bits",
					 err);
	case json_error_null_byte_in_key:
		return value_syntax_fail(text, at, "a key with \\u0000 in it", err);
	default:
		return value_syntax_fail(text, at, error->text, err);
	}
}

static void *take_memory(size_t size)
{
	return memory_grow(NULL, size, 1);
}

void value_own_memory(void)
{
	json_set_alloc_funcs(take_memory, free);
}

static json_t *value_load(struct str text, unsigned flags, json_error_t *error)
{
	const size_t options = JSON_DECODE_ANY | JSON_ALLOW_NUL |
			       (flags & VALUE_LAST ? 0 : JSON_REJECT_DUPLICATES);

	return json_loadb(text.size ? text.data : "", text.size, options, error);
}

bool value_parse(struct str text, unsigned flags, struct value **value, struct err *err)
{
	auto_free char *copy = NULL;
	struct str plain = text;
	json_error_t error;
	json_t *json;

	if (text.size > VALUE_TEXT_MAX)
		return err_set(err, EFBIG, "JSON text of %zu bytes: at most %d are taken",
			       text.size, VALUE_TEXT_MAX);
	if (flags & (VALUE_COMMENTS | VALUE_REPAIR)) {
		/*
		 * Bytes that are not JSON, such as comments, become blanks, so that
		 * positions stay.
		 */
		copy = memory_copy_str(text);
		if (!value_syntax_blank(copy, text.size, flags, err))
			return false;
		plain.data = copy;
	}
	if (!value_syntax_depth(plain, err))
		return false;
	json = value_load(plain, flags, &error);
	if (!json && (flags & (VALUE_HALVES | VALUE_REPAIR | VALUE_WIDE | VALUE_SEARCHED))) {
		copy = copy ? copy : memory_copy_str(text);
		if (flags & (VALUE_HALVES | VALUE_REPAIR | VALUE_SEARCHED))
			value_syntax_mend_halves(copy, text.size);
		if (flags & (VALUE_WIDE | VALUE_SEARCHED))
			value_syntax_mend_numbers(copy, text.size, flags);
		plain.data = copy;
		json = value_load(plain, flags, &error);
	}
	if (json) {
		*value = value_of(json);
		return true;
	}
	if (!value_syntax_check(plain, err))
		return false;
	return value_refuse(plain, &error, err);
}

void value_free(struct value *value)
{
	json_decref(value_json(value));
}

void value_wipe(const struct value *value)
{
	struct str text = value_str(value);

	if (value_kind(value) == VALUE_STRING && text.size > 0)
		explicit_bzero((char *)(uintptr_t)text.data, text.size);
	else if (value_kind(value) == VALUE_OBJECT)
		for (void *at = value_first(value); at != NULL; at = value_next(value, at))
			value_wipe(value_at(at));
	else if (value_kind(value) == VALUE_ARRAY)
		for (size_t i = 0; i < value_count(value); i++)
			value_wipe(value_item(value, i));
}

struct value *value_ref(const struct value *value)
{
	return value_of(json_incref(value_json(value)));
}

void value_auto_free(struct value **value)
{
	value_free(*value);
}

enum value_kind value_kind(const struct value *value)
{
	if (!value)
		return VALUE_NULL;
	switch (json_typeof(value_json(value))) {
	case JSON_OBJECT:
		return VALUE_OBJECT;
	case JSON_ARRAY:
		return VALUE_ARRAY;
	case JSON_STRING:
		return VALUE_STRING;
	case JSON_INTEGER:
		return VALUE_INTEGER;
	case JSON_REAL:
		return VALUE_REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return VALUE_BOOLEAN;
	case JSON_NULL:
		break;
	}
	return VALUE_NULL;
}

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[] = {
		[VALUE_NULL] = "null",       [VALUE_BOOLEAN] = "boolean",
		[VALUE_INTEGER] = "integer", [VALUE_REAL] = "number",
		[VALUE_STRING] = "string",   [VALUE_ARRAY] = "array",
		[VALUE_OBJECT] = "object",
	};

	return names[kind];
}

const char *value_text(const struct value *value)
{
	return json_string_value(value_json(value));
}

struct str value_str(const struct value *value)
{
	if (!value_text(value))
		return str_of(NULL);
	return (struct str){value_text(value), json_string_length(value_json(value))};
}

bool value_has_text(const struct value *array, const char *text)
{
	for (size_t i = 0; i < value_count(array); i++) {
		if (str_is(value_str(value_item(array, i)), text))
			return true;
	}
	return false;
}

int64_t value_integer(const struct value *value)
{
	double number;

	if (!json_is_real(value_json(value)))
		return json_integer_value(value_json(value));
	number = json_real_value(value_json(value));
	if (number >= VALUE_INTEGERS_END)
		return INT64_MAX;
	if (number < -VALUE_INTEGERS_END)
		return INT64_MIN;
	return (int64_t)number;
}

double value_number(const struct value *value)
{
	return json_number_value(value_json(value));
}

bool value_is_true(const struct value *value)
{
	return json_is_true(value_json(value));
}

bool value_is_number(const struct value *value)
{
	return json_is_number(value_json(value));
}

static bool value_equal_numbers(const struct value *a, const struct value *b)
{
	const struct value *integer = a, *real = b;
	double number;

	if (value_kind(a) == value_kind(b))
		return value_kind(a) == VALUE_INTEGER
			       ? value_integer(a) == value_integer(b)
			       : value_number(a) == value_number(b);
	if (value_kind(a) == VALUE_REAL) {
		integer = b;
		real = a;
	}
	/* Do not convert to double: 2^53 and 2^53 + 1 would become equal. */
	number = value_number(real);
	return number >= -VALUE_INTEGERS_END && number < VALUE_INTEGERS_END &&
	       trunc(number) == number && (int64_t)number == value_integer(integer);
}

bool value_equal(const struct value *a, const struct value *b)
{
	enum value_kind kind = value_kind(a);

	if (value_is_number(a) && value_is_number(b))
		return value_equal_numbers(a, b);
	if (kind != value_kind(b) || value_count(a) != value_count(b))
		return false;
	switch (kind) {
	case VALUE_BOOLEAN:
		return value_is_true(a) == value_is_true(b);
	case VALUE_STRING:
		return str_equal(value_str(a), value_str(b));
	case VALUE_ARRAY:
		for (size_t i = 0; i < value_count(a); i++) {
			if (!value_equal(value_item(a, i), value_item(b, i)))
				return false;
		}
		return true;
	case VALUE_OBJECT:
		for (void *at = value_first(a); at; at = value_next(a, at)) {
			const struct value *other = value_member(b, value_key(at));

			if (!other || !value_equal(value_at(at), other))
				return false;
		}
		return true;
	default:
		return true;
	}
}

size_t value_count(const struct value *value)
{
	return json_is_object(value_json(value)) ? json_object_size(value_json(value))
						 : json_array_size(value_json(value));
}

struct value *value_item(const struct value *array, size_t index)
{
	return value_of(json_array_get(value_json(array), index));
}

struct value *value_member(const struct value *object, const char *key)
{
	return value_of(json_object_get(value_json(object), key));
}

/*
 * Decode the first name of POINTER, which begins with '/', to NAME. Returns the rest of
 * POINTER, which begins with '/' or is empty.
 */
static const char *pointer_next(const char *pointer, struct buf *name)
{
	buf_clear(name);
	for (pointer++; *pointer != '\0' && *pointer != '/'; pointer++) {
		const bool is_escape =
			pointer[0] == '~' && (pointer[1] == '0' || pointer[1] == '1');

		(void)buf_addc(name, !is_escape          ? pointer[0]
				     : pointer[1] == '0' ? '~'
							 : '/');
		pointer += is_escape;
	}
	return pointer;
}

static struct value *value_named(const struct value *value, const struct buf *name)
{
	if (value_kind(value) == VALUE_ARRAY && name->size > 0 &&
	    strspn(name->data, "0123456789") == name->size)
		return value_item(value, strtoul(name->data, NULL, 10));
	return value_member(value, name->data);
}

struct value *value_at_pointer(struct value *value, const char *pointer)
{
	struct buf name;

	buf_init(&name, strlen(pointer) + 1);
	while (value != NULL && *pointer == '/') {
		pointer = pointer_next(pointer, &name);
		value = value_named(value, &name);
	}
	buf_fini(&name);
	return value;
}

bool value_set_at(struct value *value, const char *pointer, struct value *take_part)
{
	struct buf name;

	buf_init(&name, strlen(pointer) + 1);
	for (pointer = pointer_next(pointer, &name);
	     *pointer == '/' && value_kind(value) == VALUE_OBJECT;
	     pointer = pointer_next(pointer, &name)) {
		if (value_named(value, &name) == NULL)
			value_set(value, name.data, value_new_object());
		value = value_named(value, &name);
	}
	const bool fine = value_kind(value) == VALUE_OBJECT && *pointer == '\0';
	if (fine)
		value_set(value, name.data, take_part);
	else
		value_free(take_part);
	buf_fini(&name);
	return fine;
}

void *value_first(const struct value *object)
{
	return json_object_iter(value_json(object));
}

void *value_next(const struct value *object, void *at)
{
	return json_object_iter_next(value_json(object), at);
}

const char *value_key(void *at)
{
	return json_object_iter_key(at);
}

struct value *value_at(void *at)
{
	return value_of(json_object_iter_value(at));
}

struct value *value_new_object(void)
{
	return value_new(json_object());
}

struct value *value_new_array(void)
{
	return value_new(json_array());
}

struct value *value_new_text(const char *text)
{
	return text ? value_new_str(str_of(text)) : value_new_null();
}

struct value *value_new_texts(const char *const *texts)
{
	struct value *list = value_new_array();

	for (; *texts != NULL; texts++)
		value_append(list, value_new_text(*texts));
	return list;
}

struct value *value_new_str(struct str text)
{
	struct value *value;
	struct buf clean;

	if (text_is_utf8(text))
		return value_new(
			json_stringn_nocheck(text.size ? text.data : "", text.size));
	buf_init(&clean, SIZE_MAX);
	(void)value_syntax_mend(text, &clean);
	value = value_new(json_stringn_nocheck(clean.data, clean.size));
	buf_fini(&clean);
	return value;
}

struct value *value_new_integer(int64_t number)
{
	return value_new(json_integer(number));
}

struct value *value_new_real(double number)
{
	return isfinite(number) ? value_new(json_real(number)) : value_new_null();
}

struct value *value_new_boolean(bool truth)
{
	return value_new(json_boolean(truth));
}

struct value *value_new_null(void)
{
	return value_new(json_null());
}

struct value *value_copy(const struct value *value)
{
	return value ? value_new(json_deep_copy(value_json(value))) : value_new_null();
}

void value_set(struct value *object, const char *key, struct value *take_value)
{
	struct value *value = take_value ? take_value : value_new_null();
	struct buf clean;

	assert(value_kind(object) == VALUE_OBJECT && value != object);
	buf_init(&clean, SIZE_MAX);
	if (!text_is_utf8(str_of(key))) {
		(void)value_syntax_mend(str_of(key), &clean);
		key = clean.data;
	}
	if (json_object_set_new_nocheck(value_json(object), key, value_json(value)) < 0)
		memory_exhausted(strlen(key));
	buf_fini(&clean);
}

void value_set_members(struct value *object, const struct value *from,
		       const char *const *names)
{
	for (; *names != NULL; names++) {
		const struct value *member = value_member(from, *names);

		if (member != NULL)
			value_set(object, *names, value_copy(member));
	}
}

void value_set_text(struct value *object, const char *key, const char *text)
{
	value_set(object, key, value_new_text(text));
}

void value_set_str(struct value *object, const char *key, struct str text)
{
	value_set(object, key, value_new_str(text));
}

void value_set_integer(struct value *object, const char *key, int64_t number)
{
	value_set(object, key, value_new_integer(number));
}

void value_set_real(struct value *object, const char *key, double number)
{
	value_set(object, key, value_new_real(number));
}

void value_set_boolean(struct value *object, const char *key, bool truth)
{
	value_set(object, key, value_new_boolean(truth));
}

void value_remove(struct value *object, const char *key)
{
	/* This fails only when there is no such member. */
	(void)json_object_del(value_json(object), key);
}

void value_append(struct value *array, struct value *take_value)
{
	struct value *value = take_value ? take_value : value_new_null();

	assert(value_kind(array) == VALUE_ARRAY && value != array);
	if (json_array_append_new(value_json(array), value_json(value)) < 0)
		memory_exhausted(sizeof(json_t));
}
