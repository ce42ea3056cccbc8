/*
 * exec: the front's own tool behind `glovebox exec`: runs one program on the descriptors
 * that were handed over. It gathers no output and explains nothing. The program's exit
 * code is the answer.
 */
#include "process/follow.h"
#include "tools/bash.h"
#include "tools/tools.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "process/pty.h"
#include "tool/call.h"
#include "tool/limits.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* the codes of env(1) and timeout(1) */
enum { EXEC_NOT_EXECUTABLE = 126, EXEC_NOT_FOUND = 127 };

static const struct row exec_params[] = {
	{"argv", ROW_ARGV, true, "Program and its arguments", .min = 1, .max = INT32_MAX},
	/* JSON holds only UTF-8, but a file name may have any bytes. */
	{"hex", ROW_FLAG, false, "The texts of argv are hexadecimal digits of bytes",
	 .initial = "false"},
	/*
	 * fds[0] is then a socket of packets (process/pty.h), and fds[1] takes the
	 * output.
	 */
	{"rows", ROW_COUNT, false, "Give it a terminal of so many rows", .max = UINT16_MAX},
	{"columns", ROW_COUNT, false, "and columns", .max = UINT16_MAX},
	{"title", ROW_TEXT, false, "Words for it in a list of steps"},
	{0},
};

/*
 * The descriptor of a call that takes signals: one byte, the number, for each. A 0 is no signal: the
 * program is in use, and the time of `idle_s` begins anew.
 */
enum { FD_SIGNALS = STDERR_FILENO + 1 };

/* The program that is followed, and the call that it works for. */
struct exec_run {
	struct call *call;
	struct program_run run;
};

static bool exec_stopped(void *context)
{
	struct exec_run *exec = context;

	return call_stopped(exec->call) && exec->call->cancelled;
}

/*
 * The front sends a signal for everything that the call has started. This process is the
 * first one of its pid namespace, and kill(-1) reaches all others there. Without such a
 * namespace kill(-1) would reach other processes of the user, so the signal is dropped.
 */
static void exec_signals(void *context)
{
	struct exec_run *exec = context;
	unsigned char number;

	if (read(exec->run.side_fd, &number, 1) != 1)
		exec->run.side_fd = -1;
	else if (number == 0)
		exec->run.in_use = true;
	else if (getpid() == 1)
		(void)kill(-1, number);
}

/* Does NAME fit one of PATTERNS (a list, letters of either case)? */
static bool fits(const char *name, const struct value *patterns)
{
	for (size_t i = 0; i < value_count(patterns); i++) {
		const char *pattern = value_text(value_item(patterns, i));

		if (pattern != NULL && fnmatch(pattern, name, FNM_CASEFOLD) == 0)
			return true;
	}
	return false;
}

/*
 * Does the variable NAME of the cell pass WISH, the `envPolicy` of a client of
 * exec-server? The client means the variables that its server has; those are the cell's.
 */
static bool passes(const char *name, const struct value *wish)
{
	static const char core[] = "PATH SHELL TMPDIR TEMP TMP HOME LANG LC_ALL LC_CTYPE "
				   "LOGNAME USER";
	/* The three that such a client means by its own default, and no list of ours. */
	static const char *const secrets[] = {"*KEY*", "*SECRET*", "*TOKEN*"};
	const struct value *only = value_member(wish, "includeOnly");
	const char *inherit = value_text(value_member(wish, "inherit"));

	if (inherit != NULL && strcmp(inherit, "none") == 0)
		return false;
	if (inherit != NULL && strcmp(inherit, "core") == 0 &&
	    !str_among(core, str_of(name)))
		return false;
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		if (!value_is_true(value_member(wish, "ignoreDefaultExcludes")) &&
		    fnmatch(secrets[i], name, FNM_CASEFOLD) == 0)
			return false;
	}
	return !fits(name, value_member(wish, "exclude")) &&
	       (value_count(only) == 0 || fits(name, only));
}

/* The environment of the program: the cell's, as far as CARRIED wants it, and its own. */
static const char **environment_of(const struct call *call, struct arena *arena)
{
	const struct value *wish = value_member(call->carried, "inherit");
	const char **kept = NULL;
	size_t count = 0, room = 1;

	for (const char *const *at = call->environment; *at != NULL; at++)
		room++;
	kept = arena_alloc(arena, room * sizeof(*kept));
	for (const char *const *at = call->environment; *at != NULL; at++) {
		const struct str name = {*at, strcspn(*at, "=")};

		if (wish == NULL || passes(arena_copy(arena, name), wish))
			kept[count++] = *at;
	}
	return call_environment(kept, value_member(call->carried, "env"));
}

/* The front wrote the digits; any other character counts as 0. */
static const char *from_hex(struct arena *arena, struct str digits)
{
	char *bytes = arena_alloc(arena, digits.size / 2 + 1);

	text_from_hex(digits, bytes);
	return bytes;
}

