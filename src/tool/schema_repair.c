/*
 * schema_repair: aliases, numbers and booleans sent as text, lists sent as JSON text,
 * null.
 */
#include "tool/schema_repair.h"

#include "base/memory.h"
#include "base/str.h"
#include "tool/schema_parts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A number as text is shorter; anything longer is no number. */
enum { NUMBER_MAX = 64 };

static void move_member(struct value *object, const char *from, const char *to)
{
	value_set(object, to, value_ref(value_member(object, from)));
	value_remove(object, from);
}

static bool rename_aliases(const struct tool_param *row, struct value *object,
			   struct buf *sentence)
{
	struct str rest = str_of(row->aliases), word;

	while (str_next_word(&rest, &word)) {
		auto_free char *alias = memory_copy_str(word);
		const struct value *given = value_member(object, alias);
		const struct value *own = value_member(object, row->name);

		if (!given)
			continue;
		if (value_kind(given) == VALUE_NULL || (own && value_equal(given, own))) {
			value_remove(object, alias);
		} else if (own && value_kind(own) != VALUE_NULL) {
			(void)buf_addf(sentence,
				       "\"%s\" and \"%s\" are one argument, and differ here; give "
				       "only \"%s\"",
				       alias, row->name, row->name);
			return false;
		} else {
			move_member(object, alias, row->name);
		}
	}
	return true;
}

/* LARGE: one that fits no integer is taken as well, and becomes the ceiling (schema_cap.h). */
static void repair_number(struct value *object, const char *key, bool whole, bool large)
{
	const struct value *value = value_member(object, key);
	struct str text = str_trim(value_str(value));
	char digits[NUMBER_MAX + 1];
	char *end = digits;
	double number;

	if (value_kind(value) == VALUE_REAL) {
		number = value_number(value);
		if (whole && number == trunc(number) && fabs(number) < 0x1p53)
			value_set_integer(object, key, (int64_t)number);
		return;
	}
	/*
	 * strtod would take "inf", "nan", hexadecimal digits and leading blanks as
	 * well.
	 */
	if (value_kind(value) != VALUE_STRING || text.size == 0 || text.size > NUMBER_MAX)
		return;
	memcpy(digits, text.data, text.size);
	digits[text.size] = '\0';
	if (strspn(digits, "0123456789+-.eE") != text.size)
		return;
	errno = 0;
	if (strspn(digits, "0123456789+-") == text.size) {
		int64_t integer = strtoll(digits, &end, 10);

		if (*end == '\0' && errno == 0)
			value_set_integer(object, key, integer);
		if (errno != ERANGE)
			return;
		errno = 0;
	}
	number = strtod(digits, &end);
	if (*end != '\0' || errno != 0 || !isfinite(number))
		return;
	if (!whole)
		value_set_real(object, key, number);
	else if (number == trunc(number) && fabs(number) < 0x1p53)
		value_set_integer(object, key, (int64_t)number);
	else if (number == trunc(number) && number > 0 && large)
		value_set_real(object, key, number);
}

static void repair_boolean(struct value *object, const char *key)
{
	const struct value *value = value_member(object, key);
	struct str text = str_trim(value_str(value));

	if (value_kind(value) != VALUE_STRING)
		return;
	if (text.size == 4 && strncasecmp(text.data, "true", 4) == 0)
		value_set_boolean(object, key, true);
	else if (text.size == 5 && strncasecmp(text.data, "false", 5) == 0)
		value_set_boolean(object, key, false);
}

/* "Files" for the choice "files". */
static void repair_choice(const struct tool_param *row, struct value *object, const char *key)
{
	struct str text = str_trim(value_str(value_member(object, key)));
	struct str rest = str_of(row->choices), word;

	while (str_next_word(&rest, &word)) {
		if (word.size == text.size &&
		    strncasecmp(word.data, text.data, word.size) == 0) {
			value_set_str(object, key, word);
			return;
		}
	}
}

/* A list sent as JSON text, or one object where a list of objects is due. */
static void repair_list(const struct tool_param *row, struct value *object, const char *key)
{
	const struct value *value = value_member(object, key);
	struct value *parsed = NULL;
	struct err err;

	if (value_kind(value) == VALUE_STRING &&
	    value_parse(value_str(value), VALUE_REPAIR, &parsed, &err)) {
		enum value_kind kind = value_kind(parsed);

		if (kind == VALUE_ARRAY || (kind == VALUE_OBJECT && row->kind == PARAM_LIST))
			value_set(object, key, parsed);
		else
			value_free(parsed);
	}
	if (row->kind == PARAM_LIST &&
	    value_kind(value_member(object, key)) == VALUE_OBJECT) {
		struct value *list = value_new_array();

		value_append(list, value_ref(value_member(object, key)));
		value_set(object, key, list);
	}
}

