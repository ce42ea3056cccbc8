/*
 * call: one call of a tool, from tools/call to its answer: starts the call with
 * session_start, reports its progress by the session's events, and answers at the end of
 * the loop's turn when the call has ended. A question of the call (EVENT_QUESTION)
 * becomes a request of ours, or parks the call until its client comes back with the
 * answers.
 */

#include "mcp/server/mcp.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"
#include "session/approval.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/event.h"
#include "tool/validate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The progress that a client with a token is told while the call runs. */
struct progress {
	struct value *token; /* of the params; NULL: nobody asked for notices */
	struct timer tick;
	int64_t began_ms, told_ms;
	double told; /* the last number that was sent */
	bool counts; /* its tool counts itself; `counted` is its last number */
	double counted;
	struct buf last_line; /* of its output */
};

/* A question of the call that its client has not answered yet. */
struct question {
	int64_t id;      /* the session's number; 0: no question is open */
	uint64_t number; /* our own */
	/*
	 * the hash of an approval that a person is shown, for the answer (approval.h); or
	 * NULL
	 */
	char *hash;
	/* there is a single question, not several at the same time */
	bool one;
	struct value *requests; /* key -> {method, params}; or NULL */
	struct value *answers;  /* key -> answer, for the answers that have come */
};

/* Holds a request and its `running` together. */
struct mcp_call {
	struct mcp_request *request; /* another one after each parking */
	struct running *running;     /* NULL: session_start has not returned */
	uint64_t number;             /* "m7" in its events */
	/* the next of the calls in the same slot of by_number */
	struct mcp_call *next_here;
	struct mcp_call *next_due;
	bool is_due;   /* it is in the list of these */
	bool unknown;  /* there is no such tool */
	char *stopped; /* the sentence why it was cancelled, for its client; NULL: none */
	struct progress progress;
	struct question question;
	/* while the request is parked */
	struct {
		struct timer late; /* how long the call waits for its client */
		uint64_t shown;    /* the number of the question that was shown */
	} parked;
};

/* Progress notices of a call, for a client that gave a progress token. */

enum {
	/* A person reads no faster than this, and each notice wakes a client. */
	TELL_EVERY_MS = 250,
	/* Clients wait between 30 and 60 s for a notice. */
	TICK_MS = 10000,
	PROGRESS_LINE_MAX = 200,
	FRAGMENT_MAX = 4096, /* in which the last line is searched */
	ID_MAX = 24,         /* of a call in events */
	ORIGIN_ID_MAX = 256, /* of the id of a request in spans; of a text the first half */
};

/*
 * Each second adds this much to the last number of a tool that reports its own
 * progress. In the longest call the sum stays below one.
 */
#define LITTLE 1e-6

static void tell(struct mcp_call *call, double number, const struct value *total,
		 struct str message)
{
	struct mcp_request *request = call->request;
	struct progress *progress = &call->progress;
	struct value *params;

	if (progress->token == NULL || request->state != MCP_BEGUN)
		return;
	/* Progress must grow, whatever numbers a script sends. */
	if (number <= progress->told)
		return;
	progress->told = number;
	progress->told_ms = clock_now_ms();
	progress->tick.due_ms = progress->told_ms + TICK_MS;
	params = value_new_object();
	value_set(params, "progressToken", value_ref(progress->token));
	if (number == (double)(int64_t)number)
		value_set_integer(params, "progress", (int64_t)number);
	else
		value_set_real(params, "progress", number);
	if (total != NULL)
		value_set_real(params, "total", value_number(total));
	if (message.size > 0 && request->client.version >= MCP_2025_03_26)
		value_set_str(params, "message", message);
	mcp_tell(request->mcp, request->way, NULL, "notifications/progress", params);
}

/*
 * The progress number of a call without news: its seconds, when the tool does not count
 * itself. Otherwise a number so little above the tool's last one that the tool's next one
 * is higher.
 */
static double beat(const struct progress *progress)
{
	const double seconds = (double)(clock_now_ms() - progress->began_ms) / 1000;

	return progress->counts ? progress->counted + seconds * LITTLE : seconds;
}

static void tick_due(struct timer *timer)
{
	struct mcp_call *call = timer->context;

	timer->due_ms = clock_now_ms() + TICK_MS;
	tell(call, beat(&call->progress), NULL, buf_str(&call->progress.last_line));
}

/* Start the progress notices of CALL, when its request has a token for them. */
static void progress_begin(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	struct progress *progress = &call->progress;
	struct value *token =
		value_member(value_member(request->params, "_meta"), "progressToken");

	buf_clear(&progress->last_line);
	progress->token =
		value_text(token) != NULL || value_is_number(token) ? token : NULL;
	if (progress->token == NULL)
		return;
	progress->began_ms = clock_now_ms();
	/* A call that ends immediately sends no notice. */
	progress->told_ms = progress->began_ms;
	progress->told = -1;
	progress->tick = (struct timer){.due_ms = progress->began_ms + TICK_MS,
					.due = tick_due,
					.context = call};
	loop_add_timer(request->mcp->options.loop, &progress->tick);
}

