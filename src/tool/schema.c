/* schema: makes JSON Schema of rows, caps numbers, repairs arguments and checks them. */

#include "tool/schema.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/tool.h"
#include "tool/validate.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Maximum of bytes of a model's arguments quoted in a refusal. */
enum { SCHEMA_QUOTED_MAX = 200 };

enum { DESCRIPTION_MAX = 4096 };

/* Do `min` and `max` of ROW set bounds? */
static bool schema_has_bounds(const struct row *row)
{
	return row->max > row->min;
}

static void set_text_bounds(struct value *schema, const struct row *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minLength", (int64_t)row->min);
	value_set_integer(schema, "maxLength", (int64_t)row->max);
}

static void set_list_bounds(struct value *schema, const struct row *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minItems", (int64_t)row->min);
	value_set_integer(schema, "maxItems", (int64_t)row->max);
}

/* Is ROW the deadline of a call of TOOL? Its ceiling comes from TOOL. */
static bool schema_is_deadline(const struct row *row, const struct tool *tool)
{
	return tool->timeout_max_s > 0 && strcmp(row->name, "timeout_s") == 0;
}

/*
 * A ceiling to which numbers are cut is not a `maximum` of the schema, because a client
 * that checks would refuse larger numbers, which we accept. The description states the
 * ceiling.
 */
static void set_number_bounds(struct value *schema, const struct row *row)
{
	if (schema_has_bounds(row))
		value_set_integer(schema, "minimum", (int64_t)row->min);
	else if (row->kind != ROW_INTEGER)
		value_set_integer(schema, "minimum", 0);
	if (row->kind == ROW_SECONDS && (!schema_has_bounds(row) || row->min <= 0)) {
		value_remove(schema, "minimum");
		value_set_integer(schema, "exclusiveMinimum", 0);
	}
	if (row->kind == ROW_ID && schema_has_bounds(row))
		value_set_integer(schema, "maximum", (int64_t)row->max);
}

static struct value *choices_of(const char *choices)
{
	struct value *list = value_new_array();
	struct str rest = str_of(choices), word;

	while (str_next_word(&rest, &word))
		value_append(list, value_new_str(word));
	return list;
}

static struct value *schema_of_rows(const struct row *rows, const struct tool *tool);

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

static const char *type_of(enum row_kind kind)
{
	switch (kind) {
	case ROW_COUNT:
	case ROW_ID:
	case ROW_INTEGER:
		return "integer";
	case ROW_SECONDS:
		return "number";
	case ROW_FLAG:
		return "boolean";
	case ROW_LIST:
	case ROW_TEXTS:
	case ROW_ARGV:
		return "array";
	case ROW_VALUES:
		return "object";
	default:
		return "string";
	}
}

static void set_kind(struct value *schema, const struct row *row, const struct tool *tool)
{
	switch (row->kind) {
	case ROW_TEXT:
	case ROW_COMMAND:
		set_text_bounds(schema, row);
		break;
	case ROW_PATH:
	case ROW_FOLDER:
		value_set_integer(schema, "minLength", 1);
		break;
	case ROW_COUNT:
	case ROW_ID:
	case ROW_INTEGER:
	case ROW_SECONDS:
		set_number_bounds(schema, row);
		break;
	case ROW_CHOICE:
		value_set(schema, "enum", choices_of(row->choices));
		break;
	case ROW_LIST:
		set_list_bounds(schema, row);
		(void)array_of(schema_of_rows(row->rows, tool), schema);
		break;
	case ROW_TEXTS:
	case ROW_ARGV:
		set_list_bounds(schema, row);
		(void)array_of(text_schema(), schema);
		break;
	default:
		break;
	}
}

static void schema_cap_describe(const struct row *row, const struct tool *tool,
				struct buf *description);

static struct value *schema_of_row(const struct row *row, const struct tool *tool)
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

static struct value *schema_of_rows(const struct row *rows, const struct tool *tool)
{
	struct value *schema = value_new_object();
	struct value *properties = value_new_object();
	struct value *required = value_new_array();

