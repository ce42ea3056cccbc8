/*
 * starter: sends specifications to the process that clones anchors and groups processes, and is
 * that process.
 */

#include "cell/starter.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "cell/anchor.h"
#include "cell/groups.h"
#include "process/role.h"
#include "sandbox/sandbox.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* of one cell; each also costs a mount, and the usual limit of open files is less */
	DESCRIPTORS_MAX = 4096,
	PIECE = 16, /* descriptors in one message (base/fd.h) */
};

enum starter_kind { STARTER_ANCHOR, STARTER_GROUPS };

/*
 * The first message for an anchor, with its end of the control socket and the file of its
 * specification. The descriptors of the specification follow, in messages of one byte. The only
 * message for a groups process comes with its end of a socket.
 */
struct starter_request {
	enum starter_kind kind;
	struct groups_order groups; /* with STARTER_GROUPS, and nothing else then */
	enum sandbox_level level;
	struct sandbox_identity identity;
	/* the first descriptor is the folder of a control group, in which it is born */
	bool has_group;
	bool joins_later; /* as in starter_launch */
	uint32_t count;
};
enum { REQUEST_CONTROL, REQUEST_SPEC, REQUEST_FDS };

enum {
	SEND_S = 5, /* a request is taken in milliseconds */
	/* from the end of its socket until it is killed: it may be cloning an anchor */
	END_MS = 1000,
};

/* The front's end. */

void starter_init(struct starter *starter, const char *program)
{
	*starter = (struct starter){.program = program, .socket = -1, .pidfd = -1};
}

void starter_give_up(struct starter *starter)
{
	struct pollfd gone = {.fd = starter->pidfd, .events = POLLIN};
	siginfo_t info;
	int ended;

	fd_close(&starter->socket); /* the process reads that, and exits */
	do {
		ended = starter->pidfd < 0 ? 1 : poll(&gone, 1, END_MS);
	} while (ended < 0 && errno == EINTR);
	if (ended <= 0)
		(void)syscall(SYS_pidfd_send_signal, starter->pidfd, SIGKILL, NULL, 0);
	while (starter->pidfd >= 0 &&
	       waitid(P_PIDFD, (id_t)starter->pidfd, &info, WEXITED | __WALL) < 0 &&
	       errno == EINTR)
		;
	fd_close(&starter->pidfd);
}

void starter_fini(struct starter *starter)
{
	starter_give_up(starter);
	groups_front_close(&starter->groups);
}

static bool process_start(struct starter *starter, struct err *err)
{
	char numbers[2][ROLE_ARGUMENT];
	const struct timeval limit = {.tv_sec = SEND_S};
	auto_close int front = -1, theirs = -1;
	int ends[2];

	if (!role_self(&front, err))
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "the socket of a starter: %s", strerror(errno));
	starter->socket = ends[0];
	theirs = ends[1];
	/* One that was stopped may not stop this process. */
	(void)setsockopt(starter->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	const int fds[] = {theirs, front};
	for (size_t i = 0; i < 2; i++)
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	char *argv[] = {(char[]){STARTER_ROLE}, numbers[0], numbers[1], NULL};
	const struct role role = {.program = starter->program,
				  .argv = argv,
				  .fds = fds,
				  .fd_count = 2};
	if (role_start(&role, &starter->pidfd, err)) {
		starter->started++;
		return true;
	}
	fd_close(&starter->socket);
	return false;
}

/* Send REQUEST with its own descriptors and the COUNT of the specification. */
static bool request_send(const struct starter *starter,
			 const struct starter_request *request,
			 const int own[REQUEST_FDS], const int *fds)
{
	const size_t own_count = request->kind == STARTER_GROUPS ? 1 : REQUEST_FDS;

	if (!fd_message_send(starter->socket, request, sizeof(*request), own, own_count, 0))
		return false;
	for (size_t at = 0; at < request->count; at += PIECE) {
		const size_t left = request->count - at;

		if (!fd_message_send(starter->socket, "", 1, fds + at,
				     left < PIECE ? left : PIECE, 0))
			return false;
	}
	return true;
}

