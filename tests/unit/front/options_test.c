/* options: the command line by rows, as tables. */
#include "front/verb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/config.h"
#include "sandbox/probe.h"

enum { WORDS_MAX = 12 };

static const struct option_row rows[] = {
	{"timeout", 't', OPTION_SECONDS, "S", "seconds"},
	{"money", 0, OPTION_AMOUNT, "N", "an amount"},
	{"limit", 'n', OPTION_COUNT, "N", "how many"},
	{"json", 0, OPTION_FLAG, NULL, "as JSON"},
	{"quiet", 'q', OPTION_FLAG, NULL, "say less"},
	{"write", 'w', OPTION_TEXTS, "DIR", "several times"},
	{"reason", 0, OPTION_WORDS, "TEXT", "may be empty"},
	{"report", 0, OPTION_EITHER, "FILE", "with or without a value",
	 .alone = "json quiet"},
	OPTION_ROW_WORKSPACE,
	{0},
};

/* The words that are no options, joined by '|'; or the sentence of the refusal. */
static const char *parsed(const char *const *words, bool words_end_it,
			  char text[ERR_TEXT_MAX])
{
	struct options options;
	struct err err = {0};

	text[0] = '\0';
	if (!options_parse(&options, rows, words, words_end_it, &err))
		(void)snprintf(text, ERR_TEXT_MAX, "%s", err.text);
	for (size_t i = 0, at = 0; err.text[0] == '\0' && i < options.word_count; i++)
		at += (size_t)snprintf(text + at, ERR_TEXT_MAX - at, "%s%s",
				       i > 0 ? "|" : "", options.words[i]);
	options_fini(&options);
	return text;
}

static void words_are_what_is_no_option(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		bool words_end_it;
		const char *expected;
	} table[] = {
		{{NULL}, false, ""},
		{{"a", "b", NULL}, false, "a|b"},
		{{"--json", "a", "-q", "b", NULL}, false, "a|b"},
		{{"a", "--json", NULL}, true, "a|--json"},
		{{"--json", "a", "--nonsense", NULL}, true, "a|--nonsense"},
		{{"--", "--json", "-x", NULL}, false, "--json|-x"},
		{{"--report", "f", "a", NULL}, true, "a"},
		{{"--report=f", "a", NULL}, true, "a"},
		{{"--json", "--report", "a", NULL}, true, "a"},
		{{"-q", "--report=f", "a", NULL}, true, "a"},
		{{"--report", "--json", "a", NULL}, true, "a"},
		{{"--report", "--", "a", NULL}, true, "a"},
		{{"a", "--report", NULL}, false, "a"},
		{{"--report=", NULL}, false, "--report: its value is empty: --report FILE"},
		{{"a", "--", "--", NULL}, false, "a|--"},
		{{"a", "--", "b", NULL}, true, "a|--|b"},
		{{"-", NULL}, false, "-"},
		{{"--timeout", "1.5", "a", NULL}, false, "a"},
		{{"--timeout=1.5", "a", NULL}, false, "a"},
		{{"-t", "2", "a", NULL}, false, "a"},
		{{"-t2", "a", NULL}, false, "a"},
		{{"-t=2", "a", NULL}, false, "a"},
		{{"-C", "--json", "a", NULL}, false, "a"},
		{{"--reason=", "a", NULL}, false, "a"},
	};
	char text[ERR_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_string_equal(parsed(table[i].words, table[i].words_end_it, text),
				    table[i].expected);
}

static void refusals_name_what_is_wrong(void **state)
{
	static const struct {
		const char *words[WORDS_MAX];
		const char *part;
	} table[] = {
		{{"--jsn", NULL}, "did you mean --json?"},
		{{"--jsn=1", NULL}, "did you mean --json?"},
		{{"--zzzzzz", NULL}, "no option --zzzzzz; --help lists them, and words that"},
		{{"-x", NULL}, "no option -x"},
		{{"--json=1", NULL}, "--json takes no value"},
		{{"-q1", NULL}, "--quiet takes no value"},
		{{"--timeout", NULL}, "--timeout needs a value: --timeout S"},
		{{"a", "-C", NULL}, "-C needs a value: --workspace DIR"},
		{{"--workspace=", "a", NULL},
		 "--workspace: its value is empty: --workspace DIR"},
		{{"-C", "", NULL}, "--workspace: its value is empty: --workspace DIR"},
		{{"--timeout", "soon", NULL}, "--timeout: "},
		{{"--timeout=", NULL}, "--timeout: "},
		{{"--limit", "0", NULL}, "0 is too small"},
		{{"--limit", "-1", NULL}, "--limit: "},
		{{"--limit", "99999999999999999999", NULL}, "--limit: "},
	};
	char text[ERR_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strstr(parsed(table[i].words, false, text), table[i].part) == NULL)
			fail_msg("%s: %s", table[i].words[0], text);
}

