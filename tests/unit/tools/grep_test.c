/*
 * Tests of the tool grep: what it answers, in which order, and that ripgrep finds the
 * same.
 */
#include "tree.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/value.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void grep(struct hand *hand, const char *json)
{
	tree_run(hand, &grep_tool, json, RESULT_DONE);
}

static void assert_answer(struct hand *hand, const char *text)
{
	assert_string_equal(hand->result.text.data, text);
}

static int64_t detail(struct hand *hand, const char *name)
{
	return value_integer(value_member(hand->result.details, name));
}

static void shows_the_newest_file_first_then_the_lines_in_order(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "old.c", "needle 1\nx\nneedle 2\n", 10);
	tree_write(hand, "d/new.c", "x\nneedle 3\n", 20);
	tree_write(hand, "b.c", "needle 4\n", 10);
	grep(hand, "{\"pattern\": \"needle\"}");
	assert_answer(hand, "4 matching lines in 3 files, newest file first.\n"
			    "\n"
			    "d/new.c\n"
			    "2: needle 3\n"
			    "\n"
			    "b.c\n"
			    "1: needle 4\n"
			    "\n"
			    "old.c\n"
			    "1: needle 1\n"
			    "3: needle 2\n");
	assert_int_equal(detail(hand, "matching_lines"), 4);
	assert_int_equal(detail(hand, "matching_files"), 3);
	assert_int_equal(value_count(value_member(hand->result.details, "rows")), 4);
}

static void modes_show_names_or_counts(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a", "x\nx\n", 10);
	tree_write(hand, "b", "x\n", 20);
	tree_write(hand, "c", "y\n", 30);
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"files\"}");
	assert_answer(hand, "2 files have a match, newest file first.\n\nb\na\n");
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"count\"}");
	assert_answer(hand,
		      "3 matching lines in 2 files, newest file first.\n\nb: 1\na: 2\n");
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"files\", \"limit\": 1, \"offset\": 1}");
	assert_answer(hand,
		      "2 files have a match, newest file first; files 2 to 2 follow.\n\na\n");
}

static void limit_and_offset_page_through_the_lines(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a", "x1\nx2\nx3\n", 20);
	tree_write(hand, "b", "x4\nx5\n", 10);
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"lines\", \"limit\": 2}");
	assert_answer(hand, "5 matching lines in 2 files, newest file first; lines 1 to 2 "
			    "follow, the next with offset=2.\n\na\n1: x1\n2: x2\n");
	assert_int_equal(hand->result.left_out_lines, 3);
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"lines\", \"limit\": 2, \"offset\": 2}");
	assert_answer(hand, "5 matching lines in 2 files, newest file first; lines 3 to 4 "
			    "follow, the next with offset=4.\n\na\n3: x3\n\nb\n1: x4\n");
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"lines\", \"limit\": 2, \"offset\": 4}");
	assert_answer(hand, "5 matching lines in 2 files, newest file first; lines 5 to 5 "
			    "follow.\n\nb\n2: x5\n");
	grep(hand, "{\"pattern\": \"x\", \"mode\": \"lines\", \"offset\": 5}");
	assert_answer(hand, "5 matching lines in 2 files, newest file first; none from "
			    "offset 5 on.\n");
}

static void auto_mode_counts_the_files_that_did_not_fit(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a", "x1\nx2\n", 30);
	tree_write(hand, "b", "x3\n", 20);
	tree_write(hand, "c", "x4\nx5\n", 10);
	grep(hand, "{\"pattern\": \"x\", \"limit\": 2}");
	assert_answer(hand, "5 matching lines in 3 files, newest file first; lines 1 to 2 "
			    "follow, the next with offset=2.\n\na\n1: x1\n2: x2\n\nFurther "
			    "files, with their matching lines:\nb: 1\nc: 2\n");
}

