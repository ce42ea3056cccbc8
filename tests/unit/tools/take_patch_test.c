/*
 * take_patch: what generate_patch hands out is taken, to the last byte, where the files are what
 * they were; anything else is refused. That a forged record meets the cell's walls is in
 * tests/fronts/patch.case.
 */
#include "hand.h"

#include "base/hash.h"
#include "base/memory.h"
#include "files/record.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file before and after; NULL: not there. */
struct change {
	const char *path, *base, *now;
	mode_t base_mode, now_mode;
};

static const struct change changes[] = {
	{"plain", "one\ntwo\n", "one\n2\n", 0644, 0644},
	{"no end", "one", "one\ntwo", 0644, 0644},
	{"made", NULL, "new\n", 0, 0644},
	{"deep/er/made", NULL, "new\n", 0, 0755},
	{"empty", NULL, "", 0, 0644},
	{"gone", "bye\n", NULL, 0644, 0},
	{"emptied", "x\n", "", 0644, 0644},
	{"run.sh", "true\n", "true\n", 0644, 0755},
	{"old name", "moved and long enough\n", NULL, 0644, 0},
	{"new name", NULL, "moved and long enough\n", 0, 0644},
	{"caf\xe9", "one\n", "two\n", 0644, 0644},
	{"\xff\xfe made", NULL, "", 0, 0644},
	{"quo\"te\\", "one\n", "two\n", 0644, 0644},
	{"line\nend", "one\n", "two\n", 0644, 0644},
	{"crlf", "one\r\ntwo\n", "one\r\n2\r\n", 0644, 0644},
	{"to_crlf", "one\ntwo\nthree\n", "one\r\ntwo\r\nthree\n", 0644, 0644},
	{"to_lf", "one\r\ntwo\r\nthree\r\n", "one\ntwo\nthree\r\n", 0644, 0644},
	{"looks", "-- x\n++ y\n@@ -1 +1 @@\n", "--- x\n+++ y\n@@ -1 +1 @@\n", 0644, 0644},
};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static void put(struct hand *hand, const struct change *change, bool after)
{
	const char *content = after ? change->now : change->base;
	auto_free char *path = hand_path(hand, change->path);

	if (content == NULL) {
		(void)unlink(path);
		return;
	}
	hand_puts(hand, change->path, content);
	assert_int_equal(chmod(path, after ? change->now_mode : change->base_mode), 0);
}

static void put_all(struct hand *hand, bool after)
{
	for (size_t i = 0; i < CHANGES; i++)
		put(hand, &changes[i], after);
}

