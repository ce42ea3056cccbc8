/* schema: makes JSON Schema of rows, caps numbers, repairs arguments and checks them. */

#include "tool/schema.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/tool.h"
#include "tool/validate.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Maximum of bytes of a model's arguments quoted in a refusal. */
enum { SCHEMA_QUOTED_MAX = 200 };

enum { DESCRIPTION_MAX = 4096 };

/* Do `min` and `max` of ROW set bounds? */
static bool schema_has_bounds(const struct tool_param *row)
{
	return row->max > row->min;
}

static void set_text_bounds(struct value *schema, const struct tool_param *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minLength", row->min);
	value_set_integer(schema, "maxLength", row->max);
}

static void set_list_bounds(struct value *schema, const struct tool_param *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minItems", row->min);
	value_set_integer(schema, "maxItems", row->max);
}

/* Is ROW the deadline of a call of TOOL? Its ceiling comes from TOOL. */
static bool schema_is_deadline(const struct tool_param *row, const struct tool *tool)
{
	return tool->timeout_max_s > 0 && strcmp(row->name, "timeout_s") == 0;
}

/*
 * A ceiling to which numbers are cut is not a `maximum` of the schema, because a client
 * that checks would refuse larger numbers, which we accept. The description states the
 * ceiling.
 */
static void set_number_bounds(struct value *schema, const struct tool_param *row)
{
	if (schema_has_bounds(row))
		value_set_integer(schema, "minimum", row->min);
	else if (row->kind != PARAM_INTEGER)
		value_set_integer(schema, "minimum", 0);
	if (row->kind == PARAM_SECONDS && (!schema_has_bounds(row) || row->min <= 0)) {
		value_remove(schema, "minimum");
		value_set_integer(schema, "exclusiveMinimum", 0);
	}
	if (row->kind == PARAM_ID && schema_has_bounds(row))
		value_set_integer(schema, "maximum", row->max);
}

static struct value *choices_of(const char *choices)
{
	struct value *list = value_new_array();
	struct str rest = str_of(choices), word;

	while (str_next_word(&rest, &word))
		value_append(list, value_new_str(word));
	return list;
}

static struct value *schema_of_rows(const struct tool_param *rows, const struct tool *tool);

static struct value *array_of(struct value *take_items, struct value *take_schema)
{
	value_set(take_schema, "items", take_items);
	return take_schema;
}

static struct value *text_schema(void)
{
	struct value *schema = value_new_object();

	value_set_text(schema, "type", "string");
	return schema;
}

static const char *type_of(enum param_kind kind)
{
	switch (kind) {
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
		return "integer";
	case PARAM_SECONDS:
		return "number";
	case PARAM_BOOLEAN:
		return "boolean";
	case PARAM_LIST:
	case PARAM_TEXTS:
	case PARAM_ARGV:
		return "array";
	case PARAM_TEXT:
	case PARAM_COMMAND:
	case PARAM_PATH:
	case PARAM_FOLDER:
	case PARAM_CHOICE:
		break;
	}
	return "string";
}

static void set_kind(struct value *schema, const struct tool_param *row,
		     const struct tool *tool)
{
	switch (row->kind) {
	case PARAM_TEXT:
	case PARAM_COMMAND:
		set_text_bounds(schema, row);
		break;
	case PARAM_PATH:
	case PARAM_FOLDER:
		value_set_integer(schema, "minLength", 1);
		break;
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
	case PARAM_SECONDS:
		set_number_bounds(schema, row);
		break;
	case PARAM_CHOICE:
		value_set(schema, "enum", choices_of(row->choices));
		break;
	case PARAM_LIST:
		set_list_bounds(schema, row);
		(void)array_of(schema_of_rows(row->rows, tool), schema);
		break;
	case PARAM_TEXTS:
	case PARAM_ARGV:
		set_list_bounds(schema, row);
		(void)array_of(text_schema(), schema);
		break;
	case PARAM_BOOLEAN:
		break;
	}
}

static void schema_cap_describe(const struct tool_param *row, const struct tool *tool,
				struct buf *description);

static struct value *schema_of_row(const struct tool_param *row, const struct tool *tool)
{
	struct value *schema = value_new_object();
	struct value *initial = NULL;
	struct buf description;

