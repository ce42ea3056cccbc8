/* job: starts the program, gives it the foreground, waits for its end, and takes both back. */
#include "tui/lent/job.h"

#include "base/fd.h"
#include "process/program.h"
#include "tui/console.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	END_MS = 500, /* an editor that is told to end may write its own files meanwhile */
	LOOK_MS = 100, /* how soon it is seen that the program was stopped */
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
static int wait_for(const struct lent_job *job, pid_t pid, bool controlled)
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

bool lent_job_run(struct console *console, const struct lent_job *job, int *status,
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