static void progress_output(struct mcp_call *call, struct str fragment)
{
	struct progress *progress = &call->progress;
	struct str line, last = STR("");
	struct buf clean;

	if (progress->token == NULL)
		return;
	if (fragment.size > FRAGMENT_MAX)
		fragment = str_part(fragment, fragment.size - FRAGMENT_MAX, FRAGMENT_MAX);
	while (str_next_line(&fragment, &line)) {
		if (str_trim(line).size > 0)
			last = str_trim(line);
	}
	if (last.size == 0)
		return;
	buf_init(&clean, FRAGMENT_MAX * 4);
	(void)text_clean(last, &clean);
	buf_clear(&progress->last_line);
	(void)buf_addstr(&progress->last_line,
			 str_part(buf_str(&clean), 0,
				  text_character_border(buf_str(&clean), PROGRESS_LINE_MAX)));
	buf_fini(&clean);
	if (clock_now_ms() - progress->told_ms >= TELL_EVERY_MS)
		tell(call, beat(progress), NULL, buf_str(&progress->last_line));
}

static void progress_event(struct mcp_call *call, const struct event *event)
{
	call->progress.counted = value_number(value_member(event->data, "progress"));
	tell(call, call->progress.counted, value_member(event->data, "total"), event->text);
}

/* Makes the content of an answer from the result of a call. */

/* An item of a kind that CLIENT's version does not know is replaced by a text. */
static bool is_known(const char *type, const struct mcp_client *client)
{
	if (type == NULL)
		return false;
	if (strcmp(type, "audio") == 0)
		return client->version >= MCP_2025_03_26;
	if (strcmp(type, "resource_link") == 0)
		return client->version >= MCP_2025_06_18;
	return true;
}

static void add_words(const struct value *item, struct buf *out)
{
	const char *type = value_text(value_member(item, "type"));
	const char *uri = value_text(value_member(item, "uri"));
	const char *mime = value_text(value_member(item, "mimeType"));
	struct buf words;

	buf_init(&words, VALUE_TEXT_MAX);
	(void)buf_addf(&words, "[%s", type != NULL ? type : "content");
	if (mime != NULL)
		(void)buf_addf(&words, " %s", mime);
	if (uri != NULL)
		(void)buf_addf(&words, " %s", uri);
	(void)buf_addc(&words, ']');
	(void)buf_adds(out, "{\"type\":\"text\",\"text\":");
	(void)value_quote(buf_str(&words), out);
	(void)buf_addc(out, '}');
	buf_fini(&words);
}

static void add_item(const struct value *item, const struct mcp_client *client,
		     size_t *count, struct buf *out)
{
	if ((*count)++ > 0)
		(void)buf_addc(out, ',');
	if (is_known(value_text(value_member(item, "type")), client))
		(void)value_print(item, 0, out);
	else
		add_words(item, out);
}

/*
 * Append RESULT, LINK (or NULL) to its whole output, and NOTICE (or NULL) of the server, as
 * the members of a result of tools/call, for CLIENT.
 */
static void mcp_result_add(const struct tool_result *result, const struct value *link,
			   const char *notice, const struct mcp_client *client,
			   struct buf *out)
{
	size_t count = 0;

	(void)buf_adds(out, "\"content\":[");
	/* Half of the clients show only the first item, so the text comes first. */
	if (result->text.size > 0 || value_count(result->content) == 0) {
		(void)buf_adds(out, "{\"type\":\"text\",\"text\":");
		(void)value_quote(buf_str(&result->text), out);
		(void)buf_addc(out, '}');
		count++;
	}
	for (size_t i = 0; i < value_count(result->content); i++)
		add_item(value_item(result->content, i), client, &count, out);
	if (link != NULL)
		add_item(link, client, &count, out);
	if (notice != NULL) {
		(void)buf_adds(out, ",{\"type\":\"text\",\"text\":");
		(void)value_quote(str_of(notice), out);
		(void)buf_addc(out, '}');
	}
	(void)buf_addf(out, "],\"isError\":%s",
		       result->status == RESULT_DONE ? "false" : "true");
}

/* The call with the number NUMBER; NULL: it has ended. */
static struct mcp_call *mcp_call_find(const struct mcp *mcp, uint64_t number)
{
	struct mcp_call *at = mcp->by_number[number % MCP_SLOTS];

	while (at != NULL && at->number != number)
		at = at->next_here;
	return at;
}

/* The call with the id "m7" of its events; NULL: the id is none of ours. */
static struct mcp_call *find_by_id(const struct mcp *mcp, const char *id)
{
	return id != NULL && id[0] == 'm' ? mcp_call_find(mcp, strtoull(id + 1, NULL, 10))
					  : NULL;
}

/* Look at CALL at the end of the loop's turn, because it may have ended. */
static void is_due(struct mcp_call *call)
{
	struct mcp *mcp = call->request->mcp;

	if (!call->is_due) {
		call->is_due = true;
		call->next_due = mcp->first_due;
		mcp->first_due = call;
	}
	mcp->settling.due_ms = 0;
}

/* The tool that the request of a call asks for. */
static const char *tool_of(const struct mcp_request *request)
{
	return request->method->run == mcp_tools_call
		       ? value_text(value_member(request->params, "name"))
		       : "read_output";
}

