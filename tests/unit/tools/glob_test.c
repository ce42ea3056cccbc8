/*
 * Tests of the tool glob: which files fit, in which order, and what is said when none
 * does.
 */
#include "tree.h"

#include "base/memory.h"
#include "base/value.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void glob(struct hand *hand, const char *json)
{
	tree_run(hand, &glob_tool, json, RESULT_DONE);
}

/* The paths found, with blanks between. */
static void assert_paths(struct hand *hand, const char *json, const char *expected)
{
	const struct value *paths;
	struct buf found;

	glob(hand, json);
	paths = value_member(hand->result.details, "paths");
	buf_init(&found, 1 << 16);
	for (size_t i = 0; i < value_count(paths); i++)
		(void)buf_addf(&found, "%s%s", i ? " " : "",
			       value_text(value_item(paths, i)));
	assert_string_equal(found.data, expected);
	buf_fini(&found);
}

static void the_newest_comes_first_then_the_path_decides(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "b.c", "", 10);
	tree_write(hand, "a.c", "", 10);
	tree_write(hand, "d/new.c", "", 20);
	tree_write(hand, "other.h", "", 30);
	glob(hand, "{\"pattern\": \"*.c\"}");
	assert_string_equal(hand->result.text.data,
			    "3 files fit *.c, newest first.\n\nd/new.c\na.c\nb.c\n");
	glob(hand, "{\"pattern\": \"*.c\", \"limit\": 1}");
	assert_string_equal(hand->result.text.data,
			    "3 files fit *.c, newest first; the newest 1 follow (limit=1000 "
			    "shows more).\n\nd/new.c\n");
	assert_int_equal(value_integer(value_member(hand->result.details, "found")), 3);
	assert_int_equal(hand->result.left_out_lines, 2);
}

static void patterns_mean_what_people_write(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a.c", "", 1);
	tree_write(hand, "a.h", "", 1);
	tree_write(hand, "src/b.c", "", 1);
	tree_write(hand, "src/x/y/c.c", "", 1);
	tree_write(hand, "src/x/.d.c", "", 1);
	tree_write(hand, "lib/b.c", "", 1);
	assert_paths(hand, "{\"pattern\": \"*.{c,h}\", \"path\": \"src\"}",
		     "src/b.c src/x/.d.c src/x/y/c.c");
	assert_paths(hand, "{\"pattern\": \"src/*.c\"}", "src/b.c");
	assert_paths(hand, "{\"pattern\": \"src/**/*.c\"}",
		     "src/b.c src/x/.d.c src/x/y/c.c");
	assert_paths(hand, "{\"pattern\": \"**/b.c\"}", "lib/b.c src/b.c");
	assert_paths(hand, "{\"pattern\": \"{src,lib}/b.c\"}", "lib/b.c src/b.c");
	assert_paths(hand, "{\"pattern\": \"src/x\"}", "");
	assert_paths(hand, "{\"pattern\": \"src/x/\"}", "src/x/.d.c src/x/y/c.c");
	assert_paths(hand, "{\"pattern\": \"./src/b.c\"}", "src/b.c");
	assert_paths(hand, "{\"pattern\": \"[ab].[!c]\"}", "a.h");
	assert_paths(hand, "{\"pattern\": \"b.c\"}", "lib/b.c src/b.c");
	assert_paths(hand, "{\"pattern\": \"../lib/*.c\", \"path\": \"src\"}", "lib/b.c");
}

static void an_absolute_pattern_moves_the_start(void **state)
{
	struct hand *hand = *state;
	char json[256];

	tree_write(hand, "src/d/a.c", "", 1);
	tree_write(hand, "b.c", "", 1);
	(void)snprintf(json, sizeof(json), "{\"pattern\": \"%s/src/**/*.c\"}",
		       hand->workspace);
	assert_paths(hand, json, "src/d/a.c");
	(void)snprintf(json, sizeof(json), "{\"pattern\": \"%s/*.c\"}", hand->workspace);
	assert_paths(hand, json, "b.c src/d/a.c");
	(void)snprintf(json, sizeof(json), "{\"pattern\": \"%s/*\"}", hand->outside);
	tree_run(hand, &glob_tool, json, RESULT_FAILED);
}

