/* schema_fit: the one way from a model's words to checked arguments; see schema.h. */
#include "base/memory.h"
#include "base/text/text.h"
#include "tool/schema.h"
#include "tool/schema_cap.h"
#include "tool/schema_parts.h"
#include "tool/schema_repair.h"
#include "tool/validate.h"

#include <string.h>

static void add_example(const struct tool *tool, struct buf *sentence)
{
	if (tool->example)
		(void)buf_addf(sentence, " Example: %s", tool->example);
}

/* The end of a sentence, unless it has one. */
static void add_stop(struct buf *sentence)
{
	char last = sentence->size ? sentence->data[sentence->size - 1] : '\0';

	if (last != '.' && last != '?' && last != '!')
		(void)buf_addc(sentence, '.');
}

/* "read_file needs …", "read_file: \"path\" must …", "edit_file: /edits/0/old must …". */
static void add_problem(const struct tool *tool, const struct validate_problem *problem,
			struct buf *sentence)
{
	(void)buf_adds(sentence, tool->name);
	if (problem->pointer[0] && !strchr(problem->pointer + 1, '/'))
		(void)buf_addf(sentence, ": \"%s\"", problem->pointer + 1);
	else if (problem->pointer[0])
		(void)buf_addf(sentence, ": %s", problem->pointer);
	(void)buf_addf(sentence, " %s", problem->rule);
	add_stop(sentence);
	add_example(tool, sentence);
}

static bool has_nul(const struct value *value)
{
	struct str text = value_str(value);

	return text.size > 0 && memchr(text.data, '\0', text.size);
}

static bool is_texts(const struct tool_param *row)
{
	return row->kind == PARAM_TEXTS || row->kind == PARAM_ARGV;
}

/*
 * The kernel ends a path and an argument at its first NUL: what is checked would not be
 * what is used.
 */
static bool check_nul(const struct tool *tool, const struct tool_param *rows,
		      const struct value *object, struct buf *sentence)
{
	for (const struct tool_param *row = rows; row && row->name; row++) {
		const struct value *value = value_member(object, row->name);
		bool fine = true;

		if (row->kind == PARAM_PATH || row->kind == PARAM_FOLDER)
			fine = !has_nul(value);
		for (size_t i = 0; is_texts(row) && i < value_count(value); i++)
			fine = fine && !has_nul(value_item(value, i));
		for (size_t i = 0; row->kind == PARAM_LIST && i < value_count(value); i++) {
			if (!check_nul(tool, row->rows, value_item(value, i), sentence))
				return false;
		}
		if (!fine) {
			(void)buf_addf(sentence, "%s: \"%s\" may not hold a NUL character.",
				       tool->name, row->name);
			add_example(tool, sentence);
			return false;
		}
	}
	return true;
}

/* The bound that a text's bytes show: it has as many characters, or fewer. */
static bool text_is_plain(const struct tool_param *row, struct str text)
{
	int64_t least = schema_has_bounds(row)    ? row->min
			: row->kind == PARAM_TEXT ? 0
						  : 1;

	return least <= 1 && (int64_t)text.size >= least &&
	       (!schema_has_bounds(row) || (int64_t)text.size <= row->max);
}

static bool number_is_plain(const struct tool_param *row, const struct tool *tool,
			    const struct value *value)
{
	double number = value_number(value), most;

	if (!value_is_number(value) ||
	    (row->kind != PARAM_SECONDS && value_kind(value) != VALUE_INTEGER))
		return false;
	if (row->kind == PARAM_SECONDS && number <= 0)
		return false;
	if (schema_cap_find(row, tool, NULL, &most) && number > most)
		return false;
	if (schema_has_bounds(row))
		return number >= (double)row->min && number <= (double)row->max;
	return row->kind == PARAM_INTEGER || number >= 0;
}

static bool is_plain(const struct tool *tool, const struct tool_param *rows,
		     const struct value *object);

static bool list_is_plain(const struct tool_param *row, const struct tool *tool,
			  const struct value *list)
{
	int64_t count = (int64_t)value_count(list);

	if (value_kind(list) != VALUE_ARRAY ||
	    (schema_has_bounds(row) && (count < row->min || count > row->max)))
		return false;
	for (int64_t i = 0; i < count; i++) {
		const struct value *item = value_item(list, (size_t)i);
		if (row->kind != PARAM_LIST ? value_kind(item) != VALUE_STRING
					    : !is_plain(tool, row->rows, item))
			return false;
	}
	return true;
}

static bool value_is_plain(const struct tool_param *row, const struct tool *tool,
			   const struct value *value)
{
	switch (row->kind) {
	case PARAM_TEXT:
	case PARAM_COMMAND:
	case PARAM_PATH:
	case PARAM_FOLDER:
		return value_kind(value) == VALUE_STRING &&
		       text_is_plain(row, value_str(value));
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
	case PARAM_SECONDS:
		return number_is_plain(row, tool, value);
	case PARAM_BOOLEAN:
		return value_kind(value) == VALUE_BOOLEAN;
	case PARAM_LIST:
	case PARAM_TEXTS:
	case PARAM_ARGV:
		return list_is_plain(row, tool, value);
	case PARAM_CHOICE:
		break; /* rare, and a list of words to look through */
	}
	return false;
}

/*
 * The arguments as most calls have them: every member is a row's own name with a value as it
 * should be. Then there is nothing to repair, and the schema has nothing to say. No only means
 * that both have to be asked.
 */