/* Put what an anchor needs to know of SPEC into the memory file *FILE and into REQUEST. */
static bool request_make(struct cell_spec *spec, struct starter_request *request,
			 int *file, int **fds, struct err *err)
{
	struct buf text;
	size_t count;

	buf_init(&text, SPEC_BYTES_MAX);
	bool ok = spec_print(spec, &text, fds, &count) ||
		  err_set(err, E2BIG, "the policy's list of paths is over %d bytes",
			  SPEC_BYTES_MAX);
	if (ok && count > DESCRIPTORS_MAX)
		ok = err_set(err, E2BIG, "the policy's list of paths has over %d entries",
			     DESCRIPTORS_MAX);
	ok = ok && fd_memory_file("glovebox-cell", buf_str(&text), file, err);
	buf_fini(&text);
	*request = (struct starter_request){.level = spec->built,
					    .identity = spec->identity,
					    .has_group = spec->group_version == 2,
					    .count = (uint32_t)count};
	return ok;
}

/* Send as request_send, to a process that is started where there is none. */
static bool request_deliver(struct starter *starter, const struct starter_request *request,
			    const int own[REQUEST_FDS], const int *fds, struct err *err)
{
	bool was_there, sent;

	do {
		was_there = starter->socket >= 0;
		if (!was_there && !process_start(starter, err))
			return false;
		sent = request_send(starter, request, own, fds);
		if (!sent)
			(void)err_set(err, errno, "telling the starter: %s",
				      strerror(errno));
		/* One that was killed or stopped meanwhile is replaced once. */
		if (!sent)
			starter_give_up(starter);
	} while (!sent && was_there);
	return sent;
}

bool starter_launch(struct starter *starter, struct cell_spec *spec, bool joins_later,
		    int control, struct err *err)
{
	struct starter_request request;
	auto_free int *fds = NULL;
	auto_close int file = -1;

	if (!request_make(spec, &request, &file, &fds, err))
		return false;
	request.joins_later = joins_later;
	const int own[REQUEST_FDS] = {[REQUEST_CONTROL] = control, [REQUEST_SPEC] = file};
	return request_deliver(starter, &request, own, fds, err);
}

bool starter_launch_groups(struct starter *starter, const struct groups_order *order,
			   int socket)
{
	const struct starter_request request = {.kind = STARTER_GROUPS, .groups = *order};
	const int own[REQUEST_FDS] = {[REQUEST_CONTROL] = socket, [REQUEST_SPEC] = -1};
	struct err err;

	return request_deliver(starter, &request, own, NULL, &err);
}

/* The process. */

/* A request as it has arrived. */
struct arrival {
	struct starter_request request;
	int own[REQUEST_FDS];
	int fds[DESCRIPTORS_MAX];
	size_t count;
};

struct process {
	int socket, front;
	const struct tool *const *tools;
	struct arrival arrival; /* of the anchor that is made now */
	struct sandbox_network network;
};

static void arrival_close(struct arrival *arrival)
{
	for (size_t i = 0; i < REQUEST_FDS; i++)
		fd_close(&arrival->own[i]);
	for (size_t i = 0; i < arrival->count; i++)
		fd_close(&arrival->fds[i]);
	arrival->count = 0;
}

/* False when the front has closed its end, or does not keep to the messages. */
static bool arrival_receive(int socket, struct arrival *arrival)
{
	char byte;

	arrival->count = 0;
	if (!fd_message_receive(socket, &arrival->request, sizeof(arrival->request),
				arrival->own, REQUEST_FDS, 0))
		return false;
	while (arrival->count < arrival->request.count &&
	       arrival->request.count <= DESCRIPTORS_MAX) {
		const size_t left = arrival->request.count - arrival->count;
		const size_t piece = left < PIECE ? left : PIECE;

		if (!fd_message_receive(socket, &byte, 1, arrival->fds + arrival->count,
					piece, 0))
			break;
		arrival->count += piece;
	}
	if (arrival->count == arrival->request.count)
		return true;
	arrival_close(arrival);
	return false;
}

/* Where the network of the anchor is made; NULL: later. */
static struct sandbox_network *network_of(struct process *process)
{
	return process->arrival.request.joins_later ? NULL : &process->network;
}

/*
 * In the clone: say who it is. The starter says the same, but it may be killed before; the
 * descriptor of a process that lives can be that of no other. Where there is no room for one,
 * the message of the starter has the number.
 */
