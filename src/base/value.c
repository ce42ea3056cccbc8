/* value: JSON values by jansson; see value.h. */
#include "base/value.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/text.h"
#include "base/value_syntax.h"

/* 2^63, the first number that no int64_t has; INT64_MAX itself is not a double. */
#define VALUE_INTEGERS_END 9223372036854775808.0

/* jansson's readers take const, its iterators and counts do not, and none changes what is read. */
static json_t *value_json(const struct value *value)
{
	return (json_t *)(uintptr_t)value;
}

static struct value *value_of(json_t *json)
{
	return (struct value *)json;
}

/* A NULL from a constructor is out of memory, as all else about it was checked before. */
static struct value *value_new(json_t *json)
{
	if (!json)
		memory_exhausted(sizeof(json_t));
	return value_of(json);
}

/*
 * Set ERR for a text that the JSON library refused: beside the grammar it checks keys and
 * numbers. Always false.
 */
static bool value_refuse(struct str text, const json_error_t *error, struct err *err)
{
	size_t at = error->position > 0 ? (size_t)error->position : 0;

	switch (json_error_code(error)) {
	case json_error_out_of_memory:
		memory_exhausted(text.size);
	case json_error_duplicate_key:
		return value_syntax_fail(text, at, "the key occurs twice in its object",
					 err);
	case json_error_numeric_overflow:
		return value_syntax_fail(text, at, "a number that does not fit 64 bits",
					 err);
	case json_error_null_byte_in_key:
		return value_syntax_fail(text, at, "a key with \\u0000 in it", err);
	default:
		return value_syntax_fail(text, at, error->text, err);
	}
}

static void *take_memory(size_t size)
{
	return memory_grow(NULL, size, 1);
}

void value_own_memory(void)
{
	json_set_alloc_funcs(take_memory, free);
}

static json_t *value_load(struct str text, json_error_t *error)
{
	const size_t options = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES;

	return json_loadb(text.size ? text.data : "", text.size, options, error);
}

bool value_parse(struct str text, unsigned flags, struct value **value, struct err *err)
{
	auto_free char *copy = NULL;
	struct str plain = text;
	json_error_t error;
	json_t *json;

	if (text.size > VALUE_TEXT_MAX)
		return err_set(err, EFBIG, "JSON text of %zu bytes: at most %d are taken",
			       text.size, VALUE_TEXT_MAX);
	if (flags & (VALUE_COMMENTS | VALUE_REPAIR)) {
		/*
		 * Bytes that are not JSON, such as comments, become blanks, so that
		 * positions stay.
		 */
		copy = memory_copy_str(text);
		if (!value_syntax_blank(copy, text.size, flags, err))
			return false;
		plain.data = copy;
	}
	if (!value_syntax_depth(plain, err))
		return false;
	json = value_load(plain, &error);
	if (!json && (flags & (VALUE_HALVES | VALUE_REPAIR | VALUE_WIDE))) {
		copy = copy ? copy : memory_copy_str(text);
		if (flags & (VALUE_HALVES | VALUE_REPAIR))
			value_syntax_mend_halves(copy, text.size);
		if (flags & VALUE_WIDE)
			value_syntax_mend_integers(copy, text.size);
		plain.data = copy;
		json = value_load(plain, &error);
	}
	if (json) {
		*value = value_of(json);
		return true;
	}
	if (!value_syntax_check(plain, err))
		return false;
	return value_refuse(plain, &error, err);
}

void value_free(struct value *value)
{
	json_decref(value_json(value));
}

struct value *value_ref(const struct value *value)
{
	return value_of(json_incref(value_json(value)));
}

void value_auto_free(struct value **value)
{
	value_free(*value);
}

enum value_kind value_kind(const struct value *value)
{
	if (!value)
		return VALUE_NULL;
	switch (json_typeof(value_json(value))) {
	case JSON_OBJECT:
		return VALUE_OBJECT;
	case JSON_ARRAY:
		return VALUE_ARRAY;
	case JSON_STRING:
		return VALUE_STRING;
	case JSON_INTEGER:
		return VALUE_INTEGER;
	case JSON_REAL:
		return VALUE_REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return VALUE_BOOLEAN;
	case JSON_NULL:
		break;
	}
	return VALUE_NULL;
}

const char *value_kind_name(enum value_kind kind)
{
	static const char *const names[] = {
		[VALUE_NULL] = "null",       [VALUE_BOOLEAN] = "boolean",
		[VALUE_INTEGER] = "integer", [VALUE_REAL] = "number",
		[VALUE_STRING] = "string",   [VALUE_ARRAY] = "array",
		[VALUE_OBJECT] = "object",
	};

	return names[kind];
}

const char *value_text(const struct value *value)
{
	return json_string_value(value_json(value));
}

struct str value_str(const struct value *value)
{
	if (!value_text(value))
		return str_of(NULL);
	return (struct str){value_text(value), json_string_length(value_json(value))};
}

bool value_has_text(const struct value *array, const char *text)
{
	for (size_t i = 0; i < value_count(array); i++) {
		if (str_is(value_str(value_item(array, i)), text))
			return true;
	}
	return false;
}

int64_t value_integer(const struct value *value)
{
	double number;

	if (!json_is_real(value_json(value)))
		return json_integer_value(value_json(value));
	number = json_real_value(value_json(value));
	if (number >= VALUE_INTEGERS_END)
		return INT64_MAX;
	if (number < -VALUE_INTEGERS_END)
		return INT64_MIN;
	return (int64_t)number;
}

double value_number(const struct value *value)
{
	return json_number_value(value_json(value));
}

