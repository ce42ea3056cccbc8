/*
 * report: collects the tests of one run, and reads the formats that programs of any
 * runner may print: the lines of test libraries, TAP, the lines of cargo's test programs
 * and JUnit XML. It also reads the progress of phpunit and pytest, for a run that left
 * no XML. The other formats of one runner are read in runners.c.
 */

#include "tools/tests/report.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	VALUE_MAX = 4096,       /* of a name or an attribute */
	OUTPUT_MAX = 256 << 10, /* the output of one test */
	LINE_MAX_BYTES = 4096,  /* of a line that is searched */
};

enum {
	/* "phpt", "swift"; a longer one is a word behind a full stop */
	EXTENSION_MAX = 5,
	LINE_DIGITS = 7,
	PLACE_MAX = 4096,
};

void test_report_init(struct test_report *report, const char *folder, const char *prefix)
{
	*report = (struct test_report){.folder = folder, .prefix = prefix};
	arena_init(&report->arena);
}

void test_report_fini(struct test_report *report)
{
	arena_fini(&report->arena);
	free(report->failures);
	*report = (struct test_report){0};
}

uint64_t test_report_total(const struct test_report *report)
{
	return report->passed + report->failed + report->skipped;
}

/* Add COUNT passed tests without names. */
static void test_report_add_passed(struct test_report *report, uint64_t count)
{
	if (count < UINT32_MAX)
		report->passed += count;
}

static const char *keep(struct test_report *report, struct str text, size_t max)
{
	if (text.size > max)
		text.size = text_character_border(text, max);
	return arena_copy(&report->arena, text);
}

/* Store the name of SEEN as that of the last test. */
static void take_name(struct test_report *report, const struct test_seen *seen)
{
	const struct str parts[] = {seen->group,
				    seen->group.size > 0 ? STR(" / ") : STR(""),
				    seen->name};
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		struct str part = parts[i];

		if (part.size > TEST_NAME_MAX - at)
			part.size = text_character_border(part, TEST_NAME_MAX - at);
		if (part.size > 0)
			memcpy(report->last + at, part.data, part.size);
		at += part.size;
	}
	report->last[at] = '\0';
}

static void tell_first(struct test_report *first, const char *name, enum test_state state)
{
	for (size_t i = 0; i < first->count; i++) {
		if (strcmp(first->failures[i].name, name) != 0)
			continue;
		first->failures[i].passed_again |= state == TEST_PASSED;
		first->failures[i].failed_again |= state == TEST_FAILED;
	}
}

/*
 * The size of the part of TEXT that is the end of FOLDER's path with the slash behind it.
 * The part must be the whole path, or at least two of its names, since a single name may
 * be a folder inside FOLDER as well. 0: there is none.
 */
static size_t end_of_folder(struct str text, const char *folder)
{
	for (const char *at = folder; at != NULL; at = strchr(at + 1, '/')) {
		const struct str end = str_of(at + 1);

		if (at != folder && memchr(end.data, '/', end.size) == NULL)
			break;
		if (end.size > 0 && text.size > end.size && str_starts(text, end) &&
		    text.data[end.size] == '/')
			return end.size + 1;
	}
	return 0;
}

/*
 * FILE as it is named in the workspace, without the folders that compilers put before it.
 */
static const char *make_file(struct test_report *report, struct str file)
{
	char whole[PLACE_MAX], shown[2 * PLACE_MAX];
	const char *path = whole;
	bool from_above = false;
	size_t length;

	if (file.size == 0 || file.size >= sizeof(whole))
		return NULL;
	memcpy(whole, file.data, file.size);
	whole[file.size] = '\0';
	if (strncmp(path, "file://", 7) == 0)
		path += 7;
	if (path[0] == '/') {
		if (report->folder == NULL || !path_within(path, report->folder))
			return keep(report, str_of(path), sizeof(whole));
		path = path_relative(path, report->folder);
	}
	/* The path may be relative to a build folder, or to this folder. */
	for (;;) {
		const size_t step = strncmp(path, "../", 3) == 0  ? 3
				    : strncmp(path, "./", 2) == 0 ? 2
								  : 0;

		if (step == 0)
			break;
		path += step;
		from_above = true;
	}
	/* A path that goes far enough up may lead back into the workspace. */
	if (report->folder != NULL && from_above)
		path += end_of_folder(str_of(path), report->folder);
	length = report->prefix != NULL ? strlen(report->prefix) : 0;
	if (length >= PLACE_MAX)
		return NULL;
	if (length > 0)
		memcpy(shown, report->prefix, length);
	memcpy(shown + length, path, strlen(path) + 1);
	return keep(report, str_of(shown), sizeof(shown));
}

void test_report_place(struct test_report *report, struct test_failure *failure,
		       struct str file, uint64_t line)
{
	failure->file = make_file(report, file);
	failure->line = failure->file != NULL ? line : 0;
}

void test_report_add_text(struct test_report *report, struct test_failure *failure,
			  struct str text)
{
	struct str file;
	uint64_t line;

	text = str_part(text, 0, TEST_TEXT_MAX);
	if (failure->line == 0 && report_place_find(text, report->folder, &file, &line))
		test_report_place(report, failure, file, line);
	if (failure->text[0] == '\0' &&
	    failure - report->failures < (ptrdiff_t)TEST_TEXTS_MAX)
		failure->text = keep(report, text, TEST_TEXT_MAX);
}

