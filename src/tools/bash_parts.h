/* bash_parts: a command of the tool bash while it runs. For bash.c and bash_follow.c only. */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "files/files.h"
#include "process/program.h"
#include "tool/limits.h"
#include "tools/bash_job.h"
#include "tools/bash_shell.h"
#include "tools/bash_terminal.h"
#include "tools/bash_text.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct shell {
	struct call *call;
	struct tool_result *result;
	struct str command;
	struct file folder; /* where it starts */
	struct buf spills;  /* folder of the spill files */
	struct buf spill_path;
	struct bash_job job;
	struct bash_terminal terminal;
	struct program_watch watch;
	pid_t pid; /* the shell's, and of its process group */
	int64_t began_us;
	struct bash_shell bash;
	struct program_run run;
	struct limit_watch limits;
	char told[PATH_MAX + 1]; /* what came from the shell's last step */
	size_t told_size;
	bool spill_tried;
	bool folder_was_gone;
};

/* The state of the command's run, for an answer. */
struct bash_answer shell_answer(const struct shell *shell);

/* bash_follow.c, as program_run has them: is it to stop, and does a question wait? */
bool shell_stopped(void *context);
/* Pass on BYTES, which the command printed, to the listeners of the call. */
void shell_output(void *context, int stream, struct str bytes);
/*
 * The shell tells its folder in its last step, or a process that it started pretends to be
 * the shell: the end is then near, and to be woken for it would take longer than to wait.
 */
void shell_tells(void *context);

/* Look at its limits, and at its terminal if it has one. */
void shell_watch_start(struct shell *shell);
