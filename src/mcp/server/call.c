/* call: tools/call: begun at session_start, told of by events, answered when it has ended. */
#include "mcp/server/call.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "tool/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mcp_call *mcp_call_find(const struct mcp *mcp, uint64_t number)
{
	struct mcp_call *at = mcp->by_number[number % MCP_SLOTS];

	while (at != NULL && at->number != number)
		at = at->next_here;
	return at;
}

/* Events have the id "m7"; those of others, none. */
static struct mcp_call *find_by_id(const struct mcp *mcp, const char *id)
{
	return id != NULL && id[0] == 'm' ? mcp_call_find(mcp, strtoull(id + 1, NULL, 10))
					  : NULL;
}

/* Its answer is due, unless it is parked. */
static void answer_is_due(struct mcp_call *call)
{
	if (!call->is_due) {
		call->is_due = true;
		call->next_done = call->mcp->first_done;
		call->mcp->first_done = call;
	}
	mcp_settle_soon(call->mcp);
}

static void send_log(struct mcp_call *call, const struct event *event)
{
	const char *level = value_text(value_member(event->data, "level"));
	const char *logger = value_text(value_member(event->data, "logger"));
	struct mcp_request *request = call->request;
	int least;
	struct value *params;

	if (request == NULL)
		return;
	/* Set for the whole conversation, and perhaps since the call began; or by the request. */
	least = call->client.version < MCP_2026_07_28 ? request->peer->client.log_level
						      : call->client.log_level;
	if (mcp_log_level(level) < least)
		return;
	params = value_new_object();
	value_set_text(params, "level", level);
	value_set_text(params, "logger", logger != NULL ? logger : call->tool);
	value_set_str(params, "data", event->text);
	mcp_tell(call->mcp, request->way, NULL, "notifications/message", params);
}

static bool event(void *context, const struct event *event, struct err *err)
{
	struct mcp_call *call = find_by_id(context, event->call);

	(void)err;
	if (call == NULL || call->unwanted)
		return true;
	if (event->kind == EVENT_TOOL_OUTPUT)
		mcp_progress_output(call, event->text);
	else if (event->kind == EVENT_PROGRESS)
		mcp_progress_event(call, event);
	else if (event->kind == EVENT_LOG)
		send_log(call, event);
	else if (event->kind == EVENT_QUESTION || event->kind == EVENT_APPROVAL_WANTED)
		mcp_question(call, event->data);
	return true;
}

struct event_sink mcp_calls_sink(struct mcp *mcp)
{
	return (struct event_sink){.event = event, .context = mcp};
}

static struct mcp_call *call_new(struct mcp_request *request, const char *tool)
{
	struct mcp *mcp = request->mcp;
	const struct value *meta = value_member(request->params, "_meta");
	struct value *token = value_member(meta, "progressToken");
	struct mcp_call *call = memory_alloc(sizeof(*call));

	call->mcp = mcp;
	call->request = request;
	call->client = request->client;
	call->number = ++mcp->next_call;
	(void)snprintf(call->id, sizeof(call->id), "m%" PRIu64, call->number);
	call->tool = memory_copy(tool);
	if (value_text(token) != NULL || value_is_number(token))
		call->token = value_ref(token);
	call->parked.due_ms = CLOCK_NEVER;
	call->previous = mcp->last_call;
	if (mcp->last_call != NULL)
		mcp->last_call->next = call;
	else
		mcp->first_call = call;
	mcp->last_call = call;
	call->next_here = mcp->by_number[call->number % MCP_SLOTS];
	mcp->by_number[call->number % MCP_SLOTS] = call;
	request->call = call;
	mcp_progress_begin(call);
	return call;
}

static void call_free(struct mcp_call *call)
{
	struct mcp *mcp = call->mcp;
	struct mcp_call **at = &mcp->by_number[call->number % MCP_SLOTS];

	while (*at != call)
		at = &(*at)->next_here;
	*at = call->next_here;
	mcp_progress_end(call);
	mcp_question_end(call);
	running_free(call->running);
	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		mcp->first_call = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	else
		mcp->last_call = call->previous;
	value_free(call->token);
	value_free(call->arguments);
	free(call->tool);
	free(call->uri);
	free(call);
}

static void answer_output(struct mcp_call *call, struct mcp_request *request)
{
	const struct tool_result *result = running_result(call->running);
	struct buf *out;

	if (result->status != RESULT_DONE) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL, "%s", result->text.data);
		return;
	}
	out = mcp_answer_begin(request);
	(void)buf_adds(out, "\"contents\":[{\"uri\":");
	(void)value_quote(str_of(call->uri), out);
	(void)buf_adds(out, ",\"mimeType\":\"text/plain\",\"text\":");
	(void)value_quote(buf_str(&result->text), out);
	(void)buf_adds(out, "}]");
	mcp_answer_end(request);
}

static void answer(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	const struct tool_result *result = running_result(call->running);

	request->call = NULL;
	if (call->uri != NULL) {
		answer_output(call, request);
		return;
	}
	if (call->unknown) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL, "%s", result->text.data);
		return;
	}
	/* Make the resource first: its notice must go out before the answer. */
	auto_value struct value *link = mcp_resource_of(call->mcp, result);
	mcp_result_add(result, link, &call->client, mcp_answer_begin(request));
	mcp_answer_end(request);
}

