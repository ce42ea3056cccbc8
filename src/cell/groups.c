/* groups: the front's side of the control groups, and the process that makes them. */

#include "cell/groups.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "cell/starter.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/role.h"
#include "process/usage.h"
#include "sandbox/cgroup.h"
#include "tool/denial.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The messages between the two processes; descriptors are sent with them. A request without
 * any number is the last one: the front lives on, and so may its cell.
 */
struct groups_request {
	uint32_t gone; /* a worker that is gone, whose group is free; 0: none */
	uint32_t id; /* for a new group; the pidfd of its worker comes with it; 0: none */
};
struct groups_reply {
	uint32_t id;
	/* each comes with its descriptor, in this order */
	uint32_t held[CGROUP_COUNTERS];
	uint64_t before[CGROUP_COUNTERS];
};

enum {
	ARGUMENT_MAX = 32,
	/* groups whose processes have just been killed are gone in far less */
	STOP_MS = 2000,
	TARGET_MAX = 64,
};

struct groups {
	int socket;
	int pidfd; /* -1: a starter has cloned the process, which ends with its socket */
	struct watch watch;
	struct group_end *ends; /* requested, but not answered or dropped yet */
	unsigned last_id;
	/*
	 * the last dropped group, reported with the next request because nobody waits
	 * for it; 0: none
	 */
	unsigned gone;
};

/* Start a process by an exec of PROGRAM. */
static bool role_run(struct groups *groups, const char *program,
		     const struct groups_order *order, int theirs)
{
	char texts[GROUPS_ARGUMENTS - 1][CGROUP_NAME_MAX];
	auto_close int front = -1;

	if (!role_self(&front, NULL))
		return false;
	(void)snprintf(texts[0], ARGUMENT_MAX, "%d", theirs);
	(void)snprintf(texts[1], ARGUMENT_MAX, "%d", front);
	(void)snprintf(texts[2], ARGUMENT_MAX, "%" PRIu64, order->memory);
	(void)snprintf(texts[3], ARGUMENT_MAX, "%" PRIu64, order->pids);
	(void)snprintf(texts[4], CGROUP_NAME_MAX, "%s", order->cell);
	char *argv[] = {(char[]){GROUPS_ROLE},
			texts[0],
			texts[1],
			texts[2],
			texts[3],
			texts[4],
			NULL};
	const int fds[] = {theirs, front};
	const struct role role = {.program = program, .argv = argv, .fds = fds, .fd_count = 2};
	return role_start(&role, &groups->pidfd, NULL);
}

static bool process_start(struct groups *groups, const char *program,
			  struct starter *starter, const struct policy_limits *limits,
			  const struct groups_cell *cell)
{
	struct groups_order order = {.memory = limits->memory, .pids = limits->pids};
	auto_close int theirs = -1;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	groups->socket = ends[0];
	theirs = ends[1];
	if (cell->group.version != 0)
		(void)snprintf(order.cell, sizeof(order.cell), "%s", cell->group.name);
	return starter != NULL ? starter_launch_groups(starter, &order, theirs)
			       : role_run(groups, program, &order, theirs);
}

static void socket_ready(struct watch *watch, short events)
{
	(void)events;
	groups_listen(watch->context);
}

static bool has_any(const struct cgroup_place *place)
{
	return place->folders[CGROUP_MEMORY] >= 0 || place->folders[CGROUP_PIDS] >= 0;
}

/* Can groups of workers be made? FRONT: a place that is known, or not yet. */
static bool can_group(const struct cgroup_place *front)
{
	struct cgroup_place place;
	bool any;

	if (front->version != 0)
		return has_any(front);
	cgroup_find("", &place);
	any = has_any(&place);
	cgroup_leave(&place);
	return any;
}

struct groups *groups_start(struct loop *loop, const char *program,
			    struct starter *starter, const struct policy_limits *limits,
			    const struct groups_cell *cell)
{
	const struct groups_front *front = cell->front != NULL ? cell->front : &cell->own;
	struct groups *groups;

	if (!can_group(&front->place))
		return NULL;
	groups = memory_alloc(sizeof(*groups));
	groups->socket = groups->pidfd = -1;
	if (!process_start(groups, program, starter, limits, cell)) {
		fd_close(&groups->socket);
		free(groups);
		return NULL;
	}
	groups->watch = (struct watch){.fd = groups->socket,
				       .events = POLLIN,
				       .ready = socket_ready,
				       .context = groups};
	loop_add(loop, &groups->watch);
	return groups;
}

