/* anchor: build the cell, then make workers until the front is gone. */
#include "runtime/anchor.h"

#include "base/clock.h"
#include "base/fd.h"
#include "process/program.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * ANCHOR_FDS)];
};

bool anchor_send(int control, const struct anchor_reply *reply, const int *fds, size_t count)
{
	union rights rights = {0};
	struct iovec part = {(void *)(uintptr_t)reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (count > 0) {
		message.msg_control = rights.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
	}
	ssize_t n;
	do {
		n = sendmsg(control, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*reply);
}

bool anchor_receive(int control, struct anchor_reply *reply, int fds[ANCHOR_FDS],
		    int64_t deadline_ms, struct err *err)
{
	union rights rights = {0};
	struct iovec part = {reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	struct pollfd wanted = {.fd = control, .events = POLLIN};
	int answer;

	do {
		answer = poll(&wanted, 1, clock_poll_timeout(deadline_ms));
	} while (answer < 0 && errno == EINTR);
	if (answer <= 0)
		return err_set(err, ETIMEDOUT, "the cell's anchor does not answer");
	ssize_t n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
	for (size_t i = 0; i < ANCHOR_FDS; i++)
		fds[i] = -1;
	struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header != NULL && header->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	if (n == (ssize_t)sizeof(*reply))
		return true;
	for (size_t i = 0; i < ANCHOR_FDS; i++)
		fd_close(&fds[i]);
	return err_set(err, ECONNRESET, "the cell's anchor has ended");
}

static void refuse(int control, const struct err *err)
{
	struct anchor_reply reply = {.kind = ANCHOR_REFUSED, .code = err->code};

	(void)snprintf(reply.text, sizeof(reply.text), "%s", err->text);
	(void)anchor_send(control, &reply, NULL, 0);
}

/* The front's handlers and masks are not ours. */
static void signals_reset(void)
{
	program_plain_signals();
	/* Workers are reaped by the kernel; the front follows them by pidfd. */
	(void)signal(SIGCHLD, SIG_IGN);
}

static bool worker_make(const struct cell_spec *spec, int control, enum worker_kind kind,
			const struct tool *const *tools, struct err *err)
{
	struct anchor_reply reply = {.kind = ANCHOR_WORKER, .worker = kind};
	int ends[2], pidfd = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "socket of a worker: %s", strerror(errno));
	if (!sandbox_clone_worker(&pid, &pidfd, err)) {
		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return false;
	}
	if (pid == 0) {
		(void)close(control);
		(void)close(ends[0]);
		worker_run(spec, ends[1], kind, tools);
	}
	const int fds[ANCHOR_FDS] = {ends[0], pidfd};
	bool ok = anchor_send(control, &reply, fds, ANCHOR_FDS);
	int code = errno;
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	fd_close(&pidfd);
	return ok || err_set(err, code, "handing over a worker: %s", strerror(code));
}

static _Noreturn void anchor_serve(const struct cell_spec *spec, int control,
				   const struct tool *const *tools)
{
	struct err err;
	char request;

	for (;;) {
		ssize_t n = recv(control, &request, 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 1)
			/* the front is gone, and with us all that is in the cell */
			_exit(0);
		if (!worker_make(spec, control, (enum worker_kind)request, tools, &err))
			refuse(control, &err);
	}
}

static bool listeners_make(const struct cell_spec *spec, int control, struct err *err)
{
	for (size_t i = 0; i < spec->listen_count; i++) {
		const struct anchor_reply reply = {.kind = ANCHOR_LISTENER,
						   .code = spec->listen[i]};
		int fds[ANCHOR_FDS];

		if (!sandbox_listen(spec->listen[i], &fds[0], &fds[1], err))
			return false;
		bool ok = anchor_send(control, &reply, fds, fds[1] >= 0 ? 2 : 1);
		int code = errno;
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		if (!ok)
			return err_set(err, code, "handing over a listener: %s",
				       strerror(code));
	}
	return true;
}

static bool anchor_build(struct cell_spec *spec, struct sandbox_network *network,
			 int control, int front, struct err *err)
{
	if (!sandbox_become(&spec->identity, front, err) || !sandbox_build(&spec->view, err))
		return false;
	return sandbox_join(network, err) && listeners_make(spec, control, err) &&
	       sandbox_settle(&spec->limits, &control, 1, err);
}

static _Noreturn void anchor_run(struct cell_spec *spec, struct sandbox_network *network,
				 int control, int front, const struct tool *const *tools)
{
	struct err err;

	signals_reset();
	(void)prctl(PR_SET_NAME, ANCHOR_ROLE);
	if (!anchor_build(spec, network, control, front, &err)) {
		refuse(control, &err);
		_exit(1);
	}
	/*
	 * Everything above was closed, the null device took 0, 1 and 2: nothing else is
	 * open.
	 */
	anchor_serve(spec, control, tools);
}

bool anchor_launch(struct cell_spec *spec, int control, int front, unsigned long flags,
		   const struct tool *const *tools, pid_t *pid, int *pidfd, struct err *err)
{
	struct sandbox_network network;

	if (!sandbox_clone(&spec->identity, flags, &network, pid, pidfd, err))
		return false;
	if (*pid == 0)
		anchor_run(spec, &network, control, front, tools);
	return true;
}

static int argument_fd(const char *text)
{
	int number = 0;

	for (; *text >= '0' && *text <= '9' && number < 1 << 20; text++)
		number = number * 10 + (*text - '0');
	return *text == '\0' ? number : -1;
}

void anchor_role(char **argv, const struct tool *const *tools)
{
	int spec_fd = argument_fd(argv[1]);
	int control = argument_fd(argv[2]);
	int front = argument_fd(argv[3]);
	struct anchor_reply reply = {.kind = ANCHOR_STARTED};
	struct cell_spec spec;
	struct buf text;
	struct err err;
	int pidfd = -1;
	pid_t pid;

	spec_init(&spec);
	buf_init(&text, SPEC_BYTES_MAX);
	if (!fd_read_all(spec_fd, &text, "the cell's specification", &err) ||
	    !spec_parse(buf_str(&text), &spec, &err) ||
	    !anchor_launch(&spec, control, front, CLONE_PARENT, tools, &pid, &pidfd, &err)) {
		refuse(control, &err);
		_exit(1);
	}
	(void)anchor_send(control, &reply, &pidfd, 1);
	_exit(0);
}
