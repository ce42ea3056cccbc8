/*
 * bash: run a shell text, in the shell that waits in this worker or in a new one: both are
 * started by bash_shell.c. What it printed becomes an answer in bash_text.c.
 */
#include "tool/spill.h"
#include "tools/bash_parts.h"
#include "tools/bash_plan.h"
#include "tools/bash_shell.h"
#include "tools/bash_terminal.h"
#include "tools/bash_text.h"
#include "tools/git_said.h"
#include "tools/interactive.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "files/files.h"
#include "tool/denial.h"
#include "tool/limits.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASH_TIMEOUT_S   120
#define SHOWN_BYTES_TEXT SHOWN_NUMBER(BASH_SHOWN_BYTES)
/*
 * No caller waits longer for one answer: MCP clients and model loops give up between 5
 * and 10 minutes. What needs more runs in the background.
 */
#define BASH_TIMEOUT_MAX_S 600
/* Servers and long builds; what is forgotten ends. */
#define BASH_JOB_MAX_S 7200

enum {
	NOT_EXECUTABLE = 126,
	CLAIM_BYTES = 16 << 10, /* the end of each stream that is searched for causes */
	CLAIM_SLACK = 256,      /* the line between head and tail */
};

static const struct tool_param bash_params[] = {
	{"command", PARAM_COMMAND, true, "Shell text to run",
	 .aliases = "cmd script code", .min = 1, .max = INT32_MAX},
	/* No default here: it is the policy's. */
	{"timeout_s", PARAM_SECONDS, false,
	 "Seconds until it is ended; " SHOWN_NUMBER(BASH_TIMEOUT_S) " unless told otherwise",
	 .aliases = "timeout"},
	{"workdir", PARAM_FOLDER, false,
	 "Folder to run in; else where the last command's cd ended",
	 .aliases = "cwd working_directory directory"},
	{"description", PARAM_TEXT, false, "What it is for, in a few words",
	 .aliases = "reason"},
	{"background", PARAM_BOOLEAN, false,
	 "Run it as a job: the answer comes at once, the tool job follows it",
	 .aliases = "run_in_background is_background"},
	{"max_bytes", PARAM_COUNT, false,
	 "Bytes of output to show; " SHOWN_BYTES_TEXT " unless told otherwise",
	 .aliases = "max_output max_output_bytes", .min = BASH_SHOWN_LEAST,
	 .max = BASH_SHOWN_MOST},
	{"tty", PARAM_BOOLEAN, false,
	 "Give it a terminal, for a program that wants one; what it asks is typed with the tool "
	 "job",
	 .aliases = "pty"},
	{0},
};

static void shell_init(struct shell *shell, struct call *call, struct tool_result *result)
{
	memset(shell, 0, sizeof(*shell));
	shell->call = call;
	shell->result = result;
	shell->command = call_str(call, "command");
	bash_shell_init(&shell->bash);
	bash_terminal_init(&shell->terminal);
	file_init(&shell->folder);
	buf_init(&shell->spills, PATH_MAX);
	buf_init(&shell->spill_path, PATH_MAX);
	program_run_init(&shell->run);
}

static void shell_fini(struct shell *shell)
{
	bash_shell_fini(&shell->bash);
	bash_terminal_fini(&shell->terminal);
	fd_close(&shell->run.spill_fd);
	file_fini(&shell->folder);
	buf_fini(&shell->spills);
	buf_fini(&shell->spill_path);
	program_run_fini(&shell->run);
}

/*
 * Where to start: the argument, else where the last command ended, else (when that is
 * gone) the workspace.
 */
static bool find_folder(struct shell *shell, struct err *err)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct files *files = shell->call->files;
	struct stat st;

	if (wanted)
		return files_reach(files, wanted, FILES_FOLDER, &shell->folder, err);
	/* Mostly. Its name is its real one, and it can be read as a whole. */
	if (shell->call->folder && strcmp(shell->call->folder, shell->call->workspace) == 0 &&
	    files_is_root(files, shell->call->workspace) &&
	    stat(shell->call->workspace, &st) == 0 && S_ISDIR(st.st_mode) && st.st_nlink > 0)
		return buf_adds(&shell->folder.path, shell->call->workspace);
	if (shell->call->folder &&
	    files_reach(files, shell->call->folder, FILES_FOLDER, &shell->folder, err))
		return true;
	shell->folder_was_gone = shell->call->folder != NULL &&
				 strcmp(shell->call->folder, shell->call->workspace) != 0;
	if (files_reach(files, shell->call->workspace, FILES_FOLDER, &shell->folder, err))
		return true;
	/* Only parts of it may be read: it is the empty folder that holds them. */
	if (stat(shell->call->workspace, &st) < 0 || st.st_nlink == 0)
		return false;
	return buf_adds(&shell->folder.path, shell->call->workspace);
}