static void context_joins_and_separates(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "f", "1\n2\nx\n4\nx\n6\n7\n8\n9\nx\n", 1);
	grep(hand, "{\"pattern\": \"x\", \"context\": 1}");
	assert_answer(hand, "3 matching lines in 1 file, newest file first.\n\nf\n"
			    "2- 2\n3: x\n4- 4\n5: x\n6- 6\n--\n9- 9\n10: x\n");
	grep(hand, "{\"pattern\": \"^x\", \"context\": 20}");
	assert_answer(hand,
		      "3 matching lines in 1 file, newest file first.\n\nf\n"
		      "1- 1\n2- 2\n3: x\n4- 4\n5: x\n6- 6\n7- 7\n8- 8\n9- 9\n10: x\n");
}

static void context_is_kept_across_the_pieces_of_a_large_file(void **state)
{
	struct hand *hand = *state;
	struct buf text;
	struct buf expected;
	unsigned lines = 0;

	buf_init(&text, 1 << 24);
	buf_init(&expected, 1 << 16);
	/* A match in every hundred lines, so that some lie at the border of a piece. */
	while (text.size < 2 << 20) {
		lines++;
		(void)buf_addf(&text, "%s %u\n", lines % 100 == 0 ? "match" : "line", lines);
	}
	tree_write(hand, "large", text.data, 1);
	for (unsigned offset = 0; offset < lines / 100; offset += 40) {
		char json[128];

		(void)snprintf(json, sizeof(json),
			       "{\"pattern\": \"match\", \"context\": 2, \"offset\": %u, \"limit\": 40}",
			       offset);
		grep(hand, json);
		for (unsigned i = offset + 1; i <= lines / 100 && i <= offset + 40; i++) {
			buf_clear(&expected);
			(void)buf_addf(&expected,
				       "%u- line %u\n%u- line %u\n%u: match %u\n%u- line %u\n",
				       i * 100 - 2, i * 100 - 2, i * 100 - 1, i * 100 - 1,
				       i * 100, i * 100, i * 100 + 1, i * 100 + 1);
			hand_assert_says(hand, expected.data);
		}
	}
	buf_fini(&text);
	buf_fini(&expected);
}

static void a_long_line_is_cut_around_its_match(void **state)
{
	struct hand *hand = *state;
	struct buf text;
	const char *line;

	buf_init(&text, 1 << 16);
	for (unsigned i = 0; i < 1000; i++)
		(void)buf_adds(&text, "é");
	(void)buf_adds(&text, "needle");
	for (unsigned i = 0; i < 1000; i++)
		(void)buf_adds(&text, "ü");
	tree_write(hand, "min.js", text.data, 1);
	grep(hand, "{\"pattern\": \"needle\"}");
	hand_assert_says(hand, "é [… 1802 of this line's 4006 bytes left out …] é");
	hand_assert_says(hand, "éneedleü");
	hand_assert_says(hand, "ü [… 1704 of this line's 4006 bytes left out …] ü");
	line = strstr(hand->result.text.data, "1: ");
	assert_in_range(strlen(line), 600, 620);
	buf_fini(&text);
}

static void bytes_that_cannot_be_shown_are_made_visible(void **state)
{
	struct hand *hand = *state;

	tree_write_bytes(hand, "f", STR("needle \x1b[31m\xff caf\xc3\xa9 needle\r\n"), 1);
	tree_write(hand, "new\nline", "needle\n", 0);
	grep(hand, "{\"pattern\": \"needle\"}");
	hand_assert_says(hand, "1: needle \\x1B[31m\\xFF café needle\n");
	hand_assert_says(hand, "new\\x0Aline\n");
}

static void searches_one_file_by_name_whatever_it_is_called(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "*.log\n", 1);
	tree_write(hand, "d/x.log", "needle\n", 1);
	grep(hand, "{\"pattern\": \"needle\", \"path\": \"d/x.log\", \"glob\": \"*.c\"}");
	assert_answer(hand,
		      "1 matching line in 1 file, newest file first.\n\nd/x.log\n1: needle\n");
	grep(hand, "{\"pattern\": \"nothing\", \"file\": \"d/x.log\"}");
	assert_answer(hand, "No match in 1 file: d/x.log.\n");
}

