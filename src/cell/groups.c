/* groups: the part in the front. */
#include "cell/groups.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "process/role.h"
#include "tool/denial.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ARGUMENT_MAX = 32,
	STOP_MS = 2000, /* groups whose processes have just been killed are gone in far less */
	TARGET_MAX = 64,
};

struct groups {
	int socket, pidfd;
	struct watch watch;
	struct group_end *ends; /* requested, but not answered or dropped yet */
	unsigned last_id;
	unsigned gone; /* the last dropped group, reported with the next request because nobody waits for it; 0: none */
};

static bool process_start(struct groups *groups, const char *program,
			  const struct policy_limits *limits)
{
	char texts[GROUPS_ARGUMENTS - 1][ARGUMENT_MAX];
	auto_close int front = -1, theirs = -1;
	int ends[2];

	if (!role_self(&front, NULL) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	groups->socket = ends[0];
	theirs = ends[1];
	(void)snprintf(texts[0], ARGUMENT_MAX, "%d", theirs);
	(void)snprintf(texts[1], ARGUMENT_MAX, "%d", front);
	(void)snprintf(texts[2], ARGUMENT_MAX, "%" PRIu64, limits->memory);
	(void)snprintf(texts[3], ARGUMENT_MAX, "%" PRIu64, limits->pids);
	char *argv[] = {
		(char[]){GROUPS_ROLE}, texts[0], texts[1], texts[2], texts[3], NULL};
	const int fds[] = {theirs, front};
	const struct role role = {.program = program, .argv = argv, .fds = fds, .fd_count = 2};
	return role_start(&role, &groups->pidfd, NULL);
}

static void socket_ready(struct watch *watch, short events)
{
	(void)events;
	groups_listen(watch->context);
}

struct groups *groups_start(struct loop *loop, const char *program,
			    const struct policy_limits *limits)
{
	struct cgroup_place place;
	struct groups *groups;
	bool any;

	cgroup_find("", &place);
	any = place.version != 0;
	cgroup_leave(&place);
	if (!any)
		return NULL;
	groups = memory_alloc(sizeof(*groups));
	groups->socket = groups->pidfd = -1;
	if (!process_start(groups, program, limits)) {
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

void groups_stop(struct groups *groups)
{
	struct pollfd gone;

	if (!groups)
		return;
	loop_remove(&groups->watch);
	fd_close(&groups->socket); /* the process then removes all groups and exits */
	gone = (struct pollfd){.fd = groups->pidfd, .events = POLLIN};
	(void)poll(&gone, 1, STOP_MS);
	/* Groups that could not be removed are swept by the next groups process. */
	role_end(&groups->pidfd, true);
	free(groups);
}

/*
 * False when the queue is full or the process has ended. The worker then watches its
 * limits itself.
 */
static bool request_send(const struct groups *groups,
			 const struct groups_request *request, int pidfd)
{
	return message_send(groups->socket, request, sizeof(*request), &pidfd,
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
	while (message_receive(groups->socket, &reply, sizeof(reply), fds,
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
