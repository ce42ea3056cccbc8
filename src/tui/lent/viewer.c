/* viewer: the command of the pager, and its environment. */
#include "tui/lent/viewer.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "tui/lent/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	COMMAND_MAX = 4 << 10,
	/* how a shell ends whose program could not be started (POSIX, 2.8.2) */
	NOT_RUNNABLE = 126,
	NOT_FOUND = 127,
};

/* Variables that have less run programs of the person, or leave them out. */
static const char *const left_out[] = {"LESSOPEN=", "LESSCLOSE=", "LESSSECURE=", "LESSEDIT="};

static const char secure[] = "LESSSECURE=1";

const char **viewer_environment_new(void)
{
	const char **made;
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	made = memory_array(count + 2, sizeof(*made)); /* with ours, and the NULL */
	count = 0;
	for (char **at = environ; *at != NULL; at++) {
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

bool viewer_show(struct console *console, int text, size_t line, int wake_fd, struct err *err)
{
	const char **environment = viewer_environment_new();
	struct buf command;
	int status = 0;
	bool shown;

	buf_init(&command, COMMAND_MAX);
	add_command(line > 0 ? line : 1, &command);
	const struct lent_job job = {
		.name = "the pager",
		.command = command.data,
		.environment = environment,
		.input = text,
		.wake_fd = wake_fd,
		.stop = LENT_GOES_ON,
	};
	shown = lent_job_run(console, &job, &status, err);
	if (shown && WIFEXITED(status) &&
	    (WEXITSTATUS(status) == NOT_RUNNABLE || WEXITSTATUS(status) == NOT_FOUND))
		shown = err_set(err, ENOENT, "the pager could not be started: %s",
				getenv("PAGER") != NULL ? getenv("PAGER") : "less, more");
	buf_fini(&command);
	free(environment);
	return shown;
}
