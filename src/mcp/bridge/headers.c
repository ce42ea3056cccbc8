/* headers: writes and reads single headers. */
#include "mcp/bridge/headers.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	HEADER_VALUE_MAX = 8 << 10, /* bytes of a value; a longer one is left out */
	DEPTH_MAX = 16,             /* how deep properties may lie in properties */
	MARK_MAX = 64,              /* bytes of a mark */
	MARKS_MAX = 64,             /* of one tool */
};

#define SENTINEL_BEGIN "=?base64?"
#define SENTINEL_END   "?="

/* Can TEXT be the value of a header as it is? */
static bool is_plain(struct str text)
{
	if (text.size != str_trim(text).size || str_starts(text, STR(SENTINEL_BEGIN)))
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < ' ' || text.data[i] > '~')
			return false;
	}
	return true;
}

void headers_add(struct value *list, const char *name, struct str value)
{
	struct buf line;
	bool fits;

	buf_init(&line, 2 * HEADER_VALUE_MAX);
	/* libcurl writes a header without a value only when it ends with a semicolon. */
	if (value.size == 0)
		fits = buf_addf(&line, "%s;", name);
	else if (is_plain(value))
		fits = buf_addf(&line, "%s: ", name) && buf_addstr(&line, value);
	else
		fits = buf_addf(&line, "%s: " SENTINEL_BEGIN, name) &&
		       buf_base64_add(value, &line) && buf_adds(&line, SENTINEL_END);
	if (fits)
		value_append(list, value_new_str(buf_str(&line)));
	buf_fini(&line);
}

/* Marks. */

static const char *mark_of(const struct value *property)
{
	return value_text(value_member(property, "x-mcp-header"));
}

static void repeat_argument(const char *mark, const struct value *argument,
			    struct value *list)
{
	char name[sizeof("Mcp-Param-") + MARK_MAX], number[32];

	(void)snprintf(name, sizeof(name), "Mcp-Param-%s", mark);
	(void)snprintf(number, sizeof(number), "%" PRId64, value_integer(argument));
	switch (value_kind(argument)) {
	case VALUE_STRING:
		headers_add(list, name, value_str(argument));
		break;
	case VALUE_INTEGER:
		headers_add(list, name, str_of(number));
		break;
	case VALUE_BOOLEAN:
		headers_add(list, name,
			    value_is_true(argument) ? STR("true") : STR("false"));
		break;
	default:
		break;
	}
}

static void repeat_arguments(const struct value *schema, const struct value *arguments,
			     unsigned depth, struct value *list)
{
	const struct value *properties = value_member(schema, "properties");

	if (value_kind(properties) != VALUE_OBJECT || depth == DEPTH_MAX)
		return;
	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		const struct value *argument = value_member(arguments, value_key(at));
		const char *mark = mark_of(value_at(at));

		if (mark)
			repeat_argument(mark, argument, list);
		repeat_arguments(value_at(at), argument, depth + 1, list);
	}
}

void headers_repeat(const struct mcp_message *message, const char *version,
		    const struct value *schema, struct value *list)
{
	const struct str name = mcp_message_name(message);

	headers_add(list, "MCP-Protocol-Version", str_of(version));
	headers_add(list, "Mcp-Method", str_of(message->method));
	if (name.size > 0)
		headers_add(list, "Mcp-Name", name);
	if (strcmp(message->method, "tools/call") == 0)
		repeat_arguments(schema, value_member(message->params, "arguments"), 0,
				 list);
}

/* A search for marks that are wrong. */
struct marks {
	const char *seen[MARKS_MAX];
	size_t count;
	const char *why;
};

static bool marks_refuse(struct marks *marks, const char *why)
{
	marks->why = why;
	return false;
}

static bool mark_fits(struct marks *marks, const struct value *property)
{
	const char *mark = mark_of(property);
	const struct str type = value_str(value_member(property, "type"));

	if (!mark || mark[0] == '\0' || strlen(mark) > MARK_MAX ||
	    strspn(mark, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			 "!#$%&'*+-.^_`|~") != strlen(mark))
		return marks_refuse(marks, "an x-mcp-header in its schema is no name of a "
					   "header");
	if (!str_is(type, "string") && !str_is(type, "integer") && !str_is(type, "boolean"))
		return marks_refuse(marks, "an x-mcp-header in its schema is not on a text, "
					   "an integer or a boolean");
	for (size_t i = 0; i < marks->count; i++) {
		if (strcasecmp(marks->seen[i], mark) == 0)
			return marks_refuse(marks, "two of its arguments have the same "
						   "x-mcp-header");
	}
	if (marks->count == MARKS_MAX)
		return marks_refuse(marks, "its schema has too many x-mcp-header");
	marks->seen[marks->count++] = mark;
	return true;
}

