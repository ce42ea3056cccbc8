/*
 * validate: the recursion: references, types, choices, combinations; then the parts by
 * kind.
 */
#include "validate/validate.h"

#include "base/memory.h"
#include "base/text.h"
#include "validate/validate_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * Values nest VALUE_DEPTH_MAX deep; a reference and a combination for each
	 * level.
	 */
	DEPTH_MAX = 3 * VALUE_DEPTH_MAX,
	/* About a second of schema; arguments of calls need a few hundred steps. */
	WORK_MAX = 2000000,
	SENTENCE_MAX = 2048,
	REFERENCE_MAX = 1024,
};

bool validate_spend(struct validate_check *check, size_t steps)
{
	check->work += steps;
	if (check->work > WORK_MAX)
		check->exhausted = true;
	return !check->exhausted;
}

bool validate_try(struct validate_check *check, const struct value *schema,
		  const struct value *value, const struct validate_place *at)
{
	struct validate_problem *problem = check->problem;
	bool fits;

	check->problem = NULL;
	fits = validate_apply(check, schema, value, at);
	check->problem = problem;
	return fits;
}

double validate_nearest_whole(double number)
{
	/* From 2^52 on there is nothing between whole numbers. */
	return fabs(number) < 0x1p52 ? (double)(int64_t)(number + copysign(0.5, number))
				     : number;
}

static bool is_whole(const struct value *value)
{
	double number = value_number(value);

	return value_kind(value) == VALUE_INTEGER ||
	       (value_kind(value) == VALUE_REAL && isfinite(number) &&
		number == validate_nearest_whole(number));
}

static bool has_type(const struct value *value, struct str type)
{
	switch (value_kind(value)) {
	case VALUE_NULL:
		return str_is(type, "null");
	case VALUE_BOOLEAN:
		return str_is(type, "boolean");
	case VALUE_INTEGER:
	case VALUE_REAL:
		return str_is(type, "number") ||
		       (str_is(type, "integer") && is_whole(value));
	case VALUE_STRING:
		return str_is(type, "string");
	case VALUE_ARRAY:
		return str_is(type, "array");
	case VALUE_OBJECT:
		return str_is(type, "object");
	}
	return false;
}

static void add_type(struct str type, struct buf *out)
{
	static const struct {
		const char *type, *words;
	} rows[] = {
		{"string", "a string"},  {"integer", "an integer"},
		{"number", "a number"},  {"array", "a list"},
		{"object", "an object"}, {"boolean", "true or false"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (str_is(type, rows[i].type)) {
			(void)buf_adds(out, rows[i].words);
			return;
		}
	}
	(void)buf_addf(out, "%.*s", (int)(type.size < 32 ? type.size : 32),
		       type.data ? type.data : "");
}

static bool check_type(struct validate_check *check, const struct value *type,
		       const struct value *value, const struct validate_place *at)
{
	size_t count = value_kind(type) == VALUE_ARRAY ? value_count(type) : 1;
	struct buf text;

	if (value_kind(type) != VALUE_ARRAY && value_kind(type) != VALUE_STRING)
		return true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be ");
	for (size_t i = 0; i < count; i++) {
		struct str name = value_str(count == 1 && value_kind(type) == VALUE_STRING
						    ? type
						    : value_item(type, i));

		if (has_type(value, name)) {
			buf_fini(&text);
			return true;
		}
		(void)buf_adds(&text, i ? " or " : "");
		add_type(name, &text);
	}
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "type", "%s", text.data);
	buf_fini(&text);
	return false;
}

static void add_nearest_choice(struct buf *out, const struct value *choices,
			       const struct value *value)
{
	auto_free const char **words =
		memory_array(value_count(choices) + 1, sizeof(*words));
	const char *nearest = NULL;
	size_t count = 0;

	for (size_t i = 0; i < value_count(choices); i++) {
		if (value_kind(value_item(choices, i)) == VALUE_STRING)
			words[count++] = value_text(value_item(choices, i));
	}
	if (value_kind(value) == VALUE_STRING && value_str(value).size < 64)
		nearest = text_nearest(value_text(value), words);
	if (nearest) {
		(void)buf_adds(out, "; did you mean ");
		validate_add_quoted(out, str_of(nearest));
		(void)buf_adds(out, "?");
	}
}