struct bash_answer shell_answer(const struct shell *shell)
{
	return (struct bash_answer){
		.run = &shell->run,
		.seconds = (double)(clock_now_us() - shell->began_us) / 1e6,
		.job = shell->job.number,
		.command = shell->command,
		.files = shell->call->files,
		.folder = shell->folder.path.data,
		.folder_was_gone = shell->folder_was_gone,
		.max_bytes = (size_t)call_count(shell->call, "max_bytes", BASH_SHOWN_BYTES),
		.is_last = shell->call->is_last,
		.spill_folder = shell->spills.data,
		.timeout_max_s = shell->job.number ? BASH_JOB_MAX_S : BASH_TIMEOUT_MAX_S,
		.description = call_text(shell->call, "description"),
	};
}

/* The shell that waits in this worker, or a new one; none where the policy has a list. */
static bool shell_begin(struct shell *shell, struct err *err)
{
	const struct bash_text text = {
		.text = shell->command,
		.folder = shell->folder.path.data,
		.environment = shell->call->environment,
		/*
		 * On a terminal, a program is distinguished from the shell by its process
		 * group.
		 */
		.stays = shell->terminal.given,
	};
	struct bash_shell *ready = shell->call->prepared;
	struct program_ahead *ahead = &shell->run.ahead;

	if (shell->call->plan != NULL || shell->terminal.given) {
		/* It has no terminal. */
		if (ready != NULL)
			bash_shell_fini(ready);
		ready = NULL;
	}
	if (shell->call->plan != NULL)
		return bash_plan_start(shell->call, text.folder, ahead, err);
	bool ok = ready != NULL && bash_shell_take(ready, &shell->bash, &text);
	ok = (ok || bash_shell_start(&shell->bash, shell->call, text.folder,
				     shell->terminal.pty.slave, err)) &&
	     bash_shell_go(&shell->bash, &text, err);
	if (ok)
		*ahead = bash_shell_take_program(&shell->bash);
	return ok;
}

static bool shell_run(struct shell *shell, struct err *err)
{
	struct program_run *run = &shell->run;

	if (shell->call->plan != NULL && call_flag(shell->call, "tty"))
		return err_set(err, ENOTTY,
			       "Where the policy lists commands they run without a "
			       "shell and a terminal: leave tty away.");
	if (call_flag(shell->call, "tty") && !bash_terminal_open(&shell->terminal, run, err))
		return false;
	if (!shell_begin(shell, err))
		return false;
	shell->pid = run->ahead.pid;
	shell->began_us = clock_now_us();
	run->start.terms = shell->call->terms;
	run->deadline_ms = shell->call->deadline_ms;
	run->grace_s = shell->call->grace_s;
	run->stop_fd = shell->call->control_fd;
	run->stopped = shell_stopped;
	run->output = shell_output;
	run->context = shell;
	if (shell->call->heralds && shell->call->plan == NULL) {
		run->side_fd = shell->bash.folder_fd;
		run->side = shell_tells;
	}
	shell_watch_start(shell);
	return program_follow(run, err);
}

/*
 * The folder the shell reported last. Its descriptor was open in every program the
 * command started, so this is no more than a claim: it counts only when it is a folder
 * inside the roots.
 */
static void take_folder(struct shell *shell, struct buf *next)
{
	char *said = shell->told;
	ssize_t more = read(shell->bash.folder_fd, said + shell->told_size,
			    sizeof(shell->told) - 1 - shell->told_size);
	const size_t size = shell->told_size + (more > 0 ? (size_t)more : 0);
	struct file file;
	struct err err;

	if (size < 2 || said[size - 1] != '\n' || said[0] != '/')
		return;
	said[size - 1] = '\0';
	if (strcmp(said, shell->folder.path.data) == 0)
		return;
	file_init(&file);
	if (files_reach(shell->call->files, said, FILES_FOLDER, &file, &err)) {
		call_set_folder(shell->call, shell->result, file.path.data);
		buf_addstr(next, buf_str(&file.path));
	}
	file_fini(&file);
}

/*
 * Look in the command's output, standard error first, for what it says that it could not
 * reach.
 */
