/*
 * session_call: the way of one call (ARCHITECTURE.md), in its order: registry, schema,
 * policy, events, cell, result. There is no other.
 */
#include "base/clock.h"
#include "base/path.h"
#include "runtime/call.h"
#include "runtime/denial.h"
#include "runtime/schema.h"
#include "runtime/session_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATHS_MAX = 256, SENTENCE_MAX = 8 << 10 };

bool session_emit(struct session *session, enum event_kind kind,
		  const struct running *running, struct str text,
		  const struct value *data, struct err *err)
{
	const struct event event = {
		.kind = kind,
		.wall_ms = clock_wall_ms(),
		.call = running->id,
		.tool = running->tool != NULL ? running->tool->name : NULL,
		.text = text,
		.data = data,
	};

	return session->sink.event == NULL ||
	       session->sink.event(session->sink.context, &event, err);
}

/* ---- step 2: the registry ---- */

static bool tool_choose(struct running *running, const struct request *request)
{
	struct session *session = running->session;
	const struct tool *tool = tool_find(session->all_tools, request->tool);
	struct buf list;

	if (tool != NULL && (!tool->internal || request->by_front)) {
		running->tool = tool;
		return true;
	}
	buf_init(&list, SENTENCE_MAX);
	for (size_t i = 0; session->offered[i] != NULL; i++)
		(void)buf_addf(&list, "%s%s", i > 0 ? ", " : "", session->offered[i]->name);
	const char *nearest = tool_nearest(session->offered, request->tool);
	(void)tool_fail(&running->result,
			"There is no tool \"%.100s\".%s%s%s The tools are: %s.",
			request->tool, nearest != NULL ? " Did you mean " : "",
			nearest != NULL ? nearest : "", nearest != NULL ? "?" : "",
			list.data);
	buf_fini(&list);
	return false;
}

/* ---- step 3: the arguments ---- */

/* The caller's own, the call's argument, the policy's for commands, the tool's. */
static double deadline_of(const struct running *running, const struct request *request)
{
	const struct tool *tool = running->tool;
	const struct value *asked = value_member(running->arguments, "timeout_s");
	double timeout_s = tool->timeout_s;

	if (request->timeout_s != 0)
		timeout_s = request->timeout_s;
	else if (tool->timeout_max_s > 0 && value_is_number(asked))
		timeout_s = value_number(asked);
	else if ((tool->effects & EFFECT_RUNS) != 0)
		timeout_s = running->session->policy->limits.wall_s;
	if (request->most_s > 0 && (timeout_s <= 0 || timeout_s > request->most_s))
		timeout_s = request->most_s;
	return timeout_s;
}

/* Made at the tool's first call. */
static const struct value *tool_schema(struct session *session, const struct tool *tool)
{
	size_t at = 0;

	while (session->all_tools[at] != tool)
		at++;
	if (session->schemas[at] == NULL)
		session->schemas[at] = schema_of_tool(tool);
	return session->schemas[at];
}

static bool arguments_fit(struct running *running, const struct request *request)
{
	struct buf sentence;
	bool ok = true;

	buf_init(&sentence, SENTENCE_MAX);
	if (request->arguments != NULL)
		running->arguments = value_copy(request->arguments);
	else
		ok = schema_parse_arguments(running->tool, request->arguments_text,
					    &running->arguments, &sentence);
	ok = ok && schema_fit(running->tool, tool_schema(running->session, running->tool),
			      running->arguments, &sentence);
	if (!ok)
		(void)tool_fail(&running->result, "%s", sentence.data);
	buf_fini(&sentence);
	if (!ok)
		return false;
	running->timeout_s = deadline_of(running, request);
	return true;
}

/* ---- step 4: the policy ---- */

struct path_list {
	struct policy_request_path items[PATHS_MAX];
	struct buf texts[PATHS_MAX];
	size_t count;
};

static bool path_collect(struct running *running, const char *text, bool writes,
			 struct path_list *list)
{
	const char *base = session_workspace(running->session);

	if (list->count == PATHS_MAX) {
		(void)tool_fail(&running->result,
				"One call may name %d paths; make several calls.",
				PATHS_MAX);
		return false;
	}
	struct policy_request_path *item = &list->items[list->count];
	struct buf *path = &list->texts[list->count++];
	buf_init(path, PATH_MAX);
	if (!path_normal(base, text, path)) {
		(void)tool_fail(&running->result,
				"The path %.200s leads above / or is too long; paths are "
				"relative to the workspace %s.",
				text, base);
		return false;
	}
	*item = (struct policy_request_path){.path = path->data, .writes = writes};
	return true;
}

