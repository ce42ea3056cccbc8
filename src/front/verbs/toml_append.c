/*
 * toml_append: reads statements of TOML (https://toml.io/en/v1.0.0). It reads headers and
 * keys, and only skips values, by their quotes and brackets.
 */
#include "front/verbs/toml_append.h"

#include <string.h>

enum {
	PARTS_MAX = 16,   /* of a name: settings have three */
	NESTING_MAX = 64, /* of brackets in a value */
};

/* A dotted name as written, without its quotes; escapes are not decoded. */
struct name {
	struct str parts[PARTS_MAX];
	size_t count;
};

struct reader {
	struct str text;
	size_t at, line;
};

static char peek(const struct reader *reader)
{
	return reader->at < reader->text.size ? reader->text.data[reader->at] : '\0';
}

static bool at_end(const struct reader *reader)
{
	return reader->at >= reader->text.size;
}

static void step(struct reader *reader, size_t bytes)
{
	for (; bytes && !at_end(reader); bytes--)
		reader->line += reader->text.data[reader->at++] == '\n';
}

static bool wrong(const struct reader *reader, const char *what, struct err *err)
{
	return err_set(err, 0, "line %zu: %s", reader->line, what);
}

static void skip_blanks(struct reader *reader)
{
	while (peek(reader) == ' ' || peek(reader) == '\t')
		step(reader, 1);
}

/* Skip a comment and the blanks before it, up to the line end. */
static void skip_remark(struct reader *reader)
{
	skip_blanks(reader);
	if (peek(reader) != '#')
		return;
	while (!at_end(reader) && peek(reader) != '\n')
		step(reader, 1);
}

/*
 * Skip a string with its quotes: of one line or, between three quotes, of several lines.
 */
static bool skip_string(struct reader *reader, struct str *content, struct err *err)
{
	char quote = peek(reader);
	struct str three = {(const char[]){quote, quote, quote}, 3};
	bool several = str_starts(str_part(reader->text, reader->at, 3), three);
	size_t start;

	step(reader, several ? 3 : 1);
	start = reader->at;
	while (!at_end(reader)) {
		if (several ? str_starts(str_part(reader->text, reader->at, 3), three)
			    : peek(reader) == quote) {
			*content = str_part(reader->text, start, reader->at - start);
			step(reader, several ? 3 : 1);
			/* Up to two quotes may stand before the closing three. */
			while (several && peek(reader) == quote)
				step(reader, 1);
			return true;
		}
		if (!several && peek(reader) == '\n')
			break;
		step(reader, quote == '"' && peek(reader) == '\\' ? 2 : 1);
	}
	return wrong(reader, "a string has no end", err);
}

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool read_name(struct reader *reader, struct name *name, struct err *err)
{
	for (;;) {
		struct str part = {reader->text.data + reader->at, 0};

		skip_blanks(reader);
		if (name->count == PARTS_MAX)
			return wrong(reader, "a name has too many parts", err);
		if (peek(reader) == '"' || peek(reader) == '\'') {
			if (!skip_string(reader, &part, err))
				return false;
		} else {
			part.data = reader->text.data + reader->at;
			for (; is_bare(peek(reader)); step(reader, 1))
				part.size++;
			if (part.size == 0)
				return wrong(reader, "here should be a name", err);
		}
		name->parts[name->count++] = part;
		skip_blanks(reader);
		if (peek(reader) != '.')
			return true;
		step(reader, 1);
	}
}

/* Skip a value up to its line end. A list may have several lines. */
static bool skip_value(struct reader *reader, struct err *err)
{
	size_t depth = 0;
	struct str content;

	skip_blanks(reader);
	if (at_end(reader) || peek(reader) == '\n' || peek(reader) == '#')
		return wrong(reader, "here should be a value", err);
	while (!at_end(reader) && (depth || peek(reader) != '\n')) {
		char c = peek(reader);

		if (c == '"' || c == '\'') {
			if (!skip_string(reader, &content, err))
				return false;
			continue;
		}
		if (c == '#') {
			skip_remark(reader);
			continue;
		}
		if (c == '[' || c == '{')
			depth++;
		if ((c == ']' || c == '}') && depth-- == 0)
			return wrong(reader, "a bracket closes nothing", err);
		if (depth > NESTING_MAX)
			return wrong(reader, "too many brackets in each other", err);
		step(reader, 1);
	}
	return depth == 0 || wrong(reader, "a bracket is not closed", err);
}

static bool read_header(struct reader *reader, struct name *header, bool *list,
			struct err *err)
{
	*list = str_starts(str_part(reader->text, reader->at, 2), STR("[["));
	*header = (struct name){0};
	step(reader, *list ? 2 : 1);
	if (!read_name(reader, header, err))
		return false;
	if (!str_starts(str_part(reader->text, reader->at, 2), *list ? STR("]]") : STR("]")))
		return wrong(reader, "a header is not closed", err);
	step(reader, *list ? 2 : 1);
	return true;
}

/*
 * One statement: a header, or the key of a value. `whole` is its name with that of the
 * header before it.
 */
struct statement {
	struct name header, whole;
	bool is_list, is_header;
};

static bool read_statement(struct reader *reader, struct statement *statement,
			   struct err *err)
{
	statement->is_header = peek(reader) == '[';
	if (statement->is_header) {
		if (!read_header(reader, &statement->header, &statement->is_list, err))
			return false;
		statement->whole = statement->header;
	} else {
		statement->whole = statement->header;
		if (!read_name(reader, &statement->whole, err))
			return false;
		if (peek(reader) != '=')
			return wrong(reader, "behind a name should be =", err);
		step(reader, 1);
		if (!skip_value(reader, err))
			return false;
	}
	skip_remark(reader);
	if (peek(reader) == '\r')
		step(reader, 1);
	return at_end(reader) || peek(reader) == '\n' ||
	       wrong(reader, "something stands behind the end", err);
}

enum toml_answer toml_look(struct str text, const char *group, const char *name,
			   struct err *err)
{
	struct reader reader = {text, 0, 1};
	struct statement statement = {0};
	bool there = false;

	if (text.size && memchr(text.data, '\0', text.size)) {
		(void)err_set(err, 0, "it is no text");
		return TOML_REFUSED;
	}
	for (;; step(&reader, 1)) {
		const struct name *whole = &statement.whole;

		skip_remark(&reader);
		if (at_end(&reader))
			return there ? TOML_IS_THERE : TOML_FREE;
		if (peek(&reader) == '\n' || peek(&reader) == '\r')
			continue;
		if (!read_statement(&reader, &statement, err))
			return TOML_REFUSED;
		if (!str_is(whole->parts[0], group))
			continue;
		if (whole->count == 1 && (!statement.is_header || statement.is_list)) {
			(void)err_set(err, 0,
				      "line %zu: \"%s\" is a value, to which no table can be added",
				      reader.line, group);
			return TOML_REFUSED;
		}
		there = there || (whole->count > 1 && str_is(whole->parts[1], name));
	}
}
