/*
 * Tests of base/diff: exact hunks, shortest scripts, and that patch and git apply take
 * them.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "diff_apply.h"

static void assert_diff(const char *old_text, const char *new_text, size_t context,
			const char *expected)
{
	struct buf out;

	buf_init(&out, 10000);
	assert_true(diff_unified(str_of(old_text), str_of(new_text), NULL, NULL, context,
				 &out, NULL));
	assert_string_equal(out.data, expected);
	buf_fini(&out);
}

static void equal_texts_have_no_diff(void **state)
{
	struct diff_counts counts = {1, 1};
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	assert_true(diff_unified(STR("a\nb"), STR("a\nb"), "x", "y", 3, &out, &counts));
	assert_string_equal(out.data, "");
	assert_int_equal(counts.added + counts.removed, 0);
	assert_true(diff_unified(STR(""), (struct str){NULL, 0}, "x", "y", 3, &out, NULL));
	assert_string_equal(out.data, "");
	diff_count(STR("a"), STR("a"), &counts);
	assert_int_equal(counts.added + counts.removed, 0);
	buf_fini(&out);
}

static void hunks(void **state)
{
	(void)state;
	assert_diff("", "a\n", 3, "@@ -0,0 +1 @@\n+a\n");
	assert_diff("a\n", "", 3, "@@ -1 +0,0 @@\n-a\n");
	assert_diff("a\nb\n", "a\nc\n", 3, "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
	assert_diff("1\n2\n3\n4\n5\n", "1\n2\nX\n3\n4\n5\n", 1,
		    "@@ -2,2 +2,3 @@\n 2\n+X\n 3\n");
	assert_diff("1\n2\n3\n", "1\n3\n", 0, "@@ -2 +1,0 @@\n-2\n");
	assert_diff("1\n3\n", "1\n2\n3\n", 0, "@@ -1,0 +2 @@\n+2\n");
}

/* Large texts are cropped first: lines are counted all the same. */
static void one_line_of_many(void **state)
{
	enum { LINES = 20000, CHANGED = 10000 };
	static const size_t places[] = {0, 1, CHANGED, LINES - 1};
	struct buf old_text, new_text, out, expected;

	(void)state;
	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
		struct diff_counts counts;
		size_t from = places[p] < 3 ? 0 : places[p] - 3;
		size_t to = places[p] + 4 > LINES ? LINES : places[p] + 4;

		buf_init(&old_text, 1 << 20);
		buf_init(&new_text, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_init(&expected, 1 << 20);
		for (size_t i = 0; i < LINES; i++) {
			(void)buf_addf(&old_text, "line %zu\n", i);
			(void)buf_addf(&new_text,
				       i == places[p] ? "new %zu\n" : "line %zu\n", i);
		}
		assert_true(diff_unified(buf_str(&old_text), buf_str(&new_text), NULL,
					 NULL, 3, &out, &counts));
		(void)buf_addf(&expected, "@@ -%zu,%zu +%zu,%zu @@\n", from + 1,
			       to - from, from + 1, to - from);
		for (size_t i = from; i < to; i++) {
			(void)buf_addf(&expected,
				       i == places[p] ? "-line %zu\n" : " line %zu\n", i);
			if (i == places[p])
				(void)buf_addf(&expected, "+new %zu\n", i);
		}
		assert_string_equal(out.data, expected.data);
		assert_int_equal(counts.added, 1);
		assert_int_equal(counts.removed, 1);
		buf_fini(&old_text);
		buf_fini(&new_text);
		buf_fini(&out);
		buf_fini(&expected);
	}
}

static void contexts_that_touch_share_a_hunk(void **state)
{
	(void)state;
	assert_diff("a\n1\n2\nb\n", "A\n1\n2\nB\n", 1,
		    "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n-b\n+B\n");
	assert_diff("a\n1\n2\n3\nb\n", "A\n1\n2\n3\nB\n", 1,
		    "@@ -1,2 +1,2 @@\n-a\n+A\n 1\n@@ -4,2 +4,2 @@\n 3\n-b\n+B\n");
	assert_diff("a\n1\nb\n", "A\n1\nB\n", SIZE_MAX,
		    "@@ -1,3 +1,3 @@\n-a\n+A\n 1\n-b\n+B\n");
}