/* The member argv as C strings, NULL-ended. */
static const char **take_argv(struct arena *arena, const struct call *call)
{
	const struct value *list = value_member(call->arguments, "argv");
	bool hex = call_flag(call, "hex");
	size_t count = value_count(list);
	const char **argv = arena_alloc(arena, (count + 1) * sizeof(*argv));

	for (size_t i = 0; i < count; i++) {
		const struct value *item = value_item(list, i);

		argv[i] = hex ? from_hex(arena, value_str(item)) : value_text(item);
	}
	return argv;
}

/* FOLDER is where the program was to start. */
static enum result_status start_failed(struct tool_result *result, const char *folder,
				       const struct err *err)
{
	struct stat st;

	/* The folder's own error, for a front that tells kinds of errors apart. */
	if (err->code == ENOTDIR)
		value_set_integer(tool_details(result), "code",
				  stat(folder, &st) < 0 ? errno : ENOTDIR);
	/* A failure before the exec is a failure of the cell, not of the program. */
	if (err->code != ECHILD && err->code != ENOTDIR)
		result->exit_code =
			err->code == ENOENT ? EXEC_NOT_FOUND : EXEC_NOT_EXECUTABLE;
	value_set_integer(tool_details(result), "start_errno", err->code);
	return tool_fail(result, "%s", err->text);
}

/* Open the terminal that the call asks for and make RUN use it. */
static bool use_terminal(struct call *call, struct pty *pty, struct program_run *run,
			 struct err *err)
{
	const struct pty_size size = {
		.rows = (uint16_t)call_count(call, "rows", 0),
		.columns = (uint16_t)call_count(call, "columns", 0),
	};

	if (!pty_open(pty, size, call->fds[0], call->fds[1], err)) {
		err->code = ECHILD; /* the cell's failure, not the program's */
		return false;
	}
	for (int i = 0; i <= STDERR_FILENO; i++)
		run->start.fds[i] = pty->slave;
	run->start.terminal = true;
	run->pty = pty;
	return true;
}

/*
 * Give the caller's descriptors to the program; only the program decides when they end.
 */
static void give_fds(struct call *call, struct program_run *run)
{
	for (int i = 0; i <= STDERR_FILENO; i++)
		run->start.fds[i] = fd_take(&call->fds[i]);
	run->gives_fds = true;
}

static enum result_status exec_execute(struct call *call, struct tool_result *result)
{
	struct arena arena;
	/*
	 * Variables in addition to the cell's: those of an MCP server, which no command
	 * line may show, and those of a client of exec-server.
	 */
	auto_free const char **environment = NULL;
	const char *folder = value_text(value_member(call->carried, "folder"));
	struct exec_run exec = {.call = call};
	struct program_run *run = &exec.run;
	struct limit_watch limits;
	struct pty pty = {.master = -1, .slave = -1};
	struct err err = {0};
	bool ok = true;

	arena_init(&arena);
	program_run_init(run);
	run->start.argv = call->plan != NULL ? bash_plan_argv(call->plan, 0, &arena)
					     : take_argv(&arena, call);
	environment = environment_of(call, &arena);
	run->start.environment = environment;
	run->start.folder = folder != NULL ? folder : call->folder;
	run->start.terms = call->terms;
	if (value_member(call->arguments, "rows") != NULL)
		ok = use_terminal(call, &pty, run, &err);
	else
		give_fds(call, run);
	run->deadline_ms = call->deadline_ms;
	run->grace_s = call->grace_s;
	run->patient = true;
	run->stop_fd = call->control_fd;
	run->stopped = exec_stopped;
	run->side_fd = call->fds[FD_SIGNALS];
	run->side = exec_signals;
	run->context = &exec;
	limit_watch_start(&limits, call, run);
	/* The tool does not see the program's output. */
	run->quiet_s = value_number(value_member(call->carried, "idle_s"));
	limits.unseen = true;
	ok = ok && follow_program(run, &err);
	pty_close(&pty);
	if (!ok) {
		program_run_fini(run);
		arena_fini(&arena);
		return start_failed(result, folder != NULL ? folder : call->folder, &err);
	}
	result->exit_code = run->exit_code;
	result->signal = run->signal;
	if (run->left_processes > 0)
		value_set_integer(tool_details(result), "left_processes",
				  (int64_t)run->left_processes);
	result->status = run->ending == PROGRAM_TIMED_OUT   ? RESULT_TIMED_OUT
			 : run->ending == PROGRAM_CANCELLED ? RESULT_CANCELLED
							    : RESULT_DONE;
	limit_watch_tell(&limits, run, result);
	if (run->ending == PROGRAM_QUIET)
		value_set_boolean(tool_details(result), "idle", true);
	program_run_fini(run);
	arena_fini(&arena);
	return result->status;
}

const struct tool exec_tool = {
	.name = "exec",
	.description = "Run one program on the caller's own descriptors.",
	.example = "{\"argv\": [\"true\"]}",
	.params = exec_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 0, /* none unless the person gives one */
	.internal = true,
	.plain = true,
	.execute = exec_execute,
};
