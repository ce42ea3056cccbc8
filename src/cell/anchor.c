/* anchor: builds the cell, then makes workers until the front is gone. */

#include "cell/anchor.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "broker/broker.h"
#include "cell/worker.h"
#include "guard/guard.h"
#include "process/follow.h"
#include "process/program.h"
#include "proxy/proxy.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct wards {
	int front;      /* pidfd of the front */
	int deaths;     /* readable when a child has ended */
	bool alone;     /* kill(-1) reaches this cell and nothing else */
	pid_t *workers; /* ends with 0 */
	size_t count;
};

/*
 * The workers of an anchor that has no pid namespace, and how they are ended. A worker
 * that ends by itself kills all its processes. The processes of a killed worker become
 * orphans of the anchor, which ends them immediately. When the front is gone, the
 * anchor ends all processes of the cell. An anchor with a pid namespace needs none of
 * this: the kernel does it.
 *
 * The anchor waits with one poll for the control socket, the front and the deaths of
 * workers.
 */

enum { SLOT_CONTROL, SLOT_FRONT, SLOT_DEATHS, SLOT_COUNT };

/* Takes ownership of FRONT. ALONE: the anchor has a signal domain. */
static bool wards_init(struct wards *wards, int front, bool alone, struct err *err)
{
	sigset_t child;

	*wards = (struct wards){.front = front, .deaths = -1, .alone = alone};
	wards->workers = memory_alloc(sizeof(pid_t));
	/* Do not ignore SIGCHLD: the pid of a listed worker must not be reused. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	wards->deaths = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return wards->deaths >= 0 ||
	       err_set(err, errno, "hearing of the end of workers: %s", strerror(errno));
}

static void wards_add(struct wards *wards, pid_t worker)
{
	wards->workers = memory_grow(wards->workers, wards->count + 2, sizeof(pid_t));
	wards->workers[wards->count++] = worker;
	wards->workers[wards->count] = 0;
}

/* Called in a new worker: close the descriptors and unblock the signals of the anchor. */
static void wards_forget(struct wards *wards)
{
	sigset_t none;

	fd_close(&wards->front);
	fd_close(&wards->deaths);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Remove the workers that have ended from the list. Every other child of ours is an
 * orphan and is ended.
 */
static void take_deaths(struct wards *wards)
{
	struct signalfd_siginfo info;

	while (read(wards->deaths, &info, sizeof(info)) > 0)
		;
	for (size_t i = 0; i < wards->count;) {
		if (waitpid(wards->workers[i], NULL, WNOHANG) == 0) {
			i++;
			continue;
		}
		wards->workers[i] = wards->workers[--wards->count];
		wards->workers[wards->count] = 0;
	}
	(void)follow_children_end(0, wards->workers, 0);
}

/* Wait until CONTROL can be read; false when the front is gone. */
static bool wards_wait(struct wards *wards, int control)
{
	for (;;) {
		struct pollfd slots[SLOT_COUNT] = {
			[SLOT_CONTROL] = {.fd = control, .events = POLLIN},
			[SLOT_FRONT] = {.fd = wards->front, .events = POLLIN},
			[SLOT_DEATHS] = {.fd = wards->deaths, .events = POLLIN},
		};

		if (poll(slots, SLOT_COUNT, -1) < 0 && errno != EINTR)
			return false;
		if (slots[SLOT_FRONT].revents != 0)
			return false;
		if (slots[SLOT_DEATHS].revents != 0)
			take_deaths(wards);
		if (slots[SLOT_CONTROL].revents != 0)
			return true;
	}
}

/* End every worker and all that they started, and wait until nothing is left. */
static void wards_end(struct wards *wards)
{
	if (wards->alone) {
		(void)kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR)
			;
	} else {
		(void)follow_children_end(0, NULL, 0);
	}
	free(wards->workers);
	wards->workers = NULL;
}

/* A request of this size makes the C library consolidate its freed chunks. */
enum { LARGE_PIECE = 64 << 10 };

static bool send_reply(int control, const struct anchor_reply *reply, const int *fds,
		       size_t count)
{
	return fd_message_send(control, reply, sizeof(*reply), fds, count, 0);
}

bool anchor_receive(int control, struct anchor_reply *reply, int fds[ANCHOR_FDS],
		    struct err *err)
{
	if (fd_message_receive(control, reply, sizeof(*reply), fds, ANCHOR_FDS, MSG_DONTWAIT))
		return true;
	if (errno == EAGAIN)
		return err_set(err, EAGAIN, "the cell's anchor says nothing");
	return err_set(err, ECONNRESET, "the cell's anchor has ended");
}

void anchor_refuse(int control, const struct err *err)
{
	struct anchor_reply reply = {.kind = ANCHOR_REFUSED, .code = err->code};

	(void)snprintf(reply.text, sizeof(reply.text), "%s", err->text);
	(void)send_reply(control, &reply, NULL, 0);
}

void anchor_plain_signals(void)
{
	program_plain_signals();
	/* Workers are reaped by the kernel; the front follows them by pidfd. */
	(void)signal(SIGCHLD, SIG_IGN);
}

/* An anchor at its work. */
struct anchor {
	struct cell_spec *spec;
	int control;
	int front; /* pidfd; below L3 only: the wards' */
	int inlet; /* to the proxy; -1: no port is published */
	/* L3 only; NULL there: it is made for the first worker, as is a part of the view */
	struct sandbox_network *network;
	bool joined; /* L3 only: it is in the network of the cell */
	int rules;   /* L2 only */
	const struct tool *const *tools;
	struct fresh fresh;
	struct reach reach;
	struct wards wards; /* below L3 */
	int temp_lock;      /* below L3 */
};

/* Is there a layer at PATH? The kernel promises its folder no number that lasts. */
static bool is_layer(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].kind == VIEW_OVERLAY &&
		    strcmp(view->entries[i].path, path) == 0)
			return true;
	}
	return false;
}

