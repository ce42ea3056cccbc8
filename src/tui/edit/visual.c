#include "tui/edit/visual.h"

#include "base/fd.h"
#include "base/text/text.h"
#include "process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	COMMAND_MAX = 4096,
	END_MS = 500, /* an editor that is told to end may write its own files meanwhile */
	LOOK_MS = 100, /* how soon it is seen that the editor was stopped */
};

static const char *editor(void)
{
	const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");

	return visual != NULL && visual[0] != '\0' ? visual
	       : plain != NULL && plain[0] != '\0' ? plain
						   : NULL;
}

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

/* The editor was stopped: so are we, until the person's shell lets us go on. */
static void stop_as_well(pid_t pid)
{
	give_terminal(getpgrp());
	(void)kill(getpid(), SIGSTOP);
	give_terminal(pid);
	(void)kill(-pid, SIGCONT);
}

/* Wait for the end of the editor PID. CONTROLLED: it is a job of its own. Returns its status. */
static int wait_for(pid_t pid, bool controlled, int wake_fd)
{
	auto_close int ended = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd fds[] = {{.fd = ended, .events = POLLIN},
			       {.fd = wake_fd, .events = POLLIN}};
	const pid_t all = controlled ? -pid : pid;
	int status = 0, told = 0;

	for (;;) {
		const pid_t got =
			waitpid(pid, &status, WNOHANG | (controlled ? WUNTRACED : 0));

		if (got < 0 && errno != EINTR)
			return -1;
		if (got == pid && !WIFSTOPPED(status))
			return status;
		if (got == pid)
			stop_as_well(pid);
		fds[1].fd = told == 0 ? wake_fd : -1;
		if (poll(fds, 2, told > 0 ? END_MS : LOOK_MS) <= 0 && told > 0)
			(void)kill(all, SIGKILL);
		if (fds[1].fd >= 0 && fds[1].revents != 0 && told++ == 0)
			(void)kill(all, SIGTERM);
	}
}

static bool run(const char *path, int wake_fd, struct err *err)
{
	const bool controlled = tcgetpgrp(STDIN_FILENO) == getpgrp();
	char command[COMMAND_MAX];
	const char *const argv[] = {"sh", "-c", command, "editor", path, NULL};
	const struct program_start start = {
		.argv = argv,
		.environment = (const char *const *)environ,
		.fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
		.is_job = controlled,
		.joins_group = !controlled,
		.ends_with_us = true,
	};
	const int size = snprintf(command, sizeof(command), "%s \"$1\"", editor());
	pid_t pid;
	int status;

	if (size < 0 || (size_t)size >= sizeof(command))
		return err_set(err, E2BIG, "the command in VISUAL or EDITOR is too long");
	if (!program_start(&start, &pid, err))
		return err_while(err, "your editor");
	if (controlled) {
		give_terminal(pid);
		/* It may have read before the terminal was its own, and stands still then. */
		(void)kill(-pid, SIGCONT);
	}
	status = wait_for(pid, controlled, wake_fd);
	if (controlled)
		give_terminal(getpgrp());
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

bool visual_edit(struct buf *text, int wake_fd, struct err *err)
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
		    sizeof(folder) ||
	    mkdtemp(folder) == NULL)
		return err_set(err, errno, "a folder for the text in %s: %s", place,
			       strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/prompt.md", folder);
	edited = write_text(path, text, err) && run(path, wake_fd, err) &&
		 read_text(path, text, err);
	fd_folder_remove(folder);
	return edited;
}