static void add_failure(struct test_report *report, const struct test_seen *seen,
			const char *name)
{
	struct test_failure *failure;

	if (report->count == TEST_FAILURES_MAX)
		return;
	report->failures =
		memory_more(report->failures, report->count, sizeof(*report->failures));
	failure = &report->failures[report->count++];
	*failure = (struct test_failure){.name = name, .text = ""};
	if (seen->select.size > 0 && seen->select.size < PLACE_MAX)
		failure->select = keep(report, seen->select, PLACE_MAX);
	test_report_add_text(report, failure, seen->text);
	/* The place of the failure is better than the place where the test begins. */
	if (failure->line == 0 && seen->file.size > 0)
		test_report_place(report, failure, seen->file, seen->line);
}

void test_report_add(struct test_report *report, const struct test_seen *seen)
{
	take_name(report, seen);
	if (report->first != NULL)
		tell_first(report->first, report->last, seen->state);
	if (seen->state == TEST_PASSED)
		report->passed++;
	else if (seen->state == TEST_SKIPPED)
		report->skipped++;
	else
		report->failed++;
	if (seen->state == TEST_FAILED)
		add_failure(report, seen, keep(report, str_of(report->last), TEST_NAME_MAX));
}

/* The number at AT in TEXT; *END is behind it. 0: there are no digits, or too many. */
static uint64_t number_at(struct str text, size_t at, size_t *end)
{
	uint64_t number = 0;
	size_t digits = 0;

	while (at + digits < text.size && isdigit((unsigned char)text.data[at + digits])) {
		if (digits < LINE_DIGITS)
			number = 10 * number + (uint64_t)(text.data[at + digits] - '0');
		digits++;
	}
	*end = at + digits;
	return digits <= LINE_DIGITS ? number : 0;
}

static bool ends_word(char c)
{
	return isspace((unsigned char)c) || strchr("\"'`()[]<>|,;=:", c) != NULL;
}

/* Does FILE look like the name of a source file, and may it be shown? */
static bool is_source(struct str file, const char *folder)
{
	size_t dot = file.size;
	char path[PLACE_MAX];

	while (dot > 0 && file.data[dot - 1] != '.' && file.data[dot - 1] != '/')
		dot--;
	if (dot < 2 || file.data[dot - 1] != '.' || file.data[dot - 2] == '/' ||
	    dot == file.size || file.size - dot > EXTENSION_MAX ||
	    file.size >= sizeof(path))
		return false;
	for (size_t i = dot; i < file.size; i++) {
		if (!isalnum((unsigned char)file.data[i]))
			return false;
	}
	if (!isalpha((unsigned char)file.data[dot]) ||
	    memmem(file.data, file.size, "node_modules/", 13) != NULL)
		return false;
	if (file.data[0] != '/')
		return true;
	memcpy(path, file.data, file.size);
	path[file.size] = '\0';
	return folder != NULL && path_within(path, folder);
}

/* Does the end of FOLDER's path begin at AT in TEXT, as an absolute path or behind "../"? */
static size_t folder_at(struct str text, size_t at, const char *folder)
{
	const struct str up = STR("../");
	const struct str rest = str_part(text, at, text.size);

	if (rest.data[0] == '/')
		return str_starts(rest, str_of(folder)) ? strlen(folder) : 0;
	if (at < up.size || !str_equal(str_part(text, at - up.size, up.size), up))
		return 0;
	return end_of_folder(rest, folder);
}

/*
 * The file whose name ends before AT. It is the word there, except when this word is only
 * the end of FOLDER's path, in which there are blanks, and a name below it.
 */
static struct str file_before(struct str text, size_t at, const char *folder)
{
	size_t start = at;

	while (start > 0 && !ends_word(text.data[start - 1]))
		start--;
	if (folder == NULL || strcspn(folder, " ") == strlen(folder))
		return (struct str){text.data + start, at - start};
	for (size_t from = start; from > 0 && text.data[from - 1] != '\n'; from--) {
		const size_t size = folder_at(text, from - 1, folder);

		if (size == 0 || from - 1 + size < start)
			continue;
		for (start = from - 1;
		     start >= 3 && str_is(str_part(text, start - 3, 3), "../");)
			start -= 3;
		break;
	}
	return (struct str){text.data + start, at - start};
}

/* In "FILE line 12" and "FILE", line 12": WORD begins at AT, behind the file. */
static struct str file_of_word(struct str text, size_t at, const char *folder)
{
	if (at > 0 && text.data[at - 1] == ',')
		at--;
	if (at > 0 && text.data[at - 1] == '"')
		at--;
	return file_before(text, at, folder);
}

bool report_place_find(struct str text, const char *folder, struct str *file, uint64_t *line)
{
	const struct str word = STR(" line ");

	for (size_t at = 0, end; at < text.size; at++) {
		struct str found = {0};
		uint64_t number = 0;

		if (text.data[at] == ':') {
			number = number_at(text, at + 1, &end);
			found = number > 0 ? file_before(text, at, folder) : found;
		} else if (text.data[at] == ' ' &&
			   str_starts(str_part(text, at, word.size), word)) {
			number = number_at(text, at + word.size, &end);
			found = number > 0 ? file_of_word(text, at, folder) : found;
		}
		if (number == 0 || !is_source(found, folder))
			continue;
		*file = found;
		*line = number;
		return true;
	}
	return false;
}

/*
 * The lines of test programs that have no format of their own: of cmocka and GoogleTest,
 * Check, Unity and automake, and the progress of ctest and meson.
 */

