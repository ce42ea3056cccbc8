/* test_lines: what test programs print without a format of their own; see test_parse.h. */
#include "tools/tests/test_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORDS_MAX = 16 << 10,
	LINE_MAX_BYTES = 4096, /* of a line that are looked at */
};

struct lines {
	struct test_report *report;
	struct str group, select;
	struct str running; /* cmocka, GoogleTest: the test that has begun */
	const char *words;  /* where its words begin */
	size_t without; /* failures whose words stand elsewhere: the first of them … */
	struct buf loose;      /* … and these */
	uint64_t check_passed; /* Check: told by the summary, and so not line by line */
};

static void add(struct lines *lines, enum test_state state, struct str name, struct str text)
{
	test_report_add(lines->report, &(struct test_seen){
					       .state = state,
					       .group = lines->group,
					       .name = name,
					       .select = lines->select,
					       .text = text,
				       });
}

/* "[  MARK  ] NAME (0 ms)": the name; false when it is no such line. */
static bool bracket(struct str line, const char *mark, struct str *name)
{
	size_t end = str_find(line, STR("]"), 0), at;

	if (line.size == 0 || line.data[0] != '[' || end == (size_t)-1 ||
	    !str_is(str_trim(str_part(line, 1, end - 1)), mark))
		return false;
	*name = str_trim(str_part(line, end + 1, SIZE_MAX));
	at = str_find(*name, STR(" ("), 0);
	*name = str_part(*name, 0, at);
	return true;
}

/* cmocka, and GoogleTest from which it has its lines. */
static bool take_bracket(struct lines *lines, struct str line)
{
	struct str name, text;

	if (bracket(line, "RUN", &name)) {
		lines->running = name;
		lines->words = line.data + line.size;
		return true;
	}
	if (bracket(line, "OK", &name) && lines->running.size > 0) {
		add(lines, TEST_PASSED, name, STR(""));
		lines->running = (struct str){0};
		return true;
	}
	if (bracket(line, "SKIPPED", &name) && lines->running.size > 0) {
		add(lines, TEST_SKIPPED, name, STR(""));
		lines->running = (struct str){0};
		return true;
	}
	if (bracket(line, "FAILED", &name)) {
		/* At the end they are listed once more. */
		if (lines->running.size == 0 || !str_equal(name, lines->running))
			return true;
		text = str_trim(
			(struct str){lines->words, (size_t)(line.data - lines->words)});
		add(lines, TEST_FAILED, name, text);
		lines->running = (struct str){0};
		return true;
	}
	if (lines->running.size == 0 &&
	    (bracket(line, "ERROR", &name) || bracket(line, "LINE", &name))) {
		(void)buf_addstr(&lines->loose, line);
		(void)buf_addc(&lines->loose, '\n');
		return true;
	}
	return false;
}

/* The part of REST up to the next colon, which is taken away with it. */
static struct str next_field(struct str *rest)
{
	size_t at = str_find(*rest, STR(":"), 0);
	struct str field = str_part(*rest, 0, at);

	*rest = at == (size_t)-1 ? STR("") : str_part(*rest, at + 1, SIZE_MAX);
	return field;
}

static bool is_number(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (!isdigit((unsigned char)text.data[i]))
			return false;
	}
	return text.size > 0;
}

