/* edit_file, generate_patch and exec: the tools around the matcher, on real files. */
#include "hand.h"

#include "base/memory.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void edits_and_says_what_changed(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a.c", "int a;\nint b;\n");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a.c\", \"edits\": [{\"old\": \"int b;\", \"new\": \"int c;\\nint d;\"}]}");
	hand_assert_status(hand, RESULT_DONE);
	assert_string_equal(hand->result.text.data,
			    "Edited a.c: +2 -1 lines; now 3 lines, 21 B.");
	hand_assert_file(hand, "a.c", "int a;\nint c;\nint d;\n");
	assert_string_equal(value_text(value_member(hand->result.details, "diff")),
			    "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,3 @@\n int a;\n-int b;\n+int c;\n"
			    "+int d;\n");
}

static void bytes_beside_the_edit_stay(void **state)
{
	struct hand *hand = *state;
	static const char before[] = "\xef\xbb\xbfone\r\ntwo \nthree\t\r\r\nfo\xffur";
	static const char after[] = "\xef\xbb\xbfone\r\n2 \nthree\t\r\r\nfo\xffur";

	hand_write(hand, "odd", before, sizeof(before) - 1);
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"odd\", \"edits\": [{\"old\": \"two\", \"new\": \"2\"}]}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_file(hand, "odd", after);
}

static void a_loose_match_is_reported(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a.c", "\tif (x)\n\t\ty();\n");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a.c\", \"edits\": [{\"old\": \"if (x)\\n    y();\\n\", "
		 "\"new\": \"if (z)\\n    y();\\n\"}]}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "Edit 1 at line 1 was not exact: the indentation differed");
	hand_assert_file(hand, "a.c", "\tif (z)\n\t\ty();\n");
}

static void a_miss_changes_nothing_and_shows_the_nearest(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a.c", "int sum(int n)\n{\n\treturn n;\n}\n");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a.c\", \"edits\": [{\"old\": \"int sum(int m)\\n{\\n\\treturn m;\\n}\", "
		 "\"new\": \"x\"}]}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand,
			 "the old text was not found in a.c. Nothing was changed. Nearest is "
			 "line 1;");
	hand_assert_says(hand, "  file: →return·n;\n  old:  →return·m;\n");
	hand_assert_file(hand, "a.c", "int sum(int n)\n{\n\treturn n;\n}\n");
}

static void a_file_that_changed_is_edited_exactly_and_that_is_said(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a", "one\ntwo\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"a\"}");
	hand_puts(hand, "a", "one \ntwo\nuser\n");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a\", \"edits\": [{\"old\": \"one\\ntwo\", \"new\": \"2\"}]}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "has changed since it was read");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a\", \"edits\": [{\"old\": \"two\", \"new\": \"2\"}]}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "The file holds other changes, made since you read it");
	hand_assert_file(hand, "a", "one \n2\nuser\n");
	/* Who has not seen them may not overwrite the whole. */
	hand_run(hand, &write_file_tool, "{\"path\": \"a\", \"content\": \"mine\"}");
	hand_assert_status(hand, RESULT_FAILED);
}

static void an_expected_hash_guards(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "a", "one\n");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a\", \"expected_hash\": \"000000000000\", "
		 "\"edits\": [{\"old\": \"one\", \"new\": \"1\"}]}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "its hash is now 2c8b08da5ce6");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"a\", \"expected_hash\": \"2c8b08da5ce6\", "
		 "\"edits\": [{\"old\": \"one\", \"new\": \"1\"}]}");
	hand_assert_status(hand, RESULT_DONE);
}

static void what_is_no_text_is_not_edited(void **state)
{
	struct hand *hand = *state;

	hand_write(hand, "wide",
		   "\xff\xfe"
		   "a\0b\0",
		   6);
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"wide\", \"edits\": [{\"old\": \"a\", \"new\": \"c\"}]}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "UTF-16");
	hand_write(hand, "bin", "a\0b", 3);
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"bin\", \"edits\": [{\"old\": \"a\", \"new\": \"c\"}]}");
	hand_assert_says(hand, "is a binary file");
	hand_run(hand, &edit_file_tool,
		 "{\"path\": \"none\", \"edits\": [{\"old\": \"a\", \"new\": \"c\"}]}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "none does not exist; write_file makes new files.");
}

static void none_of_eight_edits_at_once_is_lost(void **state)
{
	struct hand *hand = *state;
	pid_t pids[8];

	hand_puts(hand, "list", "a0\na1\na2\na3\na4\na5\na6\na7\n");
	for (int i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			hand_run(hand, &edit_file_tool,
				 "{\"path\": \"list\", \"edits\": [{\"old\": \"a%d\", \"new\": \"b%d\"}]}",
				 i, i);
			_exit(hand->result.status == RESULT_DONE ? 0 : 1);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	hand_assert_file(hand, "list", "b0\nb1\nb2\nb3\nb4\nb5\nb6\nb7\n");
}

static void a_session_without_changes_has_an_empty_patch(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &generate_patch_tool, "{\"title\": \"t\", \"summary\": \"s\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "No file differs from what it was.");
	assert_string_equal(value_text(value_member(hand->result.details, "patch")), "");
}

static void exec_gives_the_program_what_was_handed_over(void **state)
{
	struct hand *hand = *state;
	struct err err;
	int ends[2];
	char got[32] = {0};

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(value_parse(STR("{\"argv\": [\"sh\", \"-c\", \"echo out; exit 42\"]}"),
				0, &hand->arguments, &err));
	hand->call = (struct call){.tool = &exec_tool,
				   .arguments = hand->arguments,
				   .files = hand->files,
				   .workspace = hand->workspace,
				   .folder = hand->workspace,
				   .environment = hand->environment,
				   .deadline_ms = INT64_MAX,
				   .fds = {-1, ends[1], ends[1], -1, -1},
				   .control_fd = -1};
	assert_int_equal(exec_tool.execute(&hand->call, &hand->result), RESULT_DONE);
	assert_int_equal(hand->result.exit_code, 42);
	assert_int_equal(read(ends[0], got, sizeof(got) - 1), 4);
	assert_string_equal(got, "out\n");
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void exec_tells_missing_from_closed(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &exec_tool, "{\"argv\": [\"no-such-program\"]}");
	hand_assert_status(hand, RESULT_FAILED);
	assert_int_equal(hand->result.exit_code, 127);
	assert_int_equal(value_integer(value_member(hand->result.details, "start_errno")),
			 2);
	hand_run(hand, &exec_tool, "{\"argv\": [\"/etc/passwd\"]}");
	assert_int_equal(hand->result.exit_code, 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(edits_and_says_what_changed),
		TEST(bytes_beside_the_edit_stay),
		TEST(a_loose_match_is_reported),
		TEST(a_miss_changes_nothing_and_shows_the_nearest),
		TEST(a_file_that_changed_is_edited_exactly_and_that_is_said),
		TEST(an_expected_hash_guards),
		TEST(what_is_no_text_is_not_edited),
		TEST(none_of_eight_edits_at_once_is_lost),
		TEST(a_session_without_changes_has_an_empty_patch),
		TEST(exec_gives_the_program_what_was_handed_over),
		TEST(exec_tells_missing_from_closed),
	};

	return cmocka_run_group_tests_name("tools-edit_file", tests, NULL, NULL);
}
