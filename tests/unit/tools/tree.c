/* tree: see tree.h. */
#include "tree.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "tool/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Longer than any test may take: a walk that hangs is stopped by it. */
enum { TREE_CALL_MS = 60000 };

void tree_write_bytes(struct hand *hand, const char *path, struct str bytes, int64_t time)
{
	struct timespec times[2] = {{.tv_sec = time}, {.tv_sec = time}};
	auto_free char *full = hand_path(hand, path);

	hand_write(hand, path, bytes.data, bytes.size);
	assert_int_equal(utimensat(AT_FDCWD, full, times, 0), 0);
}

void tree_write(struct hand *hand, const char *path, const char *text, int64_t time)
{
	tree_write_bytes(hand, path, str_of(text), time);
}

void tree_link(struct hand *hand, const char *path, const char *target)
{
	auto_free char *full = hand_path(hand, path);

	assert_int_equal(symlink(target, full), 0);
}

void tree_folder(struct hand *hand, const char *path)
{
	auto_free char *full = hand_path(hand, path);

	assert_int_equal(mkdir(full, 0755), 0);
}

void tree_run(struct hand *hand, const struct tool *tool, const char *json,
	      enum result_status status)
{
	struct value *arguments = NULL;
	struct buf text;
	struct err err;

	buf_init(&text, 1 << 20);
	if (!value_parse(str_of(json), 0, &arguments, &err))
		fail_msg("%s: %s", json, err.text);
	auto_value struct value *capped = NULL;
	if (!schema_fit(tool, arguments, &capped, &text))
		fail_msg("%s: %s", json, text.data);
	buf_clear(&text);
	assert_true(value_print(arguments, 0, &text));
	(void)hand_run_for(hand, tool, TREE_CALL_MS, text.data);
	value_free(arguments);
	buf_fini(&text);
	hand_assert_status(hand, status);
}

/* No configuration but the test's own. */
static char **tree_environment(const struct hand *hand, struct buf text[4])
{
	char **environment = memory_array(5, sizeof(*environment));
	const char *path = getenv("PATH");

	for (size_t i = 0; i < 4; i++)
		buf_init(&text[i], 1 << 16);
	(void)buf_addf(&text[0], "PATH=%s", path ? path : "/usr/bin:/bin");
	(void)buf_addf(&text[1], "HOME=%s", hand->outside);
	(void)buf_addf(&text[2], "XDG_CONFIG_HOME=%s", hand->outside);
	(void)buf_adds(&text[3], "GIT_CONFIG_NOSYSTEM=1");
	for (size_t i = 0; i < 4; i++)
		environment[i] = text[i].data;
	return environment;
}

int tree_program(struct hand *hand, const char *const *arguments, struct buf *out)
{
	posix_spawn_file_actions_t actions;
	struct buf text[4];
	char **environment = tree_environment(hand, text);
	int ends[2];
	int status = 0;
	pid_t child = -1;
	int error;

	assert_true(fd_pipe(ends, NULL));
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_addchdir_np(&actions, hand->workspace);
	error = posix_spawnp(&child, arguments[0], &actions, NULL,
			     (char *const *)(uintptr_t)arguments, environment);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(ends[1]);
	free(environment);
	for (size_t i = 0; i < 4; i++)
		buf_fini(&text[i]);
	if (error == 0) {
		assert_true(fd_read_all(ends[0], out, arguments[0], NULL));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
	}
	(void)close(ends[0]);
	if (error == ENOENT)
		return TREE_MISSING;
	assert_int_equal(error, 0);
	return WEXITSTATUS(status);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *sorted_lines(struct str text, char end)
{
	char *copy = memory_copy_str(text);
	char **lines = memory_array(text.size + 1, sizeof(*lines));
	size_t count = 0;
	struct buf sorted;

	for (char *at = copy; *at || at < copy + text.size;) {
		char *stop = memchr(at, end, (size_t)(copy + text.size - at));

		lines[count++] = at;
		if (!stop)
			break;
		*stop = '\0';
		at = stop + 1;
	}
	qsort(lines, count, sizeof(*lines), compare_lines);
	buf_init(&sorted, 1 << 26);
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(&sorted, "%s\n", lines[i]);
	free(lines);
	free(copy);
	return buf_take(&sorted);
}
