/* Tests of base/pattern. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/pattern.h"

struct match_case {
	const char *pattern, *path;
	bool matches;
};

static void check_cases(const struct match_case *cases, size_t count, unsigned flags)
{
	for (size_t i = 0; i < count; i++) {
		struct pattern_set *set = pattern_set_new(str_of(cases[i].pattern), flags);

		if (pattern_match(str_of(cases[i].pattern), str_of(cases[i].path),
				  flags) != cases[i].matches ||
		    (set && pattern_set_match(set, str_of(cases[i].path))) !=
			    cases[i].matches)
			fail_msg("\"%s\" and \"%s\": expected %s", cases[i].pattern,
				 cases[i].path, cases[i].matches ? "a match" : "none");
		pattern_set_free(set);
	}
}

static void stars_stay_in_their_component(void **state)
{
	static const struct match_case cases[] = {
		{"", "", true},
		{"", "a", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"*", "a", true},
		{"*", "a/b", false},
		{"*.c", "x.c", true},
		{"*.c", ".c", true},
		{"*.c", "d/x.c", false},
		{"*/x.c", "d/x.c", true},
		{"*/*/x", "a/b/x", true},
		{"*/x", "x", false},
		{"a*b*c", "aXbXbXc", true},
		{"a*b*c", "aXbXb", false},
		{"*a*", "bab", true},
		{"?", "a", true},
		{"?", "", false},
		{"?", "/", false},
		{"a?c", "a/c", false},
		{"a/b", "a/b", true},
		{"a/b/", "a/b", false},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"\\a", "a", true},
		{"a\\/b", "a/b", true},
		{"a***b", "aXXb", true},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), 0);
	check_cases(cases, UNIT_COUNT(cases), PATTERN_BRACES);
}

static void two_stars_reach_any_depth(void **state)
{
	static const struct match_case cases[] = {
		{"**", "", true},
		{"**", "a/b/c", true},
		{"**/x", "x", true},
		{"**/x", "a/x", true},
		{"**/x", "a/b/x", true},
		{"**/x", "ax", false},
		{"**/x/y", "a/x/b/x/y", true},
		{"a/**", "a/b", true},
		{"a/**", "a/b/c", true},
		{"a/**", "a", false},
		{"a/**", "ab/c", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "ab", false},
		{"a/**/b", "a/xb", false},
		{"a/**/b/**/c", "a/b/c", true},
		{"a/**/b/**/c", "a/x/b/b/y/c", true},
		{"a/**/b/**/c", "a/x/c", false},
		{"**/a*/b", "x/ab/b", true},
		{"**/*.c", "x.c", true},
		{"**/*.c", "a/b/x.c", true},
		{"a**b", "aXb", true},
		{"a**b", "a/b", false},
		{"a**/b", "aX/b", true},
		{"a**/b", "a/X/b", false},
		{"**a", "b/a", false},
		{"***/x", "a/b/x", true},
		{"**/**/x", "x", true},
		{"**\\/x", "a/x", true},
		{"**\\/x", "x", false},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), 0);
	check_cases(cases, UNIT_COUNT(cases), PATTERN_BRACES);
}

static void brackets(void **state)
{
	static const struct match_case cases[] = {
		{"[ab]", "a", true},
		{"[ab]", "c", false},
		{"[!ab]", "c", true},
		{"[^ab]", "a", false},
		{"[!ab]", "", false},
		{"[a-c]", "b", true},
		{"[a-c]", "d", false},
		{"[]a]", "]", true},
		{"[!]a]", "b", true},
		{"[!]a]", "]", false},
		{"[a-]", "-", true},
		{"[-a]", "-", true},
		{"[\\]]", "]", true},
		{"[\\-x]", "-", true},
		{"[a\\-c]", "b", false},
		{"[a-\\c]", "b", true},
		{"[[:digit:]]", "7", true},
		{"[[:digit:]]", "x", false},
		{"[[:digit:][:upper:]]", "X", true},
		{"[![:space:]]", " ", false},
		{"[[:digit]", "[", true},
		{"[[:digit]", "g", true},
		{"[[:nonsense:]]", "n", false},
		{"[a/b]", "/", false},
		{"x[!a]y", "x/y", false},
		{"[*]", "*", true},
		{"[c-a]", "b", false},
		{"[a", "a", false},
		{"[a", "[a", false},
		{"a\\", "a", false},
		{"a\\", "a\\", false},
		{"[[:", "[", false},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), 0);
	check_cases(cases, UNIT_COUNT(cases), PATTERN_BRACES);
}