static void glob_and_file_type_choose_files(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a.c", "x\n", 3);
	tree_write(hand, "src/b.h", "x\n", 2);
	tree_write(hand, "src/c.py", "x\n", 1);
	grep(hand, "{\"pattern\": \"x\", \"glob\": \"*.{c,h}\", \"mode\": \"files\"}");
	assert_answer(hand, "2 files have a match, newest file first.\n\na.c\nsrc/b.h\n");
	grep(hand, "{\"pattern\": \"x\", \"glob\": \"!*.c\", \"mode\": \"files\"}");
	assert_answer(hand,
		      "2 files have a match, newest file first.\n\nsrc/b.h\nsrc/c.py\n");
	grep(hand, "{\"pattern\": \"x\", \"glob\": \"./src/*\", \"mode\": \"files\"}");
	assert_answer(hand,
		      "2 files have a match, newest file first.\n\nsrc/b.h\nsrc/c.py\n");
	grep(hand, "{\"pattern\": \"x\", \"file_type\": \"python\", \"mode\": \"files\"}");
	assert_answer(hand, "1 file has a match, newest file first.\n\nsrc/c.py\n");
	grep(hand, "{\"pattern\": \"x\", \"type\": \".c\", \"mode\": \"files\"}");
	assert_answer(hand, "2 files have a match, newest file first.\n\na.c\nsrc/b.h\n");
	grep(hand, "{\"pattern\": \"x\", \"glob\": \"*.rs\"}");
	assert_answer(hand,
		      "No file fits *.rs in the workspace: nothing was searched; 3 files "
		      "do not fit.\n");
}

static void none_says_how_much_was_searched(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "d/a", "x\n", 1);
	tree_write(hand, "d/b", "x\n", 1);
	grep(hand, "{\"pattern\": \"y\"}");
	assert_answer(hand, "No match in 2 files searched in the workspace.\n");
	grep(hand, "{\"pattern\": \"y\\\\|z\", \"path\": \"d\"}");
	assert_answer(hand, "No match in 2 files searched in d.\n"
			    "Note: \\| finds a bar; alternatives are written a|b.\n");
}

static void ignored_files_are_named_when_only_they_have_it(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "build/\n", 1);
	tree_write(hand, "a", "x\n", 1);
	tree_write(hand, "build/d/b", "needle\n", 3);
	tree_write(hand, "build/c", "needle\nneedle\n", 2);
	grep(hand, "{\"pattern\": \"needle\"}");
	assert_answer(hand, "No match in 2 files searched in the workspace.\n"
			    "Ignored files (.gitignore) have it: build/d/b, build/c. Name the "
			    "file or its folder as path to search it.\n");
	assert_int_equal(detail(hand, "ignored_files"), 2);
	grep(hand, "{\"pattern\": \"needle\", \"path\": \"build\", \"mode\": \"files\"}");
	assert_answer(hand, "2 files have a match, newest file first.\n"
			    "The folder is itself ignored by a .gitignore; no ignore rule is "
			    "applied in it.\n\nbuild/d/b\nbuild/c\n");
	tree_write(hand, "a", "needle\n", 1);
	grep(hand, "{\"pattern\": \"needle\"}");
	hand_assert_says_not(hand, "Ignored");
}

static void stopped_early_is_never_reported_as_none(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a", "x\n", 1);
	(void)hand_run_for(hand, &grep_tool, -1,
			   "{\"pattern\": \"needle\", \"path\": \".\"}");
	hand_assert_status(hand, RESULT_TIMED_OUT);
	hand_assert_says(hand, "No match so far in 0 files");
	hand_assert_says(hand, "Stopped early, out of time");
	assert_true(value_is_true(value_member(hand->result.details, "stopped_early")));
}

/* Lines in which the pattern below meets its limit of steps, some 0.1 s each. */
static void write_slow_lines(struct hand *hand, const char *path)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	for (unsigned i = 0; i < 2000; i++)
		(void)buf_adds(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
	tree_write(hand, path, text.data, 1);
	buf_fini(&text);
}

#define SLOW_PATTERN "{\"pattern\": \"(a|a|aa)+[bc]\", \"path\": \".\"}"

