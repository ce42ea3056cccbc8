/* fields: walks a table, with one switch for each direction. */

#include "base/json/fields.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of all sizes, at places in a struct. */

static uint64_t natural_at(const void *at, size_t size)
{
	uint16_t small;
	uint32_t middle;
	uint64_t wide;

	if (size == sizeof(wide))
		return memcpy(&wide, at, sizeof(wide)), wide;
	if (size == sizeof(middle))
		return memcpy(&middle, at, sizeof(middle)), middle;
	assert(size == sizeof(small));
	return memcpy(&small, at, sizeof(small)), small;
}

/* False: WIDE does not fit into SIZE bytes. */
static bool natural_set(void *at, size_t size, int64_t wide)
{
	const uint16_t small = (uint16_t)wide;
	const uint32_t middle = (uint32_t)wide;

	if (size == sizeof(wide)) {
		memcpy(at, &wide, sizeof(wide));
		return true;
	}
	assert(size == sizeof(middle) || size == sizeof(small));
	if (wide < 0 || wide > (size == sizeof(small) ? UINT16_MAX : UINT32_MAX))
		return false;
	memcpy(at, size == sizeof(small) ? (const void *)&small : &middle, size);
	return true;
}

static int64_t integer_at(const struct field *field, const void *at)
{
	const uint64_t bits = natural_at(at, field->size);

	return field->size == sizeof(int32_t) && field->kind == FIELD_IS_INTEGER
		       ? (int32_t)(uint32_t)bits
		       : (int64_t)bits;
}

static size_t *count_of(const struct field *field, void *of)
{
	return (size_t *)(void *)((char *)of + field->count_offset);
}

static size_t count_at(const struct field *field, const void *of)
{
	return *(const size_t *)(const void *)((const char *)of + field->count_offset);
}

/* Printing. */

static bool is_empty(const struct field *field, const void *from)
{
	const void *at = (const char *)from + field->offset;

	switch (field->kind) {
	case FIELD_IS_STR:
		return ((const struct str *)at)->size == 0;
	case FIELD_IS_REAL:
		return *(const double *)at == 0;
	case FIELD_IS_FLAG:
		return !*(const bool *)at;
	case FIELD_IS_INTEGER:
	case FIELD_IS_NATURAL:
	case FIELD_IS_CHOICE:
		return natural_at(at, field->size) == 0;
	case FIELD_IS_NUMBERS:
	case FIELD_IS_TEXTS:
	case FIELD_IS_PATHS:
	case FIELD_IS_LIST:
		return count_at(field, from) == 0;
	case FIELD_IS_OBJECT:
		return false;
	case FIELD_IS_TEXT:
	case FIELD_IS_COPY:
	case FIELD_IS_PATH:
	case FIELD_IS_VALUE:
		break;
	}
	return *(const void *const *)at == NULL;
}

static struct value *path_print(const char *path)
{
	auto_free char *key = path != NULL ? path_key(path) : NULL;

	return value_new_text(key);
}

static struct value *items_print(const struct field *field, const void *from)
{
	const char *at = (const char *)from + field->offset;
	struct value *list = value_new_array();

	if (field->kind != FIELD_IS_NUMBERS)
		at = *(const char *const *)(const void *)at;
	for (size_t i = 0; i < count_at(field, from); i++, at += field->item_size) {
		if (field->kind == FIELD_IS_NUMBERS)
			value_append(list,
				     value_new_integer(
					     (int64_t)natural_at(at, field->item_size)));
		else if (field->kind == FIELD_IS_TEXTS)
			value_append(list,
				     value_new_text(*(const char *const *)(const void *)at));
		else if (field->kind == FIELD_IS_PATHS)
			value_append(list,
				     path_print(*(const char *const *)(const void *)at));
		else
			value_append(list, fields_print(field->rows, at));
	}
	return list;
}

static struct value *member_print(const struct field *field, const void *from)
{
	const void *at = (const char *)from + field->offset;

	switch (field->kind) {
	case FIELD_IS_TEXT:
	case FIELD_IS_COPY:
		return value_new_text(*(const char *const *)at);
	case FIELD_IS_PATH:
		return path_print(*(const char *const *)at);
	case FIELD_IS_STR:
		return value_new_str(*(const struct str *)at);
	case FIELD_IS_INTEGER:
	case FIELD_IS_NATURAL:
		return value_new_integer(integer_at(field, at));
	case FIELD_IS_REAL:
		return value_new_real(*(const double *)at);
	case FIELD_IS_FLAG:
		return value_new_boolean(*(const bool *)at);
	case FIELD_IS_CHOICE:
		assert(natural_at(at, field->size) < field->choice_count);
		return value_new_text(field->choices[natural_at(at, field->size)]);
	case FIELD_IS_NUMBERS:
	case FIELD_IS_TEXTS:
	case FIELD_IS_PATHS:
	case FIELD_IS_LIST:
		return items_print(field, from);
	case FIELD_IS_OBJECT:
		return fields_print(field->rows, at);
	case FIELD_IS_VALUE:
		break;
	}
	return value_ref(*(const struct value *const *)at);
}