struct lines {
	struct test_report *report;
	struct str group, select;
	struct str running; /* cmocka, GoogleTest: the test that has begun */
	const char *words;  /* where the words of this test begin */
	/* the first of the failures whose words are printed elsewhere … */
	size_t without;
	struct buf loose; /* … and these words */
	/* Check: counted by the summary, so not counted line by line */
	uint64_t check_passed;
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

/* The name in "[ MARK ] NAME (0 ms)". False: LINE has another form. */
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

/* Lines of cmocka and GoogleTest, which have the same form. */
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
		/* The failed tests are listed again at the end. */
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

/* Take the part of REST up to the next colon, and the colon. */
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

/* The state at the end of a progress line of ctest or meson; 0: there is none. */
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
	/* meson lists the failed tests again at the end. */
	for (size_t i = 0; i < lines->report->count; i++) {
		if (str_is(name, lines->report->failures[i].name))
			return true;
	}
	add(lines, state, name, STR(""));
	return true;
}

/*
 * Errors that were printed to another stream: the k-th error belongs to the k-th failure.
 */
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

/* SELECT is that of every test in TEXT. */
static void lines_text(struct str text, struct str group, struct str select,
		       struct test_report *report)
{
	struct lines lines = {.report = report,
			      .group = group,
			      .select = select,
			      .without = report->count};
	struct str line;

	buf_init(&lines.loose, TEST_TEXT_MAX);
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

/*
 * The Test Anything Protocol, versions 12 to 14 with subtests, and prove's lines around
 * it. A test that has subtests does not count itself, except when it failed and none of
 * its subtests did.
 */

enum {
	DEPTH_MAX = 8,
	INDENT = 4,
};

struct tap {
	struct test_report *report;
	struct str group;
	struct str file; /* prove: the file to which the lines belong */
	bool prove;
	uint64_t file_failed;         /* the number of failed tests when the file began */
	struct str titles[DEPTH_MAX]; /* "# Subtest: …" */
	/* seen at each depth since the last test of the depth above */
	uint64_t tests[DEPTH_MAX];
	uint64_t failed[DEPTH_MAX];
	/* A failed test waits for the lines with the reason. */
	bool waits;
	struct test_seen seen;
	const char *text_start, *text_end;
	struct buf name, select;
};

static void flush(struct tap *tap)
{
	if (!tap->waits)
		return;
	tap->waits = false;
	if (tap->text_start != NULL)
		tap->seen.text = (struct str){tap->text_start,
					      (size_t)(tap->text_end - tap->text_start)};
	tap->seen.name = buf_str(&tap->name);
	tap->seen.select = buf_str(&tap->select);
	test_report_add(tap->report, &tap->seen);
	tap->text_start = NULL;
}

/* The place of the directive WORD behind a "#" in TEXT, or none. */
static size_t directive(struct str text, const char *word, size_t size)
{
	size_t at = str_find(text, STR("#"), 0);

	for (; at != (size_t)-1; at = str_find(text, STR("#"), at + 1)) {
		struct str rest = str_part(text, at + 1, SIZE_MAX);

		/* Do not trim the end as well: with many "#" this would take long. */
		while (rest.size > 0 && isspace((unsigned char)rest.data[0]))
			rest = str_part(rest, 1, SIZE_MAX);
		if (rest.size >= size && strncasecmp(rest.data, word, size) == 0)
			return at;
	}
	return (size_t)-1;
}

/* "12 - name" without the number and the dash. */
static struct str name_of(struct str text)
{
	text = str_trim(text);
	while (text.size > 0 && isdigit((unsigned char)text.data[0]))
		text = str_part(text, 1, SIZE_MAX);
	text = str_trim(text);
	if (str_starts(text, STR("- ")))
		text = str_trim(str_part(text, 2, SIZE_MAX));
	return text;
}

static void set_name(struct tap *tap, size_t depth, struct str words)
{
	struct str name = name_of(words);

	buf_clear(&tap->name);
	buf_clear(&tap->select);
	if (tap->file.size > 0)
		(void)buf_addf(&tap->name, "%.*s: ", (int)tap->file.size, tap->file.data);
	for (size_t i = 0; i < depth; i++) {
		if (tap->titles[i].size > 0)
			(void)buf_addf(&tap->name, "%.*s > ", (int)tap->titles[i].size,
				       tap->titles[i].data);
	}
	(void)buf_addstr(&tap->name, name.size > 0 ? name : str_trim(words));
	(void)buf_addstr(&tap->select, tap->file);
}

static void add_test(struct tap *tap, size_t depth, struct str rest, bool ok)
{
	size_t skip = directive(rest, "skip", 4), todo = directive(rest, "todo", 4);
	bool skipped = skip != (size_t)-1 || todo != (size_t)-1;
	uint64_t inner = 0, inner_failed = 0;

	flush(tap);
	for (size_t i = depth + 1; i < DEPTH_MAX; i++) {
		inner += tap->tests[i];
		inner_failed += tap->failed[i];
		tap->tests[i] = tap->failed[i] = 0;
		tap->titles[i] = (struct str){0};
	}
	tap->titles[depth] = (struct str){0};
	tap->tests[depth]++;
	tap->failed[depth] += !ok && !skipped;
	/* The parts of the test were counted. */
	if (inner > 0 && (ok || skipped || inner_failed > 0))
		return;
	if (skip != (size_t)-1)
		rest = str_part(rest, 0, skip);
	set_name(tap, depth, rest);
	tap->seen = (struct test_seen){
		.state = skipped ? TEST_SKIPPED
			 : ok    ? TEST_PASSED
				 : TEST_FAILED,
		.group = tap->group,
	};
	tap->waits = true;
	if (tap->seen.state != TEST_FAILED)
		flush(tap);
}

/* prove: "t/a.t .. " begins a file. */
static bool begins_file(struct tap *tap, struct str line)
{
	struct str text = str_trim(str_part(line, 0, LINE_MAX_BYTES));
	size_t dots = text.size;

	while (dots > 0 && text.data[dots - 1] == '.')
		dots--;
	if (!tap->prove || line.size == 0 || isspace((unsigned char)line.data[0]) ||
	    text.size - dots < 2 || dots < 2 || text.data[dots - 1] != ' ')
		return false;
	flush(tap);
	tap->file = str_part(text, 0, dots - 1);
	if (str_starts(tap->file, STR("./")))
		tap->file = str_part(tap->file, 2, SIZE_MAX);
	tap->file_failed = tap->report->failed;
	return true;
}

/* prove: the result of a whole file, whose tests were reported before. */
static bool ends_file(struct tap *tap, struct str line)
{
	bool skipped = str_starts(line, STR("skipped"));

	if (!tap->prove || tap->file.size == 0 || (!skipped && !str_is(line, "ok")))
		return false;
	flush(tap);
	if (skipped)
		test_report_add(tap->report, &(struct test_seen){.state = TEST_SKIPPED,
								 .group = tap->group,
								 .name = tap->file});
	return true;
}

/* prove: the whole file failed, but none of its tests did. */
static bool fails_file(struct tap *tap, struct str line)
{
	if (!tap->prove || tap->file.size == 0 ||
	    (!str_starts(line, STR("Dubious, test returned")) &&
	     !str_starts(line, STR("Failed ")) && !str_starts(line, STR("No subtests run"))))
		return false;
	flush(tap);
	if (tap->report->failed == tap->file_failed) {
		const struct test_seen seen = {
			.state = TEST_FAILED,
			.group = tap->group,
			.name = tap->file,
			.select = tap->file,
			.text = line,
		};

		test_report_add(tap->report, &seen);
	}
	return true;
}

/* Take the place where the test begins, as node prints it. */
static void take_tap_place(struct tap *tap, struct str text)
{
	if (str_starts(text, STR("location: ")))
		(void)report_place_find(text, tap->report->folder, &tap->seen.file,
					&tap->seen.line);
}

/* Is TEXT one of the lines that stand before the real message of a diagnostic? */
static bool is_noise(struct str text)
{
	static const char *const noise[] = {"---",       "...",          "duration_ms:",
					    "location:", "failureType:", "type:"};

	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		if (str_starts(text, str_of(noise[i])))
			return true;
	}
	return str_trim(text).size == 0;
}