void groups_leave(struct groups *groups)
{
	const struct groups_request last = {0};

	if (!groups)
		return;
	loop_remove(&groups->watch);
	if (groups->socket >= 0)
		(void)fd_message_send(groups->socket, &last, sizeof(last), NULL, 0,
				      MSG_DONTWAIT);
	/* The process then removes all groups and exits. */
	if (groups->pidfd >= 0)
		fd_close(&groups->socket);
	else if (groups->socket >= 0)
		(void)shutdown(groups->socket, SHUT_WR);
}

void groups_stop(struct groups *groups)
{
	struct pollfd gone;

	if (!groups)
		return;
	groups_leave(groups);
	gone = groups->pidfd >= 0
		       ? (struct pollfd){.fd = groups->pidfd, .events = POLLIN}
		       : (struct pollfd){.fd = groups->socket}; /* POLLHUP comes unasked */
	(void)poll(&gone, 1, STOP_MS);
	/* Groups that could not be removed are swept by the next groups process. */
	role_end(&groups->pidfd, true);
	fd_close(&groups->socket);
	free(groups);
}

/*
 * False when the queue is full or the process has ended. The worker then watches its
 * limits itself.
 */
static bool request_send(const struct groups *groups,
			 const struct groups_request *request, int pidfd)
{
	return fd_message_send(groups->socket, request, sizeof(*request), &pidfd,
			       pidfd >= 0 ? 1 : 0, MSG_DONTWAIT);
}

void groups_add(struct groups *groups, struct group_end *end, int pidfd)
{
	struct groups_request request = {0};

	*end = (struct group_end){.counts = {-1, -1, -1}};
	if (!groups)
		return;
	request.id = ++groups->last_id;
	request.gone = groups->gone;
	if (request.id == 0 || !request_send(groups, &request, pidfd))
		return;
	groups->gone = 0;
	end->id = request.id;
	end->next = groups->ends;
	groups->ends = end;
}

static void forget(struct groups *groups, const struct group_end *end)
{
	for (struct group_end **at = &groups->ends; *at; at = &(*at)->next) {
		if (*at == end) {
			*at = end->next;
			return;
		}
	}
}

void groups_drop(struct groups *groups, struct group_end *end)
{
	struct groups_request request = {0};

	if (!groups || end->id == 0)
		return;
	forget(groups, end);
	for (int i = 0; i < CGROUP_COUNTERS; i++)
		fd_close(&end->counts[i]);
	request.gone = groups->gone;
	if (request.gone != 0)
		(void)request_send(groups, &request, -1);
	groups->gone = end->id;
	end->id = 0;
}

static void reply_take(struct groups *groups, const struct groups_reply *reply, int *fds)
{
	struct group_end *end = groups->ends;
	int next = 0;

	while (end && end->id != reply->id)
		end = end->next;
	for (int i = 0; end && i < CGROUP_COUNTERS; i++) {
		if (!reply->held[i] || fds[next] < 0)
			continue;
		end->held[i] = true;
		end->before[i] = reply->before[i];
		end->counts[i] = fd_take(&fds[next++]);
	}
	if (end)
		forget(groups, end);
}

void groups_listen(struct groups *groups)
{
	struct groups_reply reply;
	int fds[CGROUP_COUNTERS];

	if (!groups || !groups->ends)
		return;
	while (fd_message_receive(groups->socket, &reply, sizeof(reply), fds,
				  CGROUP_COUNTERS, MSG_DONTWAIT)) {
		reply_take(groups, &reply, fds);
		for (int i = 0; i < CGROUP_COUNTERS; i++)
			fd_close(&fds[i]);
	}
	if (errno != EAGAIN) /* the process has ended: there will be no more groups */
		loop_remove(&groups->watch);
}

bool groups_rely(const struct group_end *end, enum cgroup_controller controller)
{
	return end->held[controller];
}

/*
 * Has the group refused something? Also asked for a worker whose call began before the
 * group was ready and which watched itself.
 */