static void a_slow_pattern_stops_in_the_middle_of_a_file(void **state)
{
	struct hand *hand = *state;
	int64_t begun = clock_now_ms();

	write_slow_lines(hand, "slow");
	assert_int_equal(hand_run_for(hand, &grep_tool, 200, SLOW_PATTERN),
			 RESULT_TIMED_OUT);
	hand_assert_says(hand, "No match so far");
	hand_assert_says(hand, "Stopped early, out of time");
	hand_assert_says(hand, "could not be searched whole");
	/* All of it would take minutes. */
	assert_true(clock_now_ms() - begun < 30000);
}

static void ignored_files_are_looked_into_for_a_moment_only(void **state)
{
	struct hand *hand = *state;
	int64_t begun = clock_now_ms();

	write_slow_lines(hand, "out/slow");
	tree_write(hand, ".gitignore", "out/\n", 1);
	grep(hand, SLOW_PATTERN);
	hand_assert_says(hand, "No match in 1 file searched");
	hand_assert_says(hand, "looked into for a moment only, with nothing found so far");
	assert_true(clock_now_ms() - begun < 30000);
}

static void binary_files_are_counted_not_shown(void **state)
{
	struct hand *hand = *state;

	tree_write_bytes(hand, "bin", STR("needle\0needle\n"), 1);
	grep(hand, "{\"pattern\": \"needle\"}");
	assert_answer(hand, "No match in 1 file searched in the workspace.\n"
			    "Binary and not shown: 1 file with a match.\n");
}

static void links_lead_nowhere_and_pipes_are_not_waited_for(void **state)
{
	struct hand *hand = *state;
	auto_free char *pipe_path = hand_path(hand, "pipe");

	tree_write(hand, "../outside/secret", "needle\n", 1);
	tree_link(hand, "link", "../outside");
	tree_link(hand, "file", "../outside/secret");
	assert_int_equal(mkfifo(pipe_path, 0644), 0);
	grep(hand, "{\"pattern\": \"needle\"}");
	assert_answer(hand, "No match in 0 files searched in the workspace.\n");
	tree_run(hand, &grep_tool, "{\"pattern\": \"needle\", \"path\": \"link\"}",
		 RESULT_FAILED);
	tree_run(hand, &grep_tool, "{\"pattern\": \"needle\", \"path\": \"file\"}",
		 RESULT_FAILED);
	tree_run(hand, &grep_tool, "{\"pattern\": \"needle\", \"path\": \"pipe\"}",
		 RESULT_FAILED);
}

static void a_large_sparse_file_is_binary_at_once(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "sparse");
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	int64_t began = clock_now_ms();

	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	(void)close(fd);
	grep(hand, "{\"pattern\": \"needle\"}");
	grep(hand, "{\"pattern\": \"n[e]+dle\"}");
	assert_answer(hand, "No match in 1 file searched in the workspace.\n");
	/* Reading it all would take longer, also where nothing else runs. */
	assert_in_range(clock_now_ms() - began, 0, 30000);
}

struct mistake {
	const char *json, *says;
};

static void a_mistake_is_answered_with_what_would_work(void **state)
{
	static const struct mistake mistakes[] = {
		{"{\"pattern\": \"foo(\"}", "pattern=\"foo(\", literal=true"},
		{"{\"pattern\": \"*.c\"}", "the tool glob with pattern=\"*.c\""},
		{"{\"pattern\": \"[a\"}", "position"},
		{"{\"pattern\": \"a\\nb\"}", "line by line"},
		{"{\"pattern\": \"a\\\\nb\"}", "line by line"},
		{"{\"pattern\": \"a\\nb\", \"literal\": true}", "line by line"},
		{"{\"pattern\": \"x\", \"file_type\": \"pythn\"}", "Did you mean py?"},
		{"{\"pattern\": \"x\", \"file_type\": \"xyz\"}", "glob=\"*.xyz\""},
		{"{\"pattern\": \"x\", \"glob\": \"[a\"}", "glob is not well-formed"},
		{"{\"pattern\": \"x\", \"glob\": \"/src/*\"}", "without the leading slash"},
		{"{\"pattern\": \"x\", \"path\": \"scr\"}", "src"},
		{"{\"pattern\": \"x\", \"path\": \"../outside\"}", "outside"},
	};
	struct hand *hand = *state;

	tree_write(hand, "src/a", "x\n", 1);
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		tree_run(hand, &grep_tool, mistakes[i].json, RESULT_FAILED);
		hand_assert_says(hand, mistakes[i].says);
	}
	/* Not a mistake: a class without line ends, and an escaped backslash. */
	grep(hand, "{\"pattern\": \"[^\\\\n]x*\"}");
	grep(hand, "{\"pattern\": \"\\\\\\\\n\"}");
}

