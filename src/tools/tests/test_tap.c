/*
 * test_tap: the Test Anything Protocol, versions 12 to 14 with subtests, and prove's lines
 * around it; see test_parse.h. A test that has subtests counts for none itself, unless it
 * failed and none of them did.
 */
#include "tools/tests/test_parse.h"

#include <ctype.h>
#include <strings.h>

enum {
	DEPTH_MAX = 8,
	LINE_MAX_BYTES = 4096, /* of a line that are looked at */
	INDENT = 4,
};

struct tap {
	struct test_report *report;
	struct str group;
	struct str file; /* prove: whose lines these are */
	bool prove;
	uint64_t at_file;             /* tests when the file began */
	uint64_t file_failed;         /* failed ones then */
	struct str titles[DEPTH_MAX]; /* "# Subtest: …" */
	uint64_t tests[DEPTH_MAX];    /* seen at each depth since the last above it */
	uint64_t failed[DEPTH_MAX];
	/* A failed test waits for the lines that say why. */
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

/* Has WORDS as a directive behind a "#"? Its place, or none. */
static size_t directive(struct str text, const char *word, size_t size)
{
	size_t at = str_find(text, STR("#"), 0);

	for (; at != (size_t)-1; at = str_find(text, STR("#"), at + 1)) {
		struct str rest = str_part(text, at + 1, SIZE_MAX);

		/* Its end is not looked at: for each of many "#" that would take long. */
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
	/* Its parts have been counted. */
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
	tap->at_file = test_report_total(tap->report);
	tap->file_failed = tap->report->failed;
	return true;
}

/* prove: what became of the file as a whole, when its tests have been told. */
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

/* prove: the file as a whole failed, and no test of it did. */
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

/* Where node says that the test begins. */
static void take_place(struct tap *tap, struct str text)
{
	if (str_starts(text, STR("location: ")))
		(void)test_place_find(text, tap->report->folder, &tap->seen.file,
				      &tap->seen.line);
}

/* Is TEXT a line with which diagnostics begin before they come to the point? */
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

static void take_line(struct tap *tap, struct str line)
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
	take_place(tap, text);
	if (tap->text_start == NULL && is_noise(text))
		return;
	if (tap->text_start == NULL)
		tap->text_start = line.data;
	tap->text_end = line.data + line.size;
}

static void parse(struct str text, struct str group, bool prove, struct test_report *report)
{
	struct tap tap = {.report = report, .group = group, .prove = prove};
	struct str line;

	buf_init(&tap.name, 2 * (size_t)DEPTH_MAX * TEST_NAME_MAX);
	buf_init(&tap.select, 2 * (size_t)DEPTH_MAX * TEST_NAME_MAX);
	while (str_next_line(&text, &line)) {
		if (str_ends(line, STR("\r")))
			line.size--;
		take_line(&tap, line);
	}
	flush(&tap);
	buf_fini(&tap.name);
	buf_fini(&tap.select);
}

void test_tap_text(struct str text, struct str group, struct test_report *report)
{
	parse(text, group, false, report);
}

void test_parse_tap(const struct test_output *output, struct test_report *report)
{
	parse(output->out, STR(""), false, report);
}

void test_parse_prove(const struct test_output *output, struct test_report *report)
{
	parse(output->out, STR(""), true, report);
}
