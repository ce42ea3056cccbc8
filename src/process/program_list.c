/* program_list: the process that runs a list; see program_list.h. */
#include "process/program_list.h"

#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, SIGNALLED = 128 }; /* as shells have it */

struct list {
	const struct program_item *items;
	size_t count;
	const char *const *environment;
};

/* Start one; its code when that fails, else 0. */
static int start_one(const struct list *list, size_t at, int in, int out, pid_t *pid)
{
	const struct program_start start = {
		.argv = list->items[at].argv,
		.environment = list->environment,
		.fds = {in, out, STDERR_FILENO},
		.signals_are_plain = true,
		.joins_group = true,
	};
	struct err err;

	if (program_start(&start, pid, &err))
		return 0;
	(void)dprintf(STDERR_FILENO, "%s\n", err.text);
	return err.code == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

static int code_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return NOT_FOUND;
	}
	return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The programs from FIRST to before END, each reading the one before it. The last one's code. */
static int run_pipeline(const struct list *list, size_t first, size_t end)
{
	auto_free pid_t *pids = memory_array(end - first, sizeof(*pids));
	int in = STDIN_FILENO;
	int code = 0;

	for (size_t i = first; i < end; i++) {
		int ends[2] = {-1, -1};
		struct err err;
		bool is_last = i + 1 == end;

		if (!is_last && !fd_pipe(ends, &err)) {
			(void)dprintf(STDERR_FILENO, "%s\n", err.text);
			code = NOT_EXECUTABLE;
			break;
		}
		code = start_one(list, i, in, is_last ? STDOUT_FILENO : ends[1],
				 &pids[i - first]);
		/* While we hold an end, no end of the stream would show. */
		fd_close(&ends[1]);
		if (in != STDIN_FILENO)
			fd_close(&in);
		in = ends[0];
	}
	if (in > STDIN_FILENO)
		fd_close(&in);
	for (size_t i = first; i < end; i++) {
		bool is_last = i + 1 == end;
		int ended = pids[i - first] > 0 ? code_of(pids[i - first]) : code;

		if (is_last)
			code = ended;
	}
	return code;
}

static int run_list(void *context)
{
	const struct list *list = context;
	int code = 0;

	for (size_t at = 0; at < list->count;) {
		enum program_join join = list->items[at].join;
		size_t end = at + 1;

		while (end < list->count && list->items[end].join == PROGRAM_PIPE)
			end++;
		if (join == PROGRAM_AND  ? code == 0
		    : join == PROGRAM_OR ? code != 0
					 : true)
			code = run_pipeline(list, at, end);
		at = end;
	}
	return code;
}

bool program_list_start_ahead(const struct program_start *start,
			      const struct program_item *items, size_t count,
			      struct program_ahead *ahead, struct err *err)
{
	static const char *const name[] = {"the list of programs", NULL};
	struct list list = {items, count, start->environment};
	struct program_start copy = *start;

	assert(count > 0);
	copy.argv = name;
	copy.launcher = NULL;
	copy.body = run_list;
	copy.context = &list;
	return program_start_ahead(&copy, ahead, err);
}