static void send_log(struct mcp_call *call, const struct event *event)
{
	const char *level = value_text(value_member(event->data, "level"));
	const char *logger = value_text(value_member(event->data, "logger"));
	struct mcp_request *request = call->request;
	int least;
	struct value *params;

	if (request->state != MCP_BEGUN)
		return;
	/*
	 * In the legacy era the level is the peer's, and may change during the call. In
	 * the modern era it is the request's.
	 */
	least = request->client.version < MCP_2026_07_28 ? request->peer->client.log_level
							 : request->client.log_level;
	if (mcp_log_level(level) < least)
		return;
	params = value_new_object();
	value_set_text(params, "level", level);
	value_set_text(params, "logger", logger != NULL ? logger : tool_of(request));
	value_set_str(params, "data", event->text);
	mcp_tell(request->mcp, request->way, NULL, "notifications/message", params);
}

/* Tell the observer of the server RECORD, which is about CALL. */
static bool observe(struct mcp_call *call, struct mcp_record *record, struct err *err)
{
	const struct mcp_observer *observer = &call->request->mcp->options.observer;
	char id[ID_MAX];

	if (observer->tell == NULL || call->request->method->run != mcp_tools_call)
		return true;
	(void)snprintf(id, sizeof(id), "m%" PRIu64, call->number);
	record->call = id;
	record->tool = call->unknown ? NULL : tool_of(call->request);
	return observer->tell(observer->context, record, err);
}

/* CALL has ended: tell how, and what was refused to it. */
static void observe_end(struct mcp_call *call)
{
	const struct tool_result *result = running_result(call->running);
	const struct value *denials = denial_list(result);
	struct mcp_record denied = {.what = MCP_TOLD_VERDICT, .text = "deny"};

	if (result->status == RESULT_DENIED) {
		denied.denial = value_item(denials, 0);
		(void)observe(call, &denied, NULL);
	}
	for (size_t i = 0; i < value_count(denials); i++)
		(void)observe(call,
			      &(struct mcp_record){.what = MCP_TOLD_DENIAL,
						   .denial = value_item(denials, i)},
			      NULL);
	(void)observe(call, &(struct mcp_record){.what = MCP_TOLD_END, .result = result},
		      NULL);
}

static void question_open(struct mcp_call *call, const struct value *data);
static void question_over(struct mcp_call *call, const struct value *data);

/* An approval is asked for or answered. False: a record of it must be there and cannot be. */
static bool observe_approval(struct mcp_call *call, const struct event *event,
			     struct err *err)
{
	struct mcp_record record = {.what = MCP_TOLD_VERDICT, .text = "ask"};

	if (event->kind == EVENT_APPROVAL_GIVEN) {
		record.what = MCP_TOLD_GRANT;
		record.text = value_text(value_member(event->data, "answer"));
	} else if (event->kind != EVENT_APPROVAL_WANTED) {
		return true;
	}
	return observe(call, &record, err);
}

static bool event(void *context, const struct event *event, struct err *err)
{
	struct mcp_call *call = find_by_id(context, event->call);

	if (call == NULL)
		return true;
	if (!observe_approval(call, event, err))
		return false;
	if (call->request->state == MCP_OVER)
		return true;
	if (event->kind == EVENT_TOOL_OUTPUT)
		progress_output(call, event->text);
	else if (event->kind == EVENT_PROGRESS)
		progress_event(call, event);
	else if (event->kind == EVENT_LOG)
		send_log(call, event);
	else if (event->kind == EVENT_QUESTION || event->kind == EVENT_APPROVAL_WANTED)
		question_open(call, event->data);
	else if (event->kind == EVENT_APPROVAL_GIVEN)
		question_over(call, event->data);
	return true;
}

struct event_sink mcp_calls_sink(struct mcp *mcp)
{
	return (struct event_sink){.event = event, .context = mcp};
}

static struct mcp_call *call_new(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct mcp_call *call = memory_alloc(sizeof(*call));
	struct mcp_call **slot;

	call->request = request;
	call->number = ++mcp->next_call;
	slot = &mcp->by_number[call->number % MCP_SLOTS];
	call->next_here = *slot;
	*slot = call;
	request->call = call;
	buf_init(&call->progress.last_line, PROGRESS_LINE_MAX);
	progress_begin(call);
	return call;
}

static void question_forget(struct mcp_call *call);

/* CALL is over, and so is its request. */
static void call_free(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	struct mcp_call **at = &request->mcp->by_number[call->number % MCP_SLOTS];

	while (*at != call)
		at = &(*at)->next_here;
	*at = call->next_here;
	loop_remove_timer(&call->progress.tick);
	loop_remove_timer(&call->parked.late);
	buf_fini(&call->progress.last_line);
	question_forget(call);
	running_free(call->running);
	free(call->stopped);
	free(call);
	request->call = NULL;
	mcp_request_become(request, MCP_OVER);
}

static void answer_output(struct mcp_request *request, const struct tool_result *result)
{
	struct buf *out;

	if (result->status != RESULT_DONE) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL, "%s", result->text.data);
		return;
	}
	out = mcp_answer_begin(request);
	(void)buf_adds(out, "\"contents\":[{\"uri\":");
	(void)value_quote(value_str(value_member(request->params, "uri")), out);
	(void)buf_adds(out, ",\"mimeType\":\"text/plain\",\"text\":");
	(void)value_quote(buf_str(&result->text), out);
	(void)buf_adds(out, "}]");
	mcp_answer_end(request);
}