/*
 * The view stands, so nothing else can come to the paths of the roots of GUARD any more: note
 * what lies there. EARLIER (or NULL) has roots that were noted before.
 */
static bool roots_hold(const struct view *view, struct guard *guard,
		       const struct guard *earlier, struct err *err)
{
	for (size_t i = 0; guard != NULL && i < guard->root_count; i++) {
		struct guard_root *root = &guard->roots[i];

		for (size_t j = 0; earlier != NULL && j < earlier->root_count; j++) {
			if (strcmp(earlier->roots[j].path, root->path) != 0)
				continue;
			root->device = earlier->roots[j].device;
			root->inode = earlier->roots[j].inode;
		}
		if (root->inode == 0 && !is_layer(view, root->path) &&
		    !guard_hold_root(root, err))
			return false;
	}
	return true;
}

/*
 * Widen the view by the folders that came with a request: in the anchor for all later
 * workers, or in one worker for itself.
 */
static bool widen(struct cell_spec *spec, int fds[ANCHOR_REQUEST_FDS], struct err *err)
{
	struct cell_spec addition;
	struct buf text;

	spec_init(&addition);
	buf_init(&text, SPEC_BYTES_MAX);
	bool ok = fd_read_all(fds[0], &text, "the cell's addition", err) &&
		  spec_parse(buf_str(&text), fds + 1, ANCHOR_EXTRAS_MAX, &addition, err);
	ok = ok && view_widen(&spec->view, &addition.view, err) &&
	     roots_hold(&spec->view, addition.guard, spec->guard, err);
	if (ok)
		spec_widen(spec, &addition);
	/*
	 * When one part fails, remove all: a tree must not stay without its read-only
	 * parts.
	 */
	for (size_t i = 0; !ok && i < addition.root_count; i++)
		view_narrow(&spec->view, addition.roots[i].path);
	buf_fini(&text);
	spec_fini(&addition);
	return ok;
}