static bool has_refused(const struct group_end *end, enum cgroup_controller controller)
{
	return end->held[controller] &&
	       cgroup_count(end->counts[controller], controller) > end->before[controller];
}

void groups_tell(const struct group_end *end, const struct policy *policy,
		 struct tool_result *result)
{
	char now[ARGUMENT_MAX], target[TARGET_MAX];
	struct denial_limit limit = {.agent = policy->name, .target = target, .now = now};

	if (result->status == RESULT_DONE && result->exit_code == 0)
		return;
	if (has_refused(end, CGROUP_MEMORY) || has_refused(end, CGROUP_PROGRAMS)) {
		limit.key = "memory";
		limit.advice = "the largest process was ended: let it use less at once";
		(void)text_size(policy->limits.memory, now);
		(void)snprintf(target, sizeof(target), "%s of memory", now);
		denial_add_limit(result, &limit);
	}
	if (has_refused(end, CGROUP_PIDS)) {
		limit.key = "pids";
		limit.advice = "start fewer at once";
		(void)snprintf(now, sizeof(now), "%" PRIu64, policy->limits.pids);
		(void)snprintf(target, sizeof(target), "%s processes", now);
		denial_add_limit(result, &limit);
	}
}

/* The group of a whole cell. */

enum {
	CELL_REMOVE_MS = 300,
	MICROSECONDS = 1000000,
	OWN_PIDS = 2, /* the anchor and the worker, beside the processes of a command */
};

/* The name of the first of LIMITS that PLACE cannot keep, and in *WANTS what it needs there. */
static const char *limit_not_kept(const struct policy_limits *limits,
				  const struct cgroup_place *place, const char **wants)
{
	*wants = "";
	if (limits->cpus > 0 && place->folders[CGROUP_CPU] < 0)
		return "cpus";
	if (limits->cpu_s > 0 && place->folders[CGROUP_TIME] < 0)
		return "cpu_s";
	*wants = " of version 2 with the controller io";
	if (limits->written > 0 && place->folders[CGROUP_IO] < 0)
		return "written";
	if (limits->io_write > 0 && place->folders[CGROUP_IO] < 0)
		return "io_write";
	return NULL;
}

static bool place_check(const struct policy_limits *limits,
			const struct cgroup_place *place, struct err *err)
{
	const char *wants;
	const char *key = limit_not_kept(limits, place, &wants);

	return key == NULL ||
	       err_set(err, ENOTSUP,
		       "limits.%s needs a control group%s: systemd-run %s--scope "
		       "-p Delegate=yes glovebox exec …",
		       key, wants, geteuid() == 0 ? "" : "--user ");
}

bool groups_cell_check(const struct policy_limits *limits, struct err *err)
{
	struct cgroup_place place;
	bool fits;

	cgroup_find("", &place);
	fits = place_check(limits, &place, err);
	cgroup_leave(&place);
	return fits;
}

/* The disks of the folders of SPEC that programs may write; the caller frees the list. */
static dev_t *disks_of(const struct cell_spec *spec, size_t *count)
{
	size_t most = 1;
	struct stat st;
	dev_t *disks;

	while (spec->writable.items[most - 1] != NULL)
		most++;
	disks = memory_array(most, sizeof(*disks));
	*count = 0;
	for (const char *const *at = spec->writable.items; *at != NULL; at++) {
		bool seen = spec_is_memory(spec, *at) || stat(*at, &st) < 0;

		for (size_t i = 0; i < *count && !seen; i++)
			seen = disks[i] == st.st_dev;
		if (!seen)
			disks[(*count)++] = st.st_dev;
	}
	return disks;
}

void groups_front_close(struct groups_front *front)
{
	if (front->place.version != 0)
		cgroup_front_leave(&front->place);
}

/* Find the group of FRONT, unless it is known, and whether it can keep LIMITS. */
static bool front_find(struct groups_front *front, const struct policy_limits *limits,
		       struct err *err)
{
	struct cgroup_place place;

	if (front->place.version != 0)
		return place_check(limits, &front->place, err);
	cgroup_find("", &place);
	if (place_check(limits, &place, err) &&
	    (place.folders[CGROUP_TIME] >= 0 ||
	     err_set(err, ENOTSUP, "no control group can be made")) &&
	    cgroup_front(&place, getpid(), err)) {
		front->place = place;
		return true;
	}
	cgroup_leave(&place);
	return false;
}

