/* terminal_guard: a forked process that waits for the end of a pipe. */
#include "front/terminal/terminal_guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/*
 * Runs in the guard process. It makes only calls that are safe after a fork in a process
 * with threads.
 */
static _Noreturn void guard_run(int news, const struct termios *before, const char *reset)
{
	char done;
	ssize_t n;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "glovebox-tty");
	if (dup2(news, 1) >= 0)
		(void)syscall(SYS_close_range, 2U, ~0U, 0U);
	do {
		n = read(1, &done, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		(void)tcsetattr(STDIN_FILENO, TCSANOW, before);
		(void)!write(STDIN_FILENO, reset, strlen(reset));
	}
	_exit(0);
}

bool terminal_guard_start(struct terminal_guard *guard, const struct termios *before,
			  const char *reset, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	guard->pid = fork();
	if (guard->pid == 0)
		guard_run(ends[0], before, reset);
	fd_close(&ends[0]);
	if (guard->pid < 0) {
		fd_close(&ends[1]);
		guard->pid = 0;
		return err_set(err, errno, "guarding the terminal: %s", strerror(errno));
	}
	guard->news = ends[1];
	return true;
}

void terminal_guard_end(struct terminal_guard *guard)
{
	if (guard->pid <= 0)
		return;
	(void)!write(guard->news, "", 1);
	fd_close(&guard->news);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}