static bool network_enter(struct anchor *anchor, struct err *err);

/* Make what has waited for the first worker, and give up the rights for it. */
static bool first_worker_prepare(struct anchor *anchor, struct err *err)
{
	if (!spec_is_sealed(anchor->spec) || anchor->joined)
		return true;
	anchor->joined = view_finish(&anchor->spec->view, err) &&
			 network_enter(anchor, err) && sandbox_drop_network_rights(err);
	return anchor->joined;
}

static bool worker_make(struct anchor *anchor, enum worker_kind kind,
			int fds[ANCHOR_REQUEST_FDS], struct err *err)
{
	struct anchor_reply reply = {.kind = ANCHOR_WORKER, .worker = (int)kind};
	int ends[2], pidfd = -1;
	pid_t pid;

	if (!first_worker_prepare(anchor, err))
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "socket of a worker: %s", strerror(errno));
	if (!sandbox_clone_worker(anchor->spec->built, &pid, &pidfd, err)) {
		fd_close(&ends[0]);
		fd_close(&ends[1]);
		return false;
	}
	if (pid == 0) {
		(void)close(anchor->control);
		(void)close(ends[0]);
		fd_close(&anchor->inlet);
		fd_close(&anchor->fresh.anchor);
		if (!spec_is_sealed(anchor->spec))
			wards_forget(&anchor->wards);
		if (kind == WORKER_WIDENED && !widen(anchor->spec, fds, err)) {
			worker_refuse(ends[1], err);
			_exit(1);
		}
		worker_run(anchor->spec, ends[1], anchor->rules, kind, anchor->tools,
			   &anchor->fresh);
	}
	if (!spec_is_sealed(anchor->spec))
		wards_add(&anchor->wards, pid);
	const int given[ANCHOR_FDS] = {ends[0], pidfd};
	bool ok = send_reply(anchor->control, &reply, given, ANCHOR_FDS);
	int code = errno;
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	fd_close(&pidfd);
	return ok || err_set(err, code, "handing over a worker: %s", strerror(code));
}

/* The front is gone. End the anchor, and with it everything in the cell. */
static _Noreturn void anchor_end(struct anchor *anchor)
{
	if (!spec_is_sealed(anchor->spec)) {
		wards_end(&anchor->wards);
		fd_folder_remove(anchor->spec->temp);
	}
	_exit(0);
}

static void widen_all(struct anchor *anchor, int fds[ANCHOR_REQUEST_FDS])
{
	struct anchor_reply reply = {.kind = ANCHOR_WIDENED};
	struct err err;

	if (!spec_is_sealed(anchor->spec))
		(void)err_set(&err, ENOTSUP, "this cell has no view");
	if (!spec_is_sealed(anchor->spec) || !view_finish(&anchor->spec->view, &err) ||
	    !widen(anchor->spec, fds, &err))
		(void)snprintf(reply.text, sizeof(reply.text), "%s", err.text);
	(void)send_reply(anchor->control, &reply, NULL, 0);
}

/*
 * Say that the cell is built. A worker that is made later has to find its folders: say why
 * not, where this process cannot.
 */
static void greet(const struct anchor *anchor)
{
	const struct anchor_reply reply = {.kind = ANCHOR_BUILT};
	struct err err;

	if (worker_can_begin(anchor->spec, &err))
		(void)send_reply(anchor->control, &reply, NULL, 0);
	else
		anchor_refuse(anchor->control, &err);
}