static void values_are_read_by_name(void **state)
{
	static const char *const words[] = {"--timeout", "1.5",  "-n",     "7",
					    "-C",        "here", "--json", NULL};
	struct options options;
	struct err err = {0};

	(void)state;
	assert_true(options_parse(&options, rows, words, false, &err));
	assert_true(options_seconds(&options, "timeout", 9) == 1.5);
	assert_int_equal(options_count(&options, "limit", 9), 7);
	assert_string_equal(options_text(&options, "workspace"), "here");
	assert_true(options_given(&options, "json"));
	assert_false(options_given(&options, "quiet"));
	options_fini(&options);
}

static void amounts_are_decimal_numbers_above_nothing(void **state)
{
	static const char *const wrong[] = {"0", "-1", "1e3",   "inf",
					    "",  ".",  "1.2.3", "$1"};
	static const char *const right[] = {"--money", "0.25", NULL};
	struct options options;
	struct err err = {0};

	(void)state;
	assert_true(options_parse(&options, rows, right, false, &err));
	assert_true(options_amount(&options, "money", 9) == 0.25);
	options_fini(&options);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *const words[] = {"--money", wrong[i], NULL};

		assert_false(options_parse(&options, rows, words, false, &err));
		assert_non_null(strstr(err.text, "above 0"));
		options_fini(&options);
	}
}

static void what_is_absent_is_what_the_caller_says(void **state)
{
	static const char *const words[] = {"word", NULL};
	struct options options;
	struct err err = {0};

	(void)state;
	assert_true(options_parse(&options, rows, words, false, &err));
	assert_true(options_seconds(&options, "timeout", 9) == 9.0);
	assert_true(options_amount(&options, "money", 9) == 9.0);
	assert_int_equal(options_count(&options, "limit", 9), 9);
	assert_null(options_text(&options, "workspace"));
	options_fini(&options);
}

static void the_last_of_two_wins(void **state)
{
	static const char *const words[] = {"-n", "1", "--limit=2", NULL};
	struct options options;
	struct err err = {0};

	(void)state;
	assert_true(options_parse(&options, rows, words, false, &err));
	assert_int_equal(options_count(&options, "limit", 9), 2);
	options_fini(&options);
}

static void a_repeatable_option_keeps_all(void **state)
{
	static const char *const words[] = {"-w", "a", "--write=b", "--write", "c", NULL};
	struct options options;
	struct err err = {0};
	const char *const *texts;

	(void)state;
	assert_true(options_parse(&options, rows, words, false, &err));
	texts = options_texts(&options, "write");
	assert_string_equal(texts[0], "a");
	assert_string_equal(texts[1], "b");
	assert_string_equal(texts[2], "c");
	assert_null(texts[3]);
	assert_true(options_given(&options, "write"));
	options_fini(&options);
	assert_true(options_parse(&options, rows, words + 5, false, &err));
	assert_null(options_texts(&options, "write")[0]);
	options_fini(&options);
}

/* The configuration stands below what knows the levels, and has their names once more. */
static void levels_are_those_of_the_configuration(void **state)
{
	static const struct option_row level[] = {
		{"level", 0, OPTION_LEVEL, "L", "a level"},
		{0},
	};
	const struct row *row = keys_config;
	struct str rest, name;
	size_t count = 0;

	(void)state;
	while (row->name != NULL && strcmp(row->name, "minimum_level") != 0)
		row++;
	assert_non_null(row->name);
	rest = str_of(row->choices);
	while (str_next_word(&rest, &name)) {
		auto_config struct config *config = NULL;
		struct options options;
		char text[8], root[64];
		const char *words[] = {"--level", text, NULL};

		(void)snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
		(void)snprintf(root, sizeof(root), "{\"minimum_level\": \"%s\"}", text);
		assert_true(config_parse(str_of(root), "c", &config, NULL));
		assert_true(options_parse(&options, level, words, false, NULL));
		assert_int_equal(options_count(&options, "level", UINT64_MAX),
				 config_minimum_level(config));
		options_fini(&options);
		count++;
	}
	for (const struct level_row *at = probe_levels; at->name != NULL; at++)
		count--;
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_what_is_no_option),
		cmocka_unit_test(refusals_name_what_is_wrong),
		cmocka_unit_test(values_are_read_by_name),
		cmocka_unit_test(amounts_are_decimal_numbers_above_nothing),
		cmocka_unit_test(what_is_absent_is_what_the_caller_says),
		cmocka_unit_test(the_last_of_two_wins),
		cmocka_unit_test(a_repeatable_option_keeps_all),
		cmocka_unit_test(levels_are_those_of_the_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