static void answer(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	const struct tool_result *result = running_result(call->running);

	if (request->method->run != mcp_tools_call) {
		answer_output(request, result);
		return;
	}
	if (call->unknown) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL, "%s", result->text.data);
		return;
	}
	/* Make the resource first: its notice must go out before the answer. */
	auto_value struct value *link = mcp_resource_of(request->mcp, result);
	auto_free char *notice = request->mcp->notice;

	request->mcp->notice = NULL;
	/* The reason of this end is news; that of the cell before is not any more. */
	if (call->stopped != NULL && result->status == RESULT_CANCELLED) {
		free(notice);
		notice = call->stopped;
		call->stopped = NULL;
	}
	mcp_result_add(result, link, notice, &request->client, mcp_answer_begin(request));
	mcp_answer_end(request);
}

void mcp_calls_settle(struct mcp *mcp)
{
	struct mcp_call *call = mcp->first_due, *next;

	mcp->first_due = NULL;
	for (; call != NULL; call = next) {
		next = call->next_due;
		call->is_due = false;
		/* A parked call keeps its result until its client comes back for it. */
		if (call->running == NULL || !running_is_done(call->running) ||
		    call->request->state == MCP_PARKED)
			continue;
		observe_end(call);
		if (call->request->state == MCP_BEGUN)
			answer(call);
		call_free(call);
	}
}

void mcp_calls_free(struct mcp *mcp)
{
	struct mcp_request *next;

	/* Cancel all at the same time, because each may use its grace period. */
	for (struct mcp_request *at = mcp->first; at != NULL; at = at->next) {
		if (at->call != NULL)
			mcp_call_cancel(at->call);
	}
	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->call != NULL)
			call_free(at->call);
	}
}

/* The call is not freed here, because our caller may still use it. */
static void done(void *context, struct running *running)
{
	struct mcp_call *call = context;

	(void)running;
	is_due(call);
}

void mcp_call_cancel(struct mcp_call *call)
{
	mcp_request_become(call->request, MCP_OVER);
	loop_remove_timer(&call->parked.late);
	question_forget(call);
	if (call->running != NULL)
		running_cancel(call->running);
	is_due(call);
}

void mcp_call_stop(struct mcp_call *call, const char *why)
{
	struct buf text;

	if (call->stopped == NULL) {
		buf_init(&text, VALUE_TEXT_MAX);
		(void)buf_addf(&text, "[glovebox: %s]", why);
		call->stopped = buf_take(&text);
	}
	if (call->running != NULL)
		running_cancel(call->running);
	is_due(call);
}

/* Is the call one that reports no progress, asks no question and changes nothing? */
static bool is_quiet(const struct mcp *mcp, const struct tool *tool)
{
	return tool != NULL && tool->effects == EFFECT_READS && tool->where == IN_CELL &&
	       tool->carrier == NULL && !session_hears_all(mcp->session) &&
	       !policy_asks(session_policy(mcp->session), "read");
}

static void start(struct mcp_call *call, struct request *request)
{
	const struct mcp *mcp = call->request->mcp;
	char id[ID_MAX];

	(void)snprintf(id, sizeof(id), "m%" PRIu64, call->number);
	request->id = id;
	request->tool = tool_of(call->request);
	call->running = session_start(mcp->session, request, done, call);
	if (call->request->state == MCP_OVER)
		running_cancel(call->running);
	if (running_is_done(call->running))
		is_due(call);
}

/*
 * The call cannot begin: no session could be opened, or no record be written. Both the model
 * and the person should read the reason.
 */
static void refuse_with_text(struct mcp_request *request, const struct err *why)
{
	struct buf out;

	buf_init(&out, VALUE_TEXT_MAX);
	(void)buf_adds(&out, "\"content\":[{\"type\":\"text\",\"text\":");
	(void)value_quote(str_of(why->text), &out);
	(void)buf_adds(&out, "}],\"isError\":true");
	mcp_answer_text(request, buf_str(&out));
	buf_fini(&out);
}

/* The call of REQUEST must not begin, because nobody could take its record. */
static void refuse_unobserved(struct mcp_call *call, const struct err *why)
{
	struct mcp_request *request = call->request;

	refuse_with_text(request, why);
	call_free(call);
}

/* The attributes that the conventions of OpenTelemetry want of the span of REQUEST. */
static struct value *origin_of(const struct mcp_request *request)
{
	struct value *origin = value_new_object();
	struct buf id;

	buf_init(&id, ORIGIN_ID_MAX);
	if (value_kind(request->id) == VALUE_STRING)
		(void)buf_addstr(&id,
				 str_part(value_str(request->id), 0, ORIGIN_ID_MAX / 2));
	else
		(void)value_print(request->id, 0, &id);
	value_set_str(origin, "jsonrpc.request.id", buf_str(&id));
	if (request->peer != NULL && request->peer->session_hash != NULL)
		value_set_text(origin, "mcp.session.id", request->peer->session_hash);
	buf_fini(&id);
	return origin;
}