static void take_tap_line(struct tap *tap, struct str line)
{
	size_t indent = 0, depth;
	struct str text;

	if (ends_file(tap, line))
		return;
	while (indent < line.size && line.data[indent] == ' ')
		indent++;
	text = str_part(line, indent, LINE_MAX_BYTES);
	depth = indent / INDENT;
	if (indent % INDENT == 0 && depth < DEPTH_MAX) {
		if (str_is(text, "ok") || str_starts(text, STR("ok "))) {
			add_test(tap, depth, str_part(text, 2, SIZE_MAX), true);
			return;
		}
		if (str_is(text, "not ok") || str_starts(text, STR("not ok "))) {
			add_test(tap, depth, str_part(text, 6, SIZE_MAX), false);
			return;
		}
		if (str_starts(text, STR("# Subtest: "))) {
			flush(tap);
			tap->titles[depth] = str_trim(str_part(text, 11, SIZE_MAX));
			return;
		}
	}
	if (begins_file(tap, line) || fails_file(tap, line))
		return;
	if (str_starts(text, STR("Bail out!"))) {
		flush(tap);
		test_report_add(tap->report, &(struct test_seen){.state = TEST_FAILED,
								 .group = tap->group,
								 .name = STR("Bail out"),
								 .text = text});
		return;
	}
	if (!tap->waits)
		return;
	take_tap_place(tap, text);
	if (tap->text_start == NULL && is_noise(text))
		return;
	if (tap->text_start == NULL)
		tap->text_start = line.data;
	tap->text_end = line.data + line.size;
}

static void parse_tap(struct str text, struct str group, bool prove,
		      struct test_report *report)
{
	struct tap tap = {.report = report, .group = group, .prove = prove};
	struct str line;

	buf_init(&tap.name, 2 * (size_t)DEPTH_MAX * TEST_NAME_MAX);
	buf_init(&tap.select, 2 * (size_t)DEPTH_MAX * TEST_NAME_MAX);
	while (str_next_line(&text, &line)) {
		if (str_ends(line, STR("\r")))
			line.size--;
		take_tap_line(&tap, line);
	}
	flush(&tap);
	buf_fini(&tap.name);
	buf_fini(&tap.select);
}

void report_tap_text(struct str text, struct str group, struct test_report *report)
{
	parse_tap(text, group, false, report);
}

void report_parse_tap(const struct test_output *output, struct test_report *report)
{
	parse_tap(output->out, STR(""), false, report);
}

void report_parse_prove(const struct test_output *output, struct test_report *report)
{
	parse_tap(output->out, STR(""), true, report);
}

/* The lines of cargo's test programs. */

/*
 * The words of NAME, which begin behind "---- NAME stdout ----" and end where the next
 * such line begins.
 */
static struct str words_of(struct str text, struct str name)
{
	const struct str mark = STR("---- "), tail = STR(" stdout ----");

	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		struct str rest = str_part(text, at + mark.size, SIZE_MAX);
		size_t end, next;

		if (!str_starts(rest, name) ||
		    !str_starts(str_part(rest, name.size, SIZE_MAX), tail))
			continue;
		rest = str_part(rest, name.size + tail.size, SIZE_MAX);
		end = str_find(rest, STR("\nfailures:\n"), 0);
		next = str_find(rest, STR("\n---- "), 0);
		if (next < end)
			end = next;
		return str_trim(str_part(rest, 0, end));
	}
	return STR("");
}

