/* fields_test: a struct is an object and back, and an object that does not fit is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json/fields.h"
#include "base/value.h"

static const char *const colours[] = {"red", NULL, "blue"};

struct point {
	char *path;
	int fd;
};

struct sample {
	const char *text, *none;
	char *copy;
	struct str str;
	int number;
	unsigned natural;
	uint16_t small[3];
	size_t small_count;
	uint64_t large;
	struct {
		double real;
		bool yes;
	} inner;
	enum colour { RED, GREEN, BLUE } colour;
	const char **texts;
	size_t text_count;
	char **paths;
	size_t path_count;
	struct point *points;
	size_t point_count;
	struct value *any;
	int kept; /* in no table */
};

static const struct point point_initial = {.fd = -1};

static const struct field point_fields[] = {
	FIELD_PATH(struct point, path, "path"),
	{0},
};

static const struct field inner_fields[] = {
	FIELD_NAMED(struct sample, inner.real, "real"),
	FIELD_NAMED(struct sample, inner.yes, "yes"),
	{0},
};

static const struct field sample_fields[] = {
	FIELD(struct sample, text, .min = 1, .max = 3),
	FIELD(struct sample, none, .optional = true),
	FIELD(struct sample, copy, .optional = true),
	FIELD(struct sample, str, .optional = true, .min = 1, .max = 1),
	FIELD(struct sample, number),
	FIELD(struct sample, natural, .min = 1, .max = 9),
	FIELD_NUMBERS(struct sample, small, small_count, "small"),
	FIELD(struct sample, large),
	FIELD_GROUP("inner", inner_fields),
	FIELD_CHOICE(struct sample, colour, "colour", colours),
	FIELD_TEXTS(struct sample, texts, text_count, "texts"),
	FIELD_PATHS(struct sample, paths, path_count, "paths"),
	FIELD_LIST(struct sample, points, point_count, "points", point_fields,
		   .initial = &point_initial, .max = 2),
	FIELD(struct sample, any, .optional = true),
	{0},
};

static const char whole[] =
	"{\"text\":\"a\",\"copy\":\"b\",\"str\":\"c\",\"number\":-1,\"natural\":9,"
	"\"small\":[1,65535],\"large\":-1,\"inner\":{\"real\":0.5,\"yes\":true},"
	"\"colour\":\"blue\",\"texts\":[\"x\",\"y\"],\"paths\":[\"/a\\\\ff\"],"
	"\"points\":[{\"path\":\"/p\"}],\"any\":[null]}";