static void missing_line_ends_are_told(void **state)
{
	(void)state;
	assert_diff("a", "a\n", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	assert_diff("a\n", "a", 3, "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
	assert_diff("a", "b", 3,
		    "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
		    "\\ No newline at end of file\n");
	assert_diff("a\nz", "b\nz", 3,
		    "@@ -1,2 +1,2 @@\n-a\n+b\n z\n\\ No newline at end of file\n");
	assert_diff("a\r\n", "a\n", 3, "@@ -1 +1 @@\n-a\r\n+a\n");
}

static void groups_slide_down(void **state)
{
	(void)state;
	assert_diff("f() {\n}\nh() {\n}\n", "f() {\n}\ng() {\n}\nh() {\n}\n", 1,
		    "@@ -2,2 +2,4 @@\n }\n+g() {\n+}\n h() {\n");
	assert_diff("x\nx\n", "x\nx\nx\n", 0, "@@ -2,0 +3 @@\n+x\n");
}

static void names_head_the_diff(void **state)
{
	struct diff_counts counts;
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(diff_unified(STR(""), STR("a\nb\n"), NULL, "b/x", 3, &out, &counts));
	assert_string_equal(out.data, "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n");
	assert_int_equal(counts.added, 2);
	assert_int_equal(counts.removed, 0);
	buf_clear(&out);
	assert_true(diff_unified(STR("a\n"), STR(""), "a/x y", NULL, 3, &out, &counts));
	assert_string_equal(out.data, "--- a/x y\t\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
	assert_int_equal(counts.removed, 1);
	buf_clear(&out);
	assert_true(
		diff_unified(STR("a\n"), STR("b\n"), "a/\"q\n", "b/\\\t", 3, &out, NULL));
	assert_non_null(strstr(out.data, "--- \"a/\\\"q\\012\"\n+++ \"b/\\\\\\011\"\n"));
	buf_fini(&out);
}

static void at_the_ceiling_nothing_is_added(void **state)
{
	const size_t whole = strlen("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n");

	(void)state;
	for (size_t max = 0; max <= whole; max++) {
		struct diff_counts counts;
		struct buf out;

		buf_init(&out, max + 1);
		buf_addc(&out, '>');
		assert_int_equal(diff_unified(STR("a\n"), STR("b\n"), "a", "b", 3, &out,
					      &counts),
				 max == whole);
		assert_int_equal(out.size, max == whole ? whole + 1 : 1);
		assert_int_equal(counts.added, 1);
		buf_fini(&out);
	}
}

/* Lines of few kinds, so that much is equal. */
static void some_text(struct buf *text, long kinds, long lines)
{
	buf_clear(text);
	for (long n = random() % (lines + 1); n > 0; n--)
		buf_addf(text, "%c\n", (int)('a' + random() % kinds));
	if (text->size && random() % 4 == 0)
		buf_truncate(text, text->size - 1);
}

/* Text with a few lines changed. */
static void some_edit(const struct buf *old_text, struct buf *new_text)
{
	struct str rest = buf_str(old_text), line;

	buf_clear(new_text);
	while (str_next_line(&rest, &line)) {
		if (random() % 6 == 0)
			buf_addf(new_text, "new %ld\n", random() % 3);
		if (random() % 6 == 0)
			continue;
		buf_addstr(new_text, line);
		if (rest.size || random() % 3)
			buf_addc(new_text, '\n');
	}
}

static size_t longest_common(struct str a, struct str b)
{
	static size_t table[41][41];
	struct str a_lines[40], b_lines[40];
	size_t n = 0, m = 0;

	/* With their line ends: a missing one makes another line. */
	for (struct str rest = a, line; str_next_line(&rest, &line); n++)
		a_lines[n] = (struct str){line.data,
					  line.size + (rest.data > line.data + line.size)};
	for (struct str rest = b, line; str_next_line(&rest, &line); m++)
		b_lines[m] = (struct str){line.data,
					  line.size + (rest.data > line.data + line.size)};
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			if (str_equal(a_lines[i - 1], b_lines[j - 1]))
				table[i][j] = table[i - 1][j - 1] + 1;
			else
				table[i][j] = table[i - 1][j] > table[i][j - 1]
						      ? table[i - 1][j]
						      : table[i][j - 1];
		}
	}
	return n && m ? table[n][m] : 0;
}

static void diffs_are_shortest_and_rebuild_the_new_text(void **state)
{
	struct buf a, b, diff, rebuilt;

	(void)state;
	srandom(5);
	buf_init(&a, 10000);
	buf_init(&b, 10000);
	buf_init(&diff, 100000);
	buf_init(&rebuilt, 10000);
	for (int round = 0; round < 4000; round++) {
		struct diff_counts counts, again;
		size_t common;

		some_text(&a, 1 + random() % 6, 30);
		some_text(&b, 1 + random() % 6, 30);
		buf_clear(&diff);
		buf_clear(&rebuilt);
		assert_true(diff_unified(buf_str(&a), buf_str(&b), NULL, NULL,
					 (size_t)random() % 5, &diff, &counts));
		assert_true(diff_apply(buf_str(&a), buf_str(&diff), &rebuilt));
		assert_string_equal(rebuilt.data, b.data);
		common = longest_common(buf_str(&a), buf_str(&b));
		assert_int_equal(counts.removed, text_count_lines(buf_str(&a)) - common);
		assert_int_equal(counts.added, text_count_lines(buf_str(&b)) - common);
		diff_count(buf_str(&a), buf_str(&b), &again);
		assert_memory_equal(&counts, &again, sizeof(counts));
	}
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&diff);
	buf_fini(&rebuilt);
}