/*
 * The name in "test NAME ... ok"; empty: LINE has another form. OUTCOME becomes the text
 * behind it.
 */
static struct str test_of(struct str line, struct str *outcome)
{
	const struct str dots = STR(" ... ");
	size_t at = str_find(line, dots, 0);

	if (!str_starts(line, STR("test ")) || at == (size_t)-1)
		return STR("");
	*outcome = str_trim(str_part(line, at + dots.size, SIZE_MAX));
	line = str_part(line, 5, at - 5);
	/* "name - should panic" */
	at = str_find(line, STR(" - should panic"), 0);
	return str_part(line, 0, at);
}

void report_cargo_text(struct str text, struct str group, struct test_report *report)
{
	struct str rest = text, line;

	while (str_next_line(&rest, &line)) {
		struct str outcome = {0};
		struct str name = test_of(str_part(line, 0, LINE_MAX_BYTES), &outcome);
		struct test_seen seen = {.group = group, .name = name, .select = name};

		if (name.size == 0)
			continue;
		if (str_starts(outcome, STR("ok")))
			seen.state = TEST_PASSED;
		else if (str_starts(outcome, STR("ignored")))
			seen.state = TEST_SKIPPED;
		else if (str_starts(outcome, STR("FAILED")))
			seen.state = TEST_FAILED;
		else
			continue;
		if (seen.state == TEST_FAILED && report->count < TEST_TEXTS_MAX)
			seen.text = words_of(rest, name);
		test_report_add(report, &seen);
	}
}

/*
 * How far phpunit and pytest have come before they write their report, or when they never
 * write one.
 */

enum {
	MESSAGE_MAX_BYTES = 64 << 10, /* of a line that is searched */
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

/*
 * The value of KEY in a message "##teamcity[word key='value' …]". It ends at a "'"
 * without a bar before it.
 */
static void message_value(struct str line, const char *key, struct buf *out)
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
	enum test_state state; /* of the running test; 0: no test is running */
};

/* "php_qn://FILE::\CLASS::METHOD" */
static void begin_test(struct teamcity *teamcity, struct str line)
{
	const struct str scheme = STR("php_qn://");
	struct str place;
	size_t at;

	message_value(line, "name", &teamcity->name);
	message_value(line, "locationHint", &teamcity->value);
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
		message_value(line, "message", &teamcity->value);
		(void)buf_addf(&teamcity->words, "%s\n", teamcity->value.data);
		message_value(line, "details", &teamcity->value);
		(void)buf_addstr(&teamcity->words, buf_str(&teamcity->value));
	} else if (str_starts(line, STR("testIgnored "))) {
		teamcity->state = TEST_SKIPPED;
	} else if (str_starts(line, STR("testFinished "))) {
		end_test(teamcity);
	}
}

static void teamcity_text(struct str text, struct test_report *report)
{
	const struct str mark = STR("##teamcity[");
	struct teamcity teamcity = {.report = report};
	struct str line;

	buf_init(&teamcity.name, VALUE_MAX);
	buf_init(&teamcity.class, VALUE_MAX);
	buf_init(&teamcity.file, VALUE_MAX);
	buf_init(&teamcity.value, TEST_TEXT_MAX);
	buf_init(&teamcity.words, 2 * (size_t)TEST_TEXT_MAX + 1);
	while (str_next_line(&text, &line)) {
		if (str_starts(line, mark))
			take_message(&teamcity,
				     str_part(line, mark.size, MESSAGE_MAX_BYTES));
	}
	buf_fini(&teamcity.name);
	buf_fini(&teamcity.class);
	buf_fini(&teamcity.file);
	buf_fini(&teamcity.value);
	buf_fini(&teamcity.words);
}

struct pytest {
	struct test_report *report;
	struct str file; /* the file to which the letters belong; empty: none */
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

/* Each letter is one test, which has a number here instead of its name. */
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

/* Take "tests/test_a.py::test_x PASSED", the form of -v. */
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

static void take_pytest_line(struct pytest *pytest, struct str line)
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

static void pytest_text(struct str text, struct test_report *report)
{
	struct pytest pytest = {.report = report};
	struct str line;

	while (str_next_line(&text, &line)) {
		/* pytest's list of failures, which names the failed tests again. */
		if (str_starts(line, STR("====")) && report->failed > 0 &&
		    str_find(line, STR(" FAILURES "), 0) != (size_t)-1)
			break;
		take_pytest_line(&pytest, str_part(line, 0, MESSAGE_MAX_BYTES));
	}
}

/* The XML that test runners write. */

enum { ENTITY_MAX = 12, CODE_MAX = 0x10ffff };

/* Skip the rest up to END, and END itself. False: END is missing. */
static bool skip_to(struct xml *xml, struct str end)
{
	size_t at = str_find(xml->rest, end, 0);

	if (at == (size_t)-1)
		return false;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return true;
}

/* The end of a tag that begins at the rest: ">" outside of quotes. */
static size_t tag_end(struct str text)
{
	char quote = '\0';

	for (size_t at = 0; at < text.size; at++) {
		char c = text.data[at];

		if (quote != '\0')
			quote = c == quote ? '\0' : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '>')
			return at;
	}
	return (size_t)-1;
}

static enum xml_event read_tag(struct xml *xml)
{
	size_t end = tag_end(xml->rest);
	struct str tag;
	size_t size = 0;
	bool closing;