static bool check_enum(struct validate_check *check, const struct value *choices,
		       const struct value *value, const struct validate_place *at)
{
	struct buf text;

	if (value_kind(choices) != VALUE_ARRAY)
		return true;
	for (size_t i = 0; i < value_count(choices); i++) {
		if (!validate_spend(check, 1 + value_count(value)))
			return false;
		if (value_equal(value_item(choices, i), value))
			return true;
	}
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be one of ");
	for (size_t i = 0; i < value_count(choices) && text.size < SENTENCE_MAX / 4; i++) {
		(void)buf_adds(&text, i ? ", " : "");
		if (value_kind(value_item(choices, i)) == VALUE_STRING)
			validate_add_quoted(&text, value_str(value_item(choices, i)));
		else
			validate_add_value(&text, value_item(choices, i));
	}
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	add_nearest_choice(&text, choices, value);
	(void)validate_refuse(check, at, "enum", "%s", text.data);
	buf_fini(&text);
	return false;
}

static bool check_const(struct validate_check *check, const struct value *schema,
			const struct value *value, const struct validate_place *at)
{
	const struct value *only = value_member(schema, "const");
	struct buf text;

	if (!only || value_equal(only, value))
		return true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "must be ");
	validate_add_value(&text, only);
	(void)buf_adds(&text, ", not ");
	validate_add_value(&text, value);
	(void)validate_refuse(check, at, "const", "%s", text.data);
	buf_fini(&text);
	return false;
}

/*
 * One component of a pointer in a URI fragment: %XX, then ~1 and ~0 (RFC 6901, section
 * 6).
 */
static bool decode_component(struct str part, struct buf *out)
{
	struct buf plain;
	bool fits = true;

	buf_init(&plain, REFERENCE_MAX);
	for (size_t i = 0; i < part.size && fits; i++) {
		int high = part.data[i] == '%' && i + 2 < part.size
				   ? text_hex_digit(part.data[i + 1])
				   : -1;
		int low = high >= 0 ? text_hex_digit(part.data[i + 2]) : -1;

		fits = buf_addc(&plain, low >= 0 ? (char)(high * 16 + low) : part.data[i]);
		i += low >= 0 ? 2 : 0;
	}
	for (size_t i = 0; i < plain.size && fits; i++) {
		char next = plain.data[i] == '~' && i + 1 < plain.size ? plain.data[i + 1]
								       : '\0';

		if (next == '0' || next == '1')
			i++;
		fits = buf_addc(out, next == '0'   ? '~'
				     : next == '1' ? '/'
						   : plain.data[i]);
	}
	buf_fini(&plain);
	return fits && !memchr(out->data, '\0', out->size);
}

/* The schema that REFERENCE ("#", "#/$defs/x") names, or NULL. */
static const struct value *find_reference(const struct value *root, struct str reference)
{
	const struct value *schema = root;
	size_t from = 2;

	if (str_is(reference, "#") || reference.size == 0)
		return root;
	if (reference.size > REFERENCE_MAX || !str_starts(reference, STR("#/")))
		return NULL;
	while (schema && from <= reference.size) {
		size_t end = str_find(reference, STR("/"), from);
		struct buf key;

		if (end == (size_t)-1)
			end = reference.size;
		buf_init(&key, REFERENCE_MAX);
		if (!decode_component(str_part(reference, from, end - from), &key))
			schema = NULL;
		else if (value_kind(schema) == VALUE_ARRAY)
			schema = key.size && strspn(key.data, "0123456789") == key.size
					 ? value_item(schema, strtoul(key.data, NULL, 10))
					 : NULL;
		else
			schema = value_member(schema, key.data);
		buf_fini(&key);
		from = end + 1;
	}
	return schema;
}

static bool check_reference(struct validate_check *check, const struct value *reference,
			    const struct value *value, const struct validate_place *at)
{
	const struct value *schema = find_reference(check->root, value_str(reference));
	struct buf text;

	if (schema)
		return validate_apply(check, schema, value, at);
	buf_init(&text, SENTENCE_MAX);
	(void)buf_adds(&text, "cannot be checked: the schema has no definition ");
	validate_add_quoted(&text, value_str(reference));
	(void)validate_refuse(check, at, "$ref", "%s", text.data);
	buf_fini(&text);
	return false;
}

/* How many of SCHEMAS fit; NEAREST gets the problem of the one that came deepest. */
static size_t count_fitting(struct validate_check *check, const struct value *schemas,
			    const struct value *value, const struct validate_place *at,
			    size_t enough, struct validate_problem *nearest)
{
	struct validate_problem *problem = check->problem;
	size_t fitting = 0;

	for (size_t i = 0; i < value_count(schemas) && fitting < enough; i++) {
		struct validate_problem own = {0};

		check->problem = problem ? &own : NULL;
		fitting += validate_apply(check, value_item(schemas, i), value, at);
		if (i == 0 || strlen(own.pointer) > strlen(nearest->pointer))
			*nearest = own;
	}
	check->problem = problem;
	return fitting;
}

