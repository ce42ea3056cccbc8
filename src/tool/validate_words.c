/* validate_words: the sentences of a refusal, bounded whatever the value holds. */
#include "tool/validate_parts.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	QUOTED_MAX = 60,    /* bytes of a value quoted: enough to recognise it */
	LISTED_MAX = 24,    /* names listed in one sentence */
	COMPARED_MAX = 256, /* names a wrong word is compared with */
	POINTER_DEPTH = VALUE_DEPTH_MAX, /* no value nests deeper */
	SENTENCE_MAX = 8192,             /* room to compose in, before the cut */
};

static void keep(const struct buf *text, char *place, size_t size)
{
	size_t length = text_character_border(buf_str(text), size - 1);

	memcpy(place, text->data, length);
	place[length] = '\0';
}

static void add_pointer(struct buf *out, const struct validate_place *at)
{
	const struct validate_place *parts[POINTER_DEPTH];
	size_t count = 0;

	for (; at && at->above && count < POINTER_DEPTH; at = at->above)
		parts[count++] = at;
	while (count--) {
		const char *key = parts[count]->key;

		(void)buf_addc(out, '/');
		if (!key)
			(void)buf_addf(out, "%zu", parts[count]->index);
		for (size_t i = 0; key && key[i] && i < VALIDATE_POINTER_MAX; i++) {
			if (key[i] == '~' || key[i] == '/')
				(void)buf_addf(out, "~%c", key[i] == '~' ? '0' : '1');
			else
				(void)buf_addc(out, key[i]);
		}
	}
}

__attribute__((format(printf, 4, 0))) static void write_problem(
	struct validate_problem *problem, const struct validate_place *at,
	const char *keyword, const char *format, va_list arguments)
{
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	add_pointer(&text, at);
	keep(&text, problem->pointer, sizeof(problem->pointer));
	buf_clear(&text);
	(void)buf_addv(&text, format, arguments);
	keep(&text, problem->rule, sizeof(problem->rule));
	problem->keyword = keyword;
	buf_fini(&text);
}

bool validate_refuse(struct validate_check *check, const struct validate_place *at,
		     const char *keyword, const char *format, ...)
{
	va_list arguments;

	if (!check->problem)
		return false;
	va_start(arguments, format);
	write_problem(check->problem, at, keyword, format, arguments);
	va_end(arguments);
	return false;
}

bool validate_give_up(struct validate_check *check, const struct validate_place *at,
		      const char *keyword, const char *format, ...)
{
	va_list arguments;

	if (check->refused)
		return false;
	va_start(arguments, format);
	write_problem(&check->refusal, at, keyword, format, arguments);
	va_end(arguments);
	check->refused = true;
	return false;
}

void validate_add_quoted(struct buf *out, struct str text)
{
	size_t size = text.size;

	if (size > QUOTED_MAX)
		size = text_character_border(text, QUOTED_MAX);
	(void)value_quote(str_part(text, 0, size), out);
	if (size < text.size)
		(void)buf_adds(out, "…");
}

void validate_add_value(struct buf *out, const struct value *value)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		(void)buf_adds(out, "null");
		break;
	case VALUE_BOOLEAN:
		(void)buf_adds(out, value_is_true(value) ? "true" : "false");
		break;
	case VALUE_INTEGER:
	case VALUE_REAL:
		(void)value_print(value, 0, out);
		break;
	case VALUE_STRING:
		(void)buf_adds(out, "the string ");
		validate_add_quoted(out, value_str(value));
		break;
	case VALUE_ARRAY:
		(void)buf_addf(out, "a list of %zu", value_count(value));
		break;
	case VALUE_OBJECT:
		(void)buf_adds(out, "an object");
		break;
	}
}

void validate_add_keys(struct buf *out, const struct value *object)
{
	size_t listed = 0;

	for (void *at = value_first(object); at; at = value_next(object, at)) {
		struct str key = str_of(value_key(at));

		if (listed == LISTED_MAX) {
			(void)buf_addf(out, " and %zu more", value_count(object) - listed);
			return;
		}
		if (listed++)
			(void)buf_adds(out, ", ");
		(void)text_clean(str_part(key, 0, text_character_border(key, QUOTED_MAX)),
				 out);
	}
}

const char *validate_nearest_key(const struct value *object, const char *word)
{
	auto_free const char **names = memory_array(COMPARED_MAX + 1, sizeof(*names));
	size_t count = 0;

	for (void *at = value_first(object); at && count < COMPARED_MAX;
	     at = value_next(object, at))
		names[count++] = value_key(at);
	return strlen(word) > QUOTED_MAX ? NULL : text_nearest(word, names);
}