/* Check: "file:12:F:case:test:0: why"; Unity: "file:12:test:FAIL: why". */
static bool take_place(struct lines *lines, struct str line)
{
	struct str rest = line, file, third, fourth, fifth;

	file = next_field(&rest);
	if (file.size == 0 || isspace((unsigned char)file.data[0]) ||
	    !is_number(next_field(&rest)))
		return false;
	third = next_field(&rest);
	fourth = str_trim(next_field(&rest));
	if (third.size == 1 && third.data[0] != '\0' &&
	    strchr("PFES", third.data[0]) != NULL) {
		fifth = next_field(&rest);
		if (fifth.size == 0 || !is_number(next_field(&rest)))
			return false;
		if (third.data[0] == 'P') {
			if (lines->check_passed > 0)
				lines->check_passed--;
			else
				add(lines, TEST_PASSED, fifth, STR(""));
		} else {
			add(lines, third.data[0] == 'S' ? TEST_SKIPPED : TEST_FAILED,
			    fifth, line);
		}
		return true;
	}
	if (str_is(fourth, "PASS"))
		add(lines, TEST_PASSED, third, STR(""));
	else if (str_is(fourth, "FAIL"))
		add(lines, TEST_FAILED, third, line);
	else if (str_is(fourth, "IGNORE"))
		add(lines, TEST_SKIPPED, third, STR(""));
	else
		return false;
	return true;
}

/* The number behind WORD in TEXT, 0 when there is none. */
static uint64_t number_after(struct str text, struct str word)
{
	size_t at = str_find(text, word, 0);
	uint64_t number = 0;

	if (at == (size_t)-1)
		return 0;
	text = str_trim(str_part(text, at + word.size, SIZE_MAX));
	for (size_t i = 0; i < text.size && i < 9 && isdigit((unsigned char)text.data[i]);
	     i++)
		number = 10 * number + (uint64_t)(text.data[i] - '0');
	return number;
}

/* Check: "50%: Checks: 2, Failures: 1, Errors: 0". */
static bool take_summary(struct lines *lines, struct str line)
{
	uint64_t checks, bad;

	if (str_find(line, STR("%: Checks: "), 0) == (size_t)-1)
		return false;
	checks = number_after(line, STR("Checks: "));
	bad = number_after(line, STR("Failures: ")) + number_after(line, STR("Errors: "));
	if (checks > bad) {
		test_report_add_passed(lines->report, checks - bad);
		lines->check_passed = checks - bad;
	}
	return true;
}

/* automake: "PASS: name". */
static bool take_automake(struct lines *lines, struct str line)
{
	static const struct {
		const char *mark;
		enum test_state state;
	} marks[] = {
		{"PASS: ", TEST_PASSED},  {"FAIL: ", TEST_FAILED},
		{"SKIP: ", TEST_SKIPPED}, {"XFAIL: ", TEST_PASSED},
		{"XPASS: ", TEST_FAILED}, {"ERROR: ", TEST_FAILED},
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		struct str mark = str_of(marks[i].mark);

		if (!str_starts(line, mark))
			continue;
		add(lines, marks[i].state, str_trim(str_part(line, mark.size, SIZE_MAX)),
		    STR(""));
		return true;
	}
	return false;
}

/* The state that the end of a progress line of ctest or meson tells; 0: none. */
static enum test_state progress_state(struct str text)
{
	static const struct {
		const char *word;
		enum test_state state;
	} words[] = {
		{"***Skipped", TEST_SKIPPED},      {"***Failed", TEST_FAILED},
		{"***Timeout", TEST_FAILED},       {"***Exception", TEST_FAILED},
		{"***Not Run", TEST_FAILED},       {" Passed ", TEST_PASSED},
		{" EXPECTEDFAIL ", TEST_PASSED},   {" OK ", TEST_PASSED},
		{" FAIL ", TEST_FAILED},           {" SKIP ", TEST_SKIPPED},
		{" TIMEOUT ", TEST_FAILED},        {" ERROR ", TEST_FAILED},
		{" UNEXPECTEDPASS ", TEST_FAILED},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_find(text, str_of(words[i].word), 0) != (size_t)-1)
			return words[i].state;
	}
	return 0;
}