void mcp_calls_settle(struct mcp *mcp)
{
	struct mcp_call *call = mcp->first_done, *next;

	mcp->first_done = NULL;
	for (; call != NULL; call = next) {
		next = call->next_done;
		call->is_due = false;
		if (call->running == NULL || !running_is_done(call->running))
			continue;
		/* A parked one keeps its result until its client comes back for it. */
		if (call->request == NULL && !call->unwanted)
			continue;
		if (call->request != NULL)
			answer(call);
		call_free(call);
	}
}

void mcp_calls_free(struct mcp *mcp)
{
	/* All at once: each may take its grace. */
	for (struct mcp_call *at = mcp->first_call; at != NULL; at = at->next) {
		at->unwanted = true;
		if (at->running != NULL)
			running_cancel(at->running);
	}
	struct mcp_call *next;
	for (struct mcp_call *at = mcp->first_call; at != NULL; at = next) {
		next = at->next;
		call_free(at);
	}
}

/* The call is not freed here, because our caller may still use it. */
static void done(void *context, struct running *running)
{
	struct mcp_call *call = context;

	(void)running;
	answer_is_due(call);
}

void mcp_call_cancel(struct mcp_call *call)
{
	if (call->request != NULL)
		call->request->call = NULL;
	call->request = NULL;
	call->unwanted = true;
	mcp_question_end(call);
	if (call->running != NULL)
		running_cancel(call->running);
	answer_is_due(call);
}

/* Nothing happens in it that could be told or asked, or would have to be undone. */
static bool is_quiet(const struct mcp_call *call, const struct tool *tool)
{
	return tool != NULL && tool->effects == EFFECT_READS && tool->where == IN_CELL &&
	       tool->carrier == NULL &&
	       !policy_asks(session_policy(call->mcp->session), "read");
}

static void start(struct mcp_call *call, const struct value *arguments)
{
	const struct tool *tool = tool_find(session_tools(call->mcp->session), call->tool);
	auto_value struct value *none = NULL;
	auto_value struct value *trace =
		trace_of(value_member(call->request->params, "_meta"));
	struct buf text;
	struct request request = {
		.tool = call->tool,
		.id = call->id,
		.arguments = arguments,
		.quiet = is_quiet(call, tool),
		.terse = is_quiet(call, tool),
		.trace = trace,
		/* A client that is told of progress waits until the call ends. */
		.patience_s = call->token != NULL ? 0 : call->mcp->options.patience_s,
	};

	buf_init(&text, VALUE_TEXT_MAX);
	if (arguments == NULL) {
		none = value_new_object();
		request.arguments = none;
	} else if (value_kind(arguments) != VALUE_OBJECT) {
		/* The session tells the model its mistake, as it does for every front. */
		(void)value_print(arguments, 0, &text);
		request.arguments = NULL;
		request.arguments_text = buf_str(&text);
	}
	call->unknown = tool == NULL;
	call->counts = tool != NULL && (tool->carrier != NULL || tool->where == ELSEWHERE);
	call->running = session_start(call->mcp->session, &request, done, call);
	buf_fini(&text);
	if (call->unwanted)
		running_cancel(call->running);
	if (running_is_done(call->running))
		answer_is_due(call);
}

void mcp_call_output(struct mcp_request *request, const char *uri, const char *path)
{
	auto_value struct value *arguments = value_new_object();
	struct mcp_call *call = call_new(request, "read_output");
	const struct request asked = {
		.tool = call->tool,
		.id = call->id,
		.arguments = arguments,
		.by_front = true,
		.quiet = true,
	};

	value_set_text(arguments, "name", path_base_name(path));
	call->uri = memory_copy(uri);
	call->running = session_start(call->mcp->session, &asked, done, call);
	if (running_is_done(call->running))
		answer_is_due(call);
}

/* There is no cell: both the model and the person should read the reason. */
static void refuse_without_session(struct mcp_request *request, const struct err *why)
{
	struct buf out;

	buf_init(&out, VALUE_TEXT_MAX);
	(void)buf_adds(&out, "\"content\":[{\"type\":\"text\",\"text\":");
	(void)value_quote(str_of(why->text), &out);
	(void)buf_adds(&out, "}],\"isError\":true");
	mcp_answer_text(request, buf_str(&out));
	buf_fini(&out);
}

void mcp_tools_call(struct mcp_request *request)
{
	const struct value *name = value_member(request->params, "name");
	struct value *given = NULL;
	struct mcp_call *call;
	struct err err;

	if (value_text(name) == NULL || strlen(value_text(name)) != value_str(name).size) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL, "tools/call needs a name.");
		return;
	}
	if (!mcp_session(request->mcp, &err)) {
		refuse_without_session(request, &err);
		return;
	}
	if (!mcp_question_resume(request, &call, &given))
		return;
	if (call != NULL) {
		answer_is_due(call);
		return;
	}
	call = call_new(request, value_text(name));
	call->given = given;
	call->arguments = value_member(request->params, "arguments");
	if (call->arguments != NULL)
		(void)value_ref(call->arguments);
	start(call, call->arguments);
}