static void links_count_pipes_do_not(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "pipe");

	assert_int_equal(mkfifo(path, 0644), 0);
	tree_write(hand, "../outside/secret", "", 1);
	tree_link(hand, "link", "../outside");
	assert_paths(hand, "{\"pattern\": \"**\"}", "link");
	assert_paths(hand, "{\"pattern\": \"link/*\"}", "");
}

static void none_says_what_was_looked_at_and_what_ignored_files_fit(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "build/\n", 1);
	tree_write(hand, "build/a.o", "", 2);
	tree_write(hand, "build/b.o", "", 3);
	tree_write(hand, "build/c.o", "", 4);
	tree_write(hand, "build/d.o", "", 5);
	glob(hand, "{\"pattern\": \"*.o\"}");
	assert_string_equal(hand->result.text.data,
			    "No file fits *.o in the workspace (2 entries looked at).\n"
			    "Among ignored files (.gitignore) these fit: build/d.o, build/c.o, "
			    "build/b.o and 1 more. Name their folder as path to search it.\n");
	glob(hand, "{\"pattern\": \"*.o\", \"path\": \"build\"}");
	hand_assert_says(hand,
			 "4 files fit *.o, newest first.\nThe folder is itself ignored");
	glob(hand, "{\"pattern\": \"main\"}");
	hand_assert_says(hand, "For a part of a name use *main*");
}

static void stopped_early_is_never_reported_as_none(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a", "", 1);
	(void)hand_run_for(hand, &glob_tool, -1, "{\"pattern\": \"*\", \"path\": \".\"}");
	hand_assert_status(hand, RESULT_TIMED_OUT);
	hand_assert_says(hand, "Nothing found in the part that was searched");
	hand_assert_says(hand, "Stopped early");
}

struct mistake {
	const char *json, *says;
};

static void a_mistake_is_answered_with_what_would_work(void **state)
{
	static const struct mistake mistakes[] = {
		{"{\"pattern\": \"[a\"}", "pattern is not well-formed"},
		{"{\"pattern\": \"a/../*.c\"}", "name the folder to search as path"},
		{"{\"pattern\": \"*\", \"path\": \"scr\"}", "src"},
		{"{\"pattern\": \"*\", \"path\": \"src/a\"}", "not a folder"},
		{"{\"pattern\": \"*\", \"path\": \"../outside\"}", "outside"},
		{"{\"pattern\": \"../../**\"}", ".."},
	};
	struct hand *hand = *state;

	tree_write(hand, "src/a", "", 1);
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		tree_run(hand, &glob_tool, mistakes[i].json, RESULT_FAILED);
		hand_assert_says(hand, mistakes[i].says);
	}
}

static void many_files_keep_the_answer_short_and_the_total_true(void **state)
{
	enum { FILES = 1500 };
	struct hand *hand = *state;
	char name[160];

	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name),
			       "a-folder-with-a-long-name/and-another-below-it/file-number-%d",
			       i);
		tree_write(hand, name, "", i);
	}
	glob(hand, "{\"pattern\": \"**\", \"limit\": 1000}");
	assert_in_range(hand->result.text.size, 30000, 30500);
	hand_assert_says(hand, "1500 files fit **");
	hand_assert_says(hand, "narrow the pattern");
	hand_assert_says(hand, "\n\na-folder-with-a-long-name/and-another-below-it/"
			       "file-number-1499\n");
}

#define GLOB_TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GLOB_TEST(the_newest_comes_first_then_the_path_decides),
		GLOB_TEST(patterns_mean_what_people_write),
		GLOB_TEST(an_absolute_pattern_moves_the_start),
		GLOB_TEST(links_count_pipes_do_not),
		GLOB_TEST(none_says_what_was_looked_at_and_what_ignored_files_fit),
		GLOB_TEST(stopped_early_is_never_reported_as_none),
		GLOB_TEST(a_mistake_is_answered_with_what_would_work),
		GLOB_TEST(many_files_keep_the_answer_short_and_the_total_true),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