/* REACHED: only `properties` lead to SCHEMA, so its mark may stand there. */
static bool marks_fit(struct marks *marks, const struct value *schema, bool reached,
		      unsigned depth)
{
	if (depth > VALUE_DEPTH_MAX)
		return true;
	if (value_kind(schema) == VALUE_ARRAY) {
		for (size_t i = 0; i < value_count(schema); i++) {
			if (!marks_fit(marks, value_item(schema, i), false, depth + 1))
				return false;
		}
	}
	if (value_kind(schema) != VALUE_OBJECT)
		return true;
	if (value_member(schema, "x-mcp-header") && (!reached || depth == 0))
		return marks_refuse(marks, "an x-mcp-header in its schema is where no "
					   "argument is");
	if (value_member(schema, "x-mcp-header") && !mark_fits(marks, schema))
		return false;
	for (void *at = value_first(schema); at; at = value_next(schema, at)) {
		const bool leads = reached && strcmp(value_key(at), "properties") == 0;
		const struct value *members = value_at(at);

		if (!leads && !marks_fit(marks, members, false, depth + 1))
			return false;
		for (void *one = leads ? value_first(members) : NULL; one;
		     one = value_next(members, one)) {
			if (!marks_fit(marks, value_at(one), true, depth + 1))
				return false;
		}
	}
	return true;
}

bool headers_marks_fit(const struct value *schema, const char **why)
{
	struct marks marks = {0};
	const bool fit = marks_fit(&marks, schema, true, 0);

	*why = marks.why;
	return fit;
}

/* The head of an answer. */

/* The next header NAME at *REST, which moves behind it. */
static bool next_header(struct str *rest, const char *name, struct str *value)
{
	const size_t size = strlen(name);
	struct str line;

	while (str_next_line(rest, &line)) {
		if (!str_starts_caseless(line, name) || line.size == size ||
		    line.data[size] != ':')
			continue;
		*value = str_trim(str_part(line, size + 1, line.size));
		return true;
	}
	return false;
}

bool headers_find(struct str block, const char *name, struct str *value)
{
	return next_header(&block, name, value);
}

static bool is_token(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static struct str take_token(struct str *text)
{
	size_t size = 0;
	struct str token;

	while (size < text->size && is_token(text->data[size]))
		size++;
	token = str_part(*text, 0, size);
	*text = str_part(*text, size, text->size);
	return token;
}

static void skip(struct str *text, const char *characters)
{
	while (text->size > 0 && text->data[0] && strchr(characters, text->data[0]))
		*text = str_part(*text, 1, text->size);
}

/* Take a value, a token or a text in quotes, into VALUE. */
static bool take_value(struct str *text, struct buf *value)
{
	buf_clear(value);
	if (!str_starts(*text, STR("\"")))
		return buf_addstr(value, take_token(text));
	for (size_t i = 1; i < text->size; i++) {
		if (text->data[i] == '"') {
			*text = str_part(*text, i + 1, text->size);
			return true;
		}
		i += text->data[i] == '\\' && i + 1 < text->size;
		if (!buf_addc(value, text->data[i]))
			return false;
	}
	return false;
}

/* Find NAME among the challenges of one header (RFC 9110, section 11.6.1). */
static bool challenge_has(struct str text, const char *name, struct buf *value)
{
	bool bearer = false;

	for (;;) {
		struct str word;

		skip(&text, " \t,");
		word = take_token(&text);
		if (word.size == 0)
			return false;
		/* A word without "=" behind it is a scheme, and parameters follow. */
		if (!str_starts(text, STR("=")) || str_starts(text, STR("=="))) {
			bearer = str_is_caseless(word, "Bearer");
			skip(&text, "=");
			continue;
		}
		text = str_part(text, 1, text.size);
		if (!take_value(&text, value))
			return false;
		if (bearer && str_is_caseless(word, name))
			return true;
	}
}

bool headers_challenge(struct str block, const char *name, struct buf *value)
{
	struct str header;

	while (next_header(&block, "WWW-Authenticate", &header)) {
		if (challenge_has(header, name, value))
			return true;
	}
	buf_clear(value);
	return false;
}