static void start_tool(struct mcp_call *call)
{
	const struct mcp *mcp = call->request->mcp;
	const struct value *params = call->request->params;
	const struct value *arguments = value_member(params, "arguments");
	const struct tool *tool =
		tool_find(session_tools(mcp->session), tool_of(call->request));
	auto_value struct value *none = NULL;
	auto_value struct value *trace = event_trace_of(value_member(params, "_meta"));
	auto_value struct value *origin =
		session_hears_all(mcp->session) ? origin_of(call->request) : NULL;
	struct buf text;
	struct err err;
	struct request request = {
		.arguments = arguments,
		.quiet = is_quiet(mcp, tool),
		.terse = is_quiet(mcp, tool),
		.trace = trace,
		.origin = origin,
		/* A client that gets progress notices waits until the call ends. */
		.patience_s = call->progress.token != NULL ? 0 : mcp->options.patience_s,
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
	call->progress.counts =
		tool != NULL && (tool->carrier != NULL || tool->where == ELSEWHERE);
	if (observe(call,
		    &(struct mcp_record){.what = MCP_TOLD_CALL,
					 .arguments = value_member(params, "arguments"),
					 .trace = trace},
		    &err))
		start(call, &request);
	else
		refuse_unobserved(call, &err);
	buf_fini(&text);
}

void mcp_call_output(struct mcp_request *request, const char *path)
{
	auto_value struct value *arguments = value_new_object();

	value_set_text(arguments, "name", path_base_name(path));
	start(call_new(request),
	      &(struct request){.arguments = arguments, .by_front = true, .quiet = true});
}

static bool is_modern(const struct mcp_request *request)
{
	return request->client.version >= MCP_2026_07_28;
}

static void resume(struct mcp_request *request);

void mcp_tools_call(struct mcp_request *request)
{
	const struct value *name = value_member(request->params, "name");
	const struct value *answers = value_member(request->params, "inputResponses");
	struct err err;

	if (value_text(name) == NULL || strlen(value_text(name)) != value_str(name).size)
		mcp_fail(request, MCP_CODE_PARAMS, NULL, "tools/call needs a name.");
	else if (!mcp_open(request->mcp, &err))
		refuse_with_text(request, &err);
	else if (is_modern(request) && answers != NULL && value_kind(answers) != VALUE_OBJECT)
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "inputResponses must be an object.");
	else if (is_modern(request) && value_member(request->params, "requestState") != NULL)
		resume(request);
	else
		start_tool(call_new(request));
}

/*
 * Questions of a running call to the client: to a person, to a model, or about its roots.
 * In the legacy era they are requests of ours on the call's way. In the modern era the
 * answer "input_required" carries them, and the call is parked until its client comes
 * back.
 */

enum {
	/* a person may be at lunch; meanwhile the call holds a worker */
	PARKED_MS = 600000,
	PARKED_MAX = 64,
	STATE_MAX = 64,
	PURPOSE_MAX = 2048,
};

static struct value *declined(void)
{
	struct value *answer = value_new_object();

	value_set_text(answer, "action", "decline");
	return answer;
}

static bool is_answered(const struct question *question)
{
	return value_count(question->answers) == value_count(question->requests);
}

static void question_forget(struct mcp_call *call)
{
	struct question *question = &call->question;

	value_free(question->requests);
	value_free(question->answers);
	free(question->hash);
	*question = (struct question){.number = question->number};
}

/* All answers have come: give them to the worker. */
static void hand_back(struct mcp_call *call)
{
	struct question *question = &call->question;
	const int64_t id = question->id;
	struct value *answers = value_ref(question->answers);
	auto_value struct value *reply = NULL;

	if (question->one) {
		reply = value_ref(value_at(value_first(answers)));
		value_free(answers);
	} else {
		reply = value_new_object();
		value_set_text(reply, "action", "accept");
		value_set(reply, "content", answers);
	}
	/*
	 * The client has shown the approval to which this hash belongs: it was in the
	 * question.
	 */
	struct value *content = value_member(reply, "content");
	if (question->hash != NULL && value_kind(content) == VALUE_OBJECT)
		value_set_text(content, "hash", question->hash);
	question_forget(call);
	/* When the worker is gone, it gets no answer, and the call's end follows. */
	if (call->running != NULL)
		(void)running_answer(call->running, id, reply, NULL);
}

/*
 * Refuse the call when its client lacks a capability that the call needs. True: it is
 * refused.
 */
static bool refuse_missing(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	const struct value *asked = call->question.requests;
	struct value *needed = value_new_object(), *data;

	for (void *at = value_first(asked); at != NULL; at = value_next(asked, at)) {
		const char *capability = mcp_ask_needs(value_at(at));

		if (capability != NULL &&
		    !mcp_ask_is_possible(value_at(at), &request->client))
			value_set(needed, capability, value_new_object());
	}
	if (request->state == MCP_PARKED || value_count(needed) == 0 || !is_modern(request)) {
		value_free(needed);
		return false;
	}
	data = value_new_object();
	value_set(data, "requiredCapabilities", needed);
	mcp_fail(request, MCP_CODE_CAPABILITY, data,
		 "This call needs a capability that the client did not declare.");
	mcp_call_cancel(call);
	return true;
}

/*
 * Answer the requests that need not be asked, because their answer was given before or
 * because the client cannot be asked. An earlier answer to an approval counts only when
 * the approval was SHOWN; the hash that we add proves that.
 */
static void answer_known(struct mcp_call *call, bool shown)
{
	const struct mcp_request *request = call->request;
	struct question *question = &call->question;
	const bool may_use = is_modern(request) && (shown || question->hash == NULL);
	const struct value *given =
		may_use ? value_member(request->params, "inputResponses") : NULL;

	for (void *at = value_first(question->requests); at != NULL;
	     at = value_next(question->requests, at)) {
		const char *key = value_key(at);
		const struct value *said = value_member(given, key);

		if (value_member(question->answers, key) != NULL)
			continue;
		struct value *answer =
			said != NULL ? mcp_ask_read_answer(value_at(at), said) : NULL;
		if (answer == NULL && !mcp_ask_is_possible(value_at(at), &request->client))
			answer = question->hash != NULL
					 ? approval_reply(APPROVAL_NO, APPROVAL_BY_NOBODY,
							  NULL)
					 : declined();
		if (answer != NULL)
			value_set(question->answers, key, answer);
	}
}

