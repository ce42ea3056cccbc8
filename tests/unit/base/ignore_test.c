/* Tests of base/ignore, at the end against git itself. */
#include "made.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/pattern.h"

static void rules_of_the_manual(void **state)
{
	static const struct {
		const char *rules, *path;
		bool directory;
		enum ignore_answer answer;
	} cases[] = {
		{"", "a", false, IGNORE_SILENT},
		{"# comment\n\n", "# comment", false, IGNORE_SILENT},
		{"a", "a", false, IGNORE_YES},
		{"a", "b/a", false, IGNORE_YES},
		{"a", "a/b", false, IGNORE_SILENT},
		{"/a", "a", false, IGNORE_YES},
		{"/a", "b/a", false, IGNORE_SILENT},
		{"a/b", "a/b", false, IGNORE_YES},
		{"a/b", "c/a/b", false, IGNORE_SILENT},
		{"a/", "a", false, IGNORE_SILENT},
		{"a/", "a", true, IGNORE_YES},
		{"a/", "b/a", true, IGNORE_YES},
		{"a/b/", "a/b", true, IGNORE_YES},
		{"*.c\n!x.c", "x.c", false, IGNORE_NO},
		{"!x.c\n*.c", "x.c", false, IGNORE_YES},
		{"\\!x", "!x", false, IGNORE_YES},
		{"\\#x", "#x", false, IGNORE_YES},
		{"a  ", "a", false, IGNORE_YES},
		{"a\\ ", "a ", false, IGNORE_YES},
		{"a\\ ", "a", false, IGNORE_SILENT},
		{"a\\  ", "a ", false, IGNORE_YES},
		{"a b", "a b", false, IGNORE_YES},
		{" a", " a", false, IGNORE_YES},
		{" a", "a", false, IGNORE_SILENT},
		{"a\t", "a", false, IGNORE_SILENT},
		{"a\r\n*.o\r\n", "a", false, IGNORE_YES},
		{"a\r", "a", false, IGNORE_YES},
		{"\xef\xbb\xbf"
		 "a",
		 "a", false, IGNORE_YES},
		{"**/a", "x/y/a", false, IGNORE_YES},
		{"a/**", "a/x/y", false, IGNORE_YES},
		{"a/**", "a", true, IGNORE_SILENT},
		{"a/**/b", "a/b", false, IGNORE_YES},
		{"*", "x/y", false, IGNORE_YES},
		{"/*", "x/y", false, IGNORE_SILENT},
		{"*.c", "d/x.c", false, IGNORE_YES},
		{"d/*.c", "d/x.c", false, IGNORE_YES},
		{"d/*.c", "d/e/x.c", false, IGNORE_SILENT},
		{"[a", "[a", false, IGNORE_SILENT},
		{"a\\", "a\\", false, IGNORE_SILENT},
		{"!", "a", false, IGNORE_SILENT},
		{"/", "a", true, IGNORE_SILENT},
		{"foo/", "foobar", true, IGNORE_SILENT},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct ignore *ignore =
			ignore_new(str_of(cases[i].rules), STR(""), NULL, 0);

		if (ignore_decide(ignore, str_of(cases[i].path), cases[i].directory) !=
		    cases[i].answer)
			fail_msg("rules \"%s\", path \"%s\"", cases[i].rules, cases[i].path);
		ignore_free(ignore);
	}
}