void fields_set(struct value *object, const struct field *fields, const void *from)
{
	for (; fields->name != NULL; fields++) {
		if (fields->optional && is_empty(fields, from))
			continue;
		value_set(object, fields->name, member_print(fields, from));
	}
}

struct value *fields_print(const struct field *fields, const void *from)
{
	struct value *object = value_new_object();

	fields_set(object, fields, from);
	return object;
}

/* Reading. */

/* Of which kind is the value of a FIELD? */
static enum value_kind kind_of(const struct field *field)
{
	switch (field->kind) {
	case FIELD_IS_INTEGER:
	case FIELD_IS_NATURAL:
		return VALUE_INTEGER;
	case FIELD_IS_REAL:
		return VALUE_REAL;
	case FIELD_IS_FLAG:
		return VALUE_BOOLEAN;
	case FIELD_IS_NUMBERS:
	case FIELD_IS_TEXTS:
	case FIELD_IS_PATHS:
	case FIELD_IS_LIST:
		return VALUE_ARRAY;
	case FIELD_IS_OBJECT:
		return VALUE_OBJECT;
	case FIELD_IS_TEXT:
	case FIELD_IS_COPY:
	case FIELD_IS_PATH:
	case FIELD_IS_STR:
	case FIELD_IS_CHOICE:
	case FIELD_IS_VALUE:
		break;
	}
	return VALUE_STRING;
}

/* Is SIZE, a number or a count, within the bounds of FIELD, if it has some? */
static bool is_within(const struct field *field, int64_t size, struct err *err)
{
	if (field->max < field->min || field->max == 0 ||
	    (size >= field->min && size <= field->max))
		return true;
	return err_set(err, ERANGE, "%lld is not within %lld and %lld", (long long)size,
		       (long long)field->min, (long long)field->max);
}

static bool natural_read(const struct field *field, const struct value *value, void *at,
			 size_t size, struct err *err)
{
	const int64_t number = value_integer(value);

	if (!is_within(field, number, err))
		return false;
	if (field->kind == FIELD_IS_INTEGER && size == sizeof(int32_t)) {
		const int32_t narrow = (int32_t)number;

		if (narrow != number)
			return err_set(err, ERANGE, "%lld is too large", (long long)number);
		memcpy(at, &narrow, sizeof(narrow));
		return true;
	}
	return natural_set(at, size, number) ||
	       err_set(err, ERANGE, "%lld is too large or below 0", (long long)number);
}

static bool choice_read(const struct field *field, const struct value *value, void *at,
			struct err *err)
{
	for (size_t i = 0; i < field->choice_count; i++) {
		if (field->choices[i] != NULL && str_is(value_str(value), field->choices[i]))
			return natural_set(at, field->size, (int64_t)i);
	}
	return err_set(err, EINVAL, "it is none of its words");
}

/* Memory for COUNT items of SIZE bytes, all zero. */
static void *items_new(size_t count, size_t size, struct arena *arena)
{
	return arena != NULL ? arena_alloc(arena, count * size) : memory_array(count, size);
}

/* Set *AT to a copy of TEXT (or to NULL). */
static void copy_set(char **at, const char *text, struct arena *arena)
{
	if (arena == NULL) {
		free(*at);
		*at = memory_copy(text);
	} else {
		*at = text != NULL ? arena_copy(arena, str_of(text)) : NULL;
	}
}

static bool path_read(const struct value *value, char **at, struct arena *arena,
		      struct err *err)
{
	const char *text = value_text(value);
	auto_free char *path = text != NULL && strlen(text) == value_str(value).size
				       ? path_of_key(text)
				       : NULL;

	if (path == NULL)
		return err_set(err, EINVAL, "it is no path in escaped form");
	copy_set(at, path, arena);
	return true;
}

static bool item_read(const struct field *field, const struct value *value, void *at,
		      struct arena *arena, struct err *err)
{
	switch (field->kind) {
	case FIELD_IS_NUMBERS:
		if (value_kind(value) != VALUE_INTEGER)
			break;
		return natural_set(at, field->item_size, value_integer(value)) ||
		       err_set(err, ERANGE, "it is too large or below 0");
	case FIELD_IS_TEXTS:
		*(const char **)at = value_text(value);
		if (value_text(value) == NULL)
			break;
		return strlen(value_text(value)) == value_str(value).size ||
		       err_set(err, EINVAL, "it has a NUL byte");
	case FIELD_IS_PATHS:
		return path_read(value, at, arena, err);
	default:
		if (field->initial != NULL)
			memcpy(at, field->initial, field->item_size);
		if (value_kind(value) != VALUE_OBJECT)
			break;
		return fields_read(value, field->rows, at, arena, err);
	}
	return err_set(err, EINVAL, "%s does not belong there",
		       value_kind_name(value_kind(value)));
}

static bool is_list(const struct field *field)
{
	return field->kind == FIELD_IS_LIST || field->kind == FIELD_IS_PATHS ||
	       field->kind == FIELD_IS_TEXTS;
}