static void effort_is_bounded(void **state)
{
	enum { LINES = 60000 };
	struct buf a, b, diff, rebuilt;
	int64_t start = clock_now_ms();

	(void)state;
	srandom(6);
	buf_init(&a, 10 << 20);
	buf_init(&b, 10 << 20);
	buf_init(&diff, 20 << 20);
	buf_init(&rebuilt, 10 << 20);
	/* Common lines in another order: the worst there is. */
	for (int i = 0; i < LINES; i++) {
		buf_addf(&a, "%ld\n", random() % 1000);
		buf_addf(&b, "%ld\n", random() % 1000);
	}
	assert_true(diff_unified(buf_str(&a), buf_str(&b), NULL, NULL, 3, &diff, NULL));
	assert_true(clock_now_ms() - start < 20000);
	assert_true(diff_apply(buf_str(&a), buf_str(&diff), &rebuilt));
	assert_true(str_equal(buf_str(&rebuilt), buf_str(&b)));
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&diff);
	buf_fini(&rebuilt);
}

enum { FILES = 150 };

struct files {
	char folder[64];
	struct buf old_text[FILES], new_text[FILES];
	struct buf patch; /* of all of them */
};

static void file_name(int i, char name[32])
{
	static const char *const endings[] = {"", " with blanks", "-é", ".c"};

	(void)snprintf(name, 32, "f%d%s", i, endings[i % 4]);
}

static void write_text(const char *folder, const char *name, struct str text)
{
	auto_close int fd = -1;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text.data, text.size, NULL));
}

