/* write_file: the guard, what is kept of the old file, and what the session remembers. */
#include "hand.h"

#include "base/hash.h"
#include "base/memory.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void makes_a_file_and_its_folders(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &write_file_tool,
		 "{\"path\": \"a/b/c.txt\", \"content\": \"one\\ntwo\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	assert_string_equal(hand->result.text.data,
			    "Wrote a/b/c.txt: new file, +2 -0 lines; now 2 lines, 8 B.");
	hand_assert_file(hand, "a/b/c.txt", "one\ntwo\n");
	assert_non_null(
		strstr(value_text(value_member(hand->result.details, "diff")),
		       "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"));
}

static void an_empty_content_is_fine(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &write_file_tool, "{\"path\": \"empty\", \"content\": \"\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_file(hand, "empty", "");
}

static void an_unread_file_is_not_overwritten(void **state)
{
	struct hand *hand = *state;
	char hash[HASH_HEX + 1];

	hand_puts(hand, "f", "old\n");
	hash_text(STR("old\n"), hash);
	hash[HASH_SHOWN] = '\0';
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"new\\n\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "has not been read in this session");
	hand_assert_says(hand, hash);
	hand_assert_file(hand, "f", "old\n");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"f\", \"content\": \"new\\n\", \"expected_hash\": \"%s\"}",
		 hash);
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "Wrote f: +1 -1 lines; now 1 line, 4 B.");
	hand_assert_file(hand, "f", "new\n");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"f\", \"content\": \"x\", \"expected_hash\": \"%s\"}", hash);
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "its hash is now 7aa7a5359173");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"f\", \"content\": \"x\", \"expected_hash\": \"nonsense\"}");
	hand_assert_says(hand, "12 to 64 lower-case hex digits");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"g\", \"content\": \"x\", \"expected_hash\": \"%s\"}", hash);
	hand_assert_says(hand, "g does not exist, so no hash can fit");
	hand_assert_file(hand, "f", "new\n");
}

static void a_file_that_was_read_is_replaced_unless_it_changed(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "f", "first\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"f\"}");
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"second\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	/* Its own writing counts as having read it. */
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"third\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_puts(hand, "f", "by the user\n");
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"fourth\\n\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "was changed since you read it");
	hand_assert_file(hand, "f", "by the user\n");
}

static void the_same_content_is_not_written_again(void **state)
{
	struct hand *hand = *state;

	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"same\\n\"}");
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"same\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "Nothing to do: f holds exactly this content already.");
}

static void crlf_is_kept_and_said(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "dos.txt", "a\r\nb\r\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"dos.txt\"}");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"dos.txt\", \"content\": \"a\\nc\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "was given the file's CRLF line ends");
	hand_assert_says(hand, "+1 -1 lines");
	hand_assert_file(hand, "dos.txt", "a\r\nc\r\n");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"dos.txt\", \"content\": \"a\\r\\nd\\n\"}");
	hand_assert_file(hand, "dos.txt", "a\r\nd\r\n");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"dos.txt\", \"content\": \"a\\r\\nd\\n\", \"line_ends\": "
		 "\"given\"}");
	hand_assert_file(hand, "dos.txt", "a\r\nd\n");
}

static void a_lost_last_newline_is_said(void **state)
{
	struct hand *hand = *state;

	hand_puts(hand, "f", "a\n");
	hand_run(hand, &read_file_tool, "{\"path\": \"f\"}");
	hand_run(hand, &write_file_tool, "{\"path\": \"f\", \"content\": \"b\"}");
	hand_assert_says(hand, "The newline at its end is gone");
	hand_assert_file(hand, "f", "b");
}

static void mode_and_links_stay(void **state)
{
	struct hand *hand = *state;
	auto_free char *path = hand_path(hand, "run.sh");
	auto_free char *link = hand_path(hand, "link");
	struct stat st;

	hand_puts(hand, "run.sh", "#!/bin/sh\n");
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(symlink("run.sh", link), 0);
	hand_run(hand, &read_file_tool, "{\"path\": \"link\"}");
	hand_run(hand, &write_file_tool,
		 "{\"path\": \"link\", \"content\": \"#!/bin/sh\\nexit\\n\"}");
	hand_assert_status(hand, RESULT_DONE);
	hand_assert_says(hand, "Wrote run.sh (reached as link): ");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void what_cannot_be_written_is_refused_with_the_reason(void **state)
{
	struct hand *hand = *state;
	auto_free char *fifo = hand_path(hand, "fifo");
	auto_free char *out = hand_path(hand, "out");
	auto_free char *folder = hand_path(hand, "folder");

	assert_int_equal(mkfifo(fifo, 0644), 0);
	assert_int_equal(symlink("../outside/new", out), 0);
	assert_int_equal(mkdir(folder, 0755), 0);
	hand_run(hand, &write_file_tool, "{\"path\": \"fifo\", \"content\": \"x\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "a FIFO, socket or device");
	hand_run(hand, &write_file_tool, "{\"path\": \"out\", \"content\": \"x\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_run(hand, &write_file_tool, "{\"path\": \"folder\", \"content\": \"x\"}");
	hand_assert_says(hand, "folder is a folder, not a file. Name a file in it.");
	hand_run(hand, &write_file_tool, "{\"path\": \"/etc/x/y\", \"content\": \"x\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_run(hand, &write_file_tool, "{\"path\": \"../outside/x\", \"content\": \"x\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_puts(hand, "file", "x");
	hand_run(hand, &write_file_tool, "{\"path\": \"file/x\", \"content\": \"x\"}");
	hand_assert_says(hand, "a part of this path is a file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(makes_a_file_and_its_folders),
		TEST(an_empty_content_is_fine),
		TEST(an_unread_file_is_not_overwritten),
		TEST(a_file_that_was_read_is_replaced_unless_it_changed),
		TEST(the_same_content_is_not_written_again),
		TEST(crlf_is_kept_and_said),
		TEST(a_lost_last_newline_is_said),
		TEST(mode_and_links_stay),
		TEST(what_cannot_be_written_is_refused_with_the_reason),
	};

	return cmocka_run_group_tests_name("tools-write_file", tests, NULL, NULL);
}
