/*
 * git_contents: the front's own tool that gets contents out of git, for undo and for patches.
 * fds: a log whose changes name in `after` the objects wanted, the log that takes the
 * contents, a file for what git prints. A content counts when it has the size that the file
 * had; where filters are set it is asked for once more with these.
 */
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "process/program.h"
#include "tool/call.h"
#include "tools/tools.h"
#include "undo/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FD_WANTED,
	FD_LOG,
	FD_PRINTED,
	HEAD_MAX = 256, /* "<name> blob <size>" */
	BLOB_MAX = 64 << 20,
	WANTED_BYTES_MAX = 256 << 20,
};

static const struct tool_param git_contents_params[] = {
	{"log", PARAM_ID, true, "Number of the log", .max = UINT32_MAX},
	{0},
};

struct fetching {
	struct call *call;
	struct undo_list wanted; /* states IN_GIT; LOGGED once they are here */
	struct undo_log log;
	bool filters;
	uint64_t at; /* in what git printed */
};

static bool take_wanted(void *context, const struct undo_change *change)
{
	struct fetching *fetching = context;

	return change->after.source != UNDO_IN_GIT ||
	       undo_list_add(&fetching->wanted, change->path, &change->after);
}

static bool is_wanted(const struct undo_row *row)
{
	return row->state.source == UNDO_IN_GIT;
}

static void add_object(const struct undo_state *state, struct buf *out)
{
	for (size_t i = 0; i < state->object_size; i++)
		(void)buf_addf(out, "%02x", state->object[i]);
}

/* A name with a line end cannot be asked for with filters. */
static bool is_askable(const struct fetching *fetching, const struct undo_row *row)
{
	return is_wanted(row) &&
	       (!fetching->filters || strchr(row->path.data, '\n') == NULL);
}

static bool run_git(struct fetching *fetching, int input, struct err *err)
{
	static const char *const plain[] = {"git",      "--no-replace-objects",
					    "cat-file", "--batch",
					    "--buffer", NULL};
	static const char *const filtered[] = {"git",      "--no-replace-objects",
					       "cat-file", "--batch",
					       "--buffer", "--filters",
					       NULL};
	struct program_run run;

	program_run_init(&run);
	run.start.argv = fetching->filters ? filtered : plain;
	run.start.environment = fetching->call->environment;
	run.start.folder = fetching->call->workspace;
	run.start.terms = fetching->call->terms;
	run.start.fds[0] = input;
	auto_close int printed = fcntl(fetching->call->fds[FD_PRINTED], F_DUPFD_CLOEXEC, 3);
	run.start.fds[1] = printed;
	run.deadline_ms = fetching->call->deadline_ms;
	run.stop_fd = -1;
	bool fine = program_follow(&run, err);
	if (fine && run.exit_code != 0 && !fetching->filters) {
		struct buf text;
		buf_init(&text, 4 << 10);
		program_output_text(&run.error, &text);
		fine = err_set(err, EIO, "git cat-file: %s", str_trim(buf_str(&text)).data);
		buf_fini(&text);
	}
	program_run_fini(&run);
	return fine;
}

static bool ask(struct fetching *fetching, struct err *err)
{
	auto_close int input = -1;
	struct buf text;
	size_t count = 0;

	buf_init(&text, WANTED_BYTES_MAX);
	for (size_t i = 0; i < fetching->wanted.count; i++) {
		const struct undo_row *row = &fetching->wanted.rows[i];
		if (!is_askable(fetching, row))
			continue;
		add_object(&row->state, &text);
		if (fetching->filters)
			(void)buf_addf(&text, " %s", row->path.data);
		(void)buf_addc(&text, '\n');
		count++;
	}
	fetching->at = 0;
	bool fine =
		count == 0 || (fd_memory_file("objects", buf_str(&text), &input, err) &&
			       ftruncate(fetching->call->fds[FD_PRINTED], 0) == 0 &&
			       lseek(fetching->call->fds[FD_PRINTED], 0, SEEK_SET) == 0 &&
			       run_git(fetching, input, err));
	buf_fini(&text);
	return fine;
}

/* The head of the next object. False at the end. */
static bool next_head(struct fetching *fetching, bool *found, uint64_t *size)
{
	char head[HEAD_MAX + 1];
	ssize_t n = pread(fetching->call->fds[FD_PRINTED], head, HEAD_MAX,
			  (off_t)fetching->at);
	char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;

	if (end == NULL)
		return false;
	*end = '\0';
	const char *blob = strstr(head, " blob ");
	*found = blob != NULL;
	*size = *found ? strtoull(blob + strlen(" blob "), NULL, 10) : 0;
	fetching->at += (uint64_t)(end - head) + 1;
	return true;
}

/* Without filters it must be the very object; they may change it. */
static bool is_object(const struct fetching *fetching, const struct undo_state *wanted)
{
	uint8_t digest[HASH_BYTES];
	struct buf content;
	bool same = true;

	if (fetching->filters || wanted->size > BLOB_MAX)
		return true;
	buf_init(&content, BLOB_MAX);
	same = undo_log_content(fetching->call->fds[FD_PRINTED], fetching->at,
				wanted->size, &content, NULL);
	hash_git_blob(buf_str(&content), wanted->object_size == 32, digest);
	same = same && memcmp(digest, wanted->object, wanted->object_size) == 0;
	buf_fini(&content);
	return same;
}

static bool take_one(struct fetching *fetching, struct undo_row *row, struct err *err)
{
	struct undo_state kept = row->state;
	struct undo_state state;
	uint64_t size;
	bool found;

	if (!next_head(fetching, &found, &size))
		return true; /* git ended early: what is missing is told by the front */
	if (!found)
		return true;
	kept.offset = fetching->at;
	kept.extra = 0;
	bool fits = size == row->state.size && is_object(fetching, &row->state);
	fetching->at += size + 1;
	if (!fits)
		return true;
	if (!undo_log_copy(&fetching->log, fetching->call->fds[FD_PRINTED], &kept, &state,
			   err))
		return err->code == EINVAL; /* not what it was */
	row->state = state;
	return undo_log_change(&fetching->log, row->path, &undo_absent, &state, err);
}

static bool fetch(struct fetching *fetching, struct err *err)
{
	if (!ask(fetching, err))
		return false;
	for (size_t i = 0; i < fetching->wanted.count; i++) {
		if (is_askable(fetching, &fetching->wanted.rows[i]) &&
		    !take_one(fetching, &fetching->wanted.rows[i], err))
			return false;
	}
	return true;
}

static enum result_status git_contents_execute(struct call *call, struct tool_result *result)
{
	struct fetching fetching = {.call = call};
	struct undo_reader reader = {.change = take_wanted, .context = &fetching};
	struct err err = {0};

	undo_list_init(&fetching.wanted);
	undo_log_begin(&fetching.log, call->fds[FD_LOG],
		       (uint32_t)call_count(call, "log", 0));
	bool fine = undo_log_read(&reader, call->fds[FD_WANTED], &err) &&
		    fetch(&fetching, &err);
	fetching.filters = true;
	fine = fine && fetch(&fetching, &err) && undo_log_end(&fetching.log, &err);
	undo_list_fini(&fetching.wanted);
	return fine ? tool_done(result) : tool_fail(result, "%s", err.text);
}

const struct tool git_contents_tool = {
	.name = "git_contents",
	.description = "Get contents out of git.",
	.example = "{\"log\": 1}",
	.params = git_contents_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 300,
	.internal = true,
	.execute = git_contents_execute,
};
