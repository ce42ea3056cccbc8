/*
 * test_progress: how far phpunit and pytest have come before they write their report, or
 * when they never do; see test_parse.h.
 */
#include "tools/tests/test_parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum {
	VALUE_MAX = 4096,
	WORDS_MAX = 16 << 10,
	LINE_MAX_BYTES = 64 << 10, /* of a line that are looked at */
	CODE_DIGITS = 4,
};

/* Append TEXT without the marks of TeamCity: "|n" is a line end, "||" a bar. */
static void add_unmarked(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (c != '|' || i + 1 == text.size) {
			(void)buf_addc(out, c);
			continue;
		}
		c = text.data[++i];
		if (c == '0' && i + 1 + CODE_DIGITS < text.size && text.data[i + 1] == 'x') {
			(void)buf_addc(out, '?');
			i += 1 + CODE_DIGITS;
		} else {
			(void)buf_addc(out, c == 'n' || c == 'r' ? '\n' : c);
		}
	}
}

/* The value of KEY in a message "##teamcity[word key='value' …]"; it ends at a bare "'". */
static void attribute(struct str line, const char *key, struct buf *out)
{
	const struct str wanted = str_of(key);
	size_t at = 0;

	buf_clear(out);
	while ((at = str_find(line, STR("='"), at)) != (size_t)-1) {
		const size_t begin = at + 2;
		size_t end = begin;

		while (end < line.size && line.data[end] != '\'')
			end += line.data[end] == '|' ? 2 : 1;
		if (end >= line.size)
			return;
		if (at > wanted.size && line.data[at - wanted.size - 1] == ' ' &&
		    str_equal(str_part(line, at - wanted.size, wanted.size), wanted)) {
			add_unmarked(str_part(line, begin, end - begin), out);
			return;
		}
		at = end + 1;
	}
}

struct teamcity {
	struct test_report *report;
	struct buf name, class, file, words, value;
	enum test_state state; /* of the test that runs; 0: none does */
};

/* "php_qn://FILE::\CLASS::METHOD" */
static void begin_test(struct teamcity *teamcity, struct str line)
{
	const struct str scheme = STR("php_qn://");
	struct str place;
	size_t at;

	attribute(line, "name", &teamcity->name);
	attribute(line, "locationHint", &teamcity->value);
	buf_clear(&teamcity->class);
	buf_clear(&teamcity->file);
	buf_clear(&teamcity->words);
	teamcity->state = TEST_PASSED;
	place = buf_str(&teamcity->value);
	at = str_find(place, STR("::\\"), 0);
	if (!str_starts(place, scheme) || at == (size_t)-1)
		return;
	(void)buf_addstr(&teamcity->file, str_part(place, scheme.size, at - scheme.size));
	place = str_part(place, at + 3, SIZE_MAX);
	(void)buf_addstr(&teamcity->class,
			 str_part(place, 0, str_find(place, STR("::"), 0)));
}

static void end_test(struct teamcity *teamcity)
{
	struct buf name;

	buf_init(&name, 2 * VALUE_MAX + 2);
	if (teamcity->class.size > 0)
		(void)buf_addf(&name, "%s::", teamcity->class.data);
	(void)buf_addstr(&name, buf_str(&teamcity->name));
	const struct test_seen seen = {
		.state = teamcity->state,
		.name = buf_str(&name),
		.select = buf_str(&name),
		.file = buf_str(&teamcity->file),
		.text = str_trim(buf_str(&teamcity->words)),
	};
	test_report_add(teamcity->report, &seen);
	teamcity->state = 0;
	buf_fini(&name);
}

static void take_message(struct teamcity *teamcity, struct str line)
{
	if (str_starts(line, STR("testStarted "))) {
		begin_test(teamcity, line);
	} else if (teamcity->state == 0) {
		return;
	} else if (str_starts(line, STR("testFailed "))) {
		teamcity->state = TEST_FAILED;
		attribute(line, "message", &teamcity->value);
		(void)buf_addf(&teamcity->words, "%s\n", teamcity->value.data);
		attribute(line, "details", &teamcity->value);
		(void)buf_addstr(&teamcity->words, buf_str(&teamcity->value));
	} else if (str_starts(line, STR("testIgnored "))) {
		teamcity->state = TEST_SKIPPED;
	} else if (str_starts(line, STR("testFinished "))) {
		end_test(teamcity);
	}
}

