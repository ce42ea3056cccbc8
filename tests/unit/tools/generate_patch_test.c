/*
 * generate_patch: a patch of what the front says was changed. That commands and tools are in
 * it is in tests/tools and tests/agent; here it is applied again, by git too.
 */
#include "hand.h"

#include "base/fd.h"
#include "base/memory.h"
#include "files/record.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the front hands in. */
struct plan {
	int fd;
	struct undo_log log;
};

static void plan_begin(struct plan *plan)
{
	plan->fd = memfd_create("plan", MFD_CLOEXEC);
	assert_true(plan->fd >= 0);
	undo_log_begin(&plan->log, plan->fd, 0);
}

/* PATH held BASE (NULL: nothing) with MODE. */
static void plan_add(struct plan *plan, const char *path, struct str base, mode_t mode)
{
	struct undo_state was = undo_absent, is = undo_absent;

	if (base.data != NULL) {
		was = (struct undo_state){.kind = UNDO_FILE, .mode = mode};
		assert_true(undo_log_data(&plan->log, base, &was, NULL));
	}
	assert_true(undo_log_change(&plan->log, str_of(path), &is, &was, NULL));
}

static void plan_run(struct plan *plan, struct hand *hand)
{
	assert_true(undo_log_end(&plan->log, NULL));
	hand_run_with(hand, &generate_patch_tool, plan->fd,
		      "{\"title\": \"Do it\", \"summary\": \"Done.\"}");
	hand_assert_status(hand, RESULT_DONE);
	(void)close(plan->fd);
}

static const char *patch_of(const struct hand *hand)
{
	return value_text(value_member(hand->result.details, "patch"));
}