static void parked_due(struct timer *timer)
{
	mcp_call_cancel(timer->context);
}

/* Answer the request with the questions; the call waits for the next request. */
static void park(struct mcp_call *call)
{
	struct mcp_request *request = call->request;
	struct mcp *mcp = request->mcp;
	const struct question *question = &call->question;
	struct value *asked = value_new_object();
	char state[STATE_MAX];

	for (void *at = value_first(question->requests); at != NULL;
	     at = value_next(question->requests, at)) {
		if (value_member(question->answers, value_key(at)) == NULL)
			value_set(asked, value_key(at),
				  mcp_ask_message(value_at(at), 0, NULL));
	}
	(void)snprintf(state, sizeof(state), "%s.%" PRIu64 ".%" PRIu64, mcp->run,
		       call->number, question->number);
	loop_remove_timer(&call->progress.tick);
	call->parked.shown = question->number;
	call->parked.late = (struct timer){.due_ms = clock_now_ms() + PARKED_MS,
					   .due = parked_due,
					   .context = call};
	loop_add_timer(mcp->options.loop, &call->parked.late);
	mcp_request_become(request, MCP_PARKED);
	mcp_ask_answer(request, asked, state);
}

/*
 * In the legacy era each question without an answer is a request of ours: "q7.0", "q7.1",
 * and so on. Send these, or, when they are OVER, tell the client that nobody waits for
 * the answers any longer.
 */
static void tell_requests(const struct mcp_call *call, bool over)
{
	const struct mcp_request *request = call->request;
	const struct question *question = &call->question;
	size_t index = 0;

	for (void *at = value_first(question->requests); at != NULL;
	     at = value_next(question->requests, at), index++) {
		char id[STATE_MAX];
		struct value *params;

		if (value_member(question->answers, value_key(at)) != NULL)
			continue;
		(void)snprintf(id, sizeof(id), "q%" PRIu64 ".%zu", question->number, index);
		if (over) {
			params = value_new_object();
			value_set_text(params, "requestId", id);
			value_set_text(params, "reason",
				       "Nobody waits for the answer any longer.");
			mcp_tell(request->mcp, request->way, NULL,
				 "notifications/cancelled", params);
			continue;
		}
		auto_value struct value *message = mcp_ask_message(value_at(at), 1, id);
		params = value_member(message, "params");
		mcp_tell(request->mcp, request->way, id,
			 value_text(value_member(message, "method")),
			 params != NULL ? value_ref(params) : NULL);
	}
}

/*
 * Cancel the parked call that has waited longest for its client: each one holds a worker.
 */
static void make_room(struct mcp *mcp)
{
	struct mcp_call *oldest = NULL;
	size_t count = 0;

	for (struct mcp_request *at = mcp->last; at != NULL; at = at->previous) {
		if (at->state != MCP_PARKED)
			continue;
		oldest = at->call;
		count++;
	}
	if (count >= PARKED_MAX)
		mcp_call_cancel(oldest);
}

/* CALL has sent an EVENT_QUESTION or an EVENT_APPROVAL_WANTED with DATA. */
static void question_open(struct mcp_call *call, const struct value *data)
{
	struct mcp *mcp = call->request->mcp;
	struct question *question = &call->question;

	if (question->id != 0)
		return;
	question->id = value_integer(value_member(data, "id"));
	question->hash = memory_copy(value_text(value_member(data, "hash")));
	question->number = ++mcp->next_question;
	question->answers = value_new_object();
	question->requests = mcp_ask_requests(value_text(value_member(data, "kind")),
					      value_member(data, "request"),
					      question->number, &question->one);
	if (refuse_missing(call))
		return;
	answer_known(call, false);
	if (is_answered(question)) {
		hand_back(call);
	} else if (!is_modern(call->request)) {
		tell_requests(call, false);
	} else if (call->request->state == MCP_BEGUN) {
		make_room(mcp);
		park(call);
	}
	/* A call that is parked already asks when its client comes back. */
}

/*
 * The session has ended a question by itself (EVENT_APPROVAL_GIVEN with DATA), because
 * its time was over. The call goes on, and may ask the next one.
 */
static void question_over(struct mcp_call *call, const struct value *data)
{
	/* An answer of the client has closed its question before this event. */
	if (call->question.id == value_integer(value_member(data, "id")))
		mcp_call_withdraw(call);
}

void mcp_call_withdraw(struct mcp_call *call)
{
	if (call->question.id == 0)
		return;
	if (!is_modern(call->request))
		tell_requests(call, true);
	question_forget(call);
}

/* The call that asked the question of this ID ("q7.1") of PEER, and its key. */
static struct mcp_call *find_asking(const struct mcp_peer *peer, const char *id, void **key)
{
	char *end;