/* Give the proxy the socket that it asks for. It is not connected: the proxy does that. */
static void inlet_answer(struct anchor *anchor)
{
	struct proxy_inlet wish;

	if (!fd_message_receive(anchor->inlet, &wish, sizeof(wish), NULL, 0, MSG_DONTWAIT)) {
		if (errno != EAGAIN)
			fd_close(&anchor->inlet); /* the proxy has ended */
		return;
	}
	auto_close int fd = socket(wish.six ? AF_INET6 : AF_INET,
				   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A proxy that does not read its answers may not stop the anchor. */
	(void)fd_message_send(anchor->inlet, &wish, sizeof(wish), &fd, fd >= 0 ? 1 : 0,
			      MSG_DONTWAIT);
}

/* Serve the proxy and the workers until there is a request of the front. */
static void inlet_wait(struct anchor *anchor)
{
	enum { OF_FRONT, OF_PROXY, OF_WORKERS, ALL };

	while (anchor->inlet >= 0 || anchor->fresh.anchor >= 0) {
		struct pollfd slots[ALL] = {
			[OF_FRONT] = {.fd = anchor->control, .events = POLLIN},
			[OF_PROXY] = {.fd = anchor->inlet, .events = POLLIN},
			[OF_WORKERS] = {.fd = anchor->fresh.anchor, .events = POLLIN},
		};

		if (poll(slots, ALL, -1) < 0 && errno != EINTR)
			return;
		if (slots[OF_WORKERS].revents != 0)
			fresh_answer(&anchor->fresh, &anchor->spec->view);
		if (slots[OF_PROXY].revents != 0)
			inlet_answer(anchor);
		if (slots[OF_FRONT].revents != 0)
			return;
	}
}

/* Enter the control group of the cell by DOORS: a cell outside its group is not counted. */
static void enter_group(const struct anchor *anchor, const int doors[ANCHOR_REQUEST_FDS])
{
	struct err err;

	/* They come in this order, so the last one is missing when any is. */
	if (doors[CGROUP_FOLDERS - 1] < 0)
		(void)err_set(&err, EMFILE, "entering the control group of the cell: %s",
			      strerror(EMFILE));
	else if (cgroup_cell_enter(doors, &err))
		return;
	anchor_refuse(anchor->control, &err);
	_exit(1);
}

static _Noreturn void anchor_serve(struct anchor *anchor)
{
	int fds[ANCHOR_REQUEST_FDS];
	struct err err;
	char request;

	/*
	 * Consolidate the heap once here. Otherwise each worker would do it and copy the
	 * pages.
	 */
	if (!anchor->spec->one_call)
		free(memory_grow(NULL, LARGE_PIECE, 1));
	for (;;) {
		if (!spec_is_sealed(anchor->spec) &&
		    !wards_wait(&anchor->wards, anchor->control))
			anchor_end(anchor);
		inlet_wait(anchor);
		if (!fd_message_receive(anchor->control, &request, 1, fds,
					ANCHOR_REQUEST_FDS, 0))
			anchor_end(anchor);
		if (request == ANCHOR_WIDEN)
			widen_all(anchor, fds);
		else if (request == ANCHOR_GREET)
			greet(anchor);
		else if (request == ANCHOR_ENTER)
			enter_group(anchor, fds);
		else if (!worker_make(anchor, (enum worker_kind)request, fds, &err)) {
			anchor_refuse(anchor->control, &err);
			/* One without its network can have no worker, and keeps no rights for it. */
			if (spec_is_sealed(anchor->spec) && !anchor->joined)
				_exit(1);
		}
		for (size_t i = 0; i < ANCHOR_REQUEST_FDS; i++)
			fd_close(&fds[i]);
	}
}

/*
 * Listen at PORT. Any port is none of those that programs of the cell will listen at: they
 * are taken until it is found.
 */
static bool listener_make(const struct cell_spec *spec, uint16_t port,
			  int fds[ANCHOR_FDS], struct err *err)
{
	int kept[NETWORK_PUBLISHED_MAX][2];
	size_t count = 0;
	struct err taken;

	for (size_t i = 0; port == 0 && i < spec->kept_count; i++) {
		if (sandbox_listen(spec->kept[i], &kept[count][0], &kept[count][1], &taken))
			count++;
	}
	bool ok = sandbox_listen(port, &fds[0], &fds[1], err);
	while (count > 0) {
		fd_close(&kept[--count][0]);
		fd_close(&kept[count][1]);
	}
	return ok;
}

static bool listeners_make(const struct anchor *anchor, struct err *err)
{
	for (size_t i = 0; i < anchor->spec->listen_count; i++) {
		const struct anchor_reply reply = {.kind = ANCHOR_LISTENER,
						   .code = anchor->spec->listen[i]};
		int fds[ANCHOR_FDS];

		if (!listener_make(anchor->spec, anchor->spec->listen[i], fds, err))
			return false;
		bool ok = send_reply(anchor->control, &reply, fds, fds[1] >= 0 ? 2 : 1);
		int code = errno;
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		if (!ok)
			return err_set(err, code, "handing over a listener: %s",
				       strerror(code));
	}
	return true;
}

/* Make the listener at which the broker takes plain requests. */
static bool plain_door_make(const struct anchor *anchor, struct err *err)
{
	const struct anchor_reply reply = {.kind = ANCHOR_PLAIN_DOOR};
	auto_close int four = -1;
	auto_close int six = -1;

	if (!anchor->spec->brokers)
		return true;
	return sandbox_listen(BROKER_PORT, &four, &six, err) &&
	       (send_reply(anchor->control, &reply, &four, 1) ||
		err_set(err, errno, "handing over a listener: %s", strerror(errno)));
}

/* Hand over the listeners of the sockets that lie in the view. */
static bool sockets_give(const struct anchor *anchor, struct err *err)
{
	bool fine = true;

	for (size_t i = 0; fine && i < anchor->spec->view.count; i++) {
		struct view_entry *entry = &anchor->spec->view.entries[i];
		struct anchor_reply reply = {.kind = ANCHOR_SOCKET};

		if (entry->kind != VIEW_SOCKET)
			continue;
		(void)snprintf(reply.text, sizeof(reply.text), "%s", entry->path);
		fine = send_reply(anchor->control, &reply, &entry->fd, 1) ||
		       err_set(err, errno, "handing over a socket: %s", strerror(errno));
		fd_close(&entry->fd);
	}
	return fine;
}

/*
 * A kernel without such sockets still gets a cell. Failed lookups are then found from the
 * words of programs only (denial.h).
 */
static bool questions_keep(const struct anchor *anchor, struct err *err)
{
	const struct anchor_reply reply = {.kind = ANCHOR_QUESTIONS};
	auto_close int fd = -1;

	if (!sandbox_overhear(&fd, err))
		return true;
	return send_reply(anchor->control, &reply, &fd, 1) ||
	       err_set(err, errno, "handing over the questions for names: %s",
		       strerror(errno));
}

/* Enter the network of the cell, and hand over all that serves it from outside. */
static bool network_enter(struct anchor *anchor, struct err *err)
{
	return sandbox_join(anchor->network, err) && listeners_make(anchor, err) &&
	       plain_door_make(anchor, err) && questions_keep(anchor, err);
}

/* Make the socket pair between anchor and proxy, where ports are published. */
static bool inlet_make(struct anchor *anchor, struct err *err)
{
	const struct anchor_reply reply = {.kind = ANCHOR_INLET};
	int ends[2];

	if (!anchor->spec->publishes)
		return true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket for the proxy: %s", strerror(errno));
	anchor->inlet = ends[0];
	bool ok = send_reply(anchor->control, &reply, &ends[1], 1);
	int code = errno;
	fd_close(&ends[1]);
	return ok || err_set(err, code, "handing over a socket for the proxy: %s",
			     strerror(code));
}

static int compare_ints(const void *a, const void *b)
{
	int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

/*
 * Lock the folder for temporary files, as the front does, so that no other cell takes it
 * for one that is left over while the anchor removes it.
 */
static bool temp_keep(struct anchor *anchor, struct err *err)
{
	const char *temp = anchor->spec->temp;

	if (spec_is_sealed(anchor->spec))
		return true;
	anchor->temp_lock = open(temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return (anchor->temp_lock >= 0 && flock(anchor->temp_lock, LOCK_SH) == 0) ||
	       err_set(err, errno, "the cell's folder for temporary files, %s: %s", temp,
		       strerror(errno));
}

static bool anchor_build(struct anchor *anchor, struct err *err)
{
	const enum sandbox_level level = anchor->spec->built;
	struct view *view = &anchor->spec->view;
	auto_free int *keep = memory_array(view->count + 8, sizeof(*keep));
	size_t count = 0;

	if (anchor->network == NULL && spec_is_sealed(anchor->spec))
		view_wait(view);
	if (!sandbox_become(level, &anchor->spec->identity, anchor->front, err) ||
	    !temp_keep(anchor, err) ||
	    !sandbox_build(level, &anchor->spec->view, &anchor->rules, err))
		return false;
	anchor->joined = spec_is_sealed(anchor->spec) && anchor->network != NULL;
	if ((anchor->joined && !network_enter(anchor, err)) ||
	    (spec_is_sealed(anchor->spec) &&
	     (!sockets_give(anchor, err) || !inlet_make(anchor, err))))
		return false;
	if (spec_is_sealed(anchor->spec) &&
	    !roots_hold(view, anchor->spec->guard, NULL, err))
		return false;
	if (!anchor->spec->one_call && !fresh_open(&anchor->fresh, view, err))
		return false;
	keep[count++] = anchor->control;
	if (anchor->fresh.anchor >= 0) {
		keep[count++] = anchor->fresh.anchor;
		keep[count++] = anchor->fresh.worker;
	}
	if (anchor->inlet >= 0)
		keep[count++] = anchor->inlet;
	if (anchor->rules >= 0)
		keep[count++] = anchor->rules;
	if (anchor->spec->review_log >= 0)
		keep[count++] = anchor->spec->review_log;
	if (!spec_is_sealed(anchor->spec)) {
		keep[count++] = anchor->front;
		keep[count++] = anchor->temp_lock;
	}
	/*
	 * The workers walk the layers through these descriptors, because no path leads to
	 * the layers any more.
	 */
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].layer >= 0)
			keep[count++] = view->entries[i].layer;
	}
	qsort(keep, count, sizeof(keep[0]), compare_ints);
	return sandbox_settle(level, &anchor->spec->limits, keep, count,
			      anchor->network == NULL, &anchor->reach, err) &&
	       (spec_is_sealed(anchor->spec) ||
		wards_init(&anchor->wards, anchor->front, anchor->reach.alone, err));
}