static bool check_any(struct validate_check *check, const struct value *schema,
		      const char *keyword, const struct value *value,
		      const struct validate_place *at)
{
	const struct value *schemas = value_member(schema, keyword);
	bool one = strcmp(keyword, "oneOf") == 0;
	struct validate_problem nearest = {0};
	size_t fitting;

	if (value_kind(schemas) != VALUE_ARRAY)
		return true;
	fitting = count_fitting(check, schemas, value, at, one ? 2 : 1, &nearest);
	if (check->exhausted)
		return false;
	if (fitting == 1)
		return true;
	if (fitting > 1)
		return validate_refuse(check, at, keyword,
				       "must fit exactly one of the %zu forms allowed, and fits "
				       "more",
				       value_count(schemas));
	return validate_refuse(check, at, keyword,
			       "fits none of the %zu forms allowed; the nearest says: %s%s%s",
			       value_count(schemas), nearest.pointer,
			       nearest.pointer[0] ? " " : "", nearest.rule);
}

static bool check_combinations(struct validate_check *check, const struct value *schema,
			       const struct value *value, const struct validate_place *at)
{
	const struct value *all = value_member(schema, "allOf");
	const struct value *none = value_member(schema, "not");
	const struct value *test = value_member(schema, "if");

	for (size_t i = 0; value_kind(all) == VALUE_ARRAY && i < value_count(all); i++) {
		if (!validate_apply(check, value_item(all, i), value, at))
			return false;
	}
	if (!check_any(check, schema, "anyOf", value, at) ||
	    !check_any(check, schema, "oneOf", value, at))
		return false;
	if (none && validate_try(check, none, value, at))
		return validate_refuse(check, at, "not", "has a form that is not allowed");
	if (test && !check->exhausted) {
		const struct value *then =
			value_member(schema, validate_try(check, test, value, at) ? "then"
										  : "else");

		if (then && !check->exhausted && !validate_apply(check, then, value, at))
			return false;
	}
	return !check->exhausted;
}

static bool check_kind(struct validate_check *check, const struct value *schema,
		       const struct value *value, const struct validate_place *at)
{
	switch (value_kind(value)) {
	case VALUE_INTEGER:
	case VALUE_REAL:
		return validate_number(check, schema, value, at);
	case VALUE_STRING:
		return validate_string(check, schema, value, at);
	case VALUE_ARRAY:
		return validate_array(check, schema, value, at);
	case VALUE_OBJECT:
		return validate_object(check, schema, value, at);
	case VALUE_NULL:
	case VALUE_BOOLEAN:
		break;
	}
	return true;
}

static bool apply_object(struct validate_check *check, const struct value *schema,
			 const struct value *value, const struct validate_place *at)
{
	const struct value *reference = value_member(schema, "$ref");

	if (value_kind(reference) == VALUE_STRING) {
		if (!check_reference(check, reference, value, at))
			return false;
		if (check->old)
			return true;
	}
	return check_type(check, value_member(schema, "type"), value, at) &&
	       check_enum(check, value_member(schema, "enum"), value, at) &&
	       check_const(check, schema, value, at) &&
	       check_kind(check, schema, value, at) &&
	       check_combinations(check, schema, value, at);
}

bool validate_apply(struct validate_check *check, const struct value *schema,
		    const struct value *value, const struct validate_place *at)
{
	bool fits;

	if (!validate_spend(check, 1))
		return false;
	if (value_kind(schema) == VALUE_BOOLEAN)
		return value_is_true(schema) ||
		       validate_refuse(check, at, "false", "is not allowed here");
	if (value_kind(schema) != VALUE_OBJECT)
		return true;
	if (check->depth == DEPTH_MAX) {
		check->exhausted = true;
		return false;
	}
	check->depth++;
	fits = apply_object(check, schema, value, at);
	check->depth--;
	return fits && !check->exhausted;
}

bool validate_value(const struct value *schema, const struct value *value,
		    struct validate_problem *problem)
{
	struct validate_check check = {.root = schema, .problem = problem};
	const struct validate_place whole = {0};
	const char *dialect = value_text(value_member(schema, "$schema"));

	check.old = dialect && strstr(dialect, "draft-0");
	if (validate_apply(&check, schema, value, &whole))
		return true;
	if (check.exhausted) {
		check.problem = problem;
		(void)validate_refuse(&check, &whole, "depth",
				      "cannot be checked: its schema nests too deep or asks for "
				      "too much work");
	}
	return false;
}