	for (const struct row *row = rows; row && row->name; row++) {
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

static bool is_quantity(const struct row *row)
{
	return row->kind == ROW_COUNT || row->kind == ROW_INTEGER ||
	       row->kind == ROW_SECONDS;
}

/*
 * Does a number of ROW have a ceiling in a call of TOOL with ARGUMENTS (NULL: a call
 * that is waited for)? Sets *MOST to it.
 */
static bool schema_cap_find(const struct row *row, const struct tool *tool,
			    const struct value *arguments, double *most)
{
	if (!is_quantity(row))
		return false;
	if (schema_has_bounds(row))
		*most = row->max;
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
static void schema_cap_describe(const struct row *row, const struct tool *tool,
				struct buf *description)
{
	double most;

	if (!schema_cap_find(row, tool, NULL, &most) || most >= WORTH_A_WORD)
		return;
	(void)buf_addf(description, ", at most %.0f", most);
	if (schema_is_deadline(row, tool) && tool->job_max_s > 0)
		(void)buf_addf(description, "; in the background %.0f", tool->job_max_s);
}

static void note(struct value **capped, const char *pointer, const struct row *row,
		 const struct value *given, int64_t used)
{
	struct value *entry = value_new_object();
	struct buf name;

	if (*capped == NULL)
		*capped = value_new_object();
	value_set(entry, "given", value_copy(given));
	value_set_integer(entry, "used", used);
	buf_init(&name, POINTER_MAX);
	(void)buf_addf(&name, "%s%s", pointer, row->name);
	value_set(*capped, name.data, entry);
	buf_fini(&name);
}

static void cap_number(const struct row *row, const struct tool *tool,
		       const char *pointer, struct value *arguments, struct value **capped)
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
	if (row->kind != ROW_SECONDS && given != trunc(given))
		return;
	/* Bounds of rows are whole numbers, and ceilings of tools are whole seconds. */
	note(capped, pointer, row, value, (int64_t)most);
	value_set_integer(arguments, row->name, (int64_t)most);
}

/*
 * Cap the numbers of ARGUMENTS, nested lists included. CAPPED (NULL at first) becomes
 * an object from the name of an argument, or its JSON pointer inside a list, to {given,
 * used}. The caller owns it.
 */
static void cap_rows(const struct tool *tool, const struct row *rows, const char *pointer,
		     struct value *arguments, struct value **capped)
{
	for (const struct row *row = rows; row != NULL && row->name != NULL; row++) {
		struct value *value = value_member(arguments, row->name);

		cap_number(row, tool, pointer, arguments, capped);
		for (size_t i = 0; row->kind == ROW_LIST && i < value_count(value); i++) {
			struct buf below;

			buf_init(&below, POINTER_MAX);
			(void)buf_addf(&below, "/%s%s/%zu/", pointer, row->name, i);
			cap_rows(tool, row->rows, below.data, value_item(value, i), capped);
			buf_fini(&below);
		}
	}
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

/*
 * ARGUMENTS do not fit the rows of TOOL, as PROBLEM says. Their schema refuses them in the
 * words that a model reads of every schema, but it knows no NUL.
 */
static void add_refusal(const struct tool *tool, const struct rows_problem *problem,
			const struct value *arguments, struct buf *sentence)
{
	auto_value struct value *schema = schema_of_tool(tool);
	struct validate_problem broken;

	if (validate_value(schema, arguments, &broken)) {
		/* An item of a list of texts is named by its list. */
		const char *last = strrchr(problem->pointer, '/');
		const size_t size =
			last != NULL && last[1] != '\0' &&
					last[1 + strspn(last + 1, "0123456789")] == '\0'
				? (size_t)(last - problem->pointer)
				: strlen(problem->pointer);

		(void)snprintf(broken.pointer, sizeof(broken.pointer), "%.*s",
			       (int)(size < sizeof(broken.pointer) ? size : 0),
			       problem->pointer);
		(void)snprintf(broken.rule, sizeof(broken.rule), "%s",
			       problem->fault == ROWS_NUL ? "may not hold a NUL character"
							  : "does not fit");
	}
	add_problem(tool, &broken, sentence);
}

static bool repair_rows(const struct row *rows, struct value *object, struct buf *sentence);

/* Repair ARGUMENTS, which do not fit yet. */
static bool repair_arguments(const struct tool *tool, struct value *arguments,
			     struct buf *sentence)
{
	struct buf conflict;
	bool fine;

	if (value_kind(arguments) != VALUE_OBJECT)
		return true;
	buf_init(&conflict, VALIDATE_RULE_MAX);
	fine = repair_rows(tool->params, arguments, &conflict);
	if (!fine) {
		(void)buf_addf(sentence, "%s: %s", tool->name, conflict.data);
		add_stop(sentence);
		add_example(tool, sentence);
	}
	buf_fini(&conflict);
	return fine;
}

/*
 * The arguments of most calls fit as they are. Only those that do not are repaired and
 * looked at again.
 */
static bool fit_rows(const struct tool *tool, struct value *arguments,
		     struct value **capped, struct buf *sentence)
{
	const struct row whole = {.kind = ROW_OBJECT, .rows = tool->params};
	const bool fits = rows_check(&whole, arguments, NULL);
	struct rows_problem problem;

	if (!fits && !repair_arguments(tool, arguments, sentence))
		return false;
	cap_rows(tool, tool->params, "", arguments, capped);
	if (fits || rows_check(&whole, arguments, &problem))
		return true;
	add_refusal(tool, &problem, arguments, sentence);
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
		    !str_is(value_str(type), "null") && !value_has_text(type, "null"))
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

static bool fit_foreign(const struct tool *tool, struct value *arguments,
			struct buf *sentence)
{
	struct validate_problem problem;

	repair_foreign(tool->schema, arguments);
	if (validate_value(tool->schema, arguments, &problem))
		return true;
	add_problem(tool, &problem, sentence);
	return false;
}

static void fill_defaults(const struct row *rows, struct value *object);

bool schema_fit(const struct tool *tool, struct value *arguments, struct value **capped,
		struct buf *sentence)
{
	if (tool->schema)
		return fit_foreign(tool, arguments, sentence);
	if (!fit_rows(tool, arguments, capped, sentence))
		return false;
	fill_defaults(tool->params, arguments);
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

static bool rename_aliases(const struct row *row, struct value *object, struct buf *sentence)
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
 * (cap_rows).
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
	if (str_is_caseless(text, "true"))
		value_set_boolean(object, key, true);
	else if (str_is_caseless(text, "false"))
		value_set_boolean(object, key, false);
}

/* Accept other capitals: "Files" for the choice "files". */
static void repair_choice(const struct row *row, struct value *object, const char *key)
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

/* Accept an object sent as JSON text. */
static void repair_object(struct value *object, const char *key)
{
	const struct value *value = value_member(object, key);
	struct value *parsed = NULL;
	struct err err;

	if (value_kind(value) != VALUE_STRING ||
	    !value_parse(value_str(value), VALUE_REPAIR | VALUE_WIDE, &parsed, &err))
		return;
	if (value_kind(parsed) == VALUE_OBJECT)
		value_set(object, key, parsed);
	else
		value_free(parsed);
}

/* Accept a list sent as JSON text, and one object where a list of objects is expected. */
static void repair_list(const struct row *row, struct value *object, const char *key)
{
	const struct value *value = value_member(object, key);
	struct value *parsed = NULL;
	struct err err;

	if (value_kind(value) == VALUE_STRING &&
	    value_parse(value_str(value), VALUE_REPAIR, &parsed, &err)) {
		enum value_kind kind = value_kind(parsed);

		if (kind == VALUE_ARRAY || (kind == VALUE_OBJECT && row->kind == ROW_LIST))
			value_set(object, key, parsed);
		else
			value_free(parsed);
	}
	if (row->kind == ROW_LIST && value_kind(value_member(object, key)) == VALUE_OBJECT) {
		struct value *list = value_new_array();

		value_append(list, value_ref(value_member(object, key)));
		value_set(object, key, list);
	}
}

static void repair_value(const struct row *row, struct value *object, const char *key)
{
	switch (row->kind) {
	case ROW_COUNT:
	case ROW_ID:
	case ROW_INTEGER:
		repair_number(object, key, true,
			      row->kind != ROW_ID && schema_has_bounds(row));
		break;
	case ROW_SECONDS:
		repair_number(object, key, false, false);
		break;
	case ROW_FLAG:
		repair_boolean(object, key);
		break;
	case ROW_CHOICE:
		repair_choice(row, object, key);
		break;
	case ROW_LIST:
	case ROW_TEXTS:
	case ROW_ARGV:
		repair_list(row, object, key);
		break;
	case ROW_VALUES:
		repair_object(object, key);
		break;
	default:
		break;
	}
}

/* Is the first of ROWS a text, and the only required one? */
static bool takes_one_text(const struct row *rows)
{
	if (!rows || !rows->name || !rows->required ||
	    (rows->kind != ROW_PATH && rows->kind != ROW_TEXT))
		return false;
	for (const struct row *row = rows + 1; row->name; row++) {
		if (row->required)
			return false;
	}
	return true;
}

static struct value *object_of(const struct row *rows, struct value *text)
{
	struct value *object = value_new_object();

	value_set(object, rows->name, value_ref(text));
	return object;
}

/*
 * Accept ["a", "b"] for [{"path": "a"}, {"path": "b"}], and "a" for a list of one such
 * object.
 */
static void repair_texts(const struct row *row, struct value *object)
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

static bool repair_items(const struct row *row, const struct value *list,
			 struct buf *sentence)
{
	for (size_t i = 0; i < value_count(list); i++) {
		struct value *item = value_item(list, i);

		if (value_kind(item) == VALUE_OBJECT &&
		    !repair_rows(row->rows, item, sentence))
			return false;
	}
	return true;
}

static bool repair_rows(const struct row *rows, struct value *object, struct buf *sentence)
{
	for (const struct row *row = rows; row && row->name; row++) {
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
		if (row->kind == ROW_LIST)
			repair_texts(row, object);
		value = value_member(object, row->name);
		if (row->kind == ROW_LIST && value_kind(value) == VALUE_ARRAY &&
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

/* Fill in absent members that have a default. */
static void fill_defaults(const struct row *rows, struct value *object)
{
	for (const struct row *row = rows; row && row->name; row++) {
		struct value *value = value_member(object, row->name);
		struct value *initial = NULL;

		if (!value && row->initial && default_of(row->initial, &initial))
			value_set(object, row->name, initial);
		for (size_t i = 0; row->kind == ROW_LIST && i < value_count(value); i++) {
			if (value_kind(value_item(value, i)) == VALUE_OBJECT)
				fill_defaults(row->rows, value_item(value, i));
		}
	}
}