bool groups_cell_open(const struct policy_limits *limits, bool one,
		      struct cell_spec *spec, struct groups_front *shared,
		      struct groups_cell *cell, struct err *err)
{
	struct groups_front *front = shared != NULL ? shared : &cell->own;
	struct cgroup_cell_limits wanted = {.cpus = limits->cpus,
					    .pids = one ? limits->pids + OWN_PIDS : 0,
					    .io_write = limits->io_write};
	auto_free dev_t *disks = NULL;
	bool was_known, made, lost;

	if (limits->io_write > 0)
		disks = disks_of(spec, &wanted.disk_count);
	wanted.disks = disks;
	/* The process that ended the groups of the last cell may have removed the front's. */
	do {
		was_known = front->place.version != 0;
		if (!front_find(front, limits, err))
			return false;
		made = cgroup_cell_make(&front->place, ++front->cells, &wanted,
					&cell->group, err);
		lost = !made && was_known && (err->code == ENOENT || err->code == ENODEV);
		/* A group that was known, and is there, holds other cells. */
		if (lost || (!made && !was_known))
			groups_front_close(front);
	} while (lost);
	if (!made)
		return false;
	cell->front = front;
	spec->group_version = cell->group.version;
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		spec->doors[i] = fd_take(&cell->group.doors[i]);
	return true;
}

void groups_cell_read(const struct groups_cell *cell, struct accounts *accounts)
{
	const enum accounts_source source =
		cell->group.version == 2 ? ACCOUNTS_CGROUP2 : ACCOUNTS_CGROUP1;
	struct cgroup_usage usage;

	if (cell->group.version == 0)
		return;
	cgroup_cell_read(&cell->front->place, &cell->group, &usage);
	if (usage.cpu_us != UINT64_MAX && usage.user_us != UINT64_MAX) {
		accounts->cpu_s = (double)usage.cpu_us / MICROSECONDS;
		accounts->cpu_user_s = (double)usage.user_us / MICROSECONDS;
		accounts->cpu = source;
	}
	if (usage.memory_peak != UINT64_MAX) {
		accounts->memory_peak = usage.memory_peak;
		accounts->memory = source;
	}
	/*
	 * The kernel counts cached writes for the group that mostly writes a file, which may
	 * be another one. The estimate is higher then.
	 */
	if (usage.written != UINT64_MAX && usage.written >= accounts->written) {
		accounts->written = usage.written;
		accounts->read = usage.read;
		accounts->io = source;
	}
	if (usage.tasks_peak != UINT64_MAX)
		accounts->processes_peak = usage.tasks_peak;
	accounts->processes_refused = usage.tasks_refused;
}

void groups_cell_close(struct groups_cell *cell)
{
	if (cell->group.version == 0)
		return;
	cgroup_cell_remove(&cell->front->place, &cell->group, CELL_REMOVE_MS);
	groups_front_close(&cell->own);
}

/*
 * The process that makes groups, moves workers into them and removes them. It reads
 * nothing but requests of the front. A group whose worker is gone is reused, because
 * making and removing one costs more than the move.
 */

enum {
	/* workers at the same time; further ones watch their limits themselves */
	GROUPS_MAX = 1024,
	REMOVE_MS = 1500, /* the last processes of a killed cell are being torn down */
	REMOVE_STEP_MS = 5,
	FDINFO_MAX = 4096,
};

/*
 * Added for the worker itself, which is in the group as well: a file tool holds a file of
 * 16 MiB, its new content and the difference.
 */
#define WORKER_MEMORY ((uint64_t)128 << 20)
/*
 * A group with at most so much memory in use may be reused. Files in the /tmp of the cell
 * still count, and the next worker would have less.
 */
#define LEFT_MEMORY ((uint64_t)1 << 20)

struct slot {
	uint32_t id; /* 0: free for another worker, once it is empty */
	struct cgroup group;
};

struct maker {
	int socket, front;
	pid_t front_pid;
	struct cgroup_place place; /* where the groups of workers are made */
	struct cgroup_place above; /* of the front, where the cell has a group of its own */
	struct cgroup_cell cell;
	struct cgroup_limits limits;
	struct slot slots[GROUPS_MAX];
	size_t count;
	unsigned made;
	bool left; /* the front has said that it lives on */
};

