/*
 * front_matter: splits the file, walks the events of libyaml, and reads plain words by
 * YAML's core schema.
 */
#include "base/text/front_matter.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { NUMBER_MAX = 64 /* a longer word is text */ };

struct parts {
	struct str yaml;
	struct str body;
};

static bool is_fence(struct str line)
{
	return str_starts(line, STR("---")) && str_trim(line).size == 3;
}

static bool split_parts(struct str text, struct parts *parts, struct err *err)
{
	struct str rest = text;
	struct str line;
	const char *start;

	if (str_starts(rest, STR("\xef\xbb\xbf")))
		rest = str_part(rest, 3, rest.size);
	if (!str_next_line(&rest, &line) || !is_fence(line))
		return err_set(err, EINVAL,
			       "line 1: must be \"---\", the begin of the front matter");
	start = rest.data;
	while (str_next_line(&rest, &line)) {
		if (is_fence(line)) {
			parts->yaml = (struct str){start, (size_t)(line.data - start)};
			parts->body = str_trim(rest);
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "the front matter has no end: a second line \"---\" is missing");
}

/* The line in the file. The file's first line is the fence, and libyaml counts from 0. */
static size_t line_of(const yaml_mark_t *mark)
{
	return mark->line + 2;
}

static bool next_event(yaml_parser_t *parser, yaml_event_t *event, struct err *err)
{
	if (yaml_parser_parse(parser, event))
		return true;
	return err_set(err, EINVAL, "line %zu, column %zu: %s%s%s",
		       line_of(&parser->problem_mark), parser->problem_mark.column + 1,
		       parser->problem ? parser->problem : "is not YAML",
		       parser->context ? " " : "", parser->context ? parser->context : "");
}

static bool is_word(struct str text, const char *const *words)
{
	for (; *words; words++) {
		if (str_is(text, *words))
			return true;
	}
	return false;
}

/*
 * Is TEXT a number of the core schema: [-+]? digits, with at most one dot and an
 * exponent?
 */
static bool looks_like_number(struct str text, bool *whole)
{
	size_t at = text.size && (text.data[0] == '-' || text.data[0] == '+');
	size_t digits = 0;

	*whole = true;
	for (; at < text.size && isdigit((unsigned char)text.data[at]); at++)
		digits++;
	if (at < text.size && text.data[at] == '.') {
		*whole = false;
		for (at++; at < text.size && isdigit((unsigned char)text.data[at]); at++)
			digits++;
	}
	if (digits && at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
		size_t exponent = 0;

		*whole = false;
		at++;
		at += at < text.size && (text.data[at] == '-' || text.data[at] == '+');
		for (; at < text.size && isdigit((unsigned char)text.data[at]); at++)
			exponent++;
		digits = exponent;
	}
	return digits > 0 && at == text.size;
}

static struct value *plain_value(struct str text)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const truths[] = {"true", "True", "TRUE", NULL};
	static const char *const lies[] = {"false", "False", "FALSE", NULL};
	char number[NUMBER_MAX + 1];
	bool whole;

	if (is_word(text, nulls))
		return value_new_null();
	if (is_word(text, truths) || is_word(text, lies))
		return value_new_boolean(is_word(text, truths));
	if (text.size > NUMBER_MAX || !looks_like_number(text, &whole))
		return value_new_str(text);
	memcpy(number, text.data, text.size);
	number[text.size] = '\0';
	errno = 0;
	if (whole) {
		long long integer = strtoll(number, NULL, 10);

		return errno ? value_new_str(text) : value_new_integer(integer);
	}
	return isfinite(strtod(number, NULL)) ? value_new_real(strtod(number, NULL))
					      : value_new_str(text);
}

static struct value *scalar_value(const yaml_event_t *event)
{
	struct str text = {(const char *)event->data.scalar.value,
			   event->data.scalar.length};

	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		return plain_value(text);
	return value_new_str(text);
}

/* Refuse anchors and tags: only plain data is accepted. */
static bool check_plain(const yaml_event_t *event, struct err *err)
{
	const yaml_char_t *anchor = NULL;
	const yaml_char_t *tag = NULL;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	case YAML_ALIAS_EVENT:
		return err_set(err, EINVAL,
			       "line %zu: an alias (*) is not taken; write it out",
			       line_of(&event->start_mark));
	default:
		break;
	}
	if (anchor || tag)
		return err_set(err, EINVAL, "line %zu: %s is not taken; write plain data",
			       line_of(&event->start_mark),
			       anchor ? "an anchor (&)" : "a tag (!)");
	return true;
}

static bool read_node(yaml_parser_t *parser, const yaml_event_t *event, size_t depth,
		      struct value **value, struct err *err);

/* Get the next event, which the caller deletes. On false there is nothing to delete. */
static bool plain_event(yaml_parser_t *parser, yaml_event_t *event, struct err *err)
{
	if (!next_event(parser, event, err))
		return false;
	if (check_plain(event, err))
		return true;
	yaml_event_delete(event);
	return false;
}

static bool read_sequence(yaml_parser_t *parser, size_t depth, struct value **value,
			  struct err *err)
{
	auto_value struct value *list = value_new_array();

	for (;;) {
		struct value *item = NULL;
		yaml_event_t event;
		bool fine;

		if (!plain_event(parser, &event, err))
			return false;
		if (event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			break;
		}
		fine = read_node(parser, &event, depth, &item, err);
		yaml_event_delete(&event);
		if (!fine)
			return false;
		value_append(list, item);
	}
	*value = list;
	list = NULL;
	return true;
}

