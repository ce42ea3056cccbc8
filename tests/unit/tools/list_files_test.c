/* Tests of the tool list_files: the order, the counts, and what the limit leaves. */
#include "tree.h"

#include "base/memory.h"
#include "base/value.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void list(struct hand *hand, const char *json)
{
	tree_run(hand, &list_files_tool, json, RESULT_DONE);
}

static void assert_answer(struct hand *hand, const char *text)
{
	assert_string_equal(hand->result.text.data, text);
}

static void folders_come_first_with_what_they_hold(void **state)
{
	struct hand *hand = *state;
	auto_free char *pipe_path = hand_path(hand, "pipe");

	tree_write(hand, "zz", "12345", 1);
	tree_write(hand, "b/x", "", 1);
	tree_write(hand, "b/c/y", "", 1);
	tree_write(hand, "b/c/d/deep", "", 1);
	tree_write(hand, "b.c/z", "1", 1);
	tree_folder(hand, "a");
	tree_link(hand, "link", "b/x");
	assert_int_equal(mkfifo(pipe_path, 0644), 0);
	list(hand, "{}");
	assert_answer(hand, ".: 4 folders and 5 files down to depth 2.\n"
			    "\n"
			    "a/  empty\n"
			    "b/  1 folder, 1 file\n"
			    "b/c/  1 folder, 1 file\n"
			    "b/x  0 B\n"
			    "b.c/  1 file\n"
			    "b.c/z  1 B\n"
			    "link -> b/x\n"
			    "pipe  (pipe)\n"
			    "zz  5 B\n");
	list(hand, "{\"path\": \"b\", \"depth\": 1}");
	assert_answer(hand, "b: 1 folder and 1 file down to depth 1.\n"
			    "\n"
			    "b/c/  1 folder, 1 file\n"
			    "b/x  0 B\n");
}

static void the_limit_keeps_the_upper_levels(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "a/1", "", 1);
	tree_write(hand, "a/2", "", 1);
	tree_write(hand, "a/3", "", 1);
	tree_write(hand, "b/1", "", 1);
	tree_write(hand, "z", "", 1);
	list(hand, "{\"limit\": 5}");
	assert_answer(hand,
		      ".: 2 folders and 5 files down to depth 2; 5 shown, the upper levels "
		      "first.\n"
		      "\n"
		      "a/  3 files (2 of 3 shown)\n"
		      "a/1  0 B\n"
		      "a/2  0 B\n"
		      "b/  1 file (0 of 1 shown)\n"
		      "z  0 B\n"
		      "[2 more not shown: name a folder as path, a pattern, or a smaller "
		      "depth]\n");
	assert_int_equal(hand->result.left_out_lines, 2);
	assert_int_equal(value_integer(value_member(hand->result.details, "found")), 7);
	assert_int_equal(value_count(value_member(hand->result.details, "rows")), 5);
}

static void ignored_entries_are_left_out_and_said_so(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, ".gitignore", "*.o\nbuild/\n", 1);
	tree_write(hand, "src/a.c", "", 1);
	tree_write(hand, "src/a.o", "", 1);
	tree_write(hand, "build/x", "", 1);
	list(hand, "{}");
	assert_answer(hand, ".: 1 folder and 2 files down to depth 2.\n"
			    "Left out as ignored (.gitignore): 2.\n"
			    "\n"
			    "src/  1 file, 1 ignored\n"
			    "src/a.c  0 B\n"
			    ".gitignore  11 B\n");
	list(hand, "{\"path\": \"build\"}");
	assert_answer(hand, "build: 0 folders and 1 file down to depth 2.\n"
			    "The folder is itself ignored by a .gitignore; no ignore rule is "
			    "applied in it.\n"
			    "\n"
			    "build/x  0 B\n");
}

static void a_pattern_chooses(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "src/a.c", "", 1);
	tree_write(hand, "src/a.h", "", 1);
	tree_write(hand, "b.c", "", 1);
	tree_write(hand, "deep/er/c.c", "", 1);
	list(hand, "{\"pattern\": \"*.c\"}");
	assert_answer(hand, ".: 0 folders and 2 files fitting *.c down to depth 2.\n"
			    "\n"
			    "src/a.c  0 B\n"
			    "b.c  0 B\n");
	list(hand, "{\"pattern\": \"s*\"}");
	assert_answer(hand, ".: 1 folder and 0 files fitting s* down to depth 2.\n"
			    "\n"
			    "src/  2 files\n");
}

static void a_file_is_listed_as_itself(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "f.c", "123", 1);
	list(hand, "{\"path\": \"f.c\"}");
	assert_answer(hand, "f.c is a file of 3 B. read_file shows it.\n");
}

static void a_folder_that_cannot_be_read_says_so(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "closed");

	tree_write(hand, "closed/x", "", 1);
	assert_int_equal(chmod(hand->base, 0755), 0);
	assert_int_equal(chmod(path, 0), 0);
	/* Nothing is closed to root: be nobody for a moment. */
	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	list(hand, "{}");
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_answer(hand, ".: 1 folder and 0 files down to depth 2.\n"
			    "1 folder could not be read: closed.\n"
			    "\n"
			    "closed/  cannot be read\n");
}

static void names_that_cannot_be_shown_are_made_visible(void **state)
{
	struct hand *hand = *state;

	tree_write(hand, "new\nline", "", 1);
	tree_write(hand, "\xff\x1b[2J", "", 1);
	tree_write(hand, "é", "", 1);
	list(hand, "{}");
	assert_answer(hand, ".: 0 folders and 3 files down to depth 2.\n"
			    "\n"
			    "new\\x0Aline  0 B\n"
			    "é  0 B\n"
			    "\\xFF\\x1B[2J  0 B\n");
}

struct mistake {
	const char *json, *says;
};

static void a_mistake_is_answered_with_what_would_work(void **state)
{
	static const struct mistake mistakes[] = {
		{"{\"path\": \"scr\"}", "Did you mean: src?"},
		{"{\"path\": \"../outside\"}", "outside"},
		{"{\"path\": \"link\"}", "link"},
		{"{\"pattern\": \"[a\"}", "not well-formed"},
	};
	struct hand *hand = *state;

	tree_write(hand, "src/a", "", 1);
	tree_link(hand, "link", "../outside");
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		tree_run(hand, &list_files_tool, mistakes[i].json, RESULT_FAILED);
		hand_assert_says(hand, mistakes[i].says);
	}
}

static void a_large_folder_is_counted_whole_and_shown_in_part(void **state)
{
	enum { FILES = 3000 };
	struct hand *hand = *state;
	char name[64];

	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), "d/f%04d", i);
		tree_write(hand, name, "", 1);
	}
	list(hand, "{}");
	hand_assert_says(hand, "1 folder and 3000 files down to depth 2; 300 shown");
	hand_assert_says(hand, "d/  3000 files (299 of 3000 shown)\nd/f0000  0 B\n");
	hand_assert_says(hand, "d/f0298  0 B\n[2701 more not shown");
}

#define LIST_TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIST_TEST(folders_come_first_with_what_they_hold),
		LIST_TEST(the_limit_keeps_the_upper_levels),
		LIST_TEST(ignored_entries_are_left_out_and_said_so),
		LIST_TEST(a_pattern_chooses),
		LIST_TEST(a_file_is_listed_as_itself),
		LIST_TEST(a_folder_that_cannot_be_read_says_so),
		LIST_TEST(names_that_cannot_be_shown_are_made_visible),
		LIST_TEST(a_mistake_is_answered_with_what_would_work),
		LIST_TEST(a_large_folder_is_counted_whole_and_shown_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
