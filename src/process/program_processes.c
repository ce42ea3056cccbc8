/*
 * program_processes: whom the kernel gives us the ends of. As init of a pid namespace all
 * that lives there is the program's; else this process becomes a subreaper meanwhile, and
 * what it had for children before is told apart.
 */
#include "process/program_processes.h"
#include "process/children.h"
#include "process/program_end.h"
#include "process/pty.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOLLOW_REAP_MAX = 4096 /* ended processes taken at one look */ };

static void take_status(struct follow *follow, int status)
{
	follow->ended = true;
	if (WIFEXITED(status))
		follow->run->exit_code = WEXITSTATUS(status);
	else if (WIFSIGNALED(status))
		follow->run->signal = WTERMSIG(status);
}

bool program_processes_reap(struct follow *follow)
{
	int status;
	pid_t pid;

	if (!follow->is_init) {
		if (!follow->ended && waitpid(follow->pid, &status, WNOHANG) == follow->pid)
			take_status(follow, status);
		return false;
	}
	/* A fork bomb ends processes as fast as they can be taken. */
	for (int i = 0; i < FOLLOW_REAP_MAX; i++) {
		pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid <= 0)
			return pid < 0 && errno == ECHILD;
		if (pid == follow->pid)
			take_status(follow, status);
	}
	return false;
}

int program_ends_open(sigset_t *before)
{
	struct sigaction plain;
	sigset_t child;

	/* An inherited "ignore" would throw the exit status away. */
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &plain, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, before);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool set_up_init(struct follow *follow, struct err *err)
{
	follow->end_fd = follow->terms.ends_fd > 0
				 ? follow->terms.ends_fd
				 : program_ends_open(&follow->mask_before);
	return follow->end_fd >= 0 ||
	       err_set(err, ECHILD, "No signalfd: %s.", strerror(errno));
}

/*
 * Restore the signal mask, unless the descriptor belongs to the terms and outlives this
 * run.
 */
static void tear_down_init(struct follow *follow)
{
	if (follow->end_fd >= 0 && follow->end_fd == follow->terms.ends_fd)
		follow->end_fd = -1;
	else if (follow->end_fd >= 0)
		(void)sigprocmask(SIG_SETMASK, &follow->mask_before, NULL);
}

/* After a run orphans come to us only if they did before it. */
static void leave_orphans_as_before(const struct follow *follow)
{
	if (!follow->is_init && !follow->was_subreaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

bool program_processes_begin(struct follow *follow, struct err *err)
{
	struct program_run *run = follow->run;
	bool ok = !follow->is_init || set_up_init(follow, err);

	if (ok && !follow->is_init) {
		int before = 0;

		(void)prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0);
		follow->was_subreaper = before != 0;
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	}
	bool is_new = run->ahead.pid == 0;
	ok = ok && (!is_new || program_start_ahead(&run->start, &run->ahead, err));
	for (size_t i = 0; run->gives_fds && i < 3; i++)
		fd_close(&run->start.fds[i]);
	if (!ok) {
		leave_orphans_as_before(follow);
		return false;
	}
	follow->pid = run->ahead.pid;
	follow->others = run->ahead.others;
	memcpy(follow->pipes, run->ahead.pipes, sizeof(follow->pipes));
	follow->listener = run->ahead.listener > 0 ? run->ahead.listener : -1;
	run->ahead = (struct program_ahead){.pipes = {-1, -1}};
	if (run->pty != NULL && run->pty->gathered) {
		follow->pipes[0] = fcntl(run->pty->master, F_DUPFD_CLOEXEC, 0);
		if (follow->pipes[0] < 0)
			return err_set(err, errno, "No free descriptor: %s.",
				       strerror(errno));
	}
	if (follow->is_init) {
		/* Its end may have come before anybody listened for it. */
		if (!is_new)
			(void)program_processes_reap(follow);
		return true;
	}
	follow->end_fd = (int)syscall(SYS_pidfd_open, follow->pid, 0);
	return follow->end_fd >= 0 || err_set(err, errno, "No pidfd: %s.", strerror(errno));
}

bool program_processes_gone(const struct follow *follow)
{
	if (follow->is_init)
		return waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WNOWAIT | WEXITED) < 0 &&
		       errno == ECHILD;
	return kill(-follow->pid, 0) < 0 && errno == ESRCH;
}

/* Each of these was left behind, but the program itself. */
static void one_reaped(void *context, pid_t pid, int status)
{
	struct follow *follow = context;

	if (pid == follow->pid)
		take_status(follow, status);
	else
		follow->run->left_processes++;
}

static void end_all_as_init(struct follow *follow)
{
	/* A process that is dead already does not count as left behind. */
	if (follow->is_alone || program_processes_reap(follow))
		return;
	program_end_all(follow->ending ? PROGRAM_END_PATIENCE_MS : CLOCK_NEVER,
			one_reaped, follow);
	if (!follow->ended)
		follow->run->signal = SIGKILL; /* it is dying of it */
}

static void end_all_as_subreaper(struct follow *follow)
{
	int status;

	/* It alone first: what it leaves is counted while that still lives. */
	if (follow->pid > 0 && !follow->ended) {
		(void)kill(follow->pid, SIGKILL);
		if (waitpid(follow->pid, &status, 0) == follow->pid)
			take_status(follow, status);
	}
	follow->run->left_processes +=
		children_end(follow->terms.children_fd, follow->others, follow->pid);
	leave_orphans_as_before(follow);
}

void program_processes_end(struct follow *follow)
{
	if (follow->is_init)
		end_all_as_init(follow);
	else
		end_all_as_subreaper(follow);
}

void program_processes_forget(struct follow *follow)
{
	if (follow->is_init)
		tear_down_init(follow);
	fd_close(&follow->end_fd);
	free(follow->others);
}