/*
 * The pid behind PIDFD, 0 when that process has ended. Before Linux 6.13 only a text file
 * tells it.
 */
static pid_t pid_of(int pidfd)
{
	const pid_t told = kernel_pidfd_pid(pidfd);
	char path[64];
	struct buf text;
	long pid = 0;
	const char *at;

	if (told >= 0)
		return told;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	buf_init(&text, FDINFO_MAX);
	if (fd_read_at(AT_FDCWD, path, &text) && (at = strstr(text.data, "\nPid:")) != NULL)
		pid = strtol(at + strlen("\nPid:"), NULL, 10);
	buf_fini(&text);
	return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static struct slot *slot_make(struct maker *maker, struct slot *slot)
{
	if (cgroup_make(&maker->place, ++maker->made, &maker->limits, &slot->group, NULL))
		return slot;
	return NULL;
}

static struct slot *slot_take(struct maker *maker)
{
	struct slot *slot;

	for (size_t i = 0; i < maker->count; i++) {
		slot = &maker->slots[i];
		if (slot->id != 0 || !cgroup_is_empty(&slot->group))
			continue;
		/*
		 * The total usage is read quickly. Only when it is high, ask for the
		 * share of files, which takes the kernel long.
		 */
		if (cgroup_usage(&slot->group) <= LEFT_MEMORY ||
		    cgroup_left_memory(&slot->group) <= LEFT_MEMORY)
			return slot;
		/*
		 * The files live on and count for a group above. A new group begins with
		 * nothing.
		 */
		if (cgroup_remove(&maker->place, &slot->group))
			return slot_make(maker, slot);
	}
	if (maker->count == GROUPS_MAX)
		return NULL;
	slot = &maker->slots[maker->count];
	if (slot_make(maker, slot) == NULL)
		return NULL;
	maker->count++;
	return slot;
}

static void reply_send(const struct maker *maker, struct slot *slot)
{
	struct groups_reply reply = {.id = slot->id};
	int fds[CGROUP_COUNTERS];
	size_t count = 0;

	for (int i = 0; i < CGROUP_COUNTERS; i++) {
		int fd = cgroup_count_file(&slot->group, (enum cgroup_controller)i);

		if (fd < 0)
			continue;
		reply.held[i] = 1;
		reply.before[i] = cgroup_count(fd, (enum cgroup_controller)i);
		fds[count++] = fd;
	}
	(void)fd_message_send(maker->socket, &reply, sizeof(reply), fds, count,
			      MSG_DONTWAIT);
}

/*
 * Move the programs that the worker has started ahead of its call into GROUP. Later
 * children are born there. Deeper descendants need not be moved: the children are waiting
 * and have started nothing.
 */
static bool children_enter(struct cgroup *group, pid_t pid)
{
	char path[64];
	struct buf text;
	bool ok;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	buf_init(&text, FDINFO_MAX);
	ok = fd_read_at(AT_FDCWD, path, &text);
	for (char *at = text.data; ok && *at;) {
		long child = strtol(at, &at, 10);

		if (child <= 0)
			break;
		ok = cgroup_enter_program(group, (pid_t)child, NULL);
	}
	buf_fini(&text);
	return ok;
}

/*
 * Ignore a worker that has ended meanwhile. Its pid could already belong to another
 * process.
 */
static void worker_add(struct maker *maker, uint32_t id, int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};
	pid_t pid = pid_of(pidfd);
	struct slot *slot;

	if (pid == 0 || poll(&ended, 1, 0) != 0)
		return;
	slot = slot_take(maker);
	if (!slot || !cgroup_enter(&slot->group, pid, NULL) ||
	    !children_enter(&slot->group, pid))
		return;
	slot->id = id;
	reply_send(maker, slot);
}

static void worker_drop(struct maker *maker, uint32_t id)
{
	for (size_t i = 0; i < maker->count; i++) {
		if (maker->slots[i].id == id)
			maker->slots[i].id = 0;
	}
}

/* False when the front has closed its end. */
static bool request_take(struct maker *maker)
{
	struct groups_request request;
	auto_close int pidfd = -1;

	if (!fd_message_receive(maker->socket, &request, sizeof(request), &pidfd, 1, 0))
		return false;
	maker->left = request.gone == 0 && request.id == 0;
	if (request.gone)
		worker_drop(maker, request.gone);
	if (request.id && pidfd >= 0)
		worker_add(maker, request.id, pidfd);
	return true;
}