static void braces_are_alternatives(void **state)
{
	static const struct match_case cases[] = {
		{"{a,b}", "a", true},
		{"{a,b}", "b", true},
		{"{a,b}", "c", false},
		{"x{a,b}y{c,d}", "xbyc", true},
		{"x{a,b}y{c,d}", "xbya", false},
		{"x{,s}", "x", true},
		{"x{,s}", "xs", true},
		{"{a}", "a", true},
		{"{}", "", true},
		{"{a,{b,c}d}e", "cde", true},
		{"{a,{b,c}d}e", "ae", true},
		{"{a,{b,c}d}e", "de", false},
		{"{src/**,test}/*.c", "src/a/b/x.c", true},
		{"{src/**,test}/*.c", "test/x.c", true},
		{"{src/**,test}/*.c", "test/a/x.c", false},
		{"*.{c,h}", "x.h", true},
		{"{**/,}x", "a/b/x", true},
		{"\\{a,b\\}", "{a,b}", true},
		{"[{]", "{", true},
		{"{[,],b}", ",", true},
		{"{a\\,b,c}", "a,b", true},
		{"a}", "a}", true},
		{"a,b", "a,b", true},
		{"{a", "{a", false},
		{"{a", "a", false},
	};
	static const struct match_case plain[] = {
		{"{a,b}", "{a,b}", true},
		{"{a,b}", "a", false},
		{"{a", "{a", true},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), PATTERN_BRACES);
	check_cases(plain, UNIT_COUNT(plain), 0);
}

static void base_names_match_at_any_depth(void **state)
{
	static const struct match_case cases[] = {
		{"*.c", "a/b/x.c", true},    {"*.c", "x.c", true},
		{"x", "x/y", false},         {"a/*.c", "a/x.c", true},
		{"a/*.c", "b/a/x.c", false}, {"{a/b,c}", "x/c", true},
		{"{a/b,c}", "x/a/b", false}, {"", "", true},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), PATTERN_BASENAME | PATTERN_BRACES);
}

static void case_can_be_ignored(void **state)
{
	static const struct match_case cases[] = {
		{"AbC", "aBc", true},        {"[A-C]", "b", true},
		{"[a-c]", "B", true},        {"[X]", "x", true},
		{"[[:upper:]]", "x", true},  {"[!a]", "A", false},
		{"[[:digit:]]", "x", false}, {"É", "é", false},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), PATTERN_IGNORE_CASE | PATTERN_BRACES);
}

static void gitignore_ignores_case_as_git_does(void **state)
{
	static const struct match_case cases[] = {
		{"AbC", "aBc", true},    {"[A-C]", "b", true},       {"[a-c]", "B", true},
		{"[X]", "x", false},     {"[X]", "X", false},        {"[x]", "X", true},
		{"\\A", "A", false},     {"\\a", "A", true},         {"[!X]", "X", true},
		{"A/**/B", "a/b", true}, {"[[:upper:]]", "x", true}, {"*.O", "a.o", true},
	};

	(void)state;
	check_cases(cases, UNIT_COUNT(cases), PATTERN_IGNORE_CASE);
}

static void glob_knows_characters_gitignore_bytes(void **state)
{
	static const struct match_case globs[] = {
		{"?", "é", true},     {"a?b", "a🦊b", true}, {"[é]", "é", true},
		{"[!a]", "世", true}, {"[à-ü]", "é", true},    {"[à-ü]", "a", false},
		{"?", "\xff", true},  {"\xff", "\xff", true},  {"[à-\xff]", "\xfe", true},
		{"*é", "aé", true},   {"*?", "é", true},
	};
	static const struct match_case bytes[] = {
		{"?", "é", false},
		{"??", "é", true},
		{"é", "é", true},
	};

	(void)state;
	check_cases(globs, UNIT_COUNT(globs), PATTERN_BRACES);
	check_cases(bytes, UNIT_COUNT(bytes), 0);
}

static void patterns_that_cannot_work_are_named(void **state)
{
	static const char *const cases[][2] = {
		{"[a", "'[' is not closed"},
		{"{a", "'{' is not closed"},
		{"a\\", "'\\' stands at its end"},
		{"[[:foo:]]", "unknown class"},
		{"{a,[b}", "'[' is not closed"},
		{"{{{{{{{{{{{{{{{{{a}}}}}}}}}}}}}}}}}", "nested too deep"},
		{"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 1024"},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		assert_false(pattern_check(str_of(cases[i][0]), PATTERN_BRACES, &err));
		assert_non_null(strstr(err.text, cases[i][1]));
		assert_false(pattern_match(str_of(cases[i][0]), STR("a"), PATTERN_BRACES));
	}
	assert_false(pattern_check(STR("\033[\xff"), PATTERN_BRACES, &err));
	assert_non_null(strstr(err.text, "\"\\x1B[\\xFF\""));
	assert_true(pattern_check(STR("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"),
				  PATTERN_BRACES, &err));
	assert_true(pattern_check(STR("{a"), 0, &err));
	assert_true(pattern_check(STR(""), PATTERN_BRACES, &err));
}

static void patterns_have_a_longest(void **state)
{
	auto_free char *pattern = memory_alloc(PATTERN_MAX + 2);
	struct str longest = {pattern, PATTERN_MAX};
	struct err err;

	(void)state;
	memset(pattern, 'a', PATTERN_MAX + 1);
	assert_true(pattern_check(longest, PATTERN_BRACES, &err));
	assert_true(pattern_match(longest, longest, PATTERN_BRACES));
	longest.size++;
	assert_false(pattern_check(longest, PATTERN_BRACES, &err));
	assert_non_null(strstr(err.text, "longer than 4096 bytes"));
	assert_true(strlen(err.text) < 300);
	assert_false(pattern_match(longest, longest, PATTERN_BRACES));
}