bool value_is_true(const struct value *value)
{
	return json_is_true(value_json(value));
}

bool value_is_number(const struct value *value)
{
	return json_is_number(value_json(value));
}

static bool value_equal_numbers(const struct value *a, const struct value *b)
{
	const struct value *integer = a, *real = b;
	double number;

	if (value_kind(a) == value_kind(b))
		return value_kind(a) == VALUE_INTEGER
			       ? value_integer(a) == value_integer(b)
			       : value_number(a) == value_number(b);
	if (value_kind(a) == VALUE_REAL) {
		integer = b;
		real = a;
	}
	/* Not by way of a double: 2^53 and 2^53 + 1 would be the same. */
	number = value_number(real);
	return number >= -VALUE_INTEGERS_END && number < VALUE_INTEGERS_END &&
	       trunc(number) == number && (int64_t)number == value_integer(integer);
}

bool value_equal(const struct value *a, const struct value *b)
{
	enum value_kind kind = value_kind(a);

	if (value_is_number(a) && value_is_number(b))
		return value_equal_numbers(a, b);
	if (kind != value_kind(b) || value_count(a) != value_count(b))
		return false;
	switch (kind) {
	case VALUE_BOOLEAN:
		return value_is_true(a) == value_is_true(b);
	case VALUE_STRING:
		return str_equal(value_str(a), value_str(b));
	case VALUE_ARRAY:
		for (size_t i = 0; i < value_count(a); i++) {
			if (!value_equal(value_item(a, i), value_item(b, i)))
				return false;
		}
		return true;
	case VALUE_OBJECT:
		for (void *at = value_first(a); at; at = value_next(a, at)) {
			const struct value *other = value_member(b, value_key(at));

			if (!other || !value_equal(value_at(at), other))
				return false;
		}
		return true;
	default:
		return true;
	}
}

size_t value_count(const struct value *value)
{
	return json_is_object(value_json(value)) ? json_object_size(value_json(value))
						 : json_array_size(value_json(value));
}

struct value *value_item(const struct value *array, size_t index)
{
	return value_of(json_array_get(value_json(array), index));
}

struct value *value_member(const struct value *object, const char *key)
{
	return value_of(json_object_get(value_json(object), key));
}

void *value_first(const struct value *object)
{
	return json_object_iter(value_json(object));
}

void *value_next(const struct value *object, void *at)
{
	return json_object_iter_next(value_json(object), at);
}

const char *value_key(void *at)
{
	return json_object_iter_key(at);
}

struct value *value_at(void *at)
{
	return value_of(json_object_iter_value(at));
}

struct value *value_new_object(void)
{
	return value_new(json_object());
}

struct value *value_new_array(void)
{
	return value_new(json_array());
}

struct value *value_new_text(const char *text)
{
	return text ? value_new_str(str_of(text)) : value_new_null();
}

struct value *value_new_texts(const char *const *texts)
{
	struct value *list = value_new_array();

	for (; *texts != NULL; texts++)
		value_append(list, value_new_text(*texts));
	return list;
}

struct value *value_new_str(struct str text)
{
	struct value *value;
	struct buf clean;

	if (text_is_utf8(text))
		return value_new(
			json_stringn_nocheck(text.size ? text.data : "", text.size));
	buf_init(&clean, SIZE_MAX);
	(void)value_syntax_mend(text, &clean);
	value = value_new(json_stringn_nocheck(clean.data, clean.size));
	buf_fini(&clean);
	return value;
}

struct value *value_new_integer(int64_t number)
{
	return value_new(json_integer(number));
}

struct value *value_new_real(double number)
{
	return isfinite(number) ? value_new(json_real(number)) : value_new_null();
}

struct value *value_new_boolean(bool truth)
{
	return value_new(json_boolean(truth));
}

struct value *value_new_null(void)
{
	return value_new(json_null());
}

struct value *value_copy(const struct value *value)
{
	return value ? value_new(json_deep_copy(value_json(value))) : value_new_null();
}

void value_set(struct value *object, const char *key, struct value *take_value)
{
	struct value *value = take_value ? take_value : value_new_null();
	struct buf clean;

	assert(value_kind(object) == VALUE_OBJECT && value != object);
	buf_init(&clean, SIZE_MAX);
	if (!text_is_utf8(str_of(key))) {
		(void)value_syntax_mend(str_of(key), &clean);
		key = clean.data;
	}
	if (json_object_set_new_nocheck(value_json(object), key, value_json(value)) < 0)
		memory_exhausted(strlen(key));
	buf_fini(&clean);
}

void value_set_text(struct value *object, const char *key, const char *text)
{
	value_set(object, key, value_new_text(text));
}

void value_set_str(struct value *object, const char *key, struct str text)
{
	value_set(object, key, value_new_str(text));
}

void value_set_integer(struct value *object, const char *key, int64_t number)
{
	value_set(object, key, value_new_integer(number));
}

void value_set_real(struct value *object, const char *key, double number)
{
	value_set(object, key, value_new_real(number));
}

void value_set_boolean(struct value *object, const char *key, bool truth)
{
	value_set(object, key, value_new_boolean(truth));
}

void value_remove(struct value *object, const char *key)
{
	/* Fails only when there is no such member. */
	(void)json_object_del(value_json(object), key);
}

void value_append(struct value *array, struct value *take_value)
{
	struct value *value = take_value ? take_value : value_new_null();

	assert(value_kind(array) == VALUE_ARRAY && value != array);
	if (json_array_append_new(value_json(array), value_json(value)) < 0)
		memory_exhausted(sizeof(json_t));
}
