/*
 * job: starts the program, gives it the foreground, waits for its end, and takes both back.
 */
#include "tui/lent/job.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "process/program.h"
#include "tui/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	END_MS = 500, /* an editor that is told to end may write its own files meanwhile */
	LOOK_MS = 100, /* how soon it is seen that the program was stopped */
	COMMAND_MAX = 4 << 10,
	/* how a shell ends whose program could not be started (POSIX, 2.8.2) */
	NOT_RUNNABLE = 126,
	NOT_FOUND = 127,
};

/* A program that a person stops (Ctrl+Z). */
enum lent_stop {
	LENT_GOES_ON,  /* it is continued */
	LENT_STOPS_US, /* we are stopped as well, until the person's shell lets us go on */
};

/* One program, all borrowed. */
struct job {
	const char *name;               /* of the program in sentences: "your editor" */
	const char *command;            /* for the shell */
	const char *argument;           /* "$1" of COMMAND; or NULL */
	const char *const *environment; /* NULL-ended */
	int input;                      /* its standard input; -1: the terminal */
	int wake_fd; /* readable: the program is told to end, and killed if it does not; or -1 */
	enum lent_stop stop;
};

/* Give the terminal to the process group GROUP, which a process in the background may not do. */
static void give_terminal(pid_t group)
{
	sigset_t set, before;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTTOU);
	(void)pthread_sigmask(SIG_BLOCK, &set, &before);
	(void)tcsetpgrp(STDIN_FILENO, group);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The program PID was stopped: so are we, until the person's shell lets us go on. */
static void stop_as_well(pid_t pid)
{
	give_terminal(getpgrp());
	/*
	 * The signal is for this thread: it does not go on before the process stands
	 * still.
	 */
	(void)raise(SIGSTOP);
	/* A shell may let us go on in the background: the terminal is its own then. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp())
		give_terminal(pid);
}

/* Wait for the end of JOB's program PID. CONTROLLED: it has a process group. Returns its status. */
static int wait_for(const struct job *job, pid_t pid, bool controlled)
{
	auto_close int ended = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[] = {{.fd = ended, .events = POLLIN},
			       {.fd = job->wake_fd, .events = POLLIN}};
	const pid_t all = controlled ? -pid : pid;
	bool told_to_end = false;
	int status = 0;

	for (;;) {
		const pid_t got =
			waitpid(pid, &status, WNOHANG | (controlled ? WUNTRACED : 0));

		if (got < 0 && errno != EINTR)
			return -1;
		if (got == pid && !WIFSTOPPED(status))
			return status;
		if (got == pid) {
			if (job->stop == LENT_STOPS_US)
				stop_as_well(pid);
			(void)kill(all, SIGCONT);
		}
		const int ready = poll(fds, 2, told_to_end ? END_MS : LOOK_MS);
		/* The time is over, and the program does not end by itself. */
		if (ready == 0 && told_to_end)
			(void)kill(all, SIGKILL);
		if (ready > 0 && fds[1].revents != 0) {
			(void)kill(all, SIGTERM);
			told_to_end = true;
			fds[1] = (struct pollfd){.fd = -1};
		}
	}
}

/*
 * Run JOB on the terminal of CONSOLE, whose rows the caller has taken off (live_hide, live_stop).
 * Returns when the program has ended; STATUS is as waitpid gives it. False: it did not start.
 */
static bool job_run(struct console *console, const struct job *job, int *status,
		    struct err *err)
{
	const bool controlled = tcgetpgrp(STDIN_FILENO) == getpgrp();
	const char *const argv[] = {"/bin/sh", "-c",          job->command,
				    "sh",      job->argument, NULL};
	const struct program_start start = {
		.argv = argv,
		.environment = job->environment,
		.fds = {job->input >= 0 ? job->input : STDIN_FILENO, STDOUT_FILENO,
			STDERR_FILENO},
		.is_job = controlled,
		.joins_group = !controlled,
		.ends_with_us = true,
	};
	pid_t pid = 0;
	bool started;

	console_lend(console);
	started = program_start(&start, &pid, err);
	if (started && controlled) {
		give_terminal(pid);
		/* It may have read before the terminal was its own, and stands still then. */
		(void)kill(-pid, SIGCONT);
	}
	if (started) {
		*status = wait_for(job, pid, controlled);
		if (controlled)
			give_terminal(getpgrp());
	}
	console_take(console);
	return started || err_while(err, "%s", job->name);
}

/* The pager. */

/* Variables that have less run programs of the person, or leave them out. */
static const char *const left_out[] = {"LESSOPEN=", "LESSCLOSE=", "LESSSECURE=", "LESSEDIT="};

static const char secure[] = "LESSSECURE=1";

const char **lent_job_pager_environment_new(void)
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

bool lent_job_show(struct console *console, int text, size_t line, int wake_fd,
		   struct err *err)
{
	const char **environment = lent_job_pager_environment_new();
	struct buf command;
	int status = 0;
	bool shown;

	buf_init(&command, COMMAND_MAX);
	add_command(line > 0 ? line : 1, &command);
	const struct job job = {
		.name = "the pager",
		.command = command.data,
		.environment = environment,
		.input = text,
		.wake_fd = wake_fd,
		.stop = LENT_GOES_ON,
	};
	shown = job_run(console, &job, &status, err);
	if (shown && WIFEXITED(status) &&
	    (WEXITSTATUS(status) == NOT_RUNNABLE || WEXITSTATUS(status) == NOT_FOUND))
		shown = err_set(err, ENOENT, "the pager could not be started: %s",
				getenv("PAGER") != NULL ? getenv("PAGER") : "less, more");
	buf_fini(&command);
	free(environment);
	return shown;
}

/* The editor. */

static const char *editor(void)
{
	const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");

	return visual != NULL && visual[0] != '\0' ? visual
	       : plain != NULL && plain[0] != '\0' ? plain
						   : NULL;
}

static bool run_editor(struct console *console, const char *path, int wake_fd,
		       struct err *err)
{
	char command[COMMAND_MAX];
	const struct job job = {
		.name = "your editor",
		.command = command,
		.argument = path,
		.environment = (const char *const *)environ,
		.input = -1,
		.wake_fd = wake_fd,
		.stop = LENT_STOPS_US,
	};
	const int size = snprintf(command, sizeof(command), "%s \"$1\"", editor());
	int status = 0;

	if (size < 0 || (size_t)size >= sizeof(command))
		return err_set(err, E2BIG, "the command in VISUAL or EDITOR is too long");
	if (!job_run(console, &job, &status, err))
		return false;
	if (status == 0)
		return true;
	return err_set(err, ECANCELED,
		       "your editor (%.60s) did not end well: the text is as it was",
		       editor());
}

static bool write_text(const char *path, const struct buf *text, struct err *err)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return fd_write_all(fd, text->data, text->size, err);
}

