/* merge: runs git, and finds the marks in its output. */

#include "tools/review/merge.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "process/follow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 32, CODE_NO_GIT = -1, CODE_CLASHES_MAX = 127 };

static bool stopped(void *context)
{
	return call_stopped(context);
}

int merge_git(struct call *call, const char *folder, const char *const *words,
	      const int *files, struct buf *out)
{
	static const char *const texts[] = {"GIT_CONFIG_NOSYSTEM=1",
					    "GIT_CONFIG_GLOBAL=/dev/null",
					    "GIT_NO_LAZY_FETCH=1",
					    "GIT_TERMINAL_PROMPT=0",
					    "LC_ALL=C.UTF-8",
					    NULL};
	static const char *const always[] = {"git",
					     "-c",
					     "core.hooksPath=/dev/null",
					     "-c",
					     "core.fsmonitor=false",
					     "-c",
					     "gc.auto=0",
					     "-c",
					     "maintenance.auto=false"};
	enum { ALWAYS = sizeof(always) / sizeof(*always) };
	auto_value struct value *more = value_new_texts(texts);
	auto_free const char **environment = call_environment(call->environment, more);
	const char *argv[WORDS_MAX + ALWAYS + 1];
	auto_close int printed = -1;
	struct program_run run;
	size_t count = 0;
	struct err err;

	memcpy(argv, always, sizeof(always));
	while (count < WORDS_MAX && words[count] != NULL) {
		argv[ALWAYS + count] = words[count];
		count++;
	}
	argv[ALWAYS + count] = NULL;
	if (!fd_memory_file("git", STR(""), &printed, &err))
		return CODE_NO_GIT;
	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = environment;
	run.start.folder = folder;
	run.start.terms = call->terms;
	run.start.placed_fds = files != NULL ? files + 1 : NULL;
	run.start.fds[0] = files != NULL ? files[0] : -1;
	run.start.fds[1] = printed;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = call->control_fd;
	run.stopped = stopped;
	run.context = call;
	int code = follow_program(&run, &err) && run.ending == PROGRAM_ENDED
			   ? run.exit_code
			   : CODE_NO_GIT;
	program_run_fini(&run);
	if (code != CODE_NO_GIT && out != NULL &&
	    (lseek(printed, 0, SEEK_SET) < 0 || !fd_read_all(printed, out, "git", &err)))
		code = CODE_NO_GIT;
	return code;
}

/* Does LINE begin with seven times MARK, as a line of git's marks does? */
static bool is_mark(struct str line, char mark)
{
	size_t count = 0;

	while (count < line.size && line.data[count] == mark)
		count++;
	return count == 7 && (line.size == 7 || line.data[7] == ' ');
}

/* Where the first clash lies in OURS, from the marks in a merged text. */
static void find_clash(struct str text, struct str ours, struct merged *merged)
{
	struct str rest = text, line;
	const char *begin = NULL, *end = NULL;

	merged->first = merged->last = 0;
	while (end == NULL && str_next_line(&rest, &line)) {
		if (begin == NULL && is_mark(line, '<'))
			begin = rest.data;
		else if (begin != NULL && is_mark(line, '|'))
			end = line.data;
	}
	if (end == NULL || end == begin)
		return;
	/* The lines may stand in OURS more than once. Then the first place is told. */
	const struct str lines = {begin, (size_t)(end - begin)};
	const size_t at = str_find(ours, lines, 0);
	if (at == (size_t)-1)
		return;
	merged->first = 1;
	for (size_t i = 0; i < at; i++)
		merged->first += ours.data[i] == '\n';
	merged->last = merged->first - 1;
	for (size_t i = 0; i < lines.size; i++)
		merged->last += lines.data[i] == '\n';
}

enum merge_outcome merge_texts(struct call *call, struct str ours, struct str base,
			       struct str theirs, const char *theirs_name,
			       struct merged *merged)
{
	const char *const words[] = {"merge-file",
				     "-p",
				     "--diff3",
				     "-L",
				     "your folder",
				     "-L",
				     "before",
				     "-L",
				     theirs_name,
				     "/proc/self/fd/0",
				     "/proc/self/fd/3",
				     "/proc/self/fd/4",
				     NULL};
	auto_close int own = -1, old = -1, new = -1;
	struct err err;

	if (!fd_memory_file("ours", ours, &own, &err) ||
	    !fd_memory_file("base", base, &old, &err) ||
	    !fd_memory_file("theirs", theirs, &new, &err))
		return MERGE_FAILED;
	const int files[] = {own, old, new, -1};
	const int code = merge_git(call, "/", words, files, &merged->text);
	if (code == CODE_NO_GIT)
		return MERGE_NO_GIT;
	if (code > CODE_CLASHES_MAX)
		return MERGE_FAILED;
	if (code > 0)
		find_clash(buf_str(&merged->text), ours, merged);
	return code == 0 ? MERGE_CLEAN : MERGE_CLASHES;
}