	value_set_text(schema, "type", type_of(row->kind));
	buf_init(&description, DESCRIPTION_MAX);
	(void)buf_adds(&description, row->description ? row->description : "");
	schema_cap_describe(row, tool, &description);
	if (description.size)
		value_set_str(schema, "description", buf_str(&description));
	buf_fini(&description);
	if (row->initial && value_parse(str_of(row->initial), 0, &initial, NULL))
		value_set(schema, "default", initial);
	set_kind(schema, row, tool);
	return schema;
}

static struct value *schema_of_rows(const struct tool_param *rows, const struct tool *tool)
{
	struct value *schema = value_new_object();
	struct value *properties = value_new_object();
	struct value *required = value_new_array();

	for (const struct tool_param *row = rows; row && row->name; row++) {
		value_set(properties, row->name, schema_of_row(row, tool));
		if (row->required)
			value_append(required, value_new_text(row->name));
	}
	value_set_text(schema, "type", "object");
	value_set(schema, "properties", properties);
	if (value_count(required))
		value_set(schema, "required", required);
	else
		value_free(required);
	value_set_boolean(schema, "additionalProperties", false);
	return schema;
}

struct value *schema_of_tool(const struct tool *tool)
{
	if (tool->schema)
		return value_copy(tool->schema);
	return schema_of_rows(tool->params, tool);
}

/* Ceilings of numbers, and cutting a number to its ceiling. */

enum {
	POINTER_MAX = 256,
	/*
	 * Lines that report cut numbers. A list may have more; the details have all of
	 * them.
	 */
	TOLD_MAX = 5,
};

/* A larger ceiling is not mentioned, because nobody means such numbers. */
#define WORTH_A_WORD ((double)INT32_MAX)

static bool is_quantity(const struct tool_param *row)
{
	return row->kind == PARAM_COUNT || row->kind == PARAM_INTEGER ||
	       row->kind == PARAM_SECONDS;
}

/*
 * Does a number of ROW have a ceiling in a call of TOOL with ARGUMENTS (NULL: a call
 * that is waited for)? Sets *MOST to it.
 */
static bool schema_cap_find(const struct tool_param *row, const struct tool *tool,
			    const struct value *arguments, double *most)
{
	if (!is_quantity(row))
		return false;
	if (schema_has_bounds(row))
		*most = (double)row->max;
	else if (!schema_is_deadline(row, tool))
		return false;
	else if (tool->job_max_s > 0 && value_is_true(value_member(arguments, "background")))
		*most = tool->job_max_s;
	else
		*most = tool->timeout_max_s;
	return true;
}

/*
 * Append the ceiling of ROW to its description: ", at most 5"; nothing when there is
 * none.
 */
static void schema_cap_describe(const struct tool_param *row, const struct tool *tool,
				struct buf *description)
{
	double most;

	if (!schema_cap_find(row, tool, NULL, &most) || most >= WORTH_A_WORD)
		return;
	(void)buf_addf(description, ", at most %.0f", most);
	if (schema_is_deadline(row, tool) && tool->job_max_s > 0)
		(void)buf_addf(description, "; in the background %.0f", tool->job_max_s);
}

static void note(struct value **capped, const char *name, const struct value *given,
		 int64_t used)
{
	struct value *entry = value_new_object();

	if (*capped == NULL)
		*capped = value_new_object();
	value_set(entry, "given", value_copy(given));
	value_set_integer(entry, "used", used);
	value_set(*capped, name, entry);
}

static void cap_number(const struct tool_param *row, const struct tool *tool,
		       const char *name, struct value *arguments, struct value **capped)
{
	const struct value *value = value_member(arguments, row->name);
	const double given = value_number(value);
	double most;

	if (!value_is_number(value) || !schema_cap_find(row, tool, arguments, &most) ||
	    !(given > most))
		return;
	/*
	 * A count with a fraction is wrong, however large it is: leave it to the check.
	 */
	if (row->kind != PARAM_SECONDS && given != trunc(given))
		return;
	/* Bounds of rows are whole numbers, and ceilings of tools are whole seconds. */
	note(capped, name, value, (int64_t)most);
	value_set_integer(arguments, row->name, (int64_t)most);
}