static struct value *parsed(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

static void a_struct_is_an_object_and_back(void **state)
{
	auto_value struct value *object = parsed(whole);
	struct sample read = {.none = "stays", .kept = 7};
	struct buf text;
	struct err err;

	(void)state;
	assert_true(fields_read(object, sample_fields, &read, NULL, &err));
	assert_string_equal(read.text, "a");
	assert_string_equal(read.none, "stays");
	assert_string_equal(read.copy, "b");
	assert_true(str_is(read.str, "c"));
	assert_int_equal(read.number, -1);
	assert_int_equal(read.natural, 9);
	assert_int_equal(read.small_count, 2);
	assert_int_equal(read.small[1], 65535);
	assert_int_equal(read.large, UINT64_MAX);
	assert_true(read.inner.real == 0.5 && read.inner.yes);
	assert_int_equal(read.colour, BLUE);
	assert_string_equal(read.texts[1], "y");
	assert_null(read.texts[2]);
	assert_string_equal(read.paths[0], "/a\xff");
	assert_int_equal(read.point_count, 1);
	assert_string_equal(read.points[0].path, "/p");
	assert_int_equal(read.points[0].fd, -1);
	assert_int_equal(value_count(read.any), 1);
	assert_int_equal(read.kept, 7);
	read.none = NULL;
	auto_value struct value *printed = fields_print(sample_fields, &read);
	buf_init(&text, 1 << 10);
	assert_true(value_print(printed, 0, &text));
	assert_string_equal(text.data, whole);
	buf_fini(&text);
	value_set(object, "number", parsed("3.0"));
	fields_free(sample_fields, &read);
	assert_true(fields_read(object, sample_fields, &read, NULL, NULL));
	assert_int_equal(read.number, 3);
	fields_free(sample_fields, &read);
	assert_null(read.copy);
	assert_null(read.points);
	assert_int_equal(read.point_count + read.path_count + read.text_count, 0);
}

static void all_memory_can_be_an_arenas(void **state)
{
	auto_value struct value *object = parsed(whole);
	struct sample read = {0};
	struct arena arena;

	(void)state;
	arena_init(&arena);
	assert_true(fields_read(object, sample_fields, &read, &arena, NULL));
	assert_string_equal(read.points[0].path, "/p");
	arena_fini(&arena);
}

static void a_member_that_does_not_fit_is_told_and_the_rest_is_read(void **state)
{
	static const struct {
		const char *member, *value, *told;
	} odd[] = {
		{"text", "1", "text: integer does not belong there"},
		{"text", "null", "text: null does not belong there"},
		{"text", "\"\"", "text: 0 is not within 1 and 3"},
		{"text", "\"abcd\"", "text: 4 is not within 1 and 3"},
		{"text", "\"a\\u0000\"", "text: it has a NUL byte"},
		{"copy", "\"a\\u0000b\"", "copy: it has a NUL byte"},
		{"texts", "[\"a\\u0000\"]", "texts: 0: it has a NUL byte"},
		{"paths", "[\"/a\\u0000\"]", "paths: 0: it is no path in escaped form"},
		{"str", "\"cc\"", "str: 2 is not within 1 and 1"},
		{"copy", "[]", "copy: array does not belong there"},
		{"number", "4294967296", "number: 4294967296 is too large"},
		{"number", "2147483648", "number: 2147483648 is too large"},
		{"number", "1e30", "number: 9223372036854775807 is too large"},
		{"number", "0.5", "number: number does not belong there"},
		{"natural", "0", "natural: 0 is not within 1 and 9"},
		{"natural", "10", "natural: 10 is not within 1 and 9"},
		{"small", "[65536]", "small: 0: it is too large or below 0"},
		{"small", "[1,-1]", "small: 1: it is too large or below 0"},
		{"small", "[1,2,3,4]", "small: it has too many items"},
		{"small", "[true]", "small: 0: boolean does not belong there"},
		{"inner", "{\"yes\":true}", "inner: real is missing"},
		{"inner", "{\"real\":1,\"yes\":1}",
		 "inner: yes: integer does not belong there"},
		{"colour", "\"green\"", "colour: it is none of its words"},
		{"colour", "2", "colour: integer does not belong there"},
		{"texts", "[\"a\",null]", "texts: 1: null does not belong there"},
		{"paths", "[\"\\\\\"]", "paths: 0: it is no path in escaped form"},
		{"points", "[{}]", "points: 0: path is missing"},
		{"points", "[{\"path\":\"/\"},7]",
		 "points: 1: integer does not belong there"},
		{"points", "[{},{},{}]", "points: 3 is not within 0 and 2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		auto_value struct value *object = parsed(whole);
		struct sample read = {.text = "stays", .number = 3, .colour = RED};
		struct err err = {0};

		value_set(object, odd[i].member, parsed(odd[i].value));
		assert_false(fields_read(object, sample_fields, &read, NULL, &err));
		assert_string_equal(err.text, odd[i].told);
		assert_false(strcmp(odd[i].member, "text") == 0 &&
			     strcmp(read.text, "stays") != 0);
		/* No half of an item stays in a list. */
		assert_int_equal(read.small_count,
				 strcmp(odd[i].member, "small") == 0 ? 0 : 2);
		assert_int_equal(read.text_count,
				 strcmp(odd[i].member, "texts") == 0 ? 0 : 2);
		assert_int_equal(read.path_count,
				 strcmp(odd[i].member, "paths") == 0 ? 0 : 1);
		assert_int_equal(read.point_count,
				 strcmp(odd[i].member, "points") == 0 ? 0 : 1);
		assert_int_equal(read.large, UINT64_MAX);
		assert_int_equal(value_count(read.any), 1);
		fields_free(sample_fields, &read);
	}
}

static void only_optional_members_may_be_missing(void **state)
{
	(void)state;
	for (const struct field *at = sample_fields; at->name != NULL; at++) {
		auto_value struct value *object = parsed(whole);
		struct sample read = {0};
		struct err err = {0};

		if (value_member(object, at->name) != NULL)
			value_remove(object, at->name);
		assert_int_equal(fields_read(object, sample_fields, &read, NULL, &err),
				 at->optional);
		assert_true(at->optional ||
			    (strncmp(err.text, at->name, strlen(at->name)) == 0 &&
			     strstr(err.text, " is missing") != NULL));
		fields_free(sample_fields, &read);
	}
	struct sample read = {0};
	assert_false(fields_read(NULL, sample_fields, &read, NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_struct_is_an_object_and_back),
		cmocka_unit_test(all_memory_can_be_an_arenas),
		cmocka_unit_test(a_member_that_does_not_fit_is_told_and_the_rest_is_read),
		cmocka_unit_test(only_optional_members_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