/* "1/3 Test #1: name .....   Passed  0.01 sec" and "1/4 suite / name   OK   0.05s". */
static bool take_progress(struct lines *lines, struct str line)
{
	struct str text = str_trim(line), name;
	enum test_state state = progress_state(text);
	size_t slash = str_find(text, STR("/"), 0), blank = str_find(text, STR(" "), 0), at;

	if (state == 0 || slash == (size_t)-1 || blank == (size_t)-1 || slash > blank ||
	    !is_number(str_part(text, 0, slash)) ||
	    !is_number(str_part(text, slash + 1, blank - slash - 1)))
		return false;
	name = str_trim(str_part(text, blank, SIZE_MAX));
	if (str_starts(name, STR("Test ")))
		name = str_trim(str_part(name, str_find(name, STR(": "), 0) + 2, SIZE_MAX));
	at = str_find(name, STR(" .."), 0);
	if (at == (size_t)-1)
		at = str_find(name, STR("  "), 0);
	name = str_part(name, 0, at);
	/* meson lists the failed ones once more. */
	for (size_t i = 0; i < lines->report->count; i++) {
		if (str_is(name, lines->report->failures[i].name))
			return true;
	}
	add(lines, state, name, STR(""));
	return true;
}

/* Errors that were printed to another stream: the k-th belongs to the k-th failure. */
static void deal_out(struct lines *lines)
{
	struct test_report *report = lines->report;
	struct str rest = buf_str(&lines->loose), line;
	const char *start = rest.data;
	size_t at = lines->without;

	while (str_next_line(&rest, &line) && at < report->count) {
		if (str_find(line, STR("LINE"), 0) == (size_t)-1)
			continue;
		while (at < report->count && report->failures[at].text[0] != '\0')
			at++;
		if (at == report->count)
			break;
		test_report_add_text(report, &report->failures[at],
				     (struct str){start,
						  (size_t)(line.data + line.size - start)});
		start = line.data + line.size + 1;
		at++;
	}
}

void test_lines_text(struct str text, struct str group, struct str select,
		     struct test_report *report)
{
	struct lines lines = {.report = report,
			      .group = group,
			      .select = select,
			      .without = report->count};
	struct str line;

	buf_init(&lines.loose, WORDS_MAX);
	while (str_next_line(&text, &line)) {
		if (str_ends(line, STR("\r")))
			line.size--;
		line = str_part(line, 0, LINE_MAX_BYTES);
		(void)(take_bracket(&lines, line) || take_automake(&lines, line) ||
		       take_summary(&lines, line) || take_place(&lines, line) ||
		       take_progress(&lines, line));
	}
	deal_out(&lines);
	buf_fini(&lines.loose);
}

enum kind { TAP, LINES, CARGO, JUNIT, KINDS };

static void read_as(enum kind kind, struct str text, struct str group, struct str select,
		    struct test_report *report)
{
	size_t first = report->count;

	if (kind == LINES)
		test_lines_text(text, group, select, report);
	else if (kind == TAP)
		test_tap_text(text, group, report);
	else if (kind == CARGO)
		test_cargo_text(text, group, report);
	else
		test_junit_text(text, group, report);
	/* These do not know how to be run again by themselves. */
	for (size_t i = first; i < report->count; i++)
		report->failures[i].select =
			select.size > 0 ? arena_copy(&report->arena, select) : NULL;
}

void test_any_text(struct str text, struct str group, struct str select,
		   struct test_report *report)
{
	enum kind best = LINES;
	uint64_t most = 0;

	for (enum kind kind = TAP; kind < KINDS; kind++) {
		struct test_report trial;

		test_report_init(&trial, NULL, NULL);
		read_as(kind, text, group, select, &trial);
		if (test_report_total(&trial) > most) {
			most = test_report_total(&trial);
			best = kind;
		}
		test_report_fini(&trial);
	}
	read_as(best, text, group, select, report);
}

void test_parse_any(const struct test_output *output, struct test_report *report)
{
	struct buf both;

	/* Errors of a library may stand in the other stream. */
	buf_init(&both, output->out.size + output->error.size + 2);
	(void)buf_addstr(&both, output->out);
	(void)buf_end_line(&both);
	(void)buf_addstr(&both, output->error);
	test_any_text(buf_str(&both), STR(""), STR(""), report);
	buf_fini(&both);
}