/*
 * The cell has ended or is ending: the front ends it before it closes the socket, or the
 * front was killed. Remove all groups.
 */
static void remove_all(struct maker *maker)
{
	int64_t until = clock_now_ms() + REMOVE_MS;

	for (size_t i = 0; i < maker->count; i++) {
		while (!cgroup_remove(&maker->place, &maker->slots[i].group) &&
		       clock_now_ms() < until)
			(void)poll(NULL, 0, REMOVE_STEP_MS);
	}
	if (maker->cell.version == 0) {
		cgroup_front_leave(&maker->place);
		return;
	}
	cgroup_leave(&maker->place);
	/* The front removes the group of the cell, in which processes may go on. */
	if (maker->left) {
		cgroup_leave(&maker->above);
		return;
	}
	cgroup_cell_remove(&maker->above, &maker->cell, REMOVE_MS);
	cgroup_front_leave(&maker->above);
}

/* Find the group of the front, and that of its cell, NAME, unless NAME is empty. */
static void places_find(struct maker *maker, const char *name)
{
	maker->front_pid = pid_of(maker->front);
	cgroup_find("", &maker->place);
	/* Workers need no more than these two. */
	for (int i = CGROUP_CONTROLLERS; i < CGROUP_FOLDERS && maker->place.version == 1;
	     i++)
		fd_close(&maker->place.folders[i]);
	if (!cgroup_front(&maker->place, maker->front_pid, NULL)) {
		cgroup_leave(&maker->place);
		return;
	}
	if (name[0] == '\0')
		return;
	cgroup_find("", &maker->above);
	if (!cgroup_front(&maker->above, maker->front_pid, NULL) ||
	    !cgroup_cell_open(&maker->place, name, NULL)) {
		cgroup_leave(&maker->above);
		cgroup_leave(&maker->place);
		return;
	}
	maker->cell.version = maker->place.version;
	(void)snprintf(maker->cell.name, sizeof(maker->cell.name), "%s", name);
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		maker->cell.folders[i] = maker->cell.doors[i] = -1;
}

static uint64_t number_of(const char *text)
{
	return strtoull(text, NULL, 10);
}

/*
 * Keep only the socket and the pidfd of the front. A new session keeps the signals of the
 * terminal away.
 */
static void settle(const struct maker *maker)
{
	int low = maker->socket < maker->front ? maker->socket : maker->front;
	int high = maker->socket < maker->front ? maker->front : maker->socket;
	struct rlimit files;

	(void)prctl(PR_SET_NAME, GROUPS_ROLE);
	(void)setsid();
	/* A group holds up to ten descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)!chdir("/");
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, number == SIGCHLD ? SIG_DFL : SIG_IGN);
	if (low > 0)
		(void)close_range(0, (unsigned)low - 1, 0);
	if (high > low + 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, UINT_MAX, 0);
}

void groups_run(int socket, int front, const struct groups_order *order)
{
	struct maker *maker = memory_alloc(sizeof(*maker));
	struct pollfd slots[2];

	maker->socket = socket;
	maker->front = front;
	/* The worker itself is one of the processes. */
	maker->limits = (struct cgroup_limits){.memory = order->memory + WORKER_MEMORY,
					       .programs = order->memory,
					       .pids = order->pids + 1};
	settle(maker);
	places_find(maker, order->cell);
	do {
		slots[0] = (struct pollfd){.fd = maker->socket, .events = POLLIN};
		slots[1] = (struct pollfd){.fd = maker->front, .events = POLLIN};
		if (poll(slots, 2, -1) < 0 && errno != EINTR)
			break;
	} while (!slots[1].revents && (!slots[0].revents || request_take(maker)));
	remove_all(maker);
	_exit(0);
}

void groups_role(char **argv)
{
	struct groups_order order = {.memory = number_of(argv[3]),
				     .pids = number_of(argv[4])};

	(void)snprintf(order.cell, sizeof(order.cell), "%s", argv[5]);
	groups_run(fd_of_text(argv[1]), fd_of_text(argv[2]), &order);
}
