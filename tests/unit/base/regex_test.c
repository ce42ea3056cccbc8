/* Tests of base/regex. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/regex.h"

enum { NONE = -1, LIMIT = -2 };

/* Start of the first match at or after FROM, NONE or LIMIT; *END is its end. */
static int find(struct str pattern, unsigned flags, struct str text, size_t from, int *end)
{
	struct regex_span span = {0};
	struct regex_scratch *scratch;
	enum regex_answer answer;
	struct regex *regex;
	struct err err;

	if (!regex_compile(pattern, flags, &regex, &err))
		fail_msg("%s", err.text);
	scratch = regex_scratch_new(regex);
	answer = regex_find(regex, scratch, text, from, &span);
	regex_scratch_free(scratch);
	regex_free(regex);
	*end = (int)span.end;
	if (answer == REGEX_FOUND)
		return (int)span.start;
	return answer == REGEX_NONE ? NONE : LIMIT;
}

static void finds_what_is_there(void **state)
{
	static const struct {
		struct str pattern, text;
		unsigned flags;
		size_t from;
		int start, end;
	} cases[] = {
		{STR("b+"), STR("abbc"), 0, 0, 1, 3},
		{STR("b+"), STR("abbc"), 0, 2, 2, 3},
		{STR("b+"), STR("abbc"), 0, 3, NONE, 0},
		{STR("b"), STR("ab"), 0, 3, NONE, 0},
		{STR(""), STR(""), 0, 0, 0, 0},
		{STR(""), STR("ab"), 0, 2, 2, 2},
		{STR("x"), {NULL, 0}, 0, 0, NONE, 0},
		{{NULL, 0}, STR("a"), 0, 0, 0, 0},
		{STR("B"), STR("ab"), REGEX_IGNORE_CASE, 0, 1, 2},
		{STR("É"), STR("é"), REGEX_IGNORE_CASE, 0, 0, 2},
		{STR("a.c"), STR("abc a.c"), REGEX_LITERAL, 0, 4, 7},
		{STR("A.C"), STR("abc a.c"), REGEX_LITERAL | REGEX_IGNORE_CASE, 0, 4, 7},
		{STR("[\\C("), STR("x[\\C("), REGEX_LITERAL, 0, 1, 5},
		{STR("^b$"), STR("a\nb\nc"), 0, 0, NONE, 0},
		{STR("^b$"), STR("a\nb\nc"), REGEX_MULTILINE, 0, 2, 3},
		{STR("^b"), STR("ab"), 0, 1, NONE, 0},
		{STR("(?<=a)b"), STR("ab"), 0, 1, 1, 2},
		{STR("\\S"), STR("–x"), 0, 0, 0, 3},
		{STR("^\\D\\W$"), STR("߀é"), 0, 0, 0, 4},
		{STR("a\\S+"), STR("aé b"), 0, 0, 0, 3},
		{STR("[]\\S]x"), STR("éx"), 0, 0, 0, 3},
		{STR("\\Q\\S\\E"), STR("é\\S"), 0, 0, 2, 4},
		{STR("[\\Q]\\E\\S]+ "), STR("é] "), 0, 0, 0, 4},
		{STR("[[:alpha:]\\D]"), STR("é"), 0, 0, 0, 2},
		{STR("\\\\S"), STR("\\S"), 0, 0, 0, 2},
		{STR("\\cDx"), STR("\004x"), 0, 0, 0, 2},
		{STR("a$"), STR("a\n"), 0, 0, 0, 1},
		{STR("a$"), STR("a\n"), REGEX_ECMASCRIPT, 0, NONE, 0},
		{STR("^\\u00e9\\u{1F600}$"), STR("é😀"), REGEX_ECMASCRIPT, 0, 0, 6},
		{STR("."), STR("\n\n"), 0, 0, NONE, 0},
		{STR("a\\0b"), STR("xa\0b"), 0, 0, 1, 4},
		{STR("a\0b"), STR("xa\0b"), 0, 0, 1, 4},
		{STR("^.$"), STR("世"), 0, 0, 0, 3},
		/* Bytes that are no UTF-8 match nothing, and end nothing. */
		{STR("."),
		 STR("\xff\xfe"
		     "a"),
		 0, 0, 2, 3},
		{STR("b"),
		 STR("\xff"
		     "b"),
		 0, 0, 1, 2},
		{STR("a.b"),
		 STR("a\xff"
		     "b"),
		 0, 0, NONE, 0},
		{STR("b"), STR("世b"), 0, 1, 3, 4},
		{STR("b"),
		 STR("世\xe4"
		     "b"),
		 0, 2, 4, 5},
		{STR("a\\Kb"), STR("ab"), 0, 0, 1, 2},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		int end, start = find(cases[i].pattern, cases[i].flags, cases[i].text,
				      cases[i].from, &end);

		assert_int_equal(start, cases[i].start);
		if (start >= 0)
			assert_int_equal(end, cases[i].end);
	}
}