static void the_answer_has_a_ceiling_and_says_how_to_go_on(void **state)
{
	struct hand *hand = *state;
	struct buf text;
	uint64_t shown;
	char json[128];

	buf_init(&text, 1 << 24);
	for (unsigned i = 1; i <= 2000; i++)
		(void)buf_addf(&text, "%u %0300u x\n", i, i);
	tree_write(hand, "f", text.data, 1);
	grep(hand, "{\"pattern\": \"x\", \"limit\": 2000}");
	assert_in_range(hand->result.text.size, 30000, 31500);
	shown = (uint64_t)detail(hand, "shown");
	assert_in_range(shown, 90, 110);
	(void)snprintf(json, sizeof(json), "the next with offset=%u", (unsigned)shown);
	hand_assert_says(hand, json);
	(void)snprintf(json, sizeof(json), "{\"pattern\": \"x\", \"offset\": %u}",
		       (unsigned)shown);
	grep(hand, json);
	(void)snprintf(json, sizeof(json), "\n%u: %u 0", (unsigned)shown + 1,
		       (unsigned)shown + 1);
	hand_assert_says(hand, json);
	buf_fini(&text);
}

/* Wherever the ceiling falls, on a line, on a name or between, no file is passed over. */
static void the_ceiling_may_fall_on_a_name(void **state)
{
	enum { FILES = 120, LINE_MAX_TRIED = 340 };
	struct hand *hand = *state;
	char line[LINE_MAX_TRIED + 2];

	memset(line, 'x', sizeof(line));
	for (size_t size = LINE_MAX_TRIED; size > LINE_MAX_TRIED - 40; size -= 3) {
		const struct value *rows;

		for (unsigned i = 0; i < FILES; i++) {
			char path[64];

			(void)snprintf(path, sizeof(path),
				       "a_rather_long_name_of_a_file_%u", 1000 + i);
			line[size] = '\0';
			tree_write(hand, path, line, FILES - i);
		}
		grep(hand, "{\"pattern\": \"x\", \"limit\": 200}");
		hand_assert_says(hand, "120 matching lines in 120 files");
		hand_assert_says_not(hand, "changed while being searched");
		rows = value_member(hand->result.details, "rows");
		assert_in_range(value_count(rows), 50, FILES - 1);
		for (size_t i = 0; i < value_count(rows); i++) {
			char path[64];

			(void)snprintf(path, sizeof(path),
				       "a_rather_long_name_of_a_file_%zu", 1000 + i);
			assert_string_equal(value_text(value_member(value_item(rows, i),
								    "path")),
					    path);
		}
	}
}

/* A tree of words, some of it in several pieces, some of it not UTF-8. */
static void write_words(struct hand *hand)
{
	static const char *const words[] = {
		"int",  "return", "struct foo", "Foo",   "bar();", "x = 1;",
		"\t",   " ",      "\n",         "\n",    "\n\n",   "Ünïx",
		"ünïx", "é",      "{",          "}",     "// a",   "0x1F",
		"42",   "a.b",    "a->b",       "\"s\"", "#",      "needle",
	};
	static const char *const endings[] = {"c",  "h",  "py",  "md",
					      "rs", "js", "txt", "json"};
	uint64_t seed = 4711;
	struct buf text;

	buf_init(&text, 1 << 24);
	for (unsigned i = 0; i < 400; i++) {
		char path[64];
		unsigned size = i % 97 == 0 ? 100000 : made_random(&seed, 400);

		buf_clear(&text);
		for (unsigned k = 0; k < size; k++) {
			(void)buf_adds(
				&text,
				words[made_random(&seed, sizeof(words) / sizeof(words[0]))]);
			if (made_random(&seed, 3) == 0)
				(void)buf_addc(&text, ' ');
		}
		if (i % 31 == 0)
			(void)buf_adds(&text, "\xff\xfe needle \xc3\n");
		(void)snprintf(path, sizeof(path), "d%u/%s%u.%s", i % 9,
			       i % 50 == 0 ? ".hidden" : "f", i, endings[i % 8]);
		tree_write(hand, path, text.data, i);
	}
	tree_write_bytes(hand, "binary", STR("needle\0\nneedle\n"), 1);
	tree_write(hand, ".gitignore", "d3/\n*7.c\n", 1);
	buf_fini(&text);
}