void test_teamcity_text(struct str text, struct test_report *report)
{
	const struct str mark = STR("##teamcity[");
	struct teamcity teamcity = {.report = report};
	struct str line;

	buf_init(&teamcity.name, VALUE_MAX);
	buf_init(&teamcity.class, VALUE_MAX);
	buf_init(&teamcity.file, VALUE_MAX);
	buf_init(&teamcity.value, WORDS_MAX);
	buf_init(&teamcity.words, 2 * (size_t)WORDS_MAX + 1);
	while (str_next_line(&text, &line)) {
		if (str_starts(line, mark))
			take_message(&teamcity, str_part(line, mark.size, LINE_MAX_BYTES));
	}
	buf_fini(&teamcity.name);
	buf_fini(&teamcity.class);
	buf_fini(&teamcity.file);
	buf_fini(&teamcity.value);
	buf_fini(&teamcity.words);
}

struct pytest {
	struct test_report *report;
	struct str file; /* whose letters these are; empty: none */
	uint64_t number; /* of its tests so far */
};

/* Without the "[ 42%]" at its end. */
static struct str without_percent(struct str line)
{
	size_t at = line.size;

	if (!str_ends(line, STR("%]")))
		return line;
	while (at > 0 && line.data[at - 1] != '[')
		at--;
	return at > 0 ? str_trim(str_part(line, 0, at - 1)) : line;
}

static enum test_state state_of_letter(char c)
{
	return strchr(".X", c) != NULL   ? TEST_PASSED
	       : strchr("FE", c) != NULL ? TEST_FAILED
	       : strchr("sx", c) != NULL ? TEST_SKIPPED
					 : 0;
}

static bool are_letters(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\0' || state_of_letter(text.data[i]) == 0)
			return false;
	}
	return text.size > 0;
}

/* One letter for each test, which has a number here instead of its name. */
static void take_letters(struct pytest *pytest, struct str letters)
{
	char name[32];

	for (size_t i = 0; i < letters.size; i++) {
		(void)snprintf(name, sizeof(name), "test %" PRIu64, ++pytest->number);
		const struct test_seen seen = {
			.state = state_of_letter(letters.data[i]),
			.group = pytest->file,
			.name = str_of(name),
			.file = pytest->file,
		};
		test_report_add(pytest->report, &seen);
	}
}

/* "tests/test_a.py::test_x PASSED", as -v has it. */
static bool take_named(struct pytest *pytest, struct str node, struct str rest)
{
	static const struct {
		const char *word;
		enum test_state state;
	} words[] = {
		{"PASSED", TEST_PASSED},   {"XPASS", TEST_PASSED},
		{"FAILED", TEST_FAILED},   {"ERROR", TEST_FAILED},
		{"SKIPPED", TEST_SKIPPED}, {"XFAIL", TEST_SKIPPED},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct str word = str_of(words[i].word);
		if (!str_starts(rest, word) ||
		    (rest.size > word.size && rest.data[word.size] != ' '))
			continue;
		const struct test_seen seen = {
			.state = words[i].state,
			.name = node,
			.select = node,
			.file = str_part(node, 0, str_find(node, STR("::"), 0)),
		};
		test_report_add(pytest->report, &seen);
		return true;
	}
	return false;
}

static void take_line(struct pytest *pytest, struct str line)
{
	const struct str ends = STR(".py ");
	struct str letters;
	size_t at, node;

	line = without_percent(str_trim(line));
	at = str_find(line, ends, 0);
	node = str_find(line, STR(".py::"), 0);
	if (are_letters(line) && pytest->file.size > 0) {
		take_letters(pytest, line);
		return;
	}
	pytest->file = STR("");
	if (node != (size_t)-1 && node < at) {
		size_t blank = str_find(line, STR(" "), node);
		if (blank != (size_t)-1)
			(void)take_named(pytest, str_part(line, 0, blank),
					 str_trim(str_part(line, blank, SIZE_MAX)));
		return;
	}
	if (at == (size_t)-1)
		return;
	letters = str_part(line, at + ends.size, SIZE_MAX);
	if (!are_letters(letters))
		return;
	pytest->file = str_part(line, 0, at + ends.size - 1);
	pytest->number = 0;
	take_letters(pytest, letters);
}

void test_pytest_text(struct str text, struct test_report *report)
{
	struct pytest pytest = {.report = report};
	struct str line;

	while (str_next_line(&text, &line)) {
		/* Its list of failures, which names them once more. */
		if (str_starts(line, STR("====")) && report->failed > 0 &&
		    str_find(line, STR(" FAILURES "), 0) != (size_t)-1)
			break;
		take_line(&pytest, str_part(line, 0, LINE_MAX_BYTES));
	}
}
