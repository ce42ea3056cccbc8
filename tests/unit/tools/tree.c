/* tree: see tree.h. */
#include "tree.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "runtime/schema.h"

#include <fcntl.h>
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
	if (!schema_repair_and_check(tool, arguments, &text))
		fail_msg("%s: %s", json, text.data);
	buf_clear(&text);
	assert_true(value_print(arguments, 0, &text));
	(void)hand_run_for(hand, tool, TREE_CALL_MS, text.data);
	value_free(arguments);
	buf_fini(&text);
	hand_assert_status(hand, status);
}

bool tree_program(struct hand *hand, const char *const *arguments, struct buf *out)
{
	int ends[2];
	int status = 0;
	pid_t child;

	assert_true(fd_pipe(ends, NULL));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		/* No configuration but the test's own. */
		(void)setenv("HOME", hand->outside, 1);
		(void)setenv("XDG_CONFIG_HOME", hand->outside, 1);
		(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
		if (chdir(hand->workspace) == 0)
			(void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	(void)close(ends[1]);
	assert_true(fd_read_all(ends[0], out, arguments[0], NULL));
	(void)close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

unsigned tree_random(uint64_t *seed, unsigned limit)
{
	/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003). */
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (unsigned)((*seed >> 20) % limit);
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