	if (end == (size_t)-1)
		return XML_END;
	tag = str_part(xml->rest, 1, end - 1);
	xml->rest = str_part(xml->rest, end + 1, SIZE_MAX);
	closing = str_starts(tag, STR("/"));
	xml->closes = !closing && str_ends(tag, STR("/"));
	if (closing)
		tag = str_part(tag, 1, SIZE_MAX);
	if (xml->closes)
		tag.size--;
	while (size < tag.size && !isspace((unsigned char)tag.data[size]))
		size++;
	xml->name = str_part(tag, 0, size);
	xml->attributes = str_part(tag, size, SIZE_MAX);
	return closing ? XML_CLOSE : XML_OPEN;
}

static enum xml_event read_cdata(struct xml *xml)
{
	const struct str begin = STR("<![CDATA["), end = STR("]]>");
	size_t at = str_find(xml->rest, end, begin.size);

	if (at == (size_t)-1)
		return XML_END;
	xml->text = str_part(xml->rest, begin.size, at - begin.size);
	xml->literal = true;
	xml->rest = str_part(xml->rest, at + end.size, SIZE_MAX);
	return XML_TEXT;
}

enum xml_event xml_next(struct xml *xml)
{
	if (xml->closes) {
		xml->closes = false;
		return XML_CLOSE;
	}
	while (xml->rest.size > 0) {
		if (xml->rest.data[0] != '<') {
			size_t at = str_find(xml->rest, STR("<"), 0);

			if (at == (size_t)-1)
				return XML_END;
			xml->text = str_part(xml->rest, 0, at);
			xml->literal = false;
			xml->rest = str_part(xml->rest, at, SIZE_MAX);
			return XML_TEXT;
		}
		if (str_starts(xml->rest, STR("<![CDATA[")))
			return read_cdata(xml);
		if (str_starts(xml->rest, STR("<!--"))) {
			if (!skip_to(xml, STR("-->")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<?"))) {
			if (!skip_to(xml, STR("?>")))
				return XML_END;
		} else if (str_starts(xml->rest, STR("<!"))) {
			if (!skip_to(xml, STR(">")))
				return XML_END;
		} else {
			return read_tag(xml);
		}
	}
	return XML_END;
}

/* The character's number for "#10" or "#xa"; 0: there is none. */
static uint32_t code_of(struct str entity)
{
	bool hex = entity.size > 2 && entity.data[1] == 'x';
	uint32_t code = 0;

	for (size_t i = hex ? 2 : 1; i < entity.size; i++) {
		char c = entity.data[i];
		uint32_t digit;

		if (isdigit((unsigned char)c))
			digit = (uint32_t)(c - '0');
		else if (hex && isxdigit((unsigned char)c))
			digit = (uint32_t)(tolower((unsigned char)c) - 'a') + 10;
		else
			return 0;
		code = code * (hex ? 16 : 10) + digit;
		if (code > CODE_MAX)
			return 0;
	}
	return code;
}

/* Append the character that ENTITY (without "&" and ";") means. False: it means none. */
static bool add_entity(struct str entity, struct buf *out)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
	uint32_t code;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_is(entity, known[i].name))
			return buf_addc(out, known[i].c);
	}
	code = entity.size > 1 && entity.data[0] == '#' ? code_of(entity) : 0;
	if (code == 0)
		return false;
	text_add_code(code, out);
	return true;
}

static void decode(struct str raw, struct buf *out)
{
	for (size_t at = 0; at < raw.size;) {
		const char *amp = memchr(raw.data + at, '&', raw.size - at);
		size_t to = amp != NULL ? (size_t)(amp - raw.data) : raw.size;
		size_t end;

		(void)buf_addstr(out, str_part(raw, at, to - at));
		at = to;
		if (at == raw.size)
			break;
		end = str_find(str_part(raw, at, ENTITY_MAX), STR(";"), 0);
		if (end != (size_t)-1 && add_entity(str_part(raw, at + 1, end - 1), out)) {
			at += end + 1;
		} else {
			(void)buf_addc(out, '&');
			at++;
		}
	}
}

void xml_add_text(const struct xml *xml, struct buf *out)
{
	if (xml->literal)
		(void)buf_addstr(out, xml->text);
	else
		decode(xml->text, out);
}

bool xml_attribute(const struct xml *xml, const char *name, struct buf *out)
{
	struct str rest = xml->attributes;

	for (;;) {
		size_t equal, end;
		struct str key;

		rest = str_trim(rest);
		equal = str_find(rest, STR("="), 0);
		if (equal == (size_t)-1)
			return false;
		key = str_trim(str_part(rest, 0, equal));
		rest = str_trim(str_part(rest, equal + 1, SIZE_MAX));
		if (rest.size == 0 || (rest.data[0] != '"' && rest.data[0] != '\''))
			return false;
		end = str_find(rest, (struct str){rest.data, 1}, 1);
		if (end == (size_t)-1)
			return false;
		if (str_is(key, name)) {
			buf_clear(out);
			decode(str_part(rest, 1, end - 1), out);
			return true;
		}
		rest = str_part(rest, end + 1, SIZE_MAX);
	}
}

/*
 * The JUnit XML of phpunit, pytest, ctest and meson, and of programs that print it. The
 * output of a test of ctest or meson is read once more, because such a test usually is a
 * program of many tests.
 */

static void any_text(struct str text, struct str group, struct str select,
		     struct test_report *report);

enum style { PHPUNIT, PYTEST, CTEST, MESON, PRINTED };

enum part { PART_NONE, PART_FAILURE, PART_OUT, PART_ERROR };

struct junit {
	enum style style;
	struct str group;
	struct test_report *report;
	struct xml xml;
	bool in_case;
	enum part part;
	enum test_state state;
	struct buf suite, name, class, file, message, value;
	struct buf failure, out, error;
	uint64_t line;
	size_t suite_first;   /* the number of failures when the suite began */
	struct buf suite_out; /* the output of the suite itself (meson's TAP) */
};