static bool paths_collect(struct running *running, const struct tool_param *rows,
			  const struct value *arguments, struct path_list *list)
{
	bool writes = (running->tool->effects & EFFECT_WRITES) != 0;

	for (; rows->name != NULL; rows++) {
		const struct value *value = value_member(arguments, rows->name);
		const char *text = value_text(value);
		if (text != NULL && rows->kind == PARAM_PATH &&
		    !path_collect(running, text, writes, list))
			return false;
		if (text != NULL && rows->kind == PARAM_FOLDER &&
		    !path_collect(running, text, false, list))
			return false;
		for (size_t i = 0; rows->kind == PARAM_LIST && i < value_count(value); i++) {
			if (!paths_collect(running, rows->rows, value_item(value, i), list))
				return false;
		}
	}
	return true;
}

static bool policy_allows(struct running *running)
{
	struct session *session = running->session;
	struct path_list *list = memory_alloc(sizeof(*list));
	struct verdict verdict;
	bool ok = paths_collect(running, running->tool->params, running->arguments, list);

	if (ok && !running->tool->internal) {
		const struct policy_request request = {
			.tool = running->tool->name,
			.effects = running->tool->effects,
			.paths = list->items,
			.path_count = list->count,
		};
		policy_decide(session->policy, &request, &verdict);
		/* Nobody can be asked yet: an ASK without a front that can is a DENY. */
		if (verdict.answer != VERDICT_ALLOW) {
			ok = false;
			(void)tool_fail(&running->result, "%s", verdict.because);
			running->result.status = RESULT_DENIED;
			value_set_text(tool_details(&running->result), "rule", verdict.rule);
			denial_note(&running->result,
				    &(struct denial){.kind = DENIAL_POLICY,
						     .target = running->tool->name,
						     .rule = verdict.rule,
						     .remedy = verdict.because});
		}
	}
	for (size_t i = 0; i < list->count; i++)
		buf_fini(&list->texts[i]);
	free(list);
	return ok;
}

/* ---- step 5: the record ---- */

static bool announce(struct running *running, const struct request *request)
{
	auto_value struct value *data = value_new_object();
	struct err err;

	if (running->arguments != NULL)
		value_set(data, "arguments", value_ref(running->arguments));
	else
		value_set_str(data, "arguments_text", request->arguments_text);
	if (running->tool == NULL)
		value_set_text(data, "tool_asked", request->tool);
	if (running->tool != NULL && (running->tool->effects & EFFECT_RUNS) != 0)
		value_set_text(data, "folder", running->session->folder);
	if (session_emit(running->session, EVENT_TOOL_BEGAN, running, (struct str){0},
			 data, &err))
		return true;
	buf_clear(&running->result.text);
	(void)tool_fail(&running->result, "Not run, because it could not be recorded: %s",
			err.text);
	return false;
}

/* ---- the whole ---- */

static struct running *running_new(struct session *session, const struct request *request)
{
	struct running *running = memory_alloc(sizeof(*running));
	char id[32];

	(void)snprintf(id, sizeof(id), "c%zu", ++session->next_id);
	running->session = session;
	running->number = session->next_id;
	running->id = memory_copy(request->id != NULL ? request->id : id);
	running->began_us = clock_now_us();
	running->deadline_ms = CLOCK_NEVER;
	running->kill_timer.due_ms = CLOCK_NEVER;
	tool_result_init(&running->result);
	running->previous = session->last;
	if (session->last != NULL)
		session->last->next = running;
	else
		session->first = running;
	session->last = running;
	for (size_t i = 0; i < 3; i++)
		running->fds[i] = -1;
	for (size_t i = 0; i < request->fd_count && i < 3; i++)
		running->fds[running->fd_count++] = request->fds[i];
	return running;
}

static void run_in_front(struct running *running)
{
	struct call call = {
		.tool = running->tool,
		.arguments = running->arguments,
		.workspace = session_workspace(running->session),
		.folder = running->session->folder,
		.deadline_ms = clock_deadline(running->timeout_s),
		.control_fd = -1,
		.fds = {-1, -1, -1},
	};

	(void)running->tool->execute(&call, &running->result);
	running_finish(running);
}

struct running *session_start(struct session *session, const struct request *request,
			      void (*done)(void *context, struct running *running),
			      void *context)
{
	struct running *running = running_new(session, request);

	running->done = done;
	running->context = context;
	bool fits = tool_choose(running, request) && arguments_fit(running, request) &&
		    policy_allows(running);
	if (!announce(running, request) || !fits) {
		running_finish(running);
		return running;
	}
	if (running->tool->where == IN_FRONT) {
		run_in_front(running);
		return running;
	}
	if (session->cancel_fd >= 0)
		loop_add(session->loop, &session->cancel_watch);
	running_dispatch(session);
	return running;
}

void session_call(struct session *session, const struct request *request,
		  struct tool_result *result)
{
	struct running *running = session_start(session, request, NULL, NULL);

	while (!running_is_done(running))
		loop_turn(session->loop, CLOCK_NEVER);
	*result = running->result;
	tool_result_init(&running->result);
	running_free(running);
}
