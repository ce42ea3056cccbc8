/*
 * hook: the front's own tool that runs one hook (extend/hooks.h) in the cell: a command with
 * the environment of any command, the JSON of its moment on standard input, and a file with
 * the transcript of the session for as long as it runs. What the hook printed and its exit
 * code are the answer; the front reads them.
 */
#include "tools/tools.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tool/limits.h"
#include "tools/bash.h"
#include "tools/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* of the front's descriptors, the one of the transcript */
	HOOK_TRANSCRIPT = 0,
	TRANSCRIPT_MAX = 16 << 20,
	INPUT_MAX = 16 << 20,
	NAME_DIGITS = 16,
	VARIABLE_MAX = PATH_MAX + 64,
};

static const struct row hook_params[] = {
	{"command", ROW_COMMAND, false, "Shell text of a project to run"},
	/* A list of commands bounds the agent and what a project brings, and not its person. */
	{"own", ROW_TEXT, false, "Shell text of the person to run, which no list judges"},
	{"input", ROW_TEXT, true, "JSON for its standard input, but for transcript_path"},
	{"timeout_s", ROW_SECONDS, false, "Seconds that it may take"},
	{0},
};

struct hook_run {
	struct call *call;
	struct tool_result *result;
	struct arena arena;
	struct buf transcript; /* the path of the file; empty: there is none */
	int input_fd;
	struct program_run run;
	struct limit_watch limits;
};

/* Other hooks of the moment have the same descriptor, and so its offset. */
static bool read_transcript(int fd, struct buf *text, struct err *err)
{
	enum { PIECE = 256 << 10 };
	char *room;
	ssize_t got;

	do {
		room = buf_reserve(text, PIECE);
		got = room != NULL ? pread(fd, room, PIECE, (off_t)text->size) : 0;
		if (got > 0)
			buf_commit(text, (size_t)got);
	} while (got > 0);
	return got == 0 || err_set(err, errno, "the transcript: %s", strerror(errno));
}

/* Write the transcript that the front gave to a file of its own in the cell. */
static bool write_transcript(struct hook_run *hook, struct err *err)
{
	char digits[NAME_DIGITS + 1] = "";
	struct buf folder, text;
	bool ok;

	buf_init(&folder, PATH_MAX);
	buf_init(&text, TRANSCRIPT_MAX);
	(void)mkdir(spill_folder(hook->call->environment, &folder), 0777);
	ok = text_random_hex(digits, NAME_DIGITS) &&
	     buf_addf(&hook->transcript, "%s/transcript-%s.jsonl", folder.data, digits) &&
	     read_transcript(hook->call->fds[HOOK_TRANSCRIPT], &text, err);
	if (ok) {
		auto_close int fd =
			open(hook->transcript.data,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			     S_IRUSR | S_IWUSR);

		ok = fd >= 0 ? fd_write_all(fd, text.data, text.size, err)
			     : err_set(err, errno, "%s: %s", hook->transcript.data,
				       strerror(errno));
	}
	buf_fini(&text);
	buf_fini(&folder);
	return ok;
}

/* The input with the place of the transcript, as a file. */
static bool make_input(struct hook_run *hook, struct err *err)
{
	auto_value struct value *input = NULL;
	struct buf text;
	bool ok;

	if (!value_parse(call_str(hook->call, "input"), 0, &input, err))
		return false;
	value_set_text(input, "transcript_path", hook->transcript.data);
	buf_init(&text, INPUT_MAX);
	ok = (value_print(input, 0, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, E2BIG, "the call is too large to be told to a hook");
	ok = ok && fd_memory_file("hook", buf_str(&text), &hook->input_fd, err);
	buf_fini(&text);
	return ok;
}

static const char **words_of(struct hook_run *hook, struct err *err)
{
	const struct call *call = hook->call;
	const char **words;

	if (value_count(call->plan) > 1) {
		(void)err_set(err, ENOTSUP,
			      "where the policy lists commands, a hook is one program");
		return NULL;
	}
	if (call->plan != NULL)
		return bash_plan_argv(call->plan, 0, &hook->arena);
	words = arena_alloc(&hook->arena, 4 * sizeof(*words));
	words[0] = access("/bin/bash", X_OK) == 0 ? "bash" : "sh";
	words[1] = "-c";
	words[2] = call_text(call, call_text(call, "own") != NULL ? "own" : "command");
	return words;
}

static bool hook_stopped(void *context)
{
	struct hook_run *hook = context;

	return call_stopped(hook->call) && hook->call->cancelled;
}

static bool run_hook(struct hook_run *hook, struct err *err)
{
	struct program_run *run = &hook->run;
	char theirs[VARIABLE_MAX], ours[VARIABLE_MAX];
	const char *const more[] = {theirs, ours, NULL};

	(void)snprintf(theirs, sizeof(theirs), "CLAUDE_PROJECT_DIR=%s",
		       hook->call->workspace);
	(void)snprintf(ours, sizeof(ours), "GLOVEBOX_PROJECT_DIR=%s", hook->call->workspace);
	auto_free const char **environment =
		shell_command_environment(hook->call->environment, more);
	run->start.argv = words_of(hook, err);
	if (run->start.argv == NULL)
		return false;
	run->start.environment = environment;
	run->start.folder = hook->call->workspace;
	run->start.fds[0] = hook->input_fd;
	run->start.terms = hook->call->terms;
	run->deadline_ms = hook->call->deadline_ms;
	run->grace_s = hook->call->grace_s;
	run->stop_fd = hook->call->control_fd;
	run->stopped = hook_stopped;
	run->context = hook;
	limit_watch_start(&hook->limits, hook->call, run);
	return follow_program(run, err);
}

/* The first bytes of a stream: what is behind them is no answer of a hook. */
static void tell_stream(const struct program_output *output, const char *name,
			struct value *details)
{
	value_set_str(details, name, buf_str(&output->head));
	if (output->total > output->head.size)
		value_set_boolean(details, "cut", true);
}

static enum result_status tell(struct hook_run *hook)
{
	const struct program_run *run = &hook->run;
	struct tool_result *result = hook->result;

	result->exit_code = run->exit_code;
	result->signal = run->signal;
	tell_stream(&run->out, "stdout", tool_details(result));
	tell_stream(&run->error, "stderr", tool_details(result));
	result->status = run->ending == PROGRAM_TIMED_OUT   ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_DONE;
	limit_watch_tell(&hook->limits, &hook->run, result);
	return result->status;
}

static enum result_status hook_execute(struct call *call, struct tool_result *result)
{
	struct hook_run hook = {.call = call, .result = result, .input_fd = -1};
	struct err err = {0};

	arena_init(&hook.arena);
	buf_init(&hook.transcript, PATH_MAX);
	program_run_init(&hook.run);
	if ((call->fds[HOOK_TRANSCRIPT] < 0 || write_transcript(&hook, &err)) &&
	    make_input(&hook, &err) && run_hook(&hook, &err))
		(void)tell(&hook);
	else
		(void)tool_fail(result, "%s", err.text);
	if (hook.transcript.size > 0)
		(void)unlink(hook.transcript.data);
	program_run_fini(&hook.run);
	fd_close(&hook.input_fd);
	buf_fini(&hook.transcript);
	arena_fini(&hook.arena);
	return result->status;
}

const struct tool hook_tool = {
	.name = "hook",
	.description = "Run one hook of a person or a project.",
	.example = "{\"command\": \"true\", \"input\": \"{}\"}",
	.params = hook_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 60,
	.timeout_max_s = 600,
	.internal = true,
	.is_step = true,
	.execute = hook_execute,
};