static int run_git(const struct hand *hand, const char *option)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (chdir(hand->workspace) == 0 &&
		    setenv("GIT_CEILING_DIRECTORIES", hand->base, 1) == 0)
			(void)execlp("git", "git", "apply", option, "p.diff", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void each_kind_of_change_is_in_it(void **state)
{
	struct hand *hand = *state;
	auto_free char *script = hand_path(hand, "run.sh");
	struct plan plan;

	hand_puts(hand, "a b.txt", "zero\ntwo");
	hand_puts(hand, "made", "new\n");
	hand_puts(hand, "empty", "");
	hand_puts(hand, "run.sh", "true\n");
	assert_int_equal(chmod(script, 0755), 0);
	hand_puts(hand, "new/name.c", "int main(void)\n");
	hand_puts(hand, "back", "as before\n");
	plan_begin(&plan);
	plan_add(&plan, "a b.txt", STR("zero\none\n"), 0644);
	plan_add(&plan, "back", STR("as before\n"), 0644);
	plan_add(&plan, "empty", (struct str){0}, 0);
	plan_add(&plan, "gone", STR("bye\n"), 0644);
	plan_add(&plan, "made", (struct str){0}, 0);
	plan_add(&plan, "new/name.c", (struct str){0}, 0);
	plan_add(&plan, "old.c", STR("int main(void)\n"), 0644);
	plan_add(&plan, "run.sh", STR("true\n"), 0644);
	plan_run(&plan, hand);
	assert_string_equal(patch_of(hand), "diff --git a/a b.txt b/a b.txt\n"
					    "--- a/a b.txt\t\n"
					    "+++ b/a b.txt\t\n"
					    "@@ -1,2 +1,2 @@\n"
					    " zero\n"
					    "-one\n"
					    "+two\n"
					    "\\ No newline at end of file\n"
					    "diff --git a/empty b/empty\n"
					    "new file mode 100644\n"
					    "diff --git a/gone b/gone\n"
					    "deleted file mode 100644\n"
					    "--- a/gone\n"
					    "+++ /dev/null\n"
					    "@@ -1 +0,0 @@\n"
					    "-bye\n"
					    "diff --git a/made b/made\n"
					    "new file mode 100644\n"
					    "--- /dev/null\n"
					    "+++ b/made\n"
					    "@@ -0,0 +1 @@\n"
					    "+new\n"
					    "diff --git a/old.c b/new/name.c\n"
					    "similarity index 100%\n"
					    "rename from old.c\n"
					    "rename to new/name.c\n"
					    "diff --git a/run.sh b/run.sh\n"
					    "old mode 100644\n"
					    "new mode 100755\n");
	hand_assert_says(hand, "6 files in the patch:");
	hand_assert_says(hand, "new/name.c: renamed from old.c, +0 -0");
	hand_assert_says_not(hand, "back");
	/* And git takes it back. */
	hand_puts(hand, "p.diff", patch_of(hand));
	assert_int_equal(run_git(hand, "-R"), 0);
	hand_assert_file(hand, "a b.txt", "zero\none\n");
	hand_assert_file(hand, "gone", "bye\n");
	hand_assert_file(hand, "old.c", "int main(void)\n");
}

static void what_cannot_be_in_it_is_named(void **state)
{
	struct hand *hand = *state;
	auto_free char *link = hand_path(hand, "link");
	auto_free char *large = memory_alloc((600 << 10) + 1);
	struct plan plan;

	hand_write(hand, "binary", "\0\1\2", 3);
	hand_write(hand, "latin", "\xe4\n", 2);
	assert_int_equal(symlink("binary", link), 0);
	for (size_t i = 0; i < 600 << 10; i++)
		large[i] = i % 64 == 63 ? '\n' : (char)('a' + i % 23);
	hand_puts(hand, "large", large);
	plan_begin(&plan);
	plan_add(&plan, "/etc/hosts", STR("x\n"), 0644);
	plan_add(&plan, "binary", STR("text\n"), 0644);
	plan_add(&plan, "large", (struct str){0}, 0);
	plan_add(&plan, "latin", STR("a\n"), 0644);
	plan_add(&plan, "link", STR("text\n"), 0644);
	struct undo_state lost = {.kind = UNDO_FILE, .mode = 0644, .size = 7};
	assert_true(undo_log_change(&plan.log, STR("lost"), &undo_absent, &lost, NULL));
	plan_run(&plan, hand);
	hand_assert_says(hand, "/etc/hosts: left out of the patch (outside the workspace)");
	hand_assert_says(hand, "binary: left out of the patch (binary)");
	hand_assert_says(hand,
			 "large: left out of the patch (no room in a patch of 256 KiB)");
	hand_assert_says(hand, "latin: left out of the patch (not UTF-8)");
	hand_assert_says(hand, "link: left out of the patch (a symbolic link)");
	hand_assert_says(hand,
			 "lost: left out of the patch (what it was could not be kept)");
	assert_string_equal(patch_of(hand), "");
}

/* What went makes room, and comes first; the same content elsewhere is no rename then. */
static void a_file_and_a_folder_change_places(void **state)
{
	struct hand *hand = *state;
	auto_free char *folder = hand_path(hand, "folder");
	struct undo_state place = {.kind = UNDO_FOLDER, .mode = 0755};
	struct plan plan;

	assert_int_equal(mkdir(folder, 0755), 0);
	hand_puts(hand, "folder/in", "text\n");
	hand_puts(hand, "place", "text\n");
	plan_begin(&plan);
	plan_add(&plan, "folder", STR("text\n"), 0644);
	plan_add(&plan, "folder/in", (struct str){0}, 0);
	assert_true(undo_log_change(&plan.log, STR("place"),
				    &(struct undo_state){.kind = UNDO_FILE}, &place, NULL));
	plan_add(&plan, "place/in", STR("text\n"), 0644);
	plan_run(&plan, hand);
	hand_assert_says(hand, "4 files in the patch:\n"
			       "  folder: deleted, +0 -1\n  place/in: deleted, +0 -1\n"
			       "  folder/in: created, +1 -0\n  place: created, +1 -0\n");
}

/* A binary file may still get another name or mode. */
static void a_binary_file_is_renamed(void **state)
{
	struct hand *hand = *state;
	struct plan plan;

	hand_write(hand, "b.bin", "\0\1\2", 3);
	plan_begin(&plan);
	plan_add(&plan, "a.bin", (struct str){"\0\1\2", 3}, 0644);
	plan_add(&plan, "b.bin", (struct str){0}, 0);
	plan_run(&plan, hand);
	hand_assert_says(hand, "b.bin: renamed from a.bin");
}

static void what_the_front_could_not_keep_is_said(void **state)
{
	struct hand *hand = *state;
	struct plan plan;

	plan_begin(&plan);
	assert_true(undo_log_meta(
		&plan.log,
		STR("{\"without_commands\": \"there is no state folder\", \"lost\": 2}"),
		NULL));
	plan_run(&plan, hand);
	hand_assert_says(hand, "files changed by commands are not in it: there is no state");
	hand_assert_says(hand, "2 calls of file tools changed more");
}

static void a_plan_that_does_not_hold_together_is_refused(void **state)
{
	struct hand *hand = *state;
	auto_close int fd = memfd_create("plan", MFD_CLOEXEC);

	assert_true(fd_write_all(fd, "0123456789abcdef0123", 20, NULL));
	hand_run_with(hand, &generate_patch_tool, fd,
		      "{\"title\": \"Do it\", \"summary\": \"Done.\"}");
	hand_assert_status(hand, RESULT_FAILED);
	hand_assert_says(hand, "What was changed could not be read");
}

/* A text of random lines, some with other ends, maybe without a last one. */
static void make_text(struct buf *text, size_t lines)
{
	static const char *const words[] = {"a",      "b",           "",
					    "int x;", "\ttab",       " +plus",
					    "-- x",   "@@ -1 +1 @@", "diff --git a/x b/x",
					    "\\ no"};

	for (size_t i = 0; i < lines; i++)
		(void)buf_addf(text, "%s%s", words[(size_t)rand() % 10],
			       rand() % 20 == 0 ? "\r\n" : "\n");
	if (rand() % 3 == 0 && text->size > 0)
		buf_truncate(text, text->size - 1);
}

static void change_text(struct buf *text)
{
	struct buf other;
	struct str rest = buf_str(text), line;

	buf_init(&other, 1 << 20);
	while (str_next_line(&rest, &line)) {
		if (rand() % 6 == 0)
			(void)buf_addf(&other, "new %d\n", rand() % 5);
		if (rand() % 6 != 0)
			(void)buf_addf(&other, "%.*s\n", (int)line.size, line.data);
	}
	buf_fini(text);
	*text = other;
}

/* What is handed out is what git makes of it. */
static void git_applies_what_is_handed_out(void **state)
{
	struct hand *hand = *state;
	size_t left_out = 0;

	srand(7);
	for (int round = 0; round < 60; round++) {
		struct buf base, now;
		struct plan plan;

		buf_init(&base, 1 << 20);
		make_text(&base, (size_t)rand() % 40);
		buf_init(&now, 1 << 20);
		(void)buf_addstr(&now, buf_str(&base));
		change_text(&now);
		hand_write(hand, "text", now.data, now.size);
		plan_begin(&plan);
		plan_add(&plan, "text", buf_str(&base), 0644);
		plan_run(&plan, hand);
		const char *patch = patch_of(hand);
		if (patch[0] == '\0') {
			left_out++;
		} else {
			size_t size;
			hand_write(hand, "text", base.data, base.size);
			hand_puts(hand, "p.diff", patch);
			assert_int_equal(run_git(hand, "--whitespace=nowarn"), 0);
			auto_free char *applied = hand_read(hand, "text", &size);
			assert_int_equal(size, now.size);
			assert_memory_equal(applied, now.data, size);
		}
		buf_fini(&base);
		buf_fini(&now);
	}
	/* Those that changed nothing, and mixed line ends, which our reader would mend. */
	assert_true(left_out < 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, hand_set_up, hand_tear_down)
		TEST(each_kind_of_change_is_in_it),
		TEST(what_cannot_be_in_it_is_named),
		TEST(a_file_and_a_folder_change_places),
		TEST(a_binary_file_is_renamed),
		TEST(what_the_front_could_not_keep_is_said),
		TEST(a_plan_that_does_not_hold_together_is_refused),
		TEST(git_applies_what_is_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
