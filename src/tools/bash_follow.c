/* bash_follow: what happens while a command of the tool bash runs; see bash_parts.h. */
#include "tools/bash_parts.h"

#include "base/clock.h"
#include "tool/call.h"
#include "tool/spill.h"

#include <signal.h>
#include <unistd.h>

/* From a shell's last step to its end: what it held is given back first. */
enum { ENDING_US = 400 };

static void show_so_far(struct shell *shell, int64_t since, struct tool_result *result)
{
	struct bash_answer told = shell_answer(shell);
	const struct bash_mark all = {shell->run.out.total, shell->run.error.total};

	told.running = true;
	told.waits = shell->terminal.waits;
	told.spill_path = &shell->spill_path;
	told.since = bash_job_from(&shell->job, since);
	bash_tell(&told, result);
	bash_job_shown(&shell->job, all);
}

/* On a terminal also what runs in its foreground, which has a group of its own. */
static void shell_signal(const struct shell *shell, int number)
{
	pid_t group = bash_terminal_group(&shell->terminal);

	if (group > 1 && group != shell->pid)
		(void)kill(-group, number);
	if (group <= 1 || group == shell->pid || number == SIGKILL || number == SIGTERM)
		(void)kill(-shell->pid, number);
}

/* A question to this job. */
static void shell_asked(struct shell *shell, const struct ask *ask)
{
	struct tool_result answer;

	tool_result_init(&answer);
	shell->job.number = ask->job;
	if (ask->reads) {
		show_so_far(shell, ask->since, &answer);
	} else if (ask->signal > 0) {
		shell_signal(shell, ask->signal);
		(void)tool_done(&answer);
	} else {
		bash_terminal_type(&shell->terminal, ask->input, &answer);
	}
	ask_answer(shell->call, &answer);
	tool_result_fini(&answer);
}

bool shell_stopped(void *context)
{
	struct shell *shell = context;
	struct ask ask;

	while (ask_next(shell->call, &ask)) {
		shell_asked(shell, &ask);
		ask_fini(&ask);
	}
	return shell->call->cancelled;
}

void shell_output(void *context, int stream, struct str bytes)
{
	struct shell *shell = context;

	/* Most commands say nothing, or little: the file is made for the first byte. */
	if (!shell->spill_tried)
		shell->run.spill_fd =
			spill_open(spill_folder(shell->call->environment, &shell->spills));
	shell->spill_tried = true;
	call_output(shell->call, stream == 1 ? CALL_STDOUT : CALL_STDERR, bytes);
}

/* Beside the limits. */
static bool shell_looked_at(void *context, int64_t *again_ms)
{
	struct shell *shell = context;
	const struct program_watch *limits = &shell->limits.watch;

	return limits->reached(limits->context, again_ms) ||
	       bash_terminal_look(&shell->terminal, shell->call, shell->job.number != 0);
}

static void shell_refused(void *context)
{
	struct limit_watch *limits = &((struct shell *)context)->limits;

	limits->watch.ready(limits);
}

static void shell_over(void *context)
{
	struct limit_watch *limits = &((struct shell *)context)->limits;

	limits->watch.over(limits);
}

void shell_watch_start(struct shell *shell)
{
	struct program_run *run = &shell->run;

	limit_watch_start(&shell->limits, shell->call, run);
	/* A server may be silent for hours. */
	if (call_flag(shell->call, "background"))
		run->quiet_s = 0;
	if (!shell->terminal.given)
		return;
	shell->watch = (struct program_watch){
		.after_ms = shell->limits.watch.after_ms,
		.reached = shell_looked_at,
		.fd = shell->limits.watch.fd,
		.ready = shell_refused,
		.over = shell_over,
		.context = shell,
	};
	run->watch = &shell->watch;
}

void shell_tells(void *context)
{
	struct shell *shell = context;
	ssize_t size = read(shell->bash.folder_fd, shell->told + shell->told_size,
			    sizeof(shell->told) - 1 - shell->told_size);

	/* Bytes after these are read at the end. */
	shell->run.side_fd = -1;
	if (size <= 0)
		return;
	shell->told_size += (size_t)size;
	shell->run.stay_until_us = clock_now_us() + ENDING_US;
}