static bool read_text(const char *path, struct buf *text, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct buf read;
	bool sound;

	if (fd < 0)
		return err_set(err, errno, "what your editor left: %s", strerror(errno));
	buf_init(&read, text->max);
	sound = fd_read_all(fd, &read, "what your editor left", err);
	if (sound && (!text_is_utf8(buf_str(&read)) || strlen(read.data) != read.size))
		sound = err_set(err, EILSEQ, "what your editor left is no text in UTF-8");
	/* An editor ends the last line, which the person has not typed. */
	if (sound && read.size > 0 && read.data[read.size - 1] == '\n')
		buf_truncate(&read, read.size - 1);
	if (sound)
		buf_swap(text, &read);
	buf_fini(&read);
	return sound;
}

bool lent_job_edit(struct console *console, struct buf *text, int wake_fd, struct err *err)
{
	const char *place = getenv("XDG_RUNTIME_DIR");
	char folder[PATH_MAX], path[PATH_MAX + 16];
	bool edited;

	if (editor() == NULL)
		return err_set(err, ENOENT,
			       "no editor is known: set VISUAL or EDITOR to its command");
	if (place == NULL || place[0] != '/' || access(place, W_OK) < 0)
		place = getenv("TMPDIR");
	if (place == NULL || place[0] != '/')
		place = "/tmp";
	if ((size_t)snprintf(folder, sizeof(folder), "%s/glovebox-edit-XXXXXX", place) >=
	    sizeof(folder))
		return err_set(err, ENAMETOOLONG,
			       "the path in XDG_RUNTIME_DIR or TMPDIR is too long");
	if (mkdtemp(folder) == NULL)
		return err_set(err, errno, "a folder for the text in %s: %s", place,
			       strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/prompt.md", folder);
	edited = write_text(path, text, err) && run_editor(console, path, wake_fd, err) &&
		 read_text(path, text, err);
	fd_folder_remove(folder);
	return edited;
}
