/* validate_type: what a value must be: of a kind, one of a list, one thing alone. */
#include "tool/validate_parts.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <math.h>
#include <string.h>

enum { SENTENCE_MAX = 2048 };

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

bool validate_type(struct validate_check *check, const struct value *schema,
		   const struct value *value, const struct validate_place *at)
{
	return check_type(check, value_member(schema, "type"), value, at) &&
	       check_enum(check, value_member(schema, "enum"), value, at) &&
	       check_const(check, schema, value, at);
}