/* Free what the struct OF owns by ROW. */
static void member_free(const struct field *row, void *of)
{
	void *const at = (char *)of + row->offset;
	const size_t count = is_list(row) ? count_at(row, of) : 0;
	char *held = NULL;

	if (row->kind == FIELD_IS_OBJECT)
		fields_free(row->rows, at);
	if (!is_list(row) && row->kind != FIELD_IS_COPY && row->kind != FIELD_IS_PATH)
		return;
	memcpy(&held, at, sizeof(held));
	for (size_t i = 0; i < count; i++) {
		if (row->kind == FIELD_IS_LIST)
			fields_free(row->rows, held + i * row->item_size);
		else if (row->kind == FIELD_IS_PATHS)
			free(((char **)(void *)held)[i]);
	}
	if (is_list(row))
		*count_of(row, of) = 0;
	free(held);
	memset(at, 0, sizeof(held));
}

void fields_free(const struct field *fields, void *of)
{
	for (; fields->name != NULL; fields++)
		member_free(fields, of);
}

/* Make the list of FIELD in TO empty: one of its items does not fit. */
static void list_clear(const struct field *field, void *to, const struct arena *arena)
{
	if (is_list(field) && arena == NULL) {
		member_free(field, to);
		return;
	}
	*count_of(field, to) = 0;
	if (is_list(field))
		memset((char *)to + field->offset, 0, sizeof(void *));
}

static bool items_read(const struct field *field, const struct value *list, void *to,
		       struct arena *arena, struct err *err)
{
	const size_t count = value_count(list);
	char *at = (char *)to + field->offset;

	if (!is_within(field, (int64_t)count, err))
		return false;
	if (field->kind == FIELD_IS_NUMBERS) {
		if (count > field->size / field->item_size)
			return err_set(err, E2BIG, "it has too many items");
	} else {
		/* Texts end with NULL, and an empty list is not NULL. */
		void *items = items_new(count + 1, field->item_size, arena);
		memcpy(at, &items, sizeof(items));
		at = items;
	}
	*count_of(field, to) = 0;
	for (size_t i = 0; i < count; i++, at += field->item_size) {
		++*count_of(field, to);
		if (!item_read(field, value_item(list, i), at, arena, err)) {
			list_clear(field, to, arena);
			return err_while(err, "%zu", i);
		}
	}
	return true;
}

static bool member_read(const struct field *field, const struct value *value, void *to,
			struct arena *arena, struct err *err)
{
	const enum value_kind kind = value_kind(value), wanted = kind_of(field);
	void *at = (char *)to + field->offset;
	const int64_t nearest = value_integer(value);
	/* A real number beyond the integers is as large as the last of them. */
	const bool is_whole = wanted == VALUE_INTEGER && kind == VALUE_REAL &&
			      (value_number(value) == (double)nearest ||
			       nearest == INT64_MAX || nearest == INT64_MIN);

	if (field->kind != FIELD_IS_VALUE && kind != wanted && !is_whole &&
	    !(wanted == VALUE_REAL && kind == VALUE_INTEGER))
		return err_set(err, EINVAL, "%s does not belong there",
			       value_kind_name(kind));
	if (kind == VALUE_STRING && !is_within(field, (int64_t)value_str(value).size, err))
		return false;
	/* A text that ends before it ends would be checked as one, and used as another. */
	if ((field->kind == FIELD_IS_TEXT || field->kind == FIELD_IS_COPY) &&
	    strlen(value_text(value)) != value_str(value).size)
		return err_set(err, EINVAL, "it has a NUL byte");
	switch (field->kind) {
	case FIELD_IS_TEXT:
		*(const char **)at = value_text(value);
		break;
	case FIELD_IS_COPY:
		copy_set(at, value_text(value), arena);
		break;
	case FIELD_IS_PATH:
		return path_read(value, at, arena, err);
	case FIELD_IS_STR:
		*(struct str *)at = value_str(value);
		break;
	case FIELD_IS_INTEGER:
	case FIELD_IS_NATURAL:
		return natural_read(field, value, at, field->size, err);
	case FIELD_IS_REAL:
		*(double *)at = value_number(value);
		break;
	case FIELD_IS_FLAG:
		*(bool *)at = value_is_true(value);
		break;
	case FIELD_IS_CHOICE:
		return choice_read(field, value, at, err);
	case FIELD_IS_NUMBERS:
	case FIELD_IS_TEXTS:
	case FIELD_IS_PATHS:
	case FIELD_IS_LIST:
		return items_read(field, value, to, arena, err);
	case FIELD_IS_OBJECT:
		return fields_read(value, field->rows, at, arena, err);
	case FIELD_IS_VALUE:
		*(const struct value **)at = value;
		break;
	}
	return true;
}

bool fields_read(const struct value *object, const struct field *fields, void *to,
		 struct arena *arena, struct err *err)
{
	bool all = true;

	for (; fields->name != NULL; fields++) {
		const struct value *value = value_member(object, fields->name);
		struct err *first = all ? err : NULL;

		if (value == NULL && fields->optional)
			continue;
		if (value == NULL)
			all = err_set(first, EINVAL, "%s is missing", fields->name);
		else if (!member_read(fields, value, to, arena, first))
			all = err_while(first, "%s", fields->name);
	}
	return all;
}
