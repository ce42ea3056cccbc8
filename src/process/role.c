/* role: clones a child that shares our memory until it execs the role. */
#include "process/role.h"

#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_STACK = 64 << 10 }; /* a few system calls, no recursion */

/*
 * The data of the child between clone and exec. The child shares our memory and must
 * change nothing else in it.
 */
struct child {
	const struct role *role;
	const char *program;
	int failed; /* errno of the exec */
};

static int child_run(void *context)
{
	static char *const nothing[] = {NULL};
	struct child *child = context;

	/* The descriptor table is the child's own copy. */
	for (size_t i = 0; i < child->role->fd_count; i++) {
		if (child->role->fds[i] >= 0)
			(void)fcntl(child->role->fds[i], F_SETFD, 0);
	}
	(void)execve(child->program, child->role->argv, nothing);
	child->failed = errno;
	_exit(127);
}

bool role_start(const struct role *role, int *pidfd, struct err *err)
{
	auto_free char *stack = memory_alloc(CHILD_STACK);
	struct child child = {.role = role,
			      .program = role->program != NULL ? role->program
							       : "/proc/self/exe"};
	int made = -1;
	sigset_t all, old;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid_t pid = clone(child_run, stack + CHILD_STACK,
			  CLONE_VM | CLONE_VFORK | CLONE_PIDFD, &child, &made);
	int code = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return err_set(err, code, "starting %s: %s", role->argv[0], strerror(code));
	if (child.failed != 0) {
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		fd_close(&made);
		return err_set(err, child.failed, "starting %s by %s: %s", role->argv[0],
			       child.program, strerror(child.failed));
	}
	*pidfd = made;
	return true;
}

bool role_start_steered(const char *program, const char *name, struct str spec,
			int control, int *pidfd, struct err *err)
{
	char numbers[3][ROLE_ARGUMENT];
	auto_close int spec_fd = -1, self = -1;
	auto_free char *first = memory_copy(name);

	if (!fd_memory_file(name, spec, &spec_fd, err) || !role_self(&self, err))
		return false;
	const int fds[] = {spec_fd, control, self};
	for (size_t i = 0; i < 3; i++)
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	char *argv[] = {first, numbers[0], numbers[1], numbers[2], NULL};
	const struct role role = {.program = program, .argv = argv, .fds = fds, .fd_count = 3};
	return role_start(&role, pidfd, err);
}

void role_end(int *pidfd, bool wait)
{
	siginfo_t info;

	if (*pidfd < 0)
		return;
	(void)syscall(SYS_pidfd_send_signal, *pidfd, SIGKILL, NULL, 0);
	while (wait && waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
	fd_close(pidfd);
}

bool role_self(int *pidfd, struct err *err)
{
	*pidfd = kernel_pidfd_open(getpid());
	if (*pidfd < 0)
		return err_set(err, errno, "a descriptor of this process: %s",
			       strerror(errno));
	(void)fcntl(*pidfd, F_SETFD, FD_CLOEXEC);
	return true;
}

bool role_parent(int *pidfd)
{
	const pid_t parent = getppid();

	*pidfd = parent > 1 ? kernel_pidfd_open(parent) : -1;
	if (*pidfd >= 0)
		(void)fcntl(*pidfd, F_SETFD, FD_CLOEXEC);
	return getppid() == parent;
}
