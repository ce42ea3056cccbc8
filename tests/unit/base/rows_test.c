/* Tests of base/text/rows. */
#include "unit.h"

#include <string.h>

#include "base/text/rows.h"
#include "base/value.h"

static bool is_even(const struct row *row, const struct value *value,
		    struct rows_problem *problem)
{
	(void)row;
	for (size_t i = 0; i < value_count(value); i++) {
		if (value_str(value_item(value, i)).size % 2)
			return rows_refuse(problem, &(struct rows_place){.index = i},
					   "is %s", "odd");
	}
	return true;
}

static const struct row inner_rows[] = {
	{"text", ROW_TEXT, true, "Some text", .min = 2, .max = 3},
	{"bytes", ROW_BYTES, .max = 3},
	{0},
};

static const struct row rows[] = {
	{"path", ROW_PATH, true, "A path"},
	{"how", ROW_CHOICE, .choices = "one two"},
	{"flag", ROW_FLAG},
	{"count", ROW_COUNT},
	{"part", ROW_NUMBER, .min = -1, .max = 1.5},
	{"whole", ROW_INTEGER},
	{"time_s", ROW_SECONDS, .max = 10},
	{"texts", ROW_TEXTS, .min = 1, .max = 2},
	{"names", ROW_NAMES, .max = 4, .choices = "aa bb c/d"},
	{"pairs", ROW_WORDS, .max = 4, .check = is_even},
	{"list", ROW_LIST, .max = 2, .rows = inner_rows},
	{"object", ROW_OBJECT, .rows = inner_rows},
	{"either", ROW_EITHER, .max = 2, .rows = inner_rows},
	{"sources", ROW_SOURCES, .max = 2, .rows = inner_rows},
	{"entries", ROW_ENTRIES, .max = 2, .rows = inner_rows},
	{"checks", ROW_CHECKS, .max = 2, .rows = inner_rows},
	{"values", ROW_VALUES},
	{"any", ROW_ANY},
	{0},
};

static const struct row whole = {.kind = ROW_OBJECT, .rows = rows};

static bool fits(const char *json, struct rows_problem *problem)
{
	static struct value *value;
	struct err err;

	/* The problem borrows from the value. */
	value_free(value);
	value = NULL;
	if (json && !value_parse(str_of(json), 0, &value, &err))
		fail_msg("%s: %s", json, err.text);
	return !json || rows_check(&whole, value, problem);
}

static void what_fits_every_row_is_taken(void **state)
{
	struct rows_problem problem;

	(void)state;
	if (!fits("{\"path\": \"a\", \"how\": \"two\", \"flag\": false, \"count\": 0, \"part\": 1.5,"
		  "\"whole\": -1e20, \"time_s\": 10, \"texts\": [\"\", \"b\"],"
		  "\"names\": [\"c/d\", \"aa\"], \"pairs\": [\"bb\"],"
		  "\"list\": [{\"text\": \"ééé\"}, {\"text\": \"ab\", \"bytes\": \"\"}],"
		  "\"object\": {\"text\": \"ab\"}, \"either\": \"x\", \"sources\": [\"x\", {\"text\": "
		  "\"ab\"}], \"entries\": {\"\": {\"text\": \"ab\"}}, \"checks\": {\"a\": \"b\"},"
		  "\"values\": {\"x\": 1}, \"any\": null}",
		  &problem))
		fail_msg("%s", problem.pointer);
	assert_true(fits("{\"path\": \"a\"}", NULL));
	fits(NULL, NULL);
}