enum { LONG = 4000 };

/* LONG bytes of PIECE over and over, then LAST. */
static char *repeated(const char *piece, char last)
{
	char *text = memory_alloc(LONG + 1);

	for (size_t i = 0; i < LONG; i++)
		text[i] = piece[i % strlen(piece)];
	text[LONG - 1] = last;
	return text;
}

/* The shapes that take naive matchers years. */
static void no_pattern_blows_up(void **state)
{
	auto_free char *letters = repeated("a", 'a'), *stars = repeated("*a", 'b');
	auto_free char *folders = repeated("a/", 'a'), *deep = repeated("**/a/", 'b');
	int64_t start = clock_now_ms();

	(void)state;
	assert_false(pattern_match(str_of(stars), str_of(letters), PATTERN_BRACES));
	assert_false(pattern_match(str_of(deep), str_of(folders), PATTERN_BRACES));
	/* Seconds even under sanitizers would be a different order of growth. */
	assert_true(clock_now_ms() - start < 30000);
}

/* Patterns and paths of a few pieces, so that most of them nearly fit. */
static void pieces_add(struct buf *out, const char *const *pieces, size_t count, long most)
{
	buf_clear(out);
	for (long n = random() % (most + 1); n > 0; n--)
		(void)buf_adds(out, pieces[(size_t)random() % count]);
}

static void a_pattern_taken_apart_gives_the_same_answers(void **state)
{
	static const char *const words[] = {"a",     "b",    "ab",   "*",  "*",    "**",
					    "/",     "**/",  "/**/", ".c", "?",    "[ab]",
					    "[]]",   "[/]",  "\\/",  "é",  "\xc3", "\xa9",
					    "{a,b}", "{,*}", "\\*",  "}",  ",",    "\\a"};
	static const char *const names[] = {"a", "b",  "ab", "/", "/",    "é",  "\xc3",
					    "*", ".c", "]",  ",", "\xa9", "\\", "}"};
	struct buf pattern, path;
	size_t matches = 0, tried = 0, held = 0;

	(void)state;
	srandom(11);
	buf_init(&pattern, 1000);
	buf_init(&path, 1000);
	for (unsigned i = 0; i < 4000; i++) {
		unsigned flags = (unsigned)random() &
				 (PATTERN_BRACES | PATTERN_BASENAME | PATTERN_IGNORE_CASE);
		struct pattern_set *set;

		pieces_add(&pattern, words, UNIT_COUNT(words), 5);
		set = pattern_set_new(buf_str(&pattern), flags);
		for (unsigned k = 0; set && k < 30; k++) {
			bool matched;

			pieces_add(&path, names, UNIT_COUNT(names), 5);
			matched = pattern_match(buf_str(&pattern), buf_str(&path), flags);
			if (pattern_set_match(set, buf_str(&path)) != matched)
				fail_msg("\"%s\" and \"%s\", flags %u: expected %d",
					 pattern.data, path.data, flags, matched);
			const struct str text = pattern_set_text(set);
			if (matched &&
			    memmem(path.data, path.size, text.data, text.size) == NULL)
				fail_msg("\"%s\", flags %u, matches \"%s\" without \"%.*s\"",
					 pattern.data, flags, path.data, (int)text.size,
					 text.data);
			held += matched && text.size > 0;
			matches += matched;
			tried++;
		}
		pattern_set_free(set);
	}
	/* Neither all nor none, else nothing would be compared. */
	assert_in_range(matches, tried / 50, tried / 2);
	assert_in_range(held, 100, matches - 1);
	buf_fini(&pattern);
	buf_fini(&path);
}

static void a_text_with_a_special_character_is_a_pattern(void **state)
{
	(void)state;
	assert_true(pattern_is_one(STR("*.c")));
	assert_true(pattern_is_one(STR("a?")));
	assert_true(pattern_is_one(STR("[a]")));
	assert_true(pattern_is_one(STR("{a,b}")));
	assert_false(pattern_is_one(STR("src/main.c")));
	assert_false(pattern_is_one(STR("")));
	assert_false(pattern_is_one(STR("a\0b")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stars_stay_in_their_component),
		cmocka_unit_test(two_stars_reach_any_depth),
		cmocka_unit_test(brackets),
		cmocka_unit_test(braces_are_alternatives),
		cmocka_unit_test(base_names_match_at_any_depth),
		cmocka_unit_test(case_can_be_ignored),
		cmocka_unit_test(gitignore_ignores_case_as_git_does),
		cmocka_unit_test(glob_knows_characters_gitignore_bytes),
		cmocka_unit_test(patterns_that_cannot_work_are_named),
		cmocka_unit_test(patterns_have_a_longest),
		cmocka_unit_test(no_pattern_blows_up),
		cmocka_unit_test(a_pattern_taken_apart_gives_the_same_answers),
		cmocka_unit_test(a_text_with_a_special_character_is_a_pattern),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