/* What the tool was asked and ripgrep is asked. */
struct question {
	const char *json;       /* without pattern */
	const char *options[4]; /* of rg */
};

/* "path:count" of each file, as `rg -c` prints it. */
static char *counts_of(struct hand *hand)
{
	const struct value *rows = value_member(hand->result.details, "rows");
	struct buf lines;
	char *sorted;

	buf_init(&lines, 1 << 20);
	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		(void)buf_addf(&lines, "%s:%lld\n", value_text(value_member(row, "path")),
			       (long long)value_integer(value_member(row, "count")));
	}
	sorted = sorted_lines(buf_str(&lines), '\n');
	buf_fini(&lines);
	return sorted;
}

static bool compare_with_ripgrep(struct hand *hand, const char *pattern,
				 const struct question *question)
{
	const char *arguments[20] = {"rg",          "--no-config",      "-c",
				     "--hidden",    "--no-require-git", "--no-messages",
				     "--glob=!.git"};
	size_t count = 7;
	struct buf out, json;
	char *theirs, *ours;
	bool same;
	int code;

	for (size_t i = 0; i < 4 && question->options[i]; i++)
		arguments[count++] = question->options[i];
	arguments[count++] = "-e";
	arguments[count++] = pattern;
	arguments[count++] = NULL;
	buf_init(&out, 1 << 22);
	buf_init(&json, 1 << 16);
	code = tree_program(hand, arguments, &out);
	if (code == TREE_MISSING) {
		buf_fini(&out);
		buf_fini(&json);
		return false;
	}
	/* 0: found, 1: not; all else is trouble of its own. */
	assert_in_range(code, 0, 1);
	(void)buf_adds(&json, "{\"mode\": \"count\", \"limit\": 2000, \"pattern\": ");
	(void)value_quote(str_of(pattern), &json);
	(void)buf_addf(&json, "%s}", question->json);
	grep(hand, json.data);
	theirs = sorted_lines(buf_str(&out), '\n');
	ours = counts_of(hand);
	same = strcmp(theirs, ours) == 0;
	if (!same)
		print_error("%s: rg finds\n%s\nand grep\n%s", json.data, theirs, ours);
	free(theirs);
	free(ours);
	buf_fini(&out);
	buf_fini(&json);
	assert_true(same);
	return true;
}

static void finds_what_ripgrep_finds(void **state)
{
	static const char *const patterns[] = {
		"needle",
		"^$",
		"foo|bar",
		"\\bint\\b",
		"\\w+\\(\\)",
		"[^a-z]int",
		"ünïx",
		"\\s+$",
		"^\\s*return",
		"a.b",
		"(struct|int) foo",
		"0x[0-9A-F]+",
		"\\d+\\s+\\d+",
		"x = 1;$",
		"\\W\\W\\W",
		".",
		"[{}]{2}",
		"\\S+ \\S+ \\S+",
		"é\\b",
		"needle.*needle",
	};
	static const struct question questions[] = {
		{"", {NULL}},
		{", \"ignore_case\": true", {"-i"}},
		{", \"glob\": \"*.{c,h}\"", {"--glob=*.{c,h}"}},
		{", \"glob\": \"!*.py\"", {"--glob=!*.py"}},
		{", \"file_type\": \"py\"", {"-tpy"}},
		{", \"literal\": true", {"-F"}},
		{", \"literal\": true, \"ignore_case\": true", {"-F", "-i"}},
	};
	struct hand *hand = *state;

	write_words(hand);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		for (size_t k = 0; k < sizeof(questions) / sizeof(questions[0]); k++) {
			/* dev/bootstrap installs it */
			assert_true(compare_with_ripgrep(hand, patterns[i], &questions[k]));
		}
	}
}