static void junit_init(struct junit *junit, enum style style, struct str text,
		       struct test_report *report)
{
	*junit = (struct junit){.style = style, .report = report, .xml.rest = text};
	buf_init(&junit->suite, VALUE_MAX);
	buf_init(&junit->name, VALUE_MAX);
	buf_init(&junit->class, VALUE_MAX);
	buf_init(&junit->file, VALUE_MAX);
	buf_init(&junit->message, OUTPUT_MAX);
	buf_init(&junit->value, VALUE_MAX);
	buf_init(&junit->failure, OUTPUT_MAX);
	buf_init(&junit->out, OUTPUT_MAX);
	buf_init(&junit->error, OUTPUT_MAX);
	buf_init(&junit->suite_out, OUTPUT_MAX);
}

static void junit_fini(struct junit *junit)
{
	struct buf *all[] = {
		&junit->suite,   &junit->name,      &junit->class,   &junit->file,
		&junit->message, &junit->value,     &junit->failure, &junit->out,
		&junit->error,   &junit->suite_out,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		buf_fini(all[i]);
}

static void attribute_of(struct junit *junit, const char *name, struct buf *out)
{
	if (!xml_attribute(&junit->xml, name, out))
		buf_clear(out);
}

static void begin_case(struct junit *junit)
{
	junit->in_case = true;
	junit->part = PART_NONE;
	junit->state = TEST_PASSED;
	buf_clear(&junit->message);
	buf_clear(&junit->failure);
	buf_clear(&junit->out);
	buf_clear(&junit->error);
	attribute_of(junit, "name", &junit->name);
	attribute_of(junit, junit->style == PHPUNIT ? "class" : "classname", &junit->class);
	attribute_of(junit, "file", &junit->file);
	attribute_of(junit, "line", &junit->value);
	junit->line = strtoul(junit->value.data, NULL, 10);
	/* pytest counts lines from 0. */
	junit->line += junit->style == PYTEST && junit->value.size > 0;
}

static void open_element(struct junit *junit)
{
	struct str name = junit->xml.name;

	if (str_is(name, "testsuite")) {
		attribute_of(junit, "name", &junit->suite);
		junit->suite_first = junit->report->count;
		buf_clear(&junit->suite_out);
	} else if (str_is(name, "testcase")) {
		begin_case(junit);
	} else if (str_is(name, "failure") || str_is(name, "error")) {
		junit->state = TEST_FAILED;
		junit->part = PART_FAILURE;
		attribute_of(junit, "message", &junit->message);
	} else if (str_is(name, "skipped")) {
		junit->state = TEST_SKIPPED;
		junit->part = PART_NONE;
	} else if (str_is(name, "system-out")) {
		junit->part = PART_OUT;
	} else if (str_is(name, "system-err")) {
		junit->part = PART_ERROR;
	}
}

/*
 * Make pytest's own name, "tests/test_a.py::TestC::test_x", of "tests.test_a.TestC" and
 * the file.
 */
static void pytest_node(struct junit *junit, struct buf *node)
{
	struct str class = buf_str(&junit->class);
	struct str module = buf_str(&junit->file);

	(void)buf_addstr(node, module);
	if (str_ends(module, STR(".py")))
		module.size -= 3;
	if (class.size > module.size) {
		struct str rest = str_part(class, module.size + 1, SIZE_MAX);

		(void)buf_adds(node, "::");
		for (size_t i = 0; i < rest.size; i++) {
			if (rest.data[i] == '.')
				(void)buf_adds(node, "::");
			else
				(void)buf_addc(node, rest.data[i]);
		}
	}
	(void)buf_addf(node, "::%s", junit->name.data);
}

static struct str after_slash(struct str text)
{
	for (size_t at; (at = str_find(text, STR(" / "), 0)) != (size_t)-1;)
		text = str_part(text, at + 3, SIZE_MAX);
	return text;
}

/* The names of this test: for people, and for its runner. */
static void name_case(struct junit *junit, struct buf *name, struct buf *select)
{
	struct str suite = buf_str(&junit->suite);

	switch (junit->style) {
	case PHPUNIT:
		(void)buf_addf(name, "%s::%s", junit->class.data, junit->name.data);
		(void)buf_addstr(select, buf_str(name));
		break;
	case PYTEST:
		pytest_node(junit, name);
		if (junit->file.size > 0)
			(void)buf_addstr(select, buf_str(name));
		break;
	case CTEST:
		(void)buf_addstr(name, buf_str(&junit->name));
		(void)buf_addstr(select, buf_str(name));
		break;
	case MESON:
		/* When a test has several parts, the suite has its name. */
		if (str_find(suite, STR(" / "), 0) == (size_t)-1)
			suite = buf_str(&junit->name);
		else
			(void)buf_addf(name, "%.*s / ", (int)after_slash(suite).size,
				       after_slash(suite).data);
		(void)buf_addstr(name, after_slash(buf_str(&junit->name)));
		(void)buf_addstr(select, after_slash(suite));
		break;
	case PRINTED:
		if (junit->class.size > 0)
			(void)buf_addf(name, "%s.", junit->class.data);
		(void)buf_addstr(name, buf_str(&junit->name));
		break;
	}
}

/* Was the test a program of several tests, by its output? Then add them. */
static bool add_inner(struct junit *junit, struct str name, struct str select,
		      struct str printed)
{
	struct test_report inner;
	bool fits;

	if (junit->style != CTEST && junit->style != MESON)
		return false;
	test_report_init(&inner, NULL, NULL);
	any_text(printed, name, select, &inner);
	fits = test_report_total(&inner) > 0 &&
	       (inner.failed > 0) == (junit->state == TEST_FAILED);
	test_report_fini(&inner);
	if (fits)
		any_text(printed, name, select, junit->report);
	return fits;
}

static void end_case(struct junit *junit)
{
	struct buf name, select, text;

	junit->in_case = false;
	buf_init(&name, 4 * VALUE_MAX);
	buf_init(&select, 4 * VALUE_MAX);
	buf_init(&text, 3 * OUTPUT_MAX);
	name_case(junit, &name, &select);
	if (junit->failure.size == 0)
		(void)buf_addstr(&junit->failure, buf_str(&junit->message));
	(void)buf_addstr(&text, buf_str(&junit->failure));
	if (junit->style == CTEST || junit->style == MESON) {
		(void)buf_end_line(&text);
		(void)buf_addstr(&text, buf_str(&junit->out));
		(void)buf_end_line(&text);
		(void)buf_addstr(&text, buf_str(&junit->error));
	}
	if (junit->state == TEST_SKIPPED ||
	    !add_inner(junit, buf_str(&name), buf_str(&select), buf_str(&text))) {
		const struct test_seen seen = {
			.state = junit->state,
			.group = junit->group,
			.name = buf_str(&name),
			.select = buf_str(&select),
			.file = buf_str(&junit->file),
			.line = junit->line,
			.text = str_trim(buf_str(&text)),
		};

		test_report_add(junit->report, &seen);
	}
	buf_fini(&name);
	buf_fini(&select);
	buf_fini(&text);
}

/* Add the words of a suite's failures from its output, which has them in their order. */
static void end_suite(struct junit *junit)
{
	struct test_report *report = junit->report;
	struct test_report inner;

	if (junit->suite_out.size == 0)
		return;
	test_report_init(&inner, NULL, NULL);
	report_tap_text(buf_str(&junit->suite_out), STR(""), &inner);
	for (size_t i = 0; i < inner.count && junit->suite_first + i < report->count &&
			   inner.count == report->count - junit->suite_first;
	     i++)
		test_report_add_text(report, &report->failures[junit->suite_first + i],
				     str_of(inner.failures[i].text));
	test_report_fini(&inner);
	buf_clear(&junit->suite_out);
}

static void add_words(struct junit *junit)
{
	if (junit->part == PART_FAILURE)
		xml_add_text(&junit->xml, &junit->failure);
	else if (junit->part == PART_OUT)
		xml_add_text(&junit->xml, junit->in_case ? &junit->out : &junit->suite_out);
	else if (junit->part == PART_ERROR && junit->in_case)
		xml_add_text(&junit->xml, &junit->error);
}

static void read_elements(struct junit *junit)
{
	enum xml_event event;

	while ((event = xml_next(&junit->xml)) != XML_END) {
		if (event == XML_OPEN)
			open_element(junit);
		else if (event == XML_TEXT)
			add_words(junit);
		else if (str_is(junit->xml.name, "testcase") && junit->in_case)
			end_case(junit);
		else if (str_is(junit->xml.name, "testsuite"))
			end_suite(junit);
		if (event == XML_CLOSE)
			junit->part = PART_NONE;
	}
}

static void parse_junit(enum style style, struct str text, struct str group,
			struct test_report *report)
{
	struct junit junit;

	junit_init(&junit, style, text, report);
	junit.group = group;
	read_elements(&junit);
	junit_fini(&junit);
}

void report_parse_phpunit(const struct test_output *output, struct test_report *report)
{
	parse_junit(PHPUNIT, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		teamcity_text(output->progress, report);
}

void report_parse_pytest(const struct test_output *output, struct test_report *report)
{
	parse_junit(PYTEST, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		pytest_text(output->out, report);
}

void report_parse_ctest(const struct test_output *output, struct test_report *report)
{
	parse_junit(CTEST, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		lines_text(output->out, STR(""), STR(""), report);
}

void report_parse_meson(const struct test_output *output, struct test_report *report)
{
	parse_junit(MESON, output->report, STR(""), report);
	if (test_report_total(report) == 0)
		lines_text(output->out, STR(""), STR(""), report);
}

static void junit_text(struct str text, struct str group, struct test_report *report)
{
	size_t at = str_find(text, STR("<testsuite"), 0);

	if (at != (size_t)-1)
		parse_junit(PRINTED, str_part(text, at, SIZE_MAX), group, report);
}

enum kind { TAP, LINES, CARGO, JUNIT, KINDS };

static void read_as(enum kind kind, struct str text, struct str group, struct str select,
		    struct test_report *report)
{
	size_t first = report->count;

	if (kind == LINES)
		lines_text(text, group, select, report);
	else if (kind == TAP)
		report_tap_text(text, group, report);
	else if (kind == CARGO)
		report_cargo_text(text, group, report);
	else
		junit_text(text, group, report);
	/* Such tests cannot be run again one by one. */
	for (size_t i = first; i < report->count; i++)
		report->failures[i].select =
			select.size > 0 ? arena_copy(&report->arena, select) : NULL;
}

static void any_text(struct str text, struct str group, struct str select,
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

void report_parse_any(const struct test_output *output, struct test_report *report)
{
	struct buf both;

	/* The errors of a library may be in the other stream. */
	buf_init(&both, output->out.size + output->error.size + 2);
	(void)buf_addstr(&both, output->out);
	(void)buf_end_line(&both);
	(void)buf_addstr(&both, output->error);
	any_text(buf_str(&both), STR(""), STR(""), report);
	buf_fini(&both);
}
