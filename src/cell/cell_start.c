/*
 * cell_start: the anchor is either cloned out of this process (one-shot verbs that hold no key) or
 * started by exec with an empty environment, so that nothing of this process's memory is in it.
 */
#include "cell/cell_start.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/anchor.h"
#include "process/role.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Do not wait longer: a broken disk can keep a process in the kernel. */
enum { ANCHOR_END_MS = 5000 };

static bool start_by_exec(struct cell_start *start, int control, int front, struct err *err)
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
	const struct view *view = &start->spec->view;
	auto_free int *fds = memory_array(view->count + 3, sizeof(fds[0]));
	fds[0] = spec_fd;
	fds[1] = control;
	fds[2] = front;
	for (size_t i = 0; i < view->count; i++)
		fds[3 + i] = view->entries[i].fd;
	for (size_t i = 0; i < 3; i++)
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	char *argv[] = {(char[]){ANCHOR_ROLE}, numbers[0], numbers[1], numbers[2], NULL};
	const struct role role = {.program = start->program,
				  .argv = argv,
				  .fds = fds,
				  .fd_count = 3 + view->count};
	/*
	 * The started program clones the anchor as our child and exits. Its reply arrives
	 * over the control socket.
	 */
	return role_start(&role, &start->starter, err);
}

void cell_start_end(struct cell_start *start)
{
	siginfo_t info;

	while (start->starter >= 0 &&
	       waitid(P_PIDFD, (id_t)start->starter, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
	fd_close(&start->starter);
}

bool cell_start(struct cell_start *start, int *control, int *pidfd, struct err *err)
{
	auto_close int front = -1;
	int ends[2];
	bool ok;

	start->starter = -1;
	if (!role_self(&front, err))
		return false;
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

void cell_wait_anchor(int pidfd)
{
	struct pollfd gone = {.fd = pidfd, .events = POLLIN};

	while (pidfd >= 0 && poll(&gone, 1, ANCHOR_END_MS) < 0 && errno == EINTR)
		;
}