static void lines_and_numbers_are_those_of_ripgrep(void **state)
{
	static const char *const arguments[] = {
		"rg",       "--no-config",      "-n", "--no-heading", "--with-filename",
		"--hidden", "--no-require-git", "-e", "a->b",         "d1",
		NULL};
	struct hand *hand = *state;
	const struct value *rows;
	struct buf out, lines;
	char *theirs, *ours;

	write_words(hand);
	buf_init(&out, 1 << 24);
	assert_int_not_equal(tree_program(hand, arguments, &out), TREE_MISSING);
	buf_init(&lines, 1 << 24);
	for (unsigned offset = 0;;) {
		char json[128];

		(void)snprintf(json, sizeof(json),
			       "{\"pattern\": \"a->b\", \"path\": \"d1\", \"mode\": \"lines\", "
			       "\"limit\": 2000, \"offset\": %u}",
			       offset);
		grep(hand, json);
		rows = value_member(hand->result.details, "rows");
		for (size_t i = 0; i < value_count(rows); i++) {
			const struct value *row = value_item(rows, i);

			(void)buf_addf(&lines, "%s:%lld\n",
				       value_text(value_member(row, "path")),
				       (long long)value_integer(value_member(row, "line")));
		}
		offset += (unsigned)value_count(rows);
		if (value_count(rows) == 0)
			break;
	}
	/* The line itself is shown in another way: compare path and number. */
	for (size_t at = 0; at < out.size; at++) {
		size_t colon = str_find(buf_str(&out), STR(":"), at);
		size_t end;

		colon = str_find(buf_str(&out), STR(":"), colon + 1);
		end = str_find(buf_str(&out), STR("\n"), colon);
		buf_remove(&out, colon, end - colon);
		at = colon;
	}
	theirs = sorted_lines(buf_str(&out), '\n');
	ours = sorted_lines(buf_str(&lines), '\n');
	assert_string_equal(theirs, ours);
	free(theirs);
	free(ours);
	buf_fini(&out);
	buf_fini(&lines);
}

#define GREP_TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GREP_TEST(shows_the_newest_file_first_then_the_lines_in_order),
		GREP_TEST(modes_show_names_or_counts),
		GREP_TEST(limit_and_offset_page_through_the_lines),
		GREP_TEST(auto_mode_counts_the_files_that_did_not_fit),
		GREP_TEST(context_joins_and_separates),
		GREP_TEST(context_is_kept_across_the_pieces_of_a_large_file),
		GREP_TEST(a_long_line_is_cut_around_its_match),
		GREP_TEST(bytes_that_cannot_be_shown_are_made_visible),
		GREP_TEST(searches_one_file_by_name_whatever_it_is_called),
		GREP_TEST(glob_and_file_type_choose_files),
		GREP_TEST(none_says_how_much_was_searched),
		GREP_TEST(ignored_files_are_named_when_only_they_have_it),
		GREP_TEST(stopped_early_is_never_reported_as_none),
		GREP_TEST(a_slow_pattern_stops_in_the_middle_of_a_file),
		GREP_TEST(ignored_files_are_looked_into_for_a_moment_only),
		GREP_TEST(binary_files_are_counted_not_shown),
		GREP_TEST(links_lead_nowhere_and_pipes_are_not_waited_for),
		GREP_TEST(a_large_sparse_file_is_binary_at_once),
		GREP_TEST(a_mistake_is_answered_with_what_would_work),
		GREP_TEST(the_answer_has_a_ceiling_and_says_how_to_go_on),
		GREP_TEST(the_ceiling_may_fall_on_a_name),
		GREP_TEST(finds_what_ripgrep_finds),
		GREP_TEST(lines_and_numbers_are_those_of_ripgrep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