static void the_deepest_file_with_a_matching_rule_decides(void **state)
{
	struct ignore *root = ignore_new(STR("*.o\n/top\n"), STR(""), NULL, 0);
	struct ignore *below = ignore_new(STR("!keep.o\n/top"), STR("lib/x"), root, 0);

	(void)state;
	assert_int_equal(ignore_decide(below, STR("lib/x/keep.o"), false), IGNORE_NO);
	assert_int_equal(ignore_decide(below, STR("lib/x/other.o"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(below, STR("lib/x/top"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(below, STR("lib/x/d/top"), false), IGNORE_SILENT);
	/* Its own folder and its neighbours are not below it. */
	assert_int_equal(ignore_decide(below, STR("lib/x"), true), IGNORE_SILENT);
	assert_int_equal(ignore_decide(below, STR("lib/xy/keep.o"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(below, STR("keep.o"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(root, STR("top"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(NULL, STR("top"), false), IGNORE_SILENT);
	ignore_free(below);
	ignore_free(root);
	ignore_free(NULL);
}

static void a_nul_ends_its_line(void **state)
{
	struct ignore *ignore = ignore_new(STR("a\0b\nc"), STR(""), NULL, 0);

	(void)state;
	assert_int_equal(ignore_decide(ignore, STR("a"), false), IGNORE_YES);
	assert_int_equal(ignore_decide(ignore, STR("c"), false), IGNORE_YES);
	ignore_free(ignore);
}

enum { TREES = 250, TREE_ENTRIES = 24, PATHS_MAX = TREES * TREE_ENTRIES };

struct entry {
	char path[80];
	bool directory;
	bool ignored; /* by us */
};

struct forest {
	char root[64];
	struct entry *entries;
	size_t count;
	uint64_t seed;
	unsigned flags;
};

static void write_file(const char *path, struct str text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text.data, text.size, NULL));
}

/* Fill FOLDER, whose parents have PARENT, and decide on everything in it. */
static void grow_tree(struct forest *forest, const char *folder, size_t *budget,
		      int depth, const struct ignore *parent, bool ignored)
{
	char path[256];
	struct ignore *ignore = NULL;
	struct buf rules;

	buf_init(&rules, 10000);
	if (depth == 0 || made_random(&forest->seed, 3) == 0) {
		made_rules(&forest->seed, &rules);
		if (forest->flags != 0)
			made_case(&forest->seed, rules.data, rules.size);
		(void)snprintf(path, sizeof(path), "%s/%s/.gitignore", forest->root, folder);
		write_file(path, buf_str(&rules));
		ignore = ignore_new(buf_str(&rules), str_of(folder), parent, forest->flags);
	}
	for (int n = 0; n < 8 && *budget > 0; n++) {
		struct entry *entry = &forest->entries[forest->count];

		(void)snprintf(entry->path, sizeof(entry->path), "%s/%s", folder,
			       made_name(&forest->seed));
		if (forest->flags != 0)
			made_case(&forest->seed, entry->path + strlen(folder) + 1,
				  strlen(entry->path) - strlen(folder) - 1);
		(void)snprintf(path, sizeof(path), "%s/%s", forest->root, entry->path);
		entry->directory = depth < 3 && made_random(&forest->seed, 3) == 0;
		if (access(path, F_OK) == 0)
			continue;
		if (entry->directory)
			assert_int_equal(mkdir(path, 0700), 0);
		else
			write_file(path, STR(""));
		/* Below an ignored folder all is ignored, whatever a rule there says. */
		entry->ignored = ignored || ignore_decide(ignore ? ignore : parent,
							  str_of(entry->path),
							  entry->directory) == IGNORE_YES;
		forest->count++;
		--*budget;
		if (entry->directory)
			grow_tree(forest, entry->path, budget, depth + 1,
				  ignore ? ignore : parent, entry->ignored);
	}
	ignore_free(ignore);
	buf_fini(&rules);
}

/*
 * Run git in the forest's root with IN as input; its output is added to OUT. -1: no
 * git.
 */
static int run_git(const struct forest *forest, const char *const *arguments,
		   struct str in, struct buf *out)
{
	auto_close int input = -1;
	int ends[2], status = 0;
	pid_t child;

	assert_true(fd_memory_file("paths", in, &input, NULL));
	assert_true(fd_pipe(ends, NULL));
	child = fork();
	if (child == 0) {
		(void)dup2(input, STDIN_FILENO);
		(void)dup2(ends[1], STDOUT_FILENO);
		if (chdir(forest->root) < 0 || setenv("HOME", forest->root, 1) < 0 ||
		    setenv("XDG_CONFIG_HOME", forest->root, 1) < 0 ||
		    setenv("GIT_CONFIG_NOSYSTEM", "1", 1) < 0)
			_exit(126);
		(void)unsetenv("GIT_DIR");
		(void)execvp("git", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	fd_close(&ends[1]);
	assert_true(fd_read_all(ends[0], out, "git", NULL));
	fd_close(&ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -1;
	/* check-ignore: 0 some ignored, 1 none. */
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status);
}

static void remove_tree(const char *path)
{
	const char *const arguments[] = {"rm", "-rf", "--", path, NULL};
	pid_t child = fork();

	if (child == 0) {
		(void)execvp("rm", (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	(void)waitpid(child, NULL, 0);
}

/* Is PATH among the NUL-ended paths of LIST, in the order of asking? */
static bool take_path(struct str *list, const char *path)
{
	size_t size = strlen(path) + 1;

	if (list->size < size || memcmp(list->data, path, size) != 0)
		return false;
	*list = str_part(*list, size, list->size);
	return true;
}

/* The number of answers that differ, each with a message. */
static size_t compare_with_git(struct forest *forest)
{
	static const char *const check[] = {"git", "check-ignore", "--stdin",
					    "-z",  "--no-index",   NULL};
	size_t different = 0, ignored_count = 0;
	struct buf asked, answered;
	struct str list;

	buf_init(&asked, 10 << 20);
	buf_init(&answered, 10 << 20);
	for (size_t i = 0; i < forest->count; i++)
		buf_add(&asked, forest->entries[i].path,
			strlen(forest->entries[i].path) + 1);
	(void)run_git(forest, check, buf_str(&asked), &answered);
	list = buf_str(&answered);
	for (size_t i = 0; i < forest->count; i++) {
		const struct entry *entry = &forest->entries[i];
		bool ignored = take_path(&list, entry->path);

		ignored_count += ignored;
		if (ignored != entry->ignored) {
			print_error("%s: git says %d\n", entry->path, ignored);
			different++;
		}
	}
	different += list.size > 0;
	/* Rules that match all or nothing would show nothing. */
	different += ignored_count < forest->count / 8 ||
		     ignored_count > forest->count / 8 * 7;
	buf_fini(&asked);
	buf_fini(&answered);
	return different;
}

static void answer_as_git(unsigned flags)
{
	static const char *const ignore_case[] = {"git", "config", "core.ignoreCase",
						  "true", NULL};
	static const char *const init[] = {"git", "init", "-q", NULL};
	struct forest forest = {.entries = memory_array(PATHS_MAX, sizeof(*forest.entries)),
				.flags = flags};
	size_t different = 0;
	struct buf out;
	bool has_git;

	forest.seed = made_seed(4711);
	buf_init(&out, 10000);
	(void)snprintf(forest.root, sizeof(forest.root), "/tmp/ignore_test.XXXXXX");
	assert_non_null(mkdtemp(forest.root));
	has_git = run_git(&forest, init, STR(""), &out) >= 0;
	if (flags != 0)
		assert_int_equal(run_git(&forest, ignore_case, STR(""), &out), 0);
	for (int tree = 0; tree < TREES && has_git; tree++) {
		size_t budget = TREE_ENTRIES;
		char folder[32], path[128];

		(void)snprintf(folder, sizeof(folder), "t%d", tree);
		(void)snprintf(path, sizeof(path), "%s/%s", forest.root, folder);
		assert_int_equal(mkdir(path, 0700), 0);
		grow_tree(&forest, folder, &budget, 0, NULL, false);
	}
	if (has_git)
		different = compare_with_git(&forest);
	remove_tree(forest.root);
	free(forest.entries);
	buf_fini(&out);
	assert_int_equal(different, 0);
	assert_true(has_git); /* dev/bootstrap installs it */
}

static void answers_equal_those_of_git(void **state)
{
	(void)state;
	answer_as_git(0);
}

static void answers_equal_those_of_git_where_it_ignores_case(void **state)
{
	(void)state;
	answer_as_git(PATTERN_IGNORE_CASE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_of_the_manual),
		cmocka_unit_test(the_deepest_file_with_a_matching_rule_decides),
		cmocka_unit_test(a_nul_ends_its_line),
		cmocka_unit_test(answers_equal_those_of_git),
		cmocka_unit_test(answers_equal_those_of_git_where_it_ignores_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
