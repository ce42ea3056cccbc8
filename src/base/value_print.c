/*
 * value_print: values as JSON text; see value.h. Strings go run by run, not byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/value.h"
#include "base/value_syntax.h"

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

/* The shortest of the usual precisions that reads back as the same number. */
static bool value_print_real(double number, struct buf *buf)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	/* The locale of a terminal may have a comma here. */
	if (strchr(text, ','))
		*strchr(text, ',') = '.';
	/* 1.0 stays a real when it is read again. */
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