static void claim(struct shell *shell)
{
	const struct program_output *streams[] = {&shell->run.error, &shell->run.out};
	const char *folder = shell->folder.path.data;
	struct buf text;

	/* Not executable, not found: the shell's own trouble with a file that it could read. */
	if (shell->run.ending == PROGRAM_ENDED &&
	    (shell->run.exit_code == NOT_EXECUTABLE ||
	     shell->run.exit_code == INTERACTIVE_NOT_FOUND))
		return;
	buf_init(&text, PROGRAM_HEAD + PROGRAM_TAIL + CLAIM_SLACK);
	for (size_t i = 0; i < 2; i++) {
		buf_clear(&text);
		program_output_text(streams[i], &text);
		if (text.size > CLAIM_BYTES)
			buf_remove(&text, 0, text.size - CLAIM_BYTES);
		claims_gather(buf_str(&text), folder, shell->result);
	}
	buf_fini(&text);
}

/*
 * The answer shows only the output since the last one; `whole` in the details has all of
 * it.
 */
static void add_whole(struct shell *shell, struct bash_answer *told)
{
	struct value *details = tool_details(shell->result);
	struct tool_result whole;

	tool_result_init(&whole);
	value_set_integer(details, "unread_from",
			  (int64_t)(told->since.out + told->since.error));
	told->since = (struct bash_mark){0};
	bash_tell(told, &whole);
	value_set_str(details, "whole", buf_str(&whole.text));
	tool_result_fini(&whole);
}

static void answer(struct shell *shell)
{
	struct buf next;
	struct bash_answer told = shell_answer(shell);

	buf_init(&next, PATH_MAX);
	/* A job's folder is its own. */
	if (shell->job.number == 0)
		take_folder(shell, &next);
	if (next.size)
		told.next_folder = next.data;
	told.waits = shell->terminal.ended;
	told.spill_path = &shell->spill_path;
	told.since = bash_job_from(&shell->job, -1);
	bash_tell(&told, shell->result);
	if (told.since.out || told.since.error)
		add_whole(shell, &told);
	git_said(shell->command, buf_str(&shell->result->text), shell->result);
	claims_protected(buf_str(&shell->result->text), shell->result);
	limit_watch_tell(&shell->limits, &shell->run, shell->result);
	claim(shell);
	buf_fini(&next);
}

static enum result_status run_shell(struct shell *shell)
{
	const char *wanted = call_text(shell->call, "workdir");
	struct tool_result *result = shell->result;
	struct err err = {0};

	if (memchr(shell->command.data, '\0', shell->command.size))
		return tool_fail(result,
				 "The command holds a NUL byte, which no shell takes. Use "
				 "printf '\\0' to make one.");
	if (!call_flag(shell->call, "tty") &&
	    interactive_refuses(shell->command, shell->call->is_last, &result->text)) {
		result->status = RESULT_FAILED;
		return RESULT_FAILED;
	}
	if (!find_folder(shell, &err))
		return shown_fail(shell->call, result, wanted ? wanted : "The workspace",
				  &err);
	if (!shell_run(shell, &err))
		return tool_fail(result, "The command did not run. %s", err.text);
	call_ending(shell->call);
	answer(shell);
	return result->status;
}

static enum result_status bash_execute(struct call *call, struct tool_result *result)
{
	struct shell shell;
	enum result_status status;

	shell_init(&shell, call, result);
	status = run_shell(&shell);
	shell_fini(&shell);
	return status;
}

static void *bash_prepare(const struct call *call)
{
	struct bash_shell *shell = memory_alloc(sizeof(*shell));
	struct err err;

	bash_shell_init(shell);
	if (bash_shell_start_ahead(shell, call, &err))
		return shell;
	free(shell);
	return NULL;
}

static void bash_rouse(void *prepared)
{
	bash_shell_rouse(prepared);
}

const struct tool bash_tool = {
	.name = "bash",
	.description =
		"Run a shell command. No terminal and no input; the folder carries over "
		"between calls, variables do not. Shows " SHOWN_BYTES_TEXT
		" bytes of output, beginning and end; the rest is kept in a file.",
	.example = "{\"command\": \"make test\", \"timeout_s\": 300}",
	.aliases = "shell run_command execute_command",
	.params = bash_params,
	.effects = EFFECT_RUNS,
	.timeout_s = BASH_TIMEOUT_S,
	.timeout_max_s = BASH_TIMEOUT_MAX_S,
	.job_max_s = BASH_JOB_MAX_S,
	.answers = true,
	.execute = bash_execute,
	.prepare = bash_prepare,
	.rouse = bash_rouse,
};
