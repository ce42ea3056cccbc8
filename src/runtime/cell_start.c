/*
 * cell_start: the anchor is either cloned out of this process (one-shot verbs that hold no key) or
 * started by exec with an empty environment, so that nothing of this process's memory is in it.
 */
#include "runtime/cell_start.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "runtime/anchor.h"
#include "sandbox/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CHILD_STACK = 64 << 10, /* a few calls of the kernel, no recursion */
	ROLE_ARGUMENT = 16,
};

/*
 * What the child between clone and exec needs; it shares our memory and must change
 * nothing else.
 */
struct role {
	const char *program;
	char *const *argv;
	const struct cell_spec *spec;
	const int *fds;
	size_t fd_count;
	int failed; /* errno of the exec */
};

static int role_child(void *context)
{
	static char *const nothing[] = {NULL};
	struct role *role = context;

	for (size_t i = 0; i < role->fd_count; i++)
		(void)fcntl(role->fds[i], F_SETFD, 0);
	for (size_t i = 0; i < role->spec->view.count; i++) {
		if (role->spec->view.entries[i].fd >= 0)
			(void)fcntl(role->spec->view.entries[i].fd, F_SETFD, 0);
	}
	(void)execve(role->program, role->argv, nothing);
	role->failed = errno;
	_exit(127);
}

/*
 * Exit signal 0, waited for with __WALL: an embedding program that waits for children of
 * its own never meets ours. The descriptor table is the child's own copy, so clearing
 * close-on-exec there changes nothing here.
 */
static bool role_exec(struct role *role, struct err *err)
{
	auto_free char *stack = memory_alloc(CHILD_STACK);
	sigset_t all, old;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid_t pid = clone(role_child, stack + CHILD_STACK, CLONE_VM | CLONE_VFORK, role);
	int code = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return err_set(err, code, "starting the anchor: %s", strerror(code));
	/*
	 * It clones the anchor as our child and goes; its reply waits in the control
	 * socket.
	 */
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (role->failed != 0)
		return err_set(err, role->failed, "starting the anchor %s: %s",
			       role->program, strerror(role->failed));
	return true;
}

static bool start_by_exec(const struct cell_start *start, int control, int front,
			  struct err *err)
{
	char numbers[3][ROLE_ARGUMENT];
	auto_close int spec_fd = -1;
	struct buf text;

	buf_init(&text, SPEC_BYTES_MAX);
	bool ok = spec_print(start->spec, &text) ||
		  err_set(err, E2BIG, "the policy's list of paths is over %d bytes",
			  SPEC_BYTES_MAX);
	ok = ok && fd_memory_file("glovebox-cell", buf_str(&text), &spec_fd, err);
	buf_fini(&text);
	if (!ok)
		return false;
	const int fds[] = {spec_fd, control, front};
	for (size_t i = 0; i < 3; i++)
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	char *argv[] = {(char[]){ANCHOR_ROLE}, numbers[0], numbers[1], numbers[2], NULL};
	struct role role = {
		.program = start->program != NULL ? start->program : "/proc/self/exe",
		.argv = argv,
		.spec = start->spec,
		.fds = fds,
		.fd_count = 3,
	};
	return role_exec(&role, err);
}

bool cell_start(const struct cell_start *start, int *control, int *pidfd, struct err *err)
{
	auto_close int front = kernel_pidfd_open(getpid());
	int ends[2];
	bool ok;

	if (front < 0)
		return err_set(err, errno, "a descriptor of this process: %s",
			       strerror(errno));
	(void)fcntl(front, F_SETFD, FD_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "the control socket: %s", strerror(errno));
	if (start->direct) {
		pid_t pid;
		ok = anchor_launch(start->spec, ends[1], front, 0, start->tools, &pid,
				   pidfd, err);
	} else {
		ok = start_by_exec(start, ends[1], front, err);
	}
	fd_close(&ends[1]);
	sandbox_end_helper(&start->spec->mapping);
	if (!ok) {
		fd_close(&ends[0]);
		return false;
	}
	*control = ends[0];
	return true;
}

void cell_end_anchor(int *pidfd, bool wait)
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