static void started_tell(int control)
{
	const struct anchor_reply reply = {.kind = ANCHOR_STARTED};
	auto_close int pidfd = -1;
	struct err err;

	if (role_self(&pidfd, &err))
		(void)fd_message_send(control, &reply, sizeof(reply), &pidfd, 1, 0);
}

/* In the clone: read the specification, and be its anchor. */
static _Noreturn void anchor_become(struct process *process)
{
	struct arrival *arrival = &process->arrival;
	const int control = arrival->own[REQUEST_CONTROL];
	struct cell_spec spec;
	struct buf text;
	struct err err;

	(void)close(process->socket);
	started_tell(control);
	spec_init(&spec);
	buf_init(&text, SPEC_BYTES_MAX);
	if (!fd_read_all(arrival->own[REQUEST_SPEC], &text, "the cell's specification",
			 &err) ||
	    !spec_parse(buf_str(&text), arrival->fds, arrival->count, &spec, &err)) {
		anchor_refuse(control, &err);
		_exit(1);
	}
	buf_fini(&text);
	anchor_run(&spec, network_of(process), control, process->front, process->tools);
}

/* Descriptors that did not come, because this process had no room for them, are missing. */
static bool has_all(const struct arrival *arrival, struct err *err)
{
	bool all = arrival->own[REQUEST_CONTROL] >= 0 && arrival->own[REQUEST_SPEC] >= 0;

	for (size_t i = 0; i < arrival->count; i++)
		all = all && arrival->fds[i] >= 0;
	return all || err_set(err, EMFILE,
			      "the starter of the cell could not take all descriptors; raise "
			      "`ulimit -n`, or let the policy name fewer paths");
}

static void anchor_make(struct process *process)
{
	const struct arrival *arrival = &process->arrival;
	const struct starter_request *request = &arrival->request;
	const int group = request->has_group && arrival->count > 0 ? arrival->fds[0] : -1;
	struct anchor_reply reply = {.kind = ANCHOR_STARTED};
	auto_close int pidfd = -1;
	struct err err;
	pid_t pid;

	if (!has_all(arrival, &err) ||
	    !sandbox_clone(request->level, &request->identity, CLONE_PARENT, group,
			   network_of(process), &pid, &pidfd, &err)) {
		anchor_refuse(arrival->own[REQUEST_CONTROL], &err);
		return;
	}
	if (pid == 0)
		anchor_become(process);
	reply.code = (int)pid;
	(void)fd_message_send(arrival->own[REQUEST_CONTROL], &reply, sizeof(reply),
			      &pidfd, 1, 0);
}

/* Clone a process without any namespace of its own, which is reaped by the kernel. */
static void groups_make(const struct process *process)
{
	const struct arrival *arrival = &process->arrival;
	auto_close int pidfd = -1;
	struct err err;
	pid_t pid;

	/* Without a process there are no groups, and workers watch their limits themselves. */
	if (arrival->own[REQUEST_CONTROL] >= 0 &&
	    sandbox_clone(SANDBOX_OPEN, &arrival->request.identity, SIGCHLD, -1, NULL,
			  &pid, &pidfd, &err) &&
	    pid == 0)
		groups_run(arrival->own[REQUEST_CONTROL], process->front,
			   &arrival->request.groups);
}

/* Die with the front, and keep nothing of it but the two descriptors. */
static bool settle(const struct process *process)
{
	const bool first = process->socket < process->front;
	const int keep[] = {first ? process->socket : process->front,
			    first ? process->front : process->socket};
	struct pollfd front = {.fd = process->front, .events = POLLIN};

	(void)prctl(PR_SET_NAME, STARTER_ROLE);
	anchor_plain_signals(); /* once for all that are cloned */
	/* The signals of a terminal are not for it. */
	(void)setsid();
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && poll(&front, 1, 0) == 0 &&
	       chdir("/") == 0 && sandbox_privilege_close(keep, 2, NULL);
}

void starter_role(char **argv, const struct tool *const *tools)
{
	struct process *process = memory_alloc(sizeof(*process));

	process->socket = fd_of_text(argv[1]);
	process->front = fd_of_text(argv[2]);
	process->tools = tools;
	if (!settle(process))
		_exit(1);
	while (arrival_receive(process->socket, &process->arrival)) {
		if (process->arrival.request.kind == STARTER_GROUPS)
			groups_make(process);
		else
			anchor_make(process);
		arrival_close(&process->arrival);
	}
	_exit(0);
}
