/* remote_call: calls of a server's tools, and what it answers to them, as results. */
#include "mcp/client/remote_parts.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

enum {
	TEXT_MAX = 1 << 20, /* of an answer; the runtime's own ceiling is higher */
	/* Of an answer's text: what a model reads of a tool; the rest is counted. */
	SHOWN_BYTES = 100 << 10,
};

static void call_free(struct remote_call *call)
{
	remote_ask_fini(call);
	free(call->name);
	free(call);
}

/* Take the call that NEEDLE (or, when that is NULL, the request ID) is of out of the list. */
static struct remote_call *take_call(struct remote *remote, const struct running *needle,
				     int64_t id)
{
	for (struct remote_call **at = &remote->calls; *at; at = &(*at)->next) {
		struct remote_call *call = *at;

		if (needle ? call->running == needle : call->id == id) {
			*at = call->next;
			return call;
		}
	}
	return NULL;
}

void remote_call_send(struct remote *remote, struct remote_call *call,
		      struct value *take_more)
{
	struct value *params = take_more ? take_more : value_new_object();
	const struct value *trace = running_trace(call->running);
	struct value *meta = trace ? value_copy(trace) : value_new_object();

	call->id = remote->last_id + 1;
	value_set_integer(meta, "progressToken", call->id);
	value_set(params, "_meta", meta);
	value_set_text(params, "name", call->name);
	value_set(params, "arguments", value_copy(running_arguments(call->running)));
	(void)remote_request(remote, "tools/call", params);
}

struct remote_call *remote_call_find(const struct remote *remote,
				     const struct running *running)
{
	struct remote_call *call = remote->calls;

	while (call && call->running != running)
		call = call->next;
	return call;
}

void remote_move(struct remote *remote, const struct running *running, struct running *work)
{
	struct remote_call *call = remote_call_find(remote, running);

	if (call)
		call->running = work;
}

static void fail(struct running *running, const char *why)
{
	struct tool_result result;

	tool_result_init(&result);
	(void)tool_fail(&result, "%s", why);
	running_end(running, &result);
}

void remote_call(struct remote *remote, const char *name, struct running *running)
{
	struct remote_call *call = memory_alloc(sizeof(*call));

	call->name = memory_copy(name);
	call->running = running;
	call->next = remote->calls;
	remote->calls = call;
	if (remote->state == REMOTE_READY)
		remote_call_send(remote, call, NULL);
}

static bool may_call(const struct remote *remote, const char *name)
{
	return !remote->options.may_call ||
	       remote->options.may_call(remote->options.context, name);
}

void remote_send_waiting(struct remote *remote)
{
	/*
	 * Sending may end the conversation and all calls: begin anew at the list's head.
	 */
	for (;;) {
		struct remote_call *call = remote->calls;

		while (call && call->id)
			call = call->next;
		if (!call || remote->state != REMOTE_READY)
			return;
		if (may_call(remote, call->name)) {
			remote_call_send(remote, call, NULL);
			continue;
		}
		(void)take_call(remote, call->running, 0);
		fail(call->running, "The MCP server has withdrawn this tool.");
		call_free(call);
	}
}

void remote_stop(struct remote *remote, const struct running *running)
{
	struct remote_call *call = take_call(remote, running, 0);
	struct value *params;

	if (!call)
		return;
	if (call->id && remote->state != REMOTE_LOST) {
		params = value_new_object();
		value_set_integer(params, "requestId", call->id);
		value_set_text(params, "reason", "Nobody waits for the answer any more.");
		remote_notify(remote, "notifications/cancelled", params);
	}
	call_free(call);
}

void remote_calls_fail(struct remote *remote, const char *why)
{
	struct remote_call *calls = remote->calls;

	/*
	 * The owner of a failed call may immediately make a new call: empty the list
	 * first.
	 */
	remote->calls = NULL;
	while (calls) {
		struct remote_call *call = calls;

		calls = call->next;
		fail(call->running, why);
		call_free(call);
	}
}

/* Text joins the text, anything else the content. False: ITEM is left out. */
static bool add_item(struct tool_result *result, const struct value *item, struct buf *text)
{
	const struct value *type = value_member(item, "type");

	if (!str_is(value_str(type), "text"))
		return tool_add_content(result, value_copy(item));
	(void)buf_end_line(text);
	if (!buf_addstr(text, value_str(value_member(item, "text"))))
		(void)buf_addstr(text, str_part(value_str(value_member(item, "text")), 0,
						text->max - text->size));
	return true;
}

/* An empty answer may be intended; an answer of another form is not a success. */
static bool is_answer(const struct value *answer)
{
	const struct value *content = value_member(answer, "content");

	return value_kind(answer) == VALUE_OBJECT &&
	       (content == NULL || value_kind(content) == VALUE_ARRAY);
}