static void the_first_thing_that_does_not_fit_is_named(void **state)
{
	static const struct {
		const char *json;
		enum rows_fault fault;
		const char *pointer, *row;
	} cases[] = {
		{"[]", ROWS_KIND, "", NULL},
		{"{}", ROWS_MISSING, "", "path"},
		{"{\"path\": 1}", ROWS_KIND, "/path", "path"},
		{"{\"path\": \"\"}", ROWS_EMPTY, "/path", "path"},
		{"{\"path\": \"a\\u0000\"}", ROWS_NUL, "/path", "path"},
		{"{\"flag\": 0, \"path\": 1}", ROWS_KIND, "/flag", "flag"},
		{"{\"how\": \"three\"}", ROWS_CHOICE, "/how", "how"},
		{"{\"how\": \"\"}", ROWS_CHOICE, "/how", "how"},
		{"{\"count\": -1}", ROWS_BELOW, "/count", "count"},
		{"{\"count\": 2.0}", ROWS_KIND, "/count", "count"},
		{"{\"part\": -1.1}", ROWS_BELOW, "/part", "part"},
		{"{\"part\": 2}", ROWS_ABOVE, "/part", "part"},
		{"{\"time_s\": 0}", ROWS_BELOW, "/time_s", "time_s"},
		{"{\"time_s\": 10.5}", ROWS_ABOVE, "/time_s", "time_s"},
		{"{\"texts\": []}", ROWS_EMPTY, "/texts", "texts"},
		{"{\"texts\": [\"\", \"\", \"\"]}", ROWS_ABOVE, "/texts", "texts"},
		{"{\"texts\": [\"\", 1]}", ROWS_KIND, "/texts/1", "texts"},
		{"{\"texts\": [\"\\u0000\"]}", ROWS_NUL, "/texts/0", "texts"},
		{"{\"names\": [\"aa\", \"\"]}", ROWS_EMPTY, "/names/1", "names"},
		{"{\"names\": [\"cc\"]}", ROWS_CHOICE, "/names/0", "names"},
		{"{\"pairs\": [\"aa\", \"bbb\"]}", ROWS_OTHER, "/pairs/1", "pairs"},
		{"{\"pairs\": [\"aa\", \"bbbbb\"]}", ROWS_ABOVE, "/pairs/1", "pairs"},
		{"{\"list\": {}}", ROWS_KIND, "/list", "list"},
		{"{\"list\": [{\"text\": \"ab\"}, 1]}", ROWS_KIND, "/list/1", "list"},
		{"{\"list\": [{\"text\": \"é\"}]}", ROWS_BELOW, "/list/0/text", "text"},
		{"{\"list\": [{\"text\": \"abcd\"}]}", ROWS_ABOVE, "/list/0/text", "text"},
		{"{\"list\": [{\"bytes\": \"éé\"}]}", ROWS_ABOVE, "/list/0/bytes", "bytes"},
		{"{\"object\": {\"bytes\": \"\"}}", ROWS_MISSING, "/object", "text"},
		{"{\"either\": \"\"}", ROWS_EMPTY, "/either", "either"},
		{"{\"either\": 1}", ROWS_KIND, "/either", "either"},
		{"{\"sources\": [\"a\", []]}", ROWS_KIND, "/sources/1", "sources"},
		{"{\"entries\": {\"a~/b\": 1}}", ROWS_KIND, "/entries/a~0~1b", "entries"},
		{"{\"entries\": {\"a\": {}, \"b\": {}, \"c\": {}}}", ROWS_ABOVE,
		 "/entries", "entries"},
		{"{\"checks\": {\"a\": {\"text\": 1}}}", ROWS_KIND, "/checks/a/text", "text"},
		{"{\"values\": []}", ROWS_KIND, "/values", "values"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct rows_problem problem;

		assert_false(fits(cases[i].json, NULL));
		assert_false(fits(cases[i].json, &problem));
		if (problem.fault != cases[i].fault ||
		    strcmp(problem.pointer, cases[i].pointer) != 0)
			fail_msg("%s: %d at \"%s\"", cases[i].json, (int)problem.fault,
				 problem.pointer);
		if (cases[i].row)
			assert_string_equal(problem.row->name, cases[i].row);
		if (problem.fault == ROWS_OTHER)
			assert_string_equal(problem.why.text, "is odd");
	}
	fits(NULL, NULL);
}

static void an_unknown_name_has_its_nearest(void **state)
{
	struct rows_problem problem;

	(void)state;
	assert_false(fits("{\"object\": {\"byts\": 1}}", &problem));
	assert_int_equal(problem.fault, ROWS_UNKNOWN);
	assert_string_equal(problem.pointer, "/object");
	assert_string_equal(problem.key, "byts");
	assert_string_equal(problem.nearest, "bytes");
	assert_false(fits("{\"zzzzzzzz\": 1}", &problem));
	assert_null(problem.nearest);
	fits(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_every_row_is_taken),
		cmocka_unit_test(the_first_thing_that_does_not_fit_is_named),
		cmocka_unit_test(an_unknown_name_has_its_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