_Noreturn void anchor_run(struct cell_spec *spec, struct sandbox_network *network,
			  int control, int front, const struct tool *const *tools)
{
	struct anchor anchor = {.spec = spec,
				.control = control,
				.front = front,
				.network = network,
				.inlet = -1,
				.rules = -1,
				.temp_lock = -1,
				.fresh = {.anchor = -1, .worker = -1},
				.tools = tools};
	struct err err;

	(void)prctl(PR_SET_NAME, ANCHOR_ROLE);
	/* In version 2 it was born there. */
	if ((spec->group_version == 1 && !cgroup_cell_enter(spec->doors, &err)) ||
	    !anchor_build(&anchor, &err)) {
		anchor_refuse(control, &err);
		_exit(1);
	}
	/*
	 * Everything else was closed, and the null device took 0, 1 and 2.
	 */
	anchor_serve(&anchor);
}

bool anchor_launch(struct cell_spec *spec, int control, int front,
		   const struct tool *const *tools, pid_t *pid, int *pidfd, struct err *err)
{
	const int group = spec->group_version == 2 ? spec->doors[0] : -1;
	struct sandbox_network network;

	if (!sandbox_clone(spec->built, &spec->identity, 0, group, &network, pid, pidfd, err))
		return false;
	if (*pid == 0) {
		anchor_plain_signals();
		anchor_run(spec, &network, control, front, tools);
	}
	return true;
}
