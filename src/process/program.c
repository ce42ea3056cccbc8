/* program: starting one program: which file it is, and what is said when it did not start. */
#include "process/program.h"

#include "base/path.h"
#include "process/program_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_TEXT_MAX = 64 << 10 }; /* all candidates for one name */

static const char *environment_value(const char *const *environment, const char *name)
{
	size_t size = strlen(name);

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
			return *environment + size + 1;
	}
	return NULL;
}

/* The files that argv[0] may mean, in order. False when they are too many to hold. */
static bool list_candidates(const struct program_start *start, struct buf *list)
{
	const char *name = start->argv[0];
	const char *path = environment_value(start->environment, "PATH");
	struct str rest, folder;

	if (!*name)
		return buf_addc(list, '\0');
	if (strchr(name, '/'))
		return buf_add(list, name, strlen(name) + 1) && buf_addc(list, '\0');
	/* as a shell without PATH does */
	rest = str_of(path ? path : "/usr/local/bin:/usr/bin:/bin");
	while (path_next_folder(&rest, &folder)) {
		if (!buf_addstr(list, folder) || !buf_addc(list, '/') ||
		    !buf_add(list, name, strlen(name) + 1))
			return false;
	}
	return buf_addc(list, '\0');
}

static int compare_ints(const void *a, const void *b)
{
	int left = *(const int *)a;
	int right = *(const int *)b;

	return (left > right) - (left < right);
}

static void keep_more(struct program_child *child, const int *more)
{
	for (; more && *more >= 0; more++) {
		assert(child->keep_count < PROGRAM_MORE_FDS_MAX);
		assert(*more > STDERR_FILENO);
		child->keep[child->keep_count++] = *more;
	}
	qsort(child->keep, child->keep_count, sizeof(int), compare_ints);
}

static bool say_failure(const struct program_child *child, struct err *err)
{
	const struct program_start *start = child->start;
	int code = child->code;

	if (child->failed == STEP_FOLDER)
		return err_set(err, ENOTDIR, "The folder %s cannot be entered: %s.",
			       start->folder, strerror(code));
	if (child->failed == STEP_SESSION)
		return err_set(err, ECHILD,
			       "%s: it could not have a session of its own: %s.",
			       start->argv[0], strerror(code));
	if (child->failed == STEP_FILTER)
		return err_set(err, ECHILD, "%s: its walls could not be set: %s.",
			       start->argv[0], strerror(code));
	if (child->failed != STEP_EXEC)
		return err_set(err, ECHILD, "%s: its descriptors could not be set up: %s.",
			       start->argv[0], strerror(code));
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		if (strchr(start->argv[0], '/') && access(start->argv[0], F_OK) == 0)
			return err_set(err, ENOENT,
				       "%s exists, but the interpreter its first "
				       "line names does not.",
				       start->argv[0]);
		return err_set(err, ENOENT, "%s: command not found.", start->argv[0]);
	case EACCES:
		return err_set(err, code, "%s: not executable (permission denied).",
			       start->argv[0]);
	case ENOEXEC:
		return err_set(err, code, "%s: not a program this machine can run.",
			       start->argv[0]);
	case E2BIG:
		return err_set(err, code, "%s: its arguments and environment are too long.",
			       start->argv[0]);
	default:
		return err_set(err, code, "%s: %s.", start->argv[0], strerror(code));
	}
}

/* The child of a start with a body has no memory in common with us but this. */
static pid_t begin_copy(struct program_child *child)
{
	struct program_child *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (shared == MAP_FAILED)
		return -1;
	*shared = *child;
	pid = program_child_copy(shared);
	*child = *shared;
	(void)munmap(shared, sizeof(*shared));
	return pid;
}

static pid_t begin_by(struct program_child *child, struct program_launcher **launcher)
{
	if (child->start->body != NULL)
		return begin_copy(child);
	if (launcher && *launcher && !program_launcher_fits(*launcher, child->start))
		program_launcher_end(launcher);
	return launcher && *launcher ? program_launcher_begin(launcher, child)
				     : program_child_begin(child);
}

static pid_t begin(struct program_child *child, struct program_launcher **launcher)
{
	program_score_raise(child->terms.score);
	return begin_by(child, launcher);
}

bool program_start_listening(const struct program_start *start, pid_t *pid, int *listener,
			     struct err *err)
{
	struct program_child child = {.start = start, .listener = -1};
	struct buf candidates;
	bool started = false;
	pid_t made;

	if (start->terms != NULL)
		child.terms = *start->terms;
	buf_init(&candidates, PATH_TEXT_MAX);
	keep_more(&child, start->more_fds);
	if (!list_candidates(start, &candidates)) {
		buf_fini(&candidates);
		return err_set(err, ENAMETOOLONG, "%.200s: the name or PATH is too long.",
			       start->argv[0]);
	}
	child.candidates = candidates.data;
	made = begin(&child, start->launcher);
	if (made < 0) {
		err_set(err, ECHILD, "%s: no process could be made: %s.", start->argv[0],
			strerror(errno));
	} else if (child.code) {
		while (waitpid(made, NULL, 0) < 0 && errno == EINTR)
			;
		say_failure(&child, err);
	} else {
		*pid = made;
		started = true;
	}
	buf_fini(&candidates);
	if (started)
		*listener = child.listener;
	else if (child.listener >= 0)
		(void)close(child.listener);
	return started;
}

bool program_start(const struct program_start *start, pid_t *pid, struct err *err)
{
	int listener = -1;

	assert(start->terms == NULL || start->terms->answer == NULL);
	return program_start_listening(start, pid, &listener, err);
}