	if (id == NULL || id[0] != 'q')
		return NULL;
	const uint64_t number = strtoull(id + 1, &end, 10);
	if (*end != '.')
		return NULL;
	size_t index = strtoul(end + 1, &end, 10);
	if (*end != '\0')
		return NULL;
	for (struct mcp_request *at = peer->mcp->first; at != NULL; at = at->next) {
		const struct question *question =
			at->peer == peer && at->call != NULL ? &at->call->question : NULL;

		if (question == NULL || question->id == 0 || question->number != number)
			continue;
		*key = value_first(question->requests);
		while (*key != NULL && index-- > 0)
			*key = value_next(question->requests, *key);
		return *key != NULL ? at->call : NULL;
	}
	return NULL;
}

void mcp_calls_answered(struct mcp_peer *peer, const struct mcp_message *message)
{
	void *key = NULL;
	struct mcp_call *call = find_asking(peer, value_text(message->id), &key);
	struct value *answer = NULL;

	if (call == NULL || value_member(call->question.answers, value_key(key)) != NULL)
		return;
	if (message->result != NULL)
		answer = mcp_ask_read_answer(value_at(key), message->result);
	/* An error, or an answer in a wrong form, counts as declined. */
	value_set(call->question.answers, value_key(key),
		  answer != NULL ? answer : declined());
	if (is_answered(&call->question))
		hand_back(call);
}

static struct mcp_call *find_parked(struct mcp *mcp, struct str state)
{
	auto_free char *text = memory_copy_str(str_part(state, MCP_RUN + 1, state.size));
	char *end;
	const uint64_t number = strtoull(text, &end, 10);
	const uint64_t shown = *end == '.' ? strtoull(end + 1, NULL, 10) : 0;

	struct mcp_call *call = mcp_call_find(mcp, number);
	return call != NULL && call->parked.shown == shown &&
			       call->request->state == MCP_PARKED
		       ? call
		       : NULL;
}

/* Does STATE look like one of an earlier server process? It may also be made up. */
static bool is_of_another_run(const struct mcp *mcp, struct str state)
{
	bool looks = state.size > MCP_RUN && state.data[MCP_RUN] == '.';

	for (size_t i = 0; looks && i < MCP_RUN; i++)
		looks = strchr("0123456789abcdef", state.data[i]) != NULL &&
			state.data[i] != '\0';
	return looks && memcmp(state.data, mcp->run, MCP_RUN) != 0;
}

static void refuse_state(struct mcp_request *request, bool sound)
{
	const struct str state = value_str(value_member(request->params, "requestState"));
	const char *why = "This requestState was not made here, for this tool with these "
			  "arguments: repeat the call as it was.";

	if (sound)
		why = "This requestState has been used, or the call it belongs to waits no "
		      "longer; make the call anew, without it.";
	else if (is_of_another_run(request->mcp, state))
		why = "This requestState is of a server that has ended since, and its call "
		      "with it. Look at what the call may have done before it asked, then "
		      "make it anew, without requestState.";
	mcp_fail(request, MCP_CODE_PARAMS, NULL, "%s", why);
}

/* The parked call moves to REQUEST, which may have brought answers. */
static void unpark(struct mcp_call *call, struct mcp_request *request)
{
	struct mcp_request *parked = call->request;

	loop_remove_timer(&call->parked.late);
	parked->call = NULL;
	call->request = request;
	request->call = call;
	mcp_request_become(parked, MCP_OVER);
	progress_begin(call);
	is_due(call); /* it may have ended meanwhile */
	if (call->question.id == 0)
		return; /* nobody waits for these answers any longer */
	/* These answers may be to an earlier question, whose time is over. */
	answer_known(call, call->parked.shown == call->question.number);
	if (is_answered(&call->question))
		hand_back(call);
	else
		park(call);
}

/* Resume the call that requestState names, with the inputResponses of REQUEST. */
static void resume(struct mcp_request *request)
{
	struct str state;
	const bool sound = mcp_ask_state(request, &state);
	struct mcp_call *call = sound ? find_parked(request->mcp, state) : NULL;

	if (call != NULL)
		unpark(call, request);
	else
		refuse_state(request, sound);
}

#define ELICIT   "elicitation/create"
#define SAMPLING "sampling/createMessage"
#define ROOTS    "roots/list"

enum { KEY_MAX = 64 };

static bool has_method(const struct value *request, const char *method)
{
	return str_is(value_str(value_member(request, "method")), method);
}

static bool is_url(const struct value *request)
{
	return value_member(value_member(request, "params"), "url") != NULL;
}

static void copy_member(const struct value *from, const char *key, struct value *to,
			const char *name)
{
	struct value *member = value_member(from, key);

	if (member != NULL)
		value_set(to, name, value_ref(member));
}

/* A form without a schema asks only for yes or no. */
static struct value *empty_form(void)
{
	struct value *schema = value_new_object();

	value_set_text(schema, "type", "object");
	value_set(schema, "properties", value_new_object());
	return schema;
}

static struct value *request_of(const char *kind, const struct value *request)
{
	struct value *made = value_new_object(), *params;

	if (value_is_true(value_member(request, "required")))
		value_set_boolean(made, "needed", true);
	if (strcmp(kind, CALL_ASK_SAMPLING) == 0) {
		params = value_copy(request);
		value_remove(params, "required");
		value_remove(params, "key");
		value_set_text(made, "method", SAMPLING);
	} else if (strcmp(kind, "roots") == 0) {
		params = value_new_object();
		value_set_text(made, "method", ROOTS);
	} else {
		params = value_new_object();
		value_set_text(made, "method", ELICIT);
		copy_member(request, "message", params, "message");
		copy_member(request, "url", params, "url");
		copy_member(request, "schema", params, "requestedSchema");
		if (strcmp(kind, "url") != 0 &&
		    value_member(params, "requestedSchema") == NULL)
			value_set(params, "requestedSchema", empty_form());
	}
	value_set(made, "params", params);
	return made;
}

