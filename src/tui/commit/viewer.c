/* viewer: starts the pager in the foreground, waits for its end, and takes the terminal back. */
#include "tui/commit/viewer.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "process/program.h"
#include "tui/console.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	COMMAND_MAX = 4 << 10,
	ENVIRONMENT_MAX = 10000, /* variables */
};

/* Variables that have less run programs of the person, or leave them out. */
static const char *const left_out[] = {"LESSOPEN=", "LESSCLOSE=", "LESSSECURE=", "LESSEDIT="};

static const char secure[] = "LESSSECURE=1";

/* Our environment for a pager; the caller frees the list. */
static const char **environment_new(void)
{
	const char **made = memory_array(ENVIRONMENT_MAX + 2, sizeof(*made));
	size_t count = 0;

	for (char **at = environ; *at != NULL && count < ENVIRONMENT_MAX; at++) {
		bool goes = true;

		for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
			goes = goes && !str_starts(str_of(*at), str_of(left_out[i]));
		if (goes)
			made[count++] = *at;
	}
	made[count] = secure;
	return made;
}

/* Is the first word of COMMAND the program NAME? */
static bool runs(const char *command, const char *name)
{
	struct str rest = str_of(command), word;
	const char *slash;

	if (!str_next_word(&rest, &word))
		return false;
	slash = memrchr(word.data, '/', word.size);
	if (slash != NULL)
		word = str_part(word, (size_t)(slash - word.data) + 1, word.size);
	return str_is(word, name);
}

/* Append the shell's command for the pager that shows a text from LINE on. */
static void add_command(size_t line, struct buf *command)
{
	const char *chosen = getenv("PAGER");

	if (chosen == NULL || str_trim(str_of(chosen)).size == 0) {
		(void)buf_addf(command,
			       "if command -v less >/dev/null; then exec less -R +%zug; "
			       "else exec more; fi",
			       line);
		return;
	}
	(void)buf_adds(command, chosen);
	if (runs(chosen, "less"))
		(void)buf_addf(command, " -R +%zug", line);
}

/*
 * Wait for the end of the pager PID. A pager that stops, by a key or because it was not yet in the
 * foreground, goes on: its conversation waits for it.
 */
static int wait_for_end(pid_t pid, bool owns)
{
	int status = 0;

	for (;;) {
		const pid_t found = waitpid(pid, &status, WUNTRACED);

		if (found < 0 && errno == EINTR)
			continue;
		if (found < 0 || !WIFSTOPPED(status))
			return status;
		if (owns)
			(void)tcsetpgrp(STDIN_FILENO, pid);
		(void)kill(-pid, SIGCONT);
	}
}

/* Run the pager as START says, in the foreground when we have that. Returns how it ended. */
static bool run(const struct program_start *start, int *status, struct err *err)
{
	const pid_t group = getpgrp();
	const bool owns = tcgetpgrp(STDIN_FILENO) == group;
	sigset_t output, before;
	pid_t pid = 0;
	bool started;

	/* From the background we may take the terminal back only while this signal is blocked. */
	(void)sigemptyset(&output);
	(void)sigaddset(&output, SIGTTOU);
	started = program_start(start, &pid, err);
	(void)pthread_sigmask(SIG_BLOCK, &output, &before);
	if (started) {
		if (owns && tcsetpgrp(STDIN_FILENO, pid) == 0)
			(void)kill(-pid, SIGCONT);
		*status = wait_for_end(pid, owns);
		if (owns)
			(void)tcsetpgrp(STDIN_FILENO, group);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

bool viewer_show(struct console *console, int text, size_t line, struct err *err)
{
	enum { NOT_FOUND = 127 };
	const char **environment = environment_new();
	struct buf command;
	const char *words[] = {"/bin/sh", "-c", NULL, NULL};
	const struct program_start start = {
		.argv = words,
		.environment = environment,
		.fds = {text, STDOUT_FILENO, STDERR_FILENO},
		.is_job = true,
		.ends_with_us = true,
	};
	int status = 0;
	bool shown;

	buf_init(&command, COMMAND_MAX);
	add_command(line > 0 ? line : 1, &command);
	words[2] = command.data;
	console_lend(console);
	shown = run(&start, &status, err);
	console_take(console);
	if (shown && WIFEXITED(status) && WEXITSTATUS(status) >= NOT_FOUND - 1)
		shown = err_set(err, ENOENT, "the pager could not be started: %s",
				getenv("PAGER") != NULL ? getenv("PAGER") : "less, more");
	buf_fini(&command);
	free(environment);
	return shown;
}
