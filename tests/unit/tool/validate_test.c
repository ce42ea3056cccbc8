/*
 * validate: each keyword by a row that fits and one that does not, and the bounds of
 * work.
 */
#include "tool/validate.h"

#include "base/buf.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct value *value_of(const char *text)
{
	struct value *value = NULL;
	struct err err = {0};

	if (!value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

/* Does VALUE fit? SENTENCE is what does not hold, and where. */
static bool check(const struct value *schema, const struct value *value, struct buf *sentence)
{
	struct validate_problem problem;

	if (validate_value(schema, value, &problem))
		return true;
	(void)buf_addf(sentence, "%s %s",
		       problem.pointer[0] ? problem.pointer : "the value", problem.rule);
	if (strchr(".?!", sentence->data[sentence->size - 1]) == NULL)
		(void)buf_addc(sentence, '.');
	return false;
}

struct row {
	const char *schema, *value;
	const char *error; /* NULL: it fits */
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		auto_value struct value *schema = value_of(rows[i].schema);
		auto_value struct value *value = value_of(rows[i].value);
		struct buf sentence;
		bool fits;

		buf_init(&sentence, 1 << 16);
		fits = check(schema, value, &sentence);
		if (fits != !rows[i].error)
			fail_msg("%s for %s: %s", rows[i].schema, rows[i].value,
				 sentence.data);
		assert_int_equal(fits, sentence.size == 0);
		if (rows[i].error)
			assert_string_equal(sentence.data, rows[i].error);
		assert_true(fits == validate_value(schema, value, NULL));
		buf_fini(&sentence);
	}
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void types_are_told_apart(void **state)
{
	static const struct row rows[] = {
		{"{}", "5", NULL},
		{"true", "5", NULL},
		{"false", "5", "the value is not allowed here."},
		{"{\"type\": \"string\"}", "\"\"", NULL},
		{"{\"type\": \"string\"}", "5", "the value must be a string, not 5."},
		{"{\"type\": \"integer\"}", "5.0", NULL},
		{"{\"type\": \"integer\"}", "5.5", "the value must be an integer, not 5.5."},
		{"{\"type\": \"integer\"}", "\"5\"",
		 "the value must be an integer, not the string \"5\"."},
		{"{\"type\": \"number\"}", "5", NULL},
		{"{\"type\": \"boolean\"}", "0", "the value must be true or false, not 0."},
		{"{\"type\": \"null\"}", "null", NULL},
		{"{\"type\": \"null\"}", "[1]", "the value must be null, not a list of 1."},
		{"{\"type\": [\"string\", \"null\"]}", "null", NULL},
		{"{\"type\": [\"string\", \"array\"]}", "{}",
		 "the value must be a string or a list, not an object."},
		{"{\"type\": 7}", "{}", NULL},
	};

	(void)state;
	CHECK(rows);
}

static void choices_and_constants_hold(void **state)
{
	static const struct row rows[] = {
		{"{\"enum\": [\"a\", 1, null, [1.0]]}", "[1]", NULL},
		{"{\"enum\": [\"lines\", \"files\"]}", "\"fiels\"",
		 "the value must be one of \"lines\", \"files\", not the string \"fiels\"; did you mean "
		 "\"files\"?"},
		{"{\"enum\": []}", "1", "the value must be one of , not 1."},
		{"{\"const\": 1}", "1.0", NULL},
		{"{\"const\": {\"a\": 1}}", "{\"a\": 2}",
		 "the value must be an object, not an object."},
		{"{\"const\": false}", "0", "the value must be false, not 0."},
	};

	(void)state;
	CHECK(rows);
}

static void numbers_keep_their_bounds(void **state)
{
	static const struct row rows[] = {
		{"{\"minimum\": 1}", "1", NULL},
		{"{\"minimum\": 1}", "0", "the value must be at least 1, not 0."},
		{"{\"maximum\": 2.5}", "2.5", NULL},
		{"{\"maximum\": 2.5}", "3", "the value must be at most 2.5, not 3."},
		{"{\"exclusiveMinimum\": 0}", "0", "the value must be more than 0, not 0."},
		{"{\"exclusiveMaximum\": 1}", "1", "the value must be less than 1, not 1."},
		{"{\"maximum\": 9007199254740992}", "9007199254740993",
		 "the value must be at most 9007199254740992, not 9007199254740993."},
		{"{\"multipleOf\": 3}", "9", NULL},
		{"{\"multipleOf\": 3}", "10", "the value must be a multiple of 3, not 10."},
		{"{\"multipleOf\": 0.0001}", "0.0075", NULL},
		{"{\"multipleOf\": 0.01}", "0.0075",
		 "the value must be a multiple of 0.01, not 0.0075."},
		{"{\"multipleOf\": 0.123456789}", "1e308",
		 "the value must be a multiple of 0.123456789, not 1e+308."},
		{"{\"multipleOf\": 1}", "1e-20",
		 "the value must be a multiple of 1, not 1e-20."},
		{"{\"multipleOf\": 0}", "5", NULL},
		{"{\"multipleOf\": -1}", "-9223372036854775808", NULL},
		{"{\"minimum\": \"x\", \"minLength\": 9}", "5", NULL},
	};

	(void)state;
	CHECK(rows);
}

static void strings_are_counted_in_characters(void **state)
{
	static const struct row rows[] = {
		{"{\"minLength\": 2}", "\"äö\"", NULL},
		{"{\"maxLength\": 2}", "\"äö\"", NULL},
		{"{\"maxLength\": 1}", "\"äö\"",
		 "the value must have at most 1 characters, not 2."},
		{"{\"minLength\": 1}", "\"\"", "the value may not be empty."},
		{"{\"minLength\": 3}", "\"ab\"",
		 "the value must have at least 3 characters, not 2."},
		{"{\"pattern\": \"^a+$\"}", "\"aaa\"", NULL},
		{"{\"pattern\": \"b\"}", "\"abc\"", NULL},
		{"{\"pattern\": \"^a+$\"}", "\"ab\"",
		 "the value must match the pattern \"^a+$\", unlike the string \"ab\"."},
		{"{\"pattern\": \"^a+$\"}", "5", NULL},
	};

	(void)state;
	CHECK(rows);
}

static void lists_keep_their_form(void **state)
{
	static const struct row rows[] = {
		{"{\"items\": {\"type\": \"integer\"}}", "[1, \"x\"]",
		 "/1 must be an integer, not the string \"x\"."},
		{"{\"minItems\": 1}", "[]", "the value may not be empty."},
		{"{\"minItems\": 2}", "[1]", "the value must hold at least 2 items, not 1."},
		{"{\"maxItems\": 1}", "[1, 2]",
		 "the value must hold at most 1 items, not 2."},
		{"{\"uniqueItems\": true}", "[1, \"1\", true, [1], {\"a\": 1, \"b\": 2}]",
		 NULL},
		{"{\"uniqueItems\": true}", "[1, 2, 1.0]",
		 "the value may not hold the same item twice: 0 and 2 are equal."},
		{"{\"uniqueItems\": true}", "[{\"a\": 1, \"b\": 2}, {\"b\": 2, \"a\": 1}]",
		 "the value may not hold the same item twice: 0 and 1 are equal."},
		{"{\"prefixItems\": [{\"type\": \"string\"}], \"items\": false}",
		 "[\"a\"]", NULL},
		{"{\"prefixItems\": [{\"type\": \"string\"}], \"items\": false}",
		 "[\"a\", 2]", "/1 is not allowed here."},
		{"{\"items\": [{\"type\": \"string\"}], \"additionalItems\": {\"type\": \"null\"}}",
		 "[\"a\", 2]", "/1 must be null, not 2."},
		{"{\"contains\": {\"const\": 1}}", "[2, 1]", NULL},
		{"{\"contains\": {\"const\": 1}}", "[]",
		 "the value must hold at least 1 items of the wanted form, not 0."},
		{"{\"contains\": {\"const\": 1}, \"minContains\": 0}", "[]", NULL},
		{"{\"contains\": {\"const\": 1}, \"maxContains\": 1}", "[1, 1]",
		 "the value must hold at most 1 items of the wanted form, not 2."},
	};

	(void)state;
	CHECK(rows);
}

static void objects_keep_their_members(void **state)
{
	static const struct row rows[] = {
		{"{\"properties\": {\"a\": {\"type\": \"string\"}}}", "{\"a\": 1}",
		 "/a must be a string, not 1."},
		{"{\"properties\": {\"path\": {}, \"end\": {}}, \"additionalProperties\": false}",
		 "{\"pth\": 1}",
		 "the value does not take \"pth\"; did you mean \"path\"? It takes path, end."},
		{"{\"additionalProperties\": false}", "{\"x\": 1}",
		 "the value does not take \"x\". It takes nothing."},
		{"{\"additionalProperties\": {\"type\": \"null\"}}", "{\"x\": 1}",
		 "/x must be null, not 1."},
		{"{\"patternProperties\": {\"^x-\": {\"type\": \"string\"}},"
		 " \"additionalProperties\": false}",
		 "{\"x-a\": \"\"}", NULL},
		{"{\"patternProperties\": {\"^x-\": {\"type\": \"string\"}}}",
		 "{\"x-a/~b\": 1}", "/x-a~1~0b must be a string, not 1."},
		{"{\"required\": [\"a\"], \"properties\": {\"a\": {\"description\": \"File to read\"}}}",
		 "{}", "the value needs \"a\" (File to read)."},
		{"{\"required\": [\"a\\u0000b\"]}", "{\"a\": 1}",
		 "the value needs \"a\\u0000b\"."},
		{"{\"required\": [\"a\"]}", "[]", NULL},
		{"{\"minProperties\": 1}", "{}",
		 "the value must have at least 1 members, not 0."},
		{"{\"maxProperties\": 1}", "{\"a\": 1, \"b\": 2}",
		 "the value must have at most 1 members, not 2."},
		{"{\"propertyNames\": {\"maxLength\": 1}}", "{\"ab\": 1}",
		 "the value may not have a member named \"ab\"."},
		{"{\"dependentRequired\": {\"a\": [\"b\"]}}", "{\"a\": 1}",
		 "the value needs \"b\" beside \"a\"."},
		{"{\"dependentSchemas\": {\"a\": {\"required\": [\"c\"]}}}", "{\"a\": 1}",
		 "the value needs \"c\"."},
		{"{\"dependencies\": {\"a\": [\"b\"], \"c\": {\"required\": [\"d\"]}}}",
		 "{\"c\": 1}", "the value needs \"d\"."},
		{"{\"properties\": {\"e\": {\"items\": {\"required\": [\"old\"]}}}}",
		 "{\"e\": [{}]}", "/e/0 needs \"old\"."},
	};

	(void)state;
	CHECK(rows);
}

static void combinations_hold(void **state)
{
	static const struct row rows[] = {
		{"{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"null\"}]}", "null", NULL},
		{"{\"anyOf\": [{\"type\": \"string\"},"
		 " {\"properties\": {\"a\": {\"type\": \"null\"}}}]}",
		 "{\"a\": 1}",
		 "the value fits none of the 2 forms allowed; the nearest says: /a must be null, not 1."},
		{"{\"oneOf\": [{\"minimum\": 1}, {\"maximum\": 5}]}", "3",
		 "the value must fit exactly one of the 2 forms allowed, and fits more."},
		{"{\"oneOf\": [{\"minimum\": 1}, {\"maximum\": 0}]}", "3", NULL},
		{"{\"allOf\": [{\"minimum\": 1}, {\"maximum\": 2}]}", "3",
		 "the value must be at most 2, not 3."},
		{"{\"not\": {\"type\": \"string\"}}", "3", NULL},
		{"{\"not\": {\"type\": \"string\"}}", "\"\"",
		 "the value has a form that is not allowed."},
		{"{\"if\": {\"minimum\": 5}, \"then\": {\"maximum\": 9}, \"else\": {\"const\": 0}}",
		 "7", NULL},
		{"{\"if\": {\"minimum\": 5}, \"then\": {\"maximum\": 9}, \"else\": {\"const\": 0}}",
		 "3", "the value must be 0, not 3."},
		{"{\"if\": {\"minimum\": 5}, \"then\": {\"maximum\": 9}}", "10",
		 "the value must be at most 9, not 10."},
	};

	(void)state;
	CHECK(rows);
}

static void references_stay_in_the_schema(void **state)
{
	static const struct row rows[] = {
		{"{\"$defs\": {\"n\": {\"type\": \"null\"}}, \"$ref\": \"#/$defs/n\"}",
		 "1", "the value must be null, not 1."},
		{"{\"properties\": {\"next\": {\"$ref\": \"#\"}}, \"additionalProperties\": false}",
		 "{\"next\": {\"next\": {\"x\": 1}}}",
		 "/next/next does not take \"x\". It takes next."},
		{"{\"definitions\": {\"a~b/c%d\": {\"const\": 1}},"
		 " \"$ref\": \"#/definitions/a~0b~1c%25d\"}",
		 "1", NULL},
		{"{\"allOf\": [{\"const\": 1}, {\"$ref\": \"#/allOf/0\"}]}", "1", NULL},
		{"{\"$ref\": \"https://example.org/x\"}", "1",
		 "the value cannot be checked: the schema refers to "
		 "\"https://example.org/x\", which is no part of it, and nothing is fetched."},
		{"{\"not\": {\"$ref\": \"#/$defs/none\"}}", "1",
		 "the value cannot be checked: the schema has no definition \"#/$defs/none\"."},
		{"{\"anyOf\": [true, {\"pattern\": \"(\"}], \"unevaluatedItems\": false}",
		 "[]", NULL},
		{"{\"not\": {\"pattern\": \"(\"}}", "\"\"",
		 "the value cannot be checked: the schema's pattern is wrong: regular expression, "
		 "character position 2: missing closing parenthesis."},
		{"{\"$ref\": \"#/$defs/none\"}", "1",
		 "the value cannot be checked: the schema has no definition \"#/$defs/none\"."},
		{"{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"definitions\": {\"a\": {}},"
		 " \"properties\": {\"x\": {\"$ref\": \"#/definitions/a\", \"type\": \"null\"}}}",
		 "{\"x\": 1}", NULL},
		{"{\"$defs\": {\"a\": {}}, \"$ref\": \"#/$defs/a\", \"type\": \"null\"}",
		 "1", "the value must be null, not 1."},
	};

	(void)state;
	CHECK(rows);
}

static void parts_have_names_of_their_own(void **state)
{
	static const struct row rows[] = {
		{"{\"$ref\": \"#n\", \"$defs\": {\"a\": {\"$anchor\": \"n\", \"type\": \"null\"}}}",
		 "1", "the value must be null, not 1."},
		{"{\"$id\": \"https://x.example/a/\", \"$ref\": \"../a/b\","
		 " \"$defs\": {\"b\": {\"$id\": \"./b\", \"type\": \"null\"}}}",
		 "1", "the value must be null, not 1."},
		{"{\"const\": {\"$anchor\": \"n\"}, \"$ref\": \"#n\"}", "1",
		 "the value cannot be checked: the schema has no definition \"#n\"."},
		{"{\"$schema\": \"http://json-schema.org/draft-07/schema\", \"$ref\": \"#n\","
		 " \"definitions\": {\"a\": {\"$id\": \"#n\", \"type\": \"null\"}}}",
		 "1", "the value must be null, not 1."},
		/* A list of a tree: what is said outermost of "node" holds in the tree too. */
		{"{\"$id\": \"strict\", \"$dynamicAnchor\": \"node\", \"$ref\": \"tree\","
		 " \"unevaluatedProperties\": false, \"$defs\": {\"tree\": {\"$id\": \"tree\","
		 " \"$dynamicAnchor\": \"node\", \"properties\": {\"data\": true, \"children\":"
		 " {\"items\": {\"$dynamicRef\": \"#node\"}}}}}}",
		 "{\"children\": [{\"daat\": 1}]}", "/children/0 does not take \"daat\"."},
	};

	(void)state;
	CHECK(rows);
}

static void what_no_keyword_looked_at_can_be_refused(void **state)
{
	static const struct row rows[] = {
		{"{\"allOf\": [{\"properties\": {\"a\": true}}], \"unevaluatedProperties\": false}",
		 "{\"a\": 1}", NULL},
		{"{\"allOf\": [{\"properties\": {\"a\": true}}], \"unevaluatedProperties\": false}",
		 "{\"a\": 1, \"b\": 2}", "the value does not take \"b\"."},
		{"{\"anyOf\": [{\"properties\": {\"a\": {\"const\": 1}}, \"required\": [\"a\"]},"
		 " {\"properties\": {\"b\": true}}], \"unevaluatedProperties\": false}",
		 "{\"a\": 2, \"b\": 2}", "the value does not take \"a\"."},
		{"{\"not\": {\"properties\": {\"a\": false}},"
		 " \"unevaluatedProperties\": {\"type\": \"null\"}}",
		 "{\"a\": 2}", "/a must be null, not 2."},
		{"{\"prefixItems\": [true], \"contains\": {\"const\": 3},"
		 " \"unevaluatedItems\": false}",
		 "[1, 3]", NULL},
		{"{\"prefixItems\": [true], \"unevaluatedItems\": {\"const\": 3}}",
		 "[1, 2]", "/1 must be 3, not 2."},
	};

	(void)state;
	CHECK(rows);
}

static void unknown_dialects_are_refused(void **state)
{
	static const struct row rows[] = {
		{"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"type\": \"null\"}",
		 "null", NULL},
		{"{\"$schema\": \"https://json-schema.org/draft/2019-09/schema\"}", "1",
		 "the value cannot be checked: the schema's dialect "
		 "\"https://json-schema.org/draft/2019-09/schema\" is not known; known are 2020-12 "
		 "and draft-07."},
		{"{\"not\": {\"$id\": \"a\", \"$schema\": \"https://x.example\"}}", "1",
		 "the value cannot be checked: the schema's dialect \"https://x.example\" is not "
		 "known; known are 2020-12 and draft-07."},
	};

	(void)state;
	CHECK(rows);
}

static void documents_are_those_handed_in(void **state)
{
	auto_value struct value *documents = value_of(
		"{\"https://x.example/n\": {\"$defs\": {\"a\": {\"type\": \"null\"}}},"
		" \"https://x.example/own\": {\"$schema\":"
		" \"https://json-schema.org/draft/2020-12/schema\", \"$vocabulary\":"
		" {\"https://json-schema.org/draft/2020-12/vocab/core\": true}},"
		" \"https://x.example/odd\": {\"$schema\":"
		" \"https://json-schema.org/draft/2020-12/schema\", \"$vocabulary\":"
		" {\"https://x.example/vocab\": true}}}");
	auto_value struct value *named =
		value_of("{\"$ref\": \"https://x.example/n#/$defs/a\"}");
	auto_value struct value *lenient =
		value_of("{\"$schema\": \"https://x.example/own\", \"type\": \"null\"}");
	auto_value struct value *odd = value_of("{\"$schema\": \"https://x.example/odd\"}");
	auto_value struct value *one = value_of("1");
	auto_value struct value *null = value_of("null");
	const struct validate_options options = {.documents = documents};
	struct validate_problem problem = {0};

	(void)state;
	assert_true(validate_with(&options, named, null, &problem));
	assert_false(validate_with(&options, named, one, &problem));
	assert_string_equal(problem.rule, "must be null, not 1");
	assert_true(validate_with(&options, lenient, one, &problem));
	assert_false(validate_with(&options, odd, one, &problem));
	assert_non_null(strstr(problem.rule, "needs rules that are not known here"));
}

static void too_much_work_is_a_refusal_not_a_hang(void **state)
{
	static const char *const schemas[] = {
		"{\"$ref\": \"#\"}",
		"{\"allOf\": [{\"$ref\": \"#\"}]}",
		"{\"anyOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}",
		"{\"not\": {\"$ref\": \"#\"}}",
		"{\"not\": {\"not\": {\"anyOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}}}",
		"{\"if\": {\"$ref\": \"#\"}, \"else\": true}",
		"{\"oneOf\": [{\"$ref\": \"#\"}, true]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		auto_value struct value *schema = value_of(schemas[i]);
		auto_value struct value *value = value_of("1");
		struct validate_problem problem = {0};

		assert_false(validate_value(schema, value, &problem));
		assert_non_null(strstr(problem.rule, "cannot be checked: its schema nests"));
	}
}

static void a_slow_pattern_ends(void **state)
{
	/* Each item stays under the bound of one search; all of them do not. */
	auto_value struct value *schema =
		value_of("{\"items\": {\"pattern\": \"^(?:(a|a?)+b|a+!)$\"}}");
	auto_value struct value *list = value_new_array();
	struct validate_problem problem = {0};

	(void)state;
	for (int i = 0; i < 10000; i++)
		value_append(list, value_new_text("aaaaaaaaaaaaaaaaaa!"));
	assert_false(validate_value(schema, list, &problem));
	assert_string_equal(problem.rule,
			    "takes too long to compare with the schema's pattern");
}

static void a_long_list_without_twins_is_no_quadratic_work(void **state)
{
	auto_value struct value *schema = value_of("{\"uniqueItems\": true}");
	auto_value struct value *list = value_new_array();

	(void)state;
	for (int64_t i = 0; i < 100000; i++)
		value_append(list, value_new_integer(i));
	assert_true(validate_value(schema, list, NULL));
}

static void a_deep_value_is_checked_to_its_end(void **state)
{
	auto_value struct value *schema = value_of(
		"{\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"array\", \"items\": "
		"{\"$ref\": \"#\"}}]}");
	struct value *deep = value_new_null();
	struct validate_problem problem = {0};

	(void)state;
	for (int i = 0; i < VALUE_DEPTH_MAX - 2; i++) {
		struct value *list = value_new_array();

		value_append(list, deep);
		deep = list;
	}
	assert_true(validate_value(schema, deep, &problem));
	value_free(deep);
}

static void long_texts_are_cut(void **state)
{
	auto_value struct value *schema = value_of("{\"type\": \"integer\"}");
	struct validate_problem problem = {0};
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	auto_value struct value *value = value_new_text(text);

	assert_false(validate_value(schema, value, &problem));
	assert_true(strlen(problem.rule) < 200);
	assert_string_equal(problem.keyword, "type");
}

/* A name with a NUL before its colon has no scheme: it is a path beside its base. */
static void a_nul_is_no_character_of_a_scheme(void **state)
{
	struct buf uri;

	(void)state;
	buf_init(&uri, VALIDATE_URI_MAX);
	assert_true(validate_index_uri_resolve(STR("http://host/folder/file"),
					       STR("a\0b:c"), &uri));
	assert_true(str_equal(buf_str(&uri), STR("http://host/folder/a\0b:c")));
	buf_clear(&uri);
	assert_true(validate_index_uri_resolve(STR("http://host/folder/file"),
					       STR("a+-.1:c"), &uri));
	assert_true(str_equal(buf_str(&uri), STR("a+-.1:c")));
	buf_fini(&uri);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_told_apart),
		cmocka_unit_test(choices_and_constants_hold),
		cmocka_unit_test(numbers_keep_their_bounds),
		cmocka_unit_test(strings_are_counted_in_characters),
		cmocka_unit_test(lists_keep_their_form),
		cmocka_unit_test(objects_keep_their_members),
		cmocka_unit_test(combinations_hold),
		cmocka_unit_test(references_stay_in_the_schema),
		cmocka_unit_test(a_nul_is_no_character_of_a_scheme),
		cmocka_unit_test(parts_have_names_of_their_own),
		cmocka_unit_test(what_no_keyword_looked_at_can_be_refused),
		cmocka_unit_test(unknown_dialects_are_refused),
		cmocka_unit_test(documents_are_those_handed_in),
		cmocka_unit_test(a_slow_pattern_ends),
		cmocka_unit_test(too_much_work_is_a_refusal_not_a_hang),
		cmocka_unit_test(a_long_list_without_twins_is_no_quadratic_work),
		cmocka_unit_test(a_deep_value_is_checked_to_its_end),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