struct value *mcp_ask_requests(const char *kind, const struct value *request,
			       uint64_t number, bool *one)
{
	struct value *requests = value_new_object();
	const struct value *several = value_member(request, "requests");
	const char *key = value_text(value_member(request, "key"));
	char made[KEY_MAX];

	*one = several == NULL;
	if (*one) {
		(void)snprintf(made, sizeof(made), "question_%" PRIu64, number);
		value_set(requests, key != NULL ? key : made, request_of(kind, request));
		return requests;
	}
	for (void *at = value_first(several); at != NULL; at = value_next(several, at)) {
		const char *each = value_text(value_member(value_at(at), "kind"));

		value_set(requests, value_key(at),
			  request_of(each != NULL ? each : "form", value_at(at)));
	}
	return requests;
}

bool mcp_ask_is_possible(const struct value *request, const struct mcp_client *client)
{
	if (has_method(request, SAMPLING))
		return client->sampling;
	if (has_method(request, ROOTS))
		return client->roots;
	return is_url(request) ? client->url : client->form;
}

const char *mcp_ask_needs(const struct value *request)
{
	if (!value_is_true(value_member(request, "needed")))
		return NULL;
	if (has_method(request, SAMPLING))
		return "sampling";
	return has_method(request, ROOTS) ? "roots" : "elicitation";
}

struct value *mcp_ask_message(const struct value *request, bool legacy, const char *id)
{
	struct value *message = value_new_object();
	struct value *params = value_copy(value_member(request, "params"));

	if (has_method(request, ELICIT) && is_url(request)) {
		value_set_text(params, "mode", "url");
		if (legacy)
			value_set_text(params, "elicitationId", id);
	}
	value_set(message, "method", value_ref(value_member(request, "method")));
	value_set(message, "params", params);
	return message;
}

static struct value *read_elicitation(const struct value *request, const struct value *said)
{
	const char *action = value_text(value_member(said, "action"));
	const struct value *content = value_member(said, "content");
	const struct value *schema =
		value_member(value_member(request, "params"), "requestedSchema");
	struct value *answer;

	if (action == NULL ||
	    (strcmp(action, "accept") != 0 && strcmp(action, "decline") != 0 &&
	     strcmp(action, "cancel") != 0))
		return NULL;
	answer = value_new_object();
	value_set_text(answer, "action", action);
	if (strcmp(action, "accept") != 0 || is_url(request))
		return answer;
	if (content == NULL)
		value_set(answer, "content", value_new_object());
	else
		value_set(answer, "content", value_copy(content));
	if (validate_value(schema, value_member(answer, "content"), NULL))
		return answer;
	value_free(answer);
	return NULL;
}

struct value *mcp_ask_read_answer(const struct value *request, const struct value *said)
{
	struct value *answer;

	if (value_kind(said) != VALUE_OBJECT)
		return NULL;
	if (has_method(request, ELICIT))
		return read_elicitation(request, said);
	if (has_method(request, ROOTS) &&
	    value_kind(value_member(said, "roots")) != VALUE_ARRAY)
		return NULL;
	if (has_method(request, SAMPLING) && value_member(said, "content") == NULL)
		return NULL;
	answer = value_new_object();
	value_set_text(answer, "action", "accept");
	value_set(answer, "content", value_copy(said));
	return answer;
}

static void add_purpose(const struct mcp_request *request, struct buf *purpose)
{
	const struct value *arguments = value_member(request->params, "arguments");
	char hex[HASH_HEX + 1];
	struct buf text;

	(void)buf_addf(purpose, "%s %s", request->method->name,
		       value_text(value_member(request->params, "name")));
	if (request->method->run != mcp_tools_call)
		return;
	buf_init(&text, VALUE_TEXT_MAX);
	if (arguments == NULL)
		(void)buf_adds(&text, "{}");
	else
		(void)value_print(arguments, VALUE_SORTED, &text);
	hash_text(buf_str(&text), hex);
	buf_fini(&text);
	(void)buf_addf(purpose, " %s", hex);
}

void mcp_ask_answer(struct mcp_request *request, struct value *take_asked, const char *state)
{
	struct value *result = value_new_object();
	struct buf sealed, purpose;

	buf_init(&purpose, PURPOSE_MAX);
	buf_init(&sealed, STATE_MAX + HASH_HEX + 2);
	add_purpose(request, &purpose);
	message_seal_add(&request->mcp->key, buf_str(&purpose), str_of(state), &sealed);
	value_set_text(result, "resultType", "input_required");
	value_set(result, "inputRequests", take_asked);
	value_set_text(result, "requestState", sealed.data);
	buf_fini(&sealed);
	buf_fini(&purpose);
	mcp_answer(request, result);
}

bool mcp_ask_state(const struct mcp_request *request, struct str *state)
{
	const struct value *sealed = value_member(request->params, "requestState");
	struct buf purpose;
	bool sound;

	buf_init(&purpose, PURPOSE_MAX);
	add_purpose(request, &purpose);
	sound = message_seal_check(&request->mcp->key, buf_str(&purpose),
				   value_str(sealed), state);
	buf_fini(&purpose);
	return sound;
}