static void fill(const struct value *answer, struct tool_result *result)
{
	const struct text_limits limits = {.bytes = SHOWN_BYTES};
	const struct value *content = value_member(answer, "content");
	const struct value *structured = value_member(answer, "structuredContent");
	struct text_cut cut = {0};
	struct buf text, clean;
	size_t left_out = 0;

	buf_init(&text, TEXT_MAX);
	buf_init(&clean, 4 * TEXT_MAX);
	for (size_t i = 0; i < value_count(content); i++)
		left_out += !add_item(result, value_item(content, i), &text);
	/* A server that sends both repeats the text in the structured content. */
	if (value_count(content) == 0 && structured)
		(void)value_print(structured, 0, &text);
	(void)text_clean(buf_str(&text), &clean);
	(void)text_shorten(buf_str(&clean), &limits, &result->text, &cut);
	if (left_out > 0) {
		(void)buf_end_line(&result->text);
		(void)buf_addf(&result->text,
			       "[items of the answer that are left out, too large or of no known "
			       "form: %zu]\n",
			       left_out);
	}
	result->left_out_bytes = cut.bytes;
	result->left_out_lines = cut.lines;
	buf_fini(&clean);
	buf_fini(&text);
	result->status = value_is_true(value_member(answer, "isError")) ? RESULT_FAILED
									: RESULT_DONE;
}

static void fill_error(const struct remote *remote, const struct value *error,
		       struct tool_result *result)
{
	struct str words = value_str(value_member(error, "message"));
	struct buf clean;

	buf_init(&clean, SHOWN_BYTES);
	(void)text_clean(str_part(words, 0, text_character_border(words, SHOWN_BYTES / 8)),
			 &clean);
	if (clean.size == 0)
		(void)buf_adds(&clean, "it gives no reason");
	(void)tool_fail(result, "The MCP server %s refused the call: %s (code %lld)",
			remote->name, clean.data,
			(long long)value_integer(value_member(error, "code")));
	buf_fini(&clean);
}

bool remote_call_answered(struct remote *remote, const struct mcp_message *message)
{
	int64_t id = value_integer(message->id);
	struct remote_call *call = id > 0 ? take_call(remote, NULL, id) : NULL;
	const struct value *kind = value_member(message->result, "resultType");
	struct tool_result result;

	if (!call)
		return false;
	remote->faults = 0;
	remote->served = true;
	call->next = remote->calls;
	remote->calls = call;
	if (!message->error && remote_call_asks(remote, call, message->result))
		return true;
	(void)take_call(remote, call->running, 0);
	tool_result_init(&result);
	if (message->error)
		fill_error(remote, message->error, &result);
	else if (kind && !str_is(value_str(kind), "complete"))
		(void)tool_fail(&result,
				"The MCP server %s wants to ask something back: too often, what is "
				"not offered to it, or where nobody can be asked.",
				remote->name);
	else if (!is_answer(message->result))
		(void)tool_fail(&result,
				"The MCP server %s answers in a form that is not known.",
				remote->name);
	else
		fill(message->result, &result);
	running_end(call->running, &result);
	call_free(call);
	return true;
}

static struct remote_call *find_call(struct remote *remote, int64_t id)
{
	struct remote_call *call = remote->calls;

	while (call && (id == 0 || call->id != id))
		call = call->next;
	return call;
}

static void note_progress(struct remote *remote, const struct value *params)
{
	const struct value *token = value_member(params, "progressToken");
	const struct value *total = value_member(params, "total");
	struct remote_call *call = value_kind(token) == VALUE_INTEGER
					   ? find_call(remote, value_integer(token))
					   : NULL;

	if (!call || call->notes == REMOTE_NOTES_MAX) {
		remote_fault(remote);
		return;
	}
	call->notes++;
	running_progress(call->running, value_number(value_member(params, "progress")),
			 value_is_number(total) ? value_number(total) : -1,
			 value_text(value_member(params, "message")));
}

/* Words for the log name no call: they are the first one's. */
static void note_log(struct remote *remote, const struct value *params)
{
	const struct value *data = value_member(params, "data");
	struct remote_call *call = remote->calls;
	struct buf text;

	if (!call || call->notes == REMOTE_NOTES_MAX) {
		remote_fault(remote);
		return;
	}
	call->notes++;
	buf_init(&text, SHOWN_BYTES);
	if (value_kind(data) == VALUE_STRING)
		(void)buf_addstr(&text, str_part(value_str(data), 0, SHOWN_BYTES));
	else
		(void)value_print(data, 0, &text);
	running_log(call->running, value_text(value_member(params, "level")),
		    value_text(value_member(params, "logger")), buf_str(&text));
	buf_fini(&text);
}

/* Notices that any server may send and that we ignore. */
static bool is_idle_notice(const char *method)
{
	static const char *const known[] = {
		"notifications/subscriptions/acknowledged",
		"notifications/prompts/list_changed",
		"notifications/resources/list_changed",
		"notifications/resources/updated",
		"notifications/elicitation/complete",
		"notifications/cancelled",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(method, known[i]) == 0)
			return true;
	}
	return false;
}

void remote_call_noted(struct remote *remote, const struct mcp_message *message)
{
	if (strcmp(message->method, "notifications/progress") == 0)
		note_progress(remote, message->params);
	else if (strcmp(message->method, "notifications/message") == 0)
		note_log(remote, message->params);
	else if (!is_idle_notice(message->method))
		remote_fault(remote);
}