static bool is_plain(const struct tool *tool, const struct tool_param *rows,
		     const struct value *object)
{
	size_t known = 0;

	if (value_kind(object) != VALUE_OBJECT)
		return false;
	for (const struct tool_param *row = rows; row && row->name; row++) {
		const struct value *value = value_member(object, row->name);

		if (value ? !value_is_plain(row, tool, value) : row->required)
			return false;
		known += value != NULL;
	}
	return known == value_count(object);
}

static bool repair_and_check(const struct tool *tool, const struct value *schema,
			     struct value *arguments, struct value **capped,
			     struct buf *sentence)
{
	struct validate_problem problem;
	struct buf conflict;
	bool fine = true;

	buf_init(&conflict, sizeof(problem.rule));
	if (value_kind(arguments) == VALUE_OBJECT) {
		fine = schema_repair(tool->params, arguments, &conflict);
		if (!fine) {
			(void)buf_addf(sentence, "%s: %s", tool->name, conflict.data);
			add_stop(sentence);
			add_example(tool, sentence);
		}
	}
	buf_fini(&conflict);
	if (!fine)
		return false;
	schema_cap(tool, arguments, capped);
	if (validate_value(schema, arguments, &problem))
		return true;
	add_problem(tool, &problem, sentence);
	return false;
}

/* TYPE is a name, or a list of them. */
static bool has_type(const struct value *type, const char *name)
{
	if (str_is(value_str(type), name))
		return true;
	for (size_t i = 0; i < value_count(type); i++) {
		if (str_is(value_str(value_item(type, i)), name))
			return true;
	}
	return false;
}

/* For a foreign schema: what null and absent mean, before it is asked. */
static void repair_foreign(const struct value *schema, struct value *arguments)
{
	const struct value *properties = value_member(schema, "properties");
	const struct value *required = value_member(schema, "required");

	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		const struct value *type = value_member(value_at(at), "type");
		const struct value *given = value_member(arguments, value_key(at));

		if (given && value_kind(given) == VALUE_NULL && type &&
		    !has_type(type, "null"))
			value_remove(arguments, value_key(at));
	}
	for (size_t i = 0; i < value_count(required); i++) {
		const char *name = value_text(value_item(required, i));
		const struct value *initial =
			name ? value_member(value_member(properties, name), "default")
			     : NULL;

		if (initial && !value_member(arguments, name))
			value_set(arguments, name, value_copy(initial));
	}
}

static bool fit_foreign(const struct tool *tool, const struct value *schema,
			struct value *arguments, struct buf *sentence)
{
	struct validate_problem problem;

	repair_foreign(schema, arguments);
	if (validate_value(schema, arguments, &problem))
		return true;
	add_problem(tool, &problem, sentence);
	return false;
}

bool schema_fit(const struct tool *tool, const struct value *schema,
		struct value *arguments, struct value **capped, struct buf *sentence)
{
	if (tool->schema)
		return fit_foreign(tool, schema, arguments, sentence);
	if (!is_plain(tool, tool->params, arguments) &&
	    !repair_and_check(tool, schema, arguments, capped, sentence))
		return false;
	if (!check_nul(tool, tool->params, arguments, sentence))
		return false;
	schema_fill_defaults(tool->params, arguments);
	return true;
}

static void add_first_bytes(struct str text, struct buf *sentence)
{
	size_t size = text.size;

	if (size > SCHEMA_QUOTED_MAX)
		size = text_character_border(text, SCHEMA_QUOTED_MAX);
	(void)value_quote(str_part(text, 0, size), sentence);
	if (size < text.size)
		(void)buf_addf(sentence, "… (%zu bytes in all)", text.size);
}

/* An object inside a JSON string: the model encoded its arguments twice. */
static void unwrap_string(struct value **value)
{
	struct value *inner = NULL;

	if (value_kind(*value) != VALUE_STRING ||
	    !value_parse(value_str(*value), VALUE_REPAIR, &inner, NULL))
		return;
	if (value_kind(inner) != VALUE_OBJECT) {
		value_free(inner);
		return;
	}
	value_free(*value);
	*value = inner;
}

bool schema_parse_arguments(const struct tool *tool, struct str json,
			    struct value **arguments, struct buf *sentence)
{
	struct value *parsed = NULL;
	struct err err;

	if (str_trim(json).size == 0) {
		*arguments = value_new_object();
		return true;
	}
	if (!value_parse(json, VALUE_REPAIR | VALUE_WIDE, &parsed, &err)) {
		(void)buf_addf(sentence, "The arguments of %s are not JSON: %s",
			       tool->name, err.text);
		add_stop(sentence);
		(void)buf_adds(sentence, " They begin with ");
		add_first_bytes(json, sentence);
		add_stop(sentence);
		add_example(tool, sentence);
		return false;
	}
	unwrap_string(&parsed);
	if (value_kind(parsed) == VALUE_NULL) {
		value_free(parsed);
		parsed = value_new_object();
	}
	if (value_kind(parsed) != VALUE_OBJECT) {
		(void)buf_addf(sentence,
			       "The arguments of %s must be one JSON object, not %s: ",
			       tool->name, value_kind_name(value_kind(parsed)));
		add_first_bytes(json, sentence);
		add_stop(sentence);
		add_example(tool, sentence);
		value_free(parsed);
		return false;
	}
	*arguments = parsed;
	return true;
}
