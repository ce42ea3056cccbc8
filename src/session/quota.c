/*
 * quota: what the cell of a session uses, and the limits of the whole cell that the kernel
 * does not keep by itself: processor time, bytes to disks, bytes of the network. A look at
 * what was counted, ten times a second; at a limit all commands of the cell are ended, and no
 * other one may begin.
 */

#include "base/clock.h"
#include "base/text/text.h"
#include "cell/cell.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/usage.h"
#include "session/session.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 100, TARGET_MAX = 96, NUMBER_MAX = 32 };

void session_accounts(const struct session *session, struct accounts *accounts,
		      struct value *hosts)
{
	*accounts = (struct accounts){0};
	if (session->cell != NULL)
		cell_accounts(session->cell, accounts, hosts);
	accounts->wall_s = (double)(clock_now_us() - session->opened_us) / 1e6;
	accounts->limit = session->over;
}

/* The key of the first of the limits of the whole cell that is reached; NULL: none is. */
static const char *limit_reached(const struct session *session)
{
	const struct policy_limits *limits = &session->policy->limits;
	struct accounts used;

	session_accounts(session, &used, NULL);
	if (limits->cpu_s > 0 && used.cpu_s >= limits->cpu_s)
		return "cpu_s";
	if (limits->written > 0 && used.written >= limits->written)
		return "written";
	if (limits->net > 0 && used.net_in + used.net_out >= limits->net)
		return "net";
	return NULL;
}

/* Is RUNNING a call of programs, which the limits of the cell hold for? */
static bool is_limited(const struct running *running)
{
	return running->tool != NULL && (running->tool->effects & EFFECT_RUNS) != 0;
}

/* A call that the limit has to end still. */
static struct running *next_limited(const struct session *session)
{
	struct running *at = session->first;

	while (at != NULL &&
	       (at->limit != NULL || at->state == RUNNING_OVER || !is_limited(at) ||
		!(running_is_command(at) || at->tool->internal)))
		at = at->next;
	return at;
}

static void look_due(struct timer *timer)
{
	struct session *session = timer->context;

	timer->due_ms = clock_now_ms() + LOOK_MS;
	session->over = limit_reached(session);
	if (session->over == NULL)
		return;
	timer->due_ms = CLOCK_NEVER;
	/* A call that is over at once may be freed by its owner, and others with it. */
	for (struct running *at; (at = next_limited(session)) != NULL;) {
		at->limit = session->over;
		running_cancel_work(at);
	}
}

void session_quota_begin(struct session *session)
{
	const struct policy_limits *limits = &session->policy->limits;

	session->opened_us = clock_now_us();
	if (limits->cpu_s <= 0 && limits->written == 0 && limits->net == 0)
		return;
	session->quota = (struct timer){.due_ms = clock_now_ms() + LOOK_MS,
					.due = look_due,
					.context = session};
	loop_add_timer(session->loop, &session->quota);
}

static void limit_tell(struct running *running, const char *key, const char *advice)
{
	const struct policy *policy = running->session->policy;
	char now[NUMBER_MAX], target[TARGET_MAX];
	struct denial_limit limit = {.agent = policy->name,
				     .key = key,
				     .target = target,
				     .advice = advice,
				     .now = now};

	if (strcmp(key, "cpu_s") == 0) {
		(void)snprintf(now, sizeof(now), "%g s", policy->limits.cpu_s);
		(void)snprintf(target, sizeof(target), "%s of processor time of the cell",
			       now);
	} else if (strcmp(key, "written") == 0) {
		(void)text_size(policy->limits.written, now);
		(void)snprintf(target, sizeof(target), "%s that the cell wrote to disks",
			       now);
	} else if (strcmp(key, "pids") == 0) {
		(void)snprintf(now, sizeof(now), "%" PRIu64, policy->limits.pids);
		(void)snprintf(target, sizeof(target), "%s processes", now);
	} else {
		(void)text_size(policy->limits.net, now);
		(void)snprintf(target, sizeof(target),
			       "%s that the cell sent and received", now);
	}
	denial_add_limit(&running->result, &limit);
}

bool session_quota_allows(struct running *running)
{
	const char *over = running->session->over;

	if (over == NULL || !is_limited(running))
		return true;
	(void)tool_fail(&running->result,
			"Not run: the cell has reached limits.%s, and starts no command any more.",
			over);
	running->result.status = RESULT_DENIED;
	limit_tell(running, over, "begin a new session");
	return false;
}

void session_quota_tell(struct running *running)
{
	struct session *session = running->session;
	struct tool_result *result = &running->result;

	if (!is_limited(running) || session->cell == NULL || !running_is_sent(running))
		return;
	if (session->counting == COUNTING_ONE)
		cell_accounts(session->cell, &result->accounts, NULL);
	if (result->accounts.processes_refused > 0 &&
	    (result->status != RESULT_DONE || result->exit_code != 0))
		limit_tell(running, "pids", "start fewer at once");
	if (running->limit == NULL)
		return;
	/* Like a command that is ended for another limit: it died by a signal. */
	result->status = running->tool->internal ? RESULT_DONE : RESULT_FAILED;
	result->exit_code = -1;
	result->signal = SIGKILL;
	limit_tell(running, running->limit, "the command was ended: let it do less");
}