static void repair_value(const struct tool_param *row, struct value *object, const char *key)
{
	switch (row->kind) {
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
		repair_number(object, key, true,
			      row->kind != PARAM_ID && schema_has_bounds(row));
		break;
	case PARAM_SECONDS:
		repair_number(object, key, false, false);
		break;
	case PARAM_BOOLEAN:
		repair_boolean(object, key);
		break;
	case PARAM_CHOICE:
		repair_choice(row, object, key);
		break;
	case PARAM_LIST:
	case PARAM_TEXTS:
	case PARAM_ARGV:
		repair_list(row, object, key);
		break;
	case PARAM_TEXT:
	case PARAM_COMMAND:
	case PARAM_PATH:
	case PARAM_FOLDER:
		break;
	}
}

/* Is the first of ROWS the only one that must be given, and a text? */
static bool takes_one_text(const struct tool_param *rows)
{
	if (!rows || !rows->name || !rows->required ||
	    (rows->kind != PARAM_PATH && rows->kind != PARAM_TEXT))
		return false;
	for (const struct tool_param *row = rows + 1; row->name; row++) {
		if (row->required)
			return false;
	}
	return true;
}

static struct value *object_of(const struct tool_param *rows, struct value *text)
{
	struct value *object = value_new_object();

	value_set(object, rows->name, value_ref(text));
	return object;
}

/* ["a", "b"] for [{"path": "a"}, {"path": "b"}], and "a" for both where only one is meant. */
static void repair_texts(const struct tool_param *row, struct value *object)
{
	struct value *given = value_member(object, row->name);
	struct value *list;

	if (!takes_one_text(row->rows) ||
	    (value_kind(given) != VALUE_ARRAY && value_kind(given) != VALUE_STRING))
		return;
	list = value_new_array();
	for (size_t i = 0; i < value_count(given); i++) {
		struct value *item = value_item(given, i);

		value_append(list, value_kind(item) == VALUE_STRING
					   ? object_of(row->rows, item)
					   : value_ref(item));
	}
	if (value_kind(given) == VALUE_STRING)
		value_append(list, object_of(row->rows, given));
	value_set(object, row->name, list);
}

static bool repair_items(const struct tool_param *row, const struct value *list,
			 struct buf *sentence)
{
	for (size_t i = 0; i < value_count(list); i++) {
		struct value *item = value_item(list, i);

		if (value_kind(item) == VALUE_OBJECT &&
		    !schema_repair(row->rows, item, sentence))
			return false;
	}
	return true;
}

bool schema_repair(const struct tool_param *rows, struct value *object, struct buf *sentence)
{
	for (const struct tool_param *row = rows; row && row->name; row++) {
		const struct value *value;

		if (!rename_aliases(row, object, sentence))
			return false;
		value = value_member(object, row->name);
		if (!value)
			continue;
		if (value_kind(value) == VALUE_NULL && !row->required) {
			value_remove(object, row->name);
			continue;
		}
		repair_value(row, object, row->name);
		if (row->kind == PARAM_LIST)
			repair_texts(row, object);
		value = value_member(object, row->name);
		if (row->kind == PARAM_LIST && value_kind(value) == VALUE_ARRAY &&
		    !repair_items(row, value, sentence))
			return false;
	}
	return true;
}

/* The words of most tables need no parser. */
static bool default_of(const char *text, struct value **value)
{
	if (strcmp(text, "false") == 0 || strcmp(text, "true") == 0) {
		*value = value_new_boolean(*text == 't');
		return true;
	}
	return value_parse(str_of(text), 0, value, NULL);
}

void schema_fill_defaults(const struct tool_param *rows, struct value *object)
{
	for (const struct tool_param *row = rows; row && row->name; row++) {
		struct value *value = value_member(object, row->name);
		struct value *initial = NULL;

		if (!value && row->initial && default_of(row->initial, &initial))
			value_set(object, row->name, initial);
		for (size_t i = 0; row->kind == PARAM_LIST && i < value_count(value); i++) {
			if (value_kind(value_item(value, i)) == VALUE_OBJECT)
				schema_fill_defaults(row->rows, value_item(value, i));
		}
	}
}