/* Old files on disk, and one patch that makes the new ones; empty means not there. */
static void files_make(struct files *files)
{
	srandom(7);
	(void)snprintf(files->folder, sizeof(files->folder), "/tmp/diff_test.XXXXXX");
	assert_non_null(mkdtemp(files->folder));
	buf_init(&files->patch, 10 << 20);
	for (int i = 0; i < FILES; i++) {
		struct buf *old_text = &files->old_text[i], *new_text = &files->new_text[i];
		char name[32], old_name[40], new_name[40];

		buf_init(old_text, 100000);
		buf_init(new_text, 100000);
		some_text(old_text, 4, i % 10 == 0 ? 0 : 60);
		if (i % 3 == 0)
			some_text(new_text, 4, i % 15 == 3 ? 0 : 60);
		else
			some_edit(old_text, new_text);
		file_name(i, name);
		(void)snprintf(old_name, sizeof(old_name), "a/%s", name);
		(void)snprintf(new_name, sizeof(new_name), "b/%s", name);
		if (old_text->size)
			write_text(files->folder, name, buf_str(old_text));
		assert_true(diff_unified(buf_str(old_text), buf_str(new_text),
					 old_text->size ? old_name : NULL,
					 new_text->size ? new_name : NULL, DIFF_CONTEXT,
					 &files->patch, NULL));
	}
	write_text(files->folder, "the.patch", buf_str(&files->patch));
}

/* Is every file now what it should be? Says which is not. */
static bool files_are_new(const struct files *files)
{
	bool all = true;

	for (int i = 0; i < FILES; i++) {
		char name[32], path[128];
		struct buf found;
		bool there, right;

		buf_init(&found, 200000);
		file_name(i, name);
		(void)snprintf(path, sizeof(path), "%s/%s", files->folder, name);
		there = fd_read_file(path, 200000, &found, NULL);
		right = there == (files->new_text[i].size > 0) &&
			str_equal(buf_str(&found), buf_str(&files->new_text[i]));
		if (!right)
			print_error("%s is not what it should be\n", name);
		all = all && right;
		buf_fini(&found);
	}
	return all;
}

static void files_remove(struct files *files)
{
	char name[32], path[128];

	for (int i = 0; i < FILES; i++) {
		file_name(i, name);
		(void)snprintf(path, sizeof(path), "%s/%s", files->folder, name);
		(void)unlink(path);
		buf_fini(&files->old_text[i]);
		buf_fini(&files->new_text[i]);
	}
	(void)snprintf(path, sizeof(path), "%s/the.patch", files->folder);
	(void)unlink(path);
	(void)rmdir(files->folder);
	buf_fini(&files->patch);
}

static int run_in(const char *folder, const char *const *arguments)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		/* Not the repository this test may be run in. */
		if (chdir(folder) < 0 || setenv("GIT_CEILING_DIRECTORIES", "/tmp", 1) < 0)
			_exit(126);
		(void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	(void)waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void applied_by(const char *const *arguments)
{
	struct files *files = memory_alloc(sizeof(*files));
	bool right = false;
	int status;

	files_make(files);
	status = run_in(files->folder, arguments);
	if (status == 0)
		right = files_are_new(files);
	files_remove(files);
	free(files);
	assert_int_equal(status, 0);
	assert_true(right);
}

static void git_apply_takes_them(void **state)
{
	static const char *const arguments[] = {"git", "apply", "--whitespace=nowarn",
						"the.patch", NULL};

	(void)state;
	applied_by(arguments);
}

static void patch_takes_them(void **state)
{
	static const char *const arguments[] = {"patch",    "-p1", "-s",        "-E",
						"--fuzz=0", "-i",  "the.patch", NULL};

	(void)state;
	applied_by(arguments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_no_diff),
		cmocka_unit_test(hunks),
		cmocka_unit_test(one_line_of_many),
		cmocka_unit_test(contexts_that_touch_share_a_hunk),
		cmocka_unit_test(missing_line_ends_are_told),
		cmocka_unit_test(groups_slide_down),
		cmocka_unit_test(names_head_the_diff),
		cmocka_unit_test(at_the_ceiling_nothing_is_added),
		cmocka_unit_test(diffs_are_shortest_and_rebuild_the_new_text),
		cmocka_unit_test(effort_is_bounded),
		cmocka_unit_test(git_apply_takes_them),
		cmocka_unit_test(patch_takes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