static void wrong_patterns_are_explained_with_their_position(void **state)
{
	static const struct {
		struct str pattern;
		const char *position;
	} cases[] = {
		{STR("a(b"), "position 4: "},    {STR("a)"), "position 2: "},
		{STR("[a"), "position 3: "},     {STR("*a"), "position 1: "},
		{STR("a\\"), "position 3: "},    {STR("\\C"), "position 3: "},
		{STR("ab\xff"), "position 3: "},
	};
	struct regex *regex = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		assert_false(regex_compile(cases[i].pattern, 0, &regex, &err));
		assert_null(regex);
		assert_non_null(strstr(err.text, cases[i].position));
		assert_true(strlen(err.text) >
			    strlen("regular expression, character position 4: "));
		assert_false(regex_compile(cases[i].pattern, 0, &regex, NULL));
	}
}

static void patterns_have_ceilings(void **state)
{
	enum { MUCH = 100000 };
	auto_free char *pattern = memory_alloc(MUCH);
	struct regex *regex = NULL;
	struct err err;

	(void)state;
	memset(pattern, 'a', MUCH);
	assert_false(regex_compile((struct str){pattern, MUCH}, 0, &regex, &err));
	memset(pattern, '(', MUCH);
	assert_false(regex_compile((struct str){pattern, 1000}, 0, &regex, &err));
	assert_false(regex_compile(STR("((a{0,999}){0,999}){0,999}"), 0, &regex, &err));
	assert_null(regex);
}

static void a_limit_is_not_no_match(void **state)
{
	static const char *const patterns[] = {"(a+)+$", "(a|aa)+$", "(?:a*)*b\\b",
					       "(*NO_JIT)(a+)+$"};
	char text[64];
	int end;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 'c';
	for (size_t i = 0; i < UNIT_COUNT(patterns); i++) {
		int start = find(str_of(patterns[i]), 0, (struct str){text, sizeof(text)},
				 0, &end);

		/* PCRE2 sees at once that there is no b. */
		assert_int_equal(start, strchr(patterns[i], 'b') ? NONE : LIMIT);
	}
}

static void long_subjects_do_not_exhaust_the_stack(void **state)
{
	enum { MUCH = 2 << 20 };
	auto_free char *text = memory_alloc(MUCH);
	int start, end;

	(void)state;
	memset(text, 'a', MUCH);
	/*
	 * One group iteration a byte: the JIT's stack is too small, the interpreter's
	 * heap too.
	 */
	start = find(STR("(?:a|b)*c"), 0, (struct str){text, MUCH}, 0, &end);
	assert_true(start == NONE || start == LIMIT);
	start = find(STR("(a|b)*$"), 0, (struct str){text, 100000}, 0, &end);
	assert_int_equal(start, 0);
	assert_int_equal(end, 100000);
}

struct job {
	const struct regex *regex;
	size_t found;
};

static void *search_much(void *argument)
{
	struct job *job = argument;
	struct regex_scratch *scratch = regex_scratch_new(job->regex);
	struct str text = STR("a1b22c333d4444");
	struct regex_span span;

	for (int i = 0; i < 1000; i++) {
		for (size_t at = 0;
		     regex_find(job->regex, scratch, text, at, &span) == REGEX_FOUND;
		     at = span.end)
			job->found += span.end - span.start;
	}
	regex_scratch_free(scratch);
	return NULL;
}

static void threads_share_a_compiled_regex(void **state)
{
	struct job jobs[4] = {{0}};
	pthread_t threads[4];
	struct regex *regex;

	(void)state;
	assert_true(regex_compile(STR("[0-9]+"), 0, &regex, NULL));
	for (size_t i = 0; i < UNIT_COUNT(jobs); i++) {
		jobs[i].regex = regex;
		assert_int_equal(pthread_create(&threads[i], NULL, search_much, &jobs[i]),
				 0);
	}
	for (size_t i = 0; i < UNIT_COUNT(jobs); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(jobs[i].found, 10000);
	}
	regex_free(regex);
	regex_free(NULL);
	regex_scratch_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(wrong_patterns_are_explained_with_their_position),
		cmocka_unit_test(patterns_have_ceilings),
		cmocka_unit_test(a_limit_is_not_no_match),
		cmocka_unit_test(long_subjects_do_not_exhaust_the_stack),
		cmocka_unit_test(threads_share_a_compiled_regex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