static void cap_rows(const struct tool *tool, const struct tool_param *rows,
		     const char *pointer, struct value *arguments, struct value **capped)
{
	for (const struct tool_param *row = rows; row != NULL && row->name != NULL; row++) {
		struct value *value = value_member(arguments, row->name);
		struct buf name;

		if (value == NULL)
			continue;
		buf_init(&name, POINTER_MAX);
		(void)buf_addf(&name, "%s%s", pointer, row->name);
		cap_number(row, tool, name.data, arguments, capped);
		for (size_t i = 0; row->kind == PARAM_LIST && i < value_count(value); i++) {
			struct buf below;

			buf_init(&below, POINTER_MAX);
			(void)buf_addf(&below, "/%s/%zu/", name.data, i);
			cap_rows(tool, row->rows, below.data, value_item(value, i), capped);
			buf_fini(&below);
		}
		buf_fini(&name);
	}
}

void schema_cap(const struct tool *tool, struct value *arguments, struct value **capped)
{
	if (value_kind(arguments) == VALUE_OBJECT)
		cap_rows(tool, tool->params, "", arguments, capped);
}

void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result)
{
	struct buf *text = &result->text;
	size_t told = 0;

	if (capped == NULL)
		return;
	value_set(tool_details(result), "capped", value_copy(capped));
	(void)buf_end_line(text);
	for (void *at = value_first(capped); at != NULL; at = value_next(capped, at)) {
		const double used = value_number(value_member(value_at(at), "used"));
		const bool waits = strcmp(value_key(at), "timeout_s") == 0 &&
				   tool->job_max_s > 0 && used == tool->timeout_max_s;

		if (++told > TOLD_MAX)
			break;
		(void)buf_addf(text, "[%s: %.15g is over the maximum: %.15g was used",
			       value_key(at),
			       value_number(value_member(value_at(at), "given")), used);
		if (waits)
			(void)buf_addf(text,
				       "; with \"background\": true, as a job that the tool "
				       "job follows, it may be %.0f",
				       tool->job_max_s);
		(void)buf_adds(text, "]\n");
	}
	if (value_count(capped) > TOLD_MAX)
		(void)buf_addf(text, "[and so in %zu more places]\n",
			       value_count(capped) - TOLD_MAX);
}

/* The only way from a model's text to checked arguments. */

static void add_example(const struct tool *tool, struct buf *sentence)
{
	if (tool->example)
		(void)buf_addf(sentence, " Example: %s", tool->example);
}

/* End SENTENCE with a full stop, unless it already has an end. */
static void add_stop(struct buf *sentence)
{
	char last = sentence->size ? sentence->data[sentence->size - 1] : '\0';

	if (last != '.' && last != '?' && last != '!')
		(void)buf_addc(sentence, '.');
}

/*
 * Append sentences such as "read_file needs …", "read_file: \"path\" must …",
 * "edit_file: /edits/0/old must …".
 */
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
 * Refuse NUL in paths and arguments. The kernel ends them at the first NUL, so it would
 * use another text than the one checked.
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

/*
 * Is the length of TEXT within bounds, judged by its bytes? A text has at most as many
 * characters.
 */
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
		break; /* rare, and needs a search in a list of words */
	}
	return false;
}

/*
 * Are the arguments as in most calls: each member has the name of a row and a right
 * value? Then nothing needs repair, and the schema cannot refuse anything. False only
 * means that both have to be tried.
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

/* Does TYPE, a name or a list of names, include NAME? */
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

/* For a foreign schema: handle null and absent members before the check. */
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

/* Take the object inside a JSON string: the model encoded its arguments twice. */
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

/*
 * Repairs aliases, numbers and booleans sent as text, lists sent as JSON text, and
 * null.
 */

/* A number as text is shorter than this. */
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

/*
 * LARGE: also accept a number that fits no integer; it becomes the ceiling
 * (schema_cap).
 */
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
	 * strtod would also accept "inf", "nan", hexadecimal digits and leading blanks.
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

/* Accept other capitals: "Files" for the choice "files". */
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

/* Accept a list sent as JSON text, and one object where a list of objects is expected. */
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

/* Is the first of ROWS a text, and the only required one? */
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

/*
 * Accept ["a", "b"] for [{"path": "a"}, {"path": "b"}], and "a" for a list of one such
 * object.
 */
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

/* The defaults in most tables need no parser. */
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
