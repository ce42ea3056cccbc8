/* commit_git: see commit_git.h. */
#include "tools/patches/commit_git.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "files/record.h"
#include "process/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SAID_MAX = 4 << 10,
	SAID_SHOWN = 400,
	LINE_BYTES_MAX = 8 << 10,
	HEAD_MAX = 256, /* "<name> blob <size>" */
};

/* Before every word of ours. */
static const char *const always[] = {
	"git",
	"--no-replace-objects",
	"--literal-pathspecs",
	"-c",
	"core.hooksPath=/dev/null",
	"-c",
	"core.fsmonitor=false",
	"-c",
	"core.quotePath=false",
	"-c",
	"gc.auto=0",
};
enum { ALWAYS = sizeof(always) / sizeof(always[0]) };

static const char **make_words(const char *const *words, const char *const *paths)
{
	size_t count = 0, named = 0, at = ALWAYS;
	const char **argv;

	while (words[count] != NULL)
		count++;
	while (paths != NULL && paths[named] != NULL)
		named++;
	argv = memory_array(ALWAYS + count + named + 2, sizeof(*argv));
	memcpy(argv, always, sizeof(always));
	for (size_t i = 0; i < count; i++)
		argv[at++] = words[i];
	if (paths != NULL)
		argv[at++] = "--";
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
		argv[at++] = paths[i];
	return argv;
}

/* ERR: what git says itself. Always false. */
static bool fail(const struct program_run *run, const char *word, struct err *err)
{
	struct buf text;
	struct str said;

	buf_init(&text, SAID_MAX);
	program_output_text(&run->error, &text);
	said = str_trim(buf_str(&text));
	if (run->ending != PROGRAM_ENDED)
		(void)err_set(err, EIO, "git %s did not end in time", word);
	else
		(void)err_set(err, EIO, "git %s: %.*s", word,
			      (int)str_part(said, 0, SAID_SHOWN).size,
			      said.size > 0 ? said.data : "it failed and said nothing");
	buf_fini(&text);
	return false;
}

static bool stopped(void *context)
{
	return call_stopped(context);
}

bool commit_git(struct call *call, const char *const *words, const char *const *paths,
		int input, int *printed, struct err *err)
{
	static const char *const texts[] = {"GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
					    "GIT_TERMINAL_PROMPT=0", "LC_ALL=C.UTF-8",
					    NULL};
	auto_value struct value *more = value_new_texts(texts);
	auto_free const char **environment = call_environment(call->environment, more);
	auto_free const char **argv = make_words(words, paths);
	auto_close int out = -1;
	struct program_run run;
	bool fine;

	if (!fd_memory_file("git", STR(""), &out, err))
		return false;
	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = environment;
	run.start.folder = call->workspace;
	run.start.terms = call->terms;
	run.start.fds[0] = input;
	run.start.fds[1] = out;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = call->control_fd;
	run.stopped = stopped;
	run.context = call;
	fine = program_follow(&run, err) &&
	       ((run.ending == PROGRAM_ENDED && run.exit_code == 0) ||
		fail(&run, words[0], err));
	program_run_fini(&run);
	if (fine && printed != NULL)
		*printed = fd_take(&out);
	return fine;
}

bool commit_git_line(struct call *call, const char *const *words, struct buf *line,
		     struct err *err)
{
	auto_close int printed = -1;
	struct buf text;
	bool fine;

	buf_init(&text, LINE_BYTES_MAX);
	fine = commit_git(call, words, NULL, -1, &printed, err) &&
	       (lseek(printed, 0, SEEK_SET) == 0 || err_set(err, errno, "its answer")) &&
	       fd_read_all(printed, &text, "the answer of git", err);
	buf_clear(line);
	/* One line end is git's, others are part of a name. */
	if (fine && str_ends(buf_str(&text), STR("\n")))
		buf_truncate(&text, text.size - 1);
	fine = fine &&
	       (buf_addstr(line, buf_str(&text)) || err_set(err, E2BIG, "its answer"));
	buf_fini(&text);
	return fine;
}

bool commit_is_object(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const char digit = text.data[i];

		if (text_hex_digit(digit) < 0 || (digit >= 'A' && digit <= 'F'))
			return false;
	}
	return text.size == 40 || text.size == COMMIT_OBJECT_HEX;
}

bool commit_next_blob(int printed, uint64_t *at, struct buf *content, bool *found,
		      struct err *err)
{
	char head[HEAD_MAX + 1];
	ssize_t n = pread(printed, head, HEAD_MAX, (off_t)*at);
	char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;
	const char *blob;
	uint64_t size;

	buf_clear(content);
	if (end == NULL)
		return err_set(err, EIO, "git cat-file ended early");
	*end = '\0';
	*at += (uint64_t)(end - head) + 1;
	blob = strstr(head, " blob ");
	*found = blob != NULL;
	if (blob == NULL) {
		if (strstr(head, " missing") != NULL)
			return true;
		return err_set(err, EIO, "git cat-file gave something that is no file");
	}
	size = strtoull(blob + strlen(" blob "), NULL, 10);
	if (!undo_log_content(printed, *at, size, content, err))
		return false;
	*at += size + 1;
	return true;
}