static void assert_all(struct hand *hand, bool after)
{
	for (size_t i = 0; i < CHANGES; i++) {
		const struct change *change = &changes[i];
		auto_free char *path = hand_path(hand, change->path);
		const char *content = after ? change->now : change->base;
		struct stat st;

		if (content == NULL) {
			assert_int_equal(access(path, F_OK), -1);
			continue;
		}
		hand_assert_file(hand, change->path, content);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal((st.st_mode & 0100) != 0,
				 ((after ? change->now_mode : change->base_mode) & 0100) !=
					 0);
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp((*(const struct change *const *)a)->path,
		      (*(const struct change *const *)b)->path);
}

/* The hand-over of all changes: its details, the caller's. */
static struct value *hand_over(struct hand *hand)
{
	const struct change *order[CHANGES];
	struct undo_log log;
	struct value *details;
	int fd = memfd_create("plan", MFD_CLOEXEC);

	for (size_t i = 0; i < CHANGES; i++)
		order[i] = &changes[i];
	qsort(order, CHANGES, sizeof(order[0]), by_path);
	put_all(hand, true);
	assert_true(fd >= 0);
	undo_log_begin(&log, fd, 0);
	for (size_t i = 0; i < CHANGES; i++) {
		struct undo_state was = undo_absent;

		if (order[i]->base != NULL) {
			was = (struct undo_state){.kind = UNDO_FILE,
						  .mode = order[i]->base_mode};
			assert_true(undo_log_data(&log, str_of(order[i]->base), &was, NULL));
		}
		assert_true(undo_log_change(&log, str_of(order[i]->path), &undo_absent,
					    &was, NULL));
	}
	assert_true(undo_log_end(&log, NULL));
	hand_run_with(hand, &generate_patch_tool, fd,
		      "{\"title\": \"Do it\", \"summary\": \"Done.\"}");
	hand_assert_status(hand, RESULT_DONE);
	(void)close(fd);
	details = value_ref(hand->result.details);
	put_all(hand, false);
	return details;
}

static enum result_status take(struct hand *hand, const struct value *details, bool look)
{
	auto_value struct value *arguments = value_new_object();
	enum result_status status;
	struct buf text;

	value_set(arguments, "patch", value_copy(value_member(details, "patch")));
	value_set(arguments, "files", value_copy(value_member(details, "files")));
	value_set_boolean(arguments, "look", look);
	buf_init(&text, 1 << 20);
	assert_true(value_print(arguments, 0, &text));
	status = hand_run(hand, &take_patch_tool, "%s", text.data);
	buf_fini(&text);
	return status;
}

static int64_t count(const struct hand *hand, const char *key)
{
	return value_integer(value_member(hand->result.details, key));
}

static void what_is_handed_out_is_taken(void **state)
{
	struct hand *hand = *state;
	auto_value struct value *details = hand_over(hand);
	const struct value *files = value_member(details, "files");

	for (size_t i = 0; i < value_count(files); i++)
		assert_string_not_equal(value_text(value_member(value_item(files, i),
								"state")),
					"left_out");
	/* The rename is one file. */
	assert_int_equal(value_count(files), CHANGES - 1);
	assert_int_equal(take(hand, details, true), RESULT_DONE);
	assert_int_equal(count(hand, "to_do"), CHANGES - 1);
	assert_all(hand, false);
	assert_int_equal(take(hand, details, false), RESULT_DONE);
	assert_all(hand, true);
	/* Again there is nothing to do. */
	assert_int_equal(take(hand, details, false), RESULT_DONE);
	assert_int_equal(count(hand, "already"), CHANGES - 1);
	assert_int_equal(count(hand, "to_do"), 0);
	assert_all(hand, true);
}

/* Any part of it may be there already. */
static void the_rest_is_taken_when_a_part_is_there(void **state)
{
	struct hand *hand = *state;
	auto_value struct value *details = hand_over(hand);

	for (unsigned part = 1; part < 12; part++) {
		put_all(hand, false);
		for (size_t i = 0; i < CHANGES; i++) {
			/* Both ends of the rename go together. */
			if (i % part != 0 && i != 8 && i != 9)
				put(hand, &changes[i], true);
		}
		assert_int_equal(take(hand, details, false), RESULT_DONE);
		assert_all(hand, true);
	}
}

static void one_that_differs_stops_all(void **state)
{
	struct hand *hand = *state;
	auto_value struct value *details = hand_over(hand);

	for (size_t i = 0; i < CHANGES; i++) {
		auto_free char *path = hand_path(hand, changes[i].path);

		put_all(hand, false);
		hand_puts(hand, changes[i].path, "somebody else's\n");
		assert_int_equal(take(hand, details, false), RESULT_FAILED);
		hand_assert_says(hand, "Nothing was applied, because of 1 file:");
		hand_assert_file(hand, changes[i].path, "somebody else's\n");
		assert_int_equal(unlink(path), 0);
		put(hand, &changes[i], false);
		assert_all(hand, false);
	}
}

static void a_link_and_a_folder_are_no_files(void **state)
{
	struct hand *hand = *state;
	auto_value struct value *details = hand_over(hand);
	auto_free char *path = hand_path(hand, "plain");
	auto_free char *other = hand_path(hand, "other");

	/* Of the very content, but it is another file that would be changed. */
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("other", path), 0);
	assert_int_equal(take(hand, details, false), RESULT_FAILED);
	hand_assert_says(hand, "plain is a symbolic link; expected ");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(take(hand, details, false), RESULT_FAILED);
	hand_assert_says(hand, "plain is a folder; expected ");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(take(hand, details, false), RESULT_FAILED);
	hand_assert_says(hand, "plain is not there; expected ");
	hand_assert_file(hand, "other", "one\ntwo\n");
}

static void a_record_that_does_not_fit_is_refused(void **state)
{
	struct hand *hand = *state;
	auto_value struct value *details = hand_over(hand);
	const struct value *files = value_member(details, "files");

	for (size_t i = 0; i < value_count(files); i++) {
		auto_value struct value *forged = value_copy(details);
		struct value *file = value_item(value_member(forged, "files"), i);

		/* A name that is none of the patch. */
		value_set_text(file, "path", "another");
		assert_int_equal(take(hand, forged, false), RESULT_FAILED);
		hand_assert_says(hand, "do not fit");
	}
	for (size_t i = 0; i < value_count(files); i++) {
		auto_value struct value *forged = value_copy(details);
		struct value *file = value_item(value_member(forged, "files"), i);

		if (value_member(file, "hash") == NULL)
			continue;
		/* It says that something else comes of it. */
		value_set_text(
			file, "hash",
			"0000000000000000000000000000000000000000000000000000000000000000");
		assert_int_equal(take(hand, forged, false), RESULT_FAILED);
	}
	assert_all(hand, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(what_is_handed_out_is_taken),
		TEST(the_rest_is_taken_when_a_part_is_there),
		TEST(one_that_differs_stops_all),
		TEST(a_link_and_a_folder_are_no_files),
		TEST(a_record_that_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