static bool read_key(const yaml_event_t *event, const struct value *object, char **key,
		     struct err *err)
{
	const char *text;
	size_t length;

	if (event->type != YAML_SCALAR_EVENT)
		return err_set(err, EINVAL, "line %zu: a key must be a word",
			       line_of(&event->start_mark));
	text = (const char *)event->data.scalar.value;
	length = event->data.scalar.length;
	if (length == 0 || memchr(text, '\0', length))
		return err_set(err, EINVAL, "line %zu: a key may not be empty or hold a NUL",
			       line_of(&event->start_mark));
	if (value_member(object, text))
		return err_set(err, EINVAL, "line %zu: the key \"%.64s\" is there twice",
			       line_of(&event->start_mark), text);
	*key = memory_copy(text);
	return true;
}

static bool read_mapping(yaml_parser_t *parser, size_t depth, struct value **value,
			 struct err *err)
{
	auto_value struct value *object = value_new_object();

	for (;;) {
		auto_free char *key = NULL;
		struct value *member = NULL;
		yaml_event_t event;
		bool fine;

		if (!plain_event(parser, &event, err))
			return false;
		if (event.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&event);
			break;
		}
		fine = read_key(&event, object, &key, err);
		yaml_event_delete(&event);
		if (!fine || !plain_event(parser, &event, err))
			return false;
		fine = read_node(parser, &event, depth, &member, err);
		yaml_event_delete(&event);
		if (!fine)
			return false;
		value_set(object, key, member);
	}
	*value = object;
	object = NULL;
	return true;
}

static bool read_node(yaml_parser_t *parser, const yaml_event_t *event, size_t depth,
		      struct value **value, struct err *err)
{
	if (event->type == YAML_SCALAR_EVENT) {
		*value = scalar_value(event);
		return true;
	}
	if (depth == FRONT_MATTER_DEPTH_MAX)
		return err_set(err, EINVAL, "line %zu: nests deeper than %d",
			       line_of(&event->start_mark), FRONT_MATTER_DEPTH_MAX);
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return read_sequence(parser, depth + 1, value, err);
	if (event->type == YAML_MAPPING_START_EVENT)
		return read_mapping(parser, depth + 1, value, err);
	return err_set(err, EINVAL, "line %zu: a value is missing",
		       line_of(&event->start_mark));
}

/* Read the events before the one mapping: stream and document begin. */
static bool read_begin(yaml_parser_t *parser, yaml_event_t *event, struct err *err)
{
	for (;;) {
		yaml_event_type_t type;

		if (!plain_event(parser, event, err))
			return false;
		type = event->type;
		if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT)
			return true;
		yaml_event_delete(event);
	}
}

/* Read the events behind the mapping: only the ends may follow. */
static bool read_end(yaml_parser_t *parser, struct err *err)
{
	yaml_event_type_t type = YAML_NO_EVENT;

	while (type != YAML_STREAM_END_EVENT) {
		yaml_event_t event;
		size_t line;

		if (!plain_event(parser, &event, err))
			return false;
		type = event.type;
		line = line_of(&event.start_mark);
		yaml_event_delete(&event);
		if (type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT)
			return err_set(err, EINVAL,
				       "line %zu: a second document is not taken", line);
	}
	return true;
}

static bool read_yaml(yaml_parser_t *parser, struct value **object, struct err *err)
{
	struct value *value = NULL;
	yaml_event_t event;
	bool fine;

	if (!read_begin(parser, &event, err))
		return false;
	if (event.type == YAML_STREAM_END_EVENT) {
		yaml_event_delete(&event);
		*object = value_new_object();
		return true;
	}
	if (event.type == YAML_MAPPING_START_EVENT)
		fine = read_mapping(parser, 1, &value, err);
	else
		fine = err_set(err, EINVAL, "line %zu: must be \"key: value\" lines",
			       line_of(&event.start_mark));
	yaml_event_delete(&event);
	if (fine && !read_end(parser, err)) {
		value_free(value);
		return false;
	}
	if (fine)
		*object = value;
	return fine;
}

bool front_matter_parse(struct str text, struct value **object, struct err *err)
{
	struct value *value = NULL;
	struct parts parts = {0};
	yaml_parser_t parser;
	bool fine;

	if (text.size > FRONT_MATTER_TEXT_MAX)
		return err_set(err, EFBIG, "is larger than %d bytes", FRONT_MATTER_TEXT_MAX);
	if (!split_parts(text, &parts, err))
		return false;
	if (parts.yaml.size > FRONT_MATTER_MAX)
		return err_set(err, EFBIG, "the front matter is larger than %d bytes",
			       FRONT_MATTER_MAX);
	if (!text_is_utf8(parts.body))
		return err_set(err, EINVAL, "the text below the front matter is not UTF-8");
	if (!yaml_parser_initialize(&parser))
		memory_exhausted(sizeof(parser));
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)parts.yaml.data,
				     parts.yaml.size);
	fine = read_yaml(&parser, &value, err);
	yaml_parser_delete(&parser);
	if (fine && parts.body.size && value_member(value, "prompt")) {
		value_free(value);
		return err_set(
			err, EINVAL,
			"the prompt is there twice: as key and as text below the front matter");
	}
	if (!fine)
		return false;
	if (parts.body.size)
		value_set_str(value, "prompt", parts.body);
	*object = value;
	return true;
}
