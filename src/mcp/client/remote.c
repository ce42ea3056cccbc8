/*
 * remote: asks a server, from the first question to the list of its tools, and makes
 * calls.
 */

#include "mcp/client/remote.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/client/sampling.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * Codex gives a start the same time: an interpreter may load its modules from a
	 * cold disk.
	 */
	REMOTE_START_S = 10,
	/* a start that is over for longer was not watched, and gets as much time again */
	REMOTE_UNHEARD_MS = 1000,
	REMOTE_TOOLS_MAX = 256,
	REMOTE_LIST_BYTES = 4 << 20, /* of all descriptions of tools */
};

enum {
	/* lines that are no message, and answers to no request */
	REMOTE_FAULTS_MAX = 1000,
	REMOTE_LINE_MAX = 16 << 20, /* of a line that we send */
	REMOTE_NOTES_MAX = 2000, /* texts of progress and logs that one call passes on */
};

enum remote_state {
	REMOTE_NEW,
	REMOTE_PROBES,        /* server/discover was sent */
	REMOTE_GREETS,        /* initialize was sent */
	REMOTE_LISTS,         /* tools/list was sent */
	REMOTE_LISTS_PROMPTS, /* prompts/list was sent */
	REMOTE_READY,
	REMOTE_LOST,
};

/* A call of one of the server's tools, or for a resource or prompt of its. */
struct remote_call {
	struct remote_call *next;
	int64_t id; /* of the request, and its progress token; 0: not sent yet */
	enum remote_kind kind;
	char *name;
	struct running *running;
	size_t notes;
	size_t questions; /* that the server has asked during the call */
	/* the id of the server's open question (older era); or NULL */
	struct value *asked_id;
	bool samples;        /* that question wants a model to be asked */
	struct value *asked; /* the open questions, key -> request (newer era); or NULL */
	/* the server's requestState, which must be sent back; or NULL */
	struct value *token;
};

/* A list of tools that arrives page by page. */
struct remote_list {
	int64_t request; /* the request for the next page; 0: none is under way */
	struct value *tools, *cursor;
	size_t pages, bytes;
};

struct remote {
	struct remote_options options;
	char *name;
	enum remote_state state;
	bool modern, served;
	bool refused_once; /* the server refused the version that it said to support */
	bool was_silent;   /* the last start was given up for want of an answer */
	int64_t last_id;
	/*
	 * the id of the request that must be answered before the server is ready; 0: none
	 */
	int64_t asked;
	struct timer patience;
	int64_t start_ms; /* when the server must have listed its tools */
	struct value *tools, *prompts;
	bool has_resources, has_prompts;
	struct remote_list list;
	bool tells_changes; /* the server reports changes of its tools */
	bool list_again;    /* it reported a change after the list was asked for */
	size_t changes;     /* how many changes it reported since the last list */
	/* the request that it answers with changes (newer era); 0: none */
	int64_t listens;
	struct timer relist;
	size_t faults;
	struct remote_call *calls;
};

/* Calls of a server's tools, and its answers as results. */

enum {
	TEXT_MAX = 1 << 20, /* of an answer; the runtime's own limit is higher */
	/* The part of an answer's text that a model reads; the rest is counted. */
	SHOWN_BYTES = 100 << 10,
	RESOURCE_BYTES = 256 << 10, /* the same, of a resource */
};

static void remote_ask_fini(struct remote_call *call);

static void call_free(struct remote_call *call)
{
	remote_ask_fini(call);
	free(call->name);
	free(call);
}

/*
 * Remove a call from the list: that of NEEDLE, or, when NEEDLE is NULL, that of the
 * request ID.
 */
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

static int64_t remote_request(struct remote *remote, const char *method,
			      struct value *take_params);

static const char *const methods[] = {
	[REMOTE_TOOL] = "tools/call",
	[REMOTE_RESOURCE] = "resources/read",
	[REMOTE_RESOURCES] = "resources/list",
	[REMOTE_PROMPT] = "prompts/get",
};

/* Send CALL. TAKE_MORE: more members of its parameters, or NULL. */
static void remote_call_send(struct remote *remote, struct remote_call *call,
			     struct value *take_more)
{
	struct value *params = take_more ? take_more : value_new_object();
	const struct value *trace = running_trace(call->running);
	const struct value *arguments = running_arguments(call->running);
	struct value *meta = trace ? value_copy(trace) : value_new_object();

	call->id = remote->last_id + 1;
	value_set_integer(meta, "progressToken", call->id);
	value_set(params, "_meta", meta);
	if (call->kind != REMOTE_RESOURCES)
		value_set_text(params, call->kind == REMOTE_RESOURCE ? "uri" : "name",
			       call->name);
	if (call->kind == REMOTE_TOOL)
		value_set(params, "arguments", value_copy(arguments));
	if (call->kind == REMOTE_PROMPT)
		value_set(params, "arguments",
			  value_copy(value_member(arguments, "arguments")));
	(void)remote_request(remote, methods[call->kind], params);
}

/* The call of RUNNING, or NULL. */
static struct remote_call *remote_call_find(const struct remote *remote,
					    const struct running *running)
{
	struct remote_call *call = remote->calls;

	while (call && call->running != running)
		call = call->next;
	return call;
}

static void fail(struct running *running, const char *why)
{
	struct tool_result result;

	tool_result_init(&result);
	(void)tool_fail(&result, "%s", why);
	running_end(running, &result);
}

void remote_call(struct remote *remote, enum remote_kind kind, const char *name,
		 struct running *running)
{
	struct remote_call *call = memory_alloc(sizeof(*call));

	call->kind = kind;
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

/* Send the calls that have waited until the server is ready. */
static void remote_send_waiting(struct remote *remote)
{
	/*
	 * Sending may end the connection and all calls, so start at the list's head each
	 * time.
	 */
	for (;;) {
		struct remote_call *call = remote->calls;

		while (call && call->id)
			call = call->next;
		if (!call || remote->state != REMOTE_READY)
			return;
		if (call->kind != REMOTE_TOOL || may_call(remote, call->name)) {
			remote_call_send(remote, call, NULL);
			continue;
		}
		(void)take_call(remote, call->running, 0);
		fail(call->running, "The MCP server has withdrawn this tool.");
		call_free(call);
	}
}

static void remote_notify(struct remote *remote, const char *method,
			  struct value *take_params);

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

static void remote_calls_fail(struct remote *remote, const char *why)
{
	struct remote_call *calls = remote->calls;

	/*
	 * The owner of a failed call may make a new call immediately, so empty the list
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

/*
 * Append a text item to TEXT, and any other item to the content. False: ITEM is left out.
 */
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

/* The member of an answer that has its content. */
static const char *const members[] = {
	[REMOTE_TOOL] = "content",
	[REMOTE_RESOURCE] = "contents",
	[REMOTE_RESOURCES] = "resources",
	[REMOTE_PROMPT] = "messages",
};

/*
 * An empty answer of a tool may be intended; an answer of another form is not a success.
 */
static bool is_answer(enum remote_kind kind, const struct value *answer)
{
	const struct value *content = value_member(answer, members[kind]);

	return value_kind(answer) == VALUE_OBJECT &&
	       ((content == NULL && kind == REMOTE_TOOL) ||
		value_kind(content) == VALUE_ARRAY);
}

static struct value *text_item(struct str text)
{
	struct value *item = value_new_object();

	value_set_text(item, "type", "text");
	value_set_str(item, "text", text);
	return item;
}

/* A part of a resource as an item of content: a text, a picture, or bytes. */
static struct value *item_of_resource(const struct value *part)
{
	const struct value *text = value_member(part, "text");
	const struct str type = value_str(value_member(part, "mimeType"));
	const struct str blob = value_str(value_member(part, "blob"));
	struct value *item;

	if (text)
		return text_item(value_str(text));
	if (blob.size / 4 * 3 > RESOURCE_BYTES)
		return text_item(STR("[more than 256 KB of bytes, which are left out]"));
	item = value_new_object();
	if (str_starts(type, STR("image/"))) {
		value_set_text(item, "type", "image");
		value_set_str(item, "mimeType", type);
		value_set_str(item, "data", blob);
	} else {
		value_set_text(item, "type", "resource");
		value_set(item, "resource", value_copy(part));
	}
	return item;
}

/* A resource in a list, as a line. */
static struct value *item_of_listed(const struct value *listed)
{
	static const char *const words[] = {"title", "name", "description"};
	struct value *item;
	struct buf line;

	buf_init(&line, SHOWN_BYTES);
	text_add_name(&line, value_str(value_member(listed, "uri")));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct str word = value_str(value_member(listed, words[i]));

		if (word.size == 0)
			continue;
		(void)buf_adds(&line, "  ");
		text_add_name(&line, word);
	}
	item = text_item(buf_str(&line));
	buf_fini(&line);
	return item;
}

/* The content of ANSWER as items of a tool's content; the caller frees the list. */
static struct value *items_of(enum remote_kind kind, const struct value *answer)
{
	const struct value *content = value_member(answer, members[kind]);
	struct value *items = value_new_array();

	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *one = value_item(content, i);

		if (kind == REMOTE_RESOURCE)
			value_append(items, item_of_resource(one));
		else if (kind == REMOTE_RESOURCES)
			value_append(items, item_of_listed(one));
		else
			value_append(items, value_copy(kind == REMOTE_PROMPT
							       ? value_member(one, "content")
							       : one));
	}
	if (kind == REMOTE_RESOURCES && value_member(answer, "nextCursor"))
		value_append(items, text_item(STR("[the server has more resources]")));
	return items;
}

static void fill(enum remote_kind kind, const struct value *answer,
		 struct tool_result *result)
{
	const struct text_limits limits = {
		.bytes = kind == REMOTE_RESOURCE ? RESOURCE_BYTES : SHOWN_BYTES};
	auto_value struct value *content = items_of(kind, answer);
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

static bool remote_call_asks(struct remote *remote, struct remote_call *call,
			     const struct value *result);

/* Take an answer. True: it answers a call. */
static bool remote_call_answered(struct remote *remote, const struct mcp_message *message)
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
	else if (!is_answer(call->kind, message->result))
		(void)tool_fail(&result,
				"The MCP server %s answers in a form that is not known.",
				remote->name);
	else
		fill(call->kind, message->result, &result);
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

static void remote_fault(struct remote *remote);

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

/* A log message names no call, so it goes to the first call in the list. */
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

static void remote_call_noted(struct remote *remote, const struct mcp_message *message)
{
	if (strcmp(message->method, "notifications/progress") == 0)
		note_progress(remote, message->params);
	else if (strcmp(message->method, "notifications/message") == 0)
		note_log(remote, message->params);
	else if (!is_idle_notice(message->method))
		remote_fault(remote);
}

/*
 * Lists a server's tools, page by page. The start of a server waits for the list; when
 * the server says that its tools have changed, they are listed again while calls go on.
 */

enum {
	PAGES_MAX = 64,
	/* The least time between two lists. Faster changes are not worth more lists. */
	RELIST_MS = 1000,
	/*
	 * The most changes that a server may report before its next list. More of them
	 * are a flood.
	 */
	CHANGES_MAX = 1000,
};

static void ask_page(struct remote *remote)
{
	struct value *params = value_new_object();

	if (remote->list.cursor)
		value_set(params, "cursor", value_ref(remote->list.cursor));
	remote->list.request = remote_request(remote, "tools/list", params);
}

static void forget(struct remote_list *list)
{
	value_free(list->tools);
	value_free(list->cursor);
	*list = (struct remote_list){0};
}

/* Ask for the server's tools, from the first page on. */
static void remote_list_begin(struct remote *remote)
{
	forget(&remote->list);
	remote->list.tools = value_new_array();
	remote->list_again = false;
	remote->changes = 0;
	ask_page(remote);
}

static void relist_due(struct timer *timer)
{
	struct remote *remote = timer->context;

	loop_remove_timer(timer);
	if (remote->state == REMOTE_READY)
		remote_list_begin(remote);
}

static void remote_list_init(struct remote *remote)
{
	remote->tools = value_new_array();
	remote->prompts = value_new_array();
	remote->tells_changes = false;
	remote->listens = 0;
	remote->relist =
		(struct timer){.due_ms = CLOCK_NEVER, .due = relist_due, .context = remote};
}

static void remote_list_fini(struct remote *remote)
{
	loop_remove_timer(&remote->relist);
	forget(&remote->list);
	value_free(remote->tools);
	value_free(remote->prompts);
	remote->tools = remote->prompts = NULL;
}

/* Append TOOLS to LIST. False: there are too many, or TOOLS is no list. */
static bool take_tools(struct remote_list *list, const struct value *tools)
{
	struct buf text;

	for (size_t i = 0; i < value_count(tools); i++) {
		const struct value *tool = value_item(tools, i);

		buf_init(&text, REMOTE_LIST_BYTES);
		if (value_print(tool, 0, &text))
			list->bytes += text.size;
		else
			list->bytes = REMOTE_LIST_BYTES + 1;
		buf_fini(&text);
		if (list->bytes > REMOTE_LIST_BYTES ||
		    value_count(list->tools) == REMOTE_TOOLS_MAX)
			return false;
		if (value_str(value_member(tool, "name")).size)
			value_append(list->tools, value_copy(tool));
	}
	return value_kind(tools) == VALUE_ARRAY;
}

static void remote_give_up(struct remote *remote, const char *what, struct str words);

/*
 * Without its first list a server is of no use. When a later list fails, the last
 * complete list stays valid.
 */
static void list_fails(struct remote *remote, const char *what, struct str words)
{
	forget(&remote->list);
	if (remote->state == REMOTE_LISTS)
		remote_give_up(remote, what, words);
	else
		remote_fault(remote);
}

/* In the newer era a server reports changes only to a client that has subscribed. */
static void listen(struct remote *remote)
{
	struct value *params, *wishes;

	if (!remote->modern || !remote->tells_changes || remote->listens)
		return;
	params = value_new_object();
	wishes = value_new_object();
	value_set_boolean(wishes, "toolsListChanged", true);
	value_set(params, "notifications", wishes);
	remote->listens = remote_request(remote, "subscriptions/listen", params);
}

static void remote_list_changed(struct remote *remote);
static void remote_settle(struct remote *remote);

/* The last step of the start: the tools may have changed since they were listed. */
static void start_is_over(struct remote *remote)
{
	remote_settle(remote);
	if (remote->list_again && remote->state == REMOTE_READY)
		remote_list_changed(remote);
}

static void remote_list_prompts(struct remote *remote);

static void list_is_whole(struct remote *remote)
{
	bool first = remote->state == REMOTE_LISTS;

	value_free(remote->tools);
	remote->tools = remote->list.tools;
	remote->list.tools = NULL;
	forget(&remote->list);
	if (first) {
		listen(remote);
		remote_list_prompts(remote);
		return;
	}
	remote->options.settled(remote->options.context, NULL);
	if (remote->list_again && remote->state == REMOTE_READY)
		remote_list_changed(remote);
}

/* Take the answer to tools/list. */
static void remote_listed(struct remote *remote, const struct mcp_message *message)
{
	struct remote_list *list = &remote->list;
	struct value *next = value_member(message->result, "nextCursor");

	list->request = 0;
	if (message->error) {
		list_fails(remote, "refuses",
			   value_str(value_member(message->error, "message")));
		return;
	}
	if (!take_tools(list, value_member(message->result, "tools"))) {
		list_fails(remote, "lists too many tools, or none in a way that is known",
			   (struct str){0});
		return;
	}
	if (value_kind(next) != VALUE_STRING) {
		list_is_whole(remote);
		return;
	}
	if (++list->pages == PAGES_MAX || value_equal(next, list->cursor)) {
		list_fails(remote, "lists its tools without an end", (struct str){0});
		return;
	}
	next = value_ref(next);
	value_free(list->cursor);
	list->cursor = next;
	ask_page(remote);
}

/* The server reports that its tools have changed. */
static void remote_list_changed(struct remote *remote)
{
	if (++remote->changes > CHANGES_MAX) {
		remote_give_up(remote, "says without an end that its tools have changed",
			       (struct str){0});
		return;
	}
	/* The list under way may show the tools from before the change. */
	if (remote->list.request || remote->state != REMOTE_READY) {
		remote->list_again = true;
		return;
	}
	if (remote->relist.loop)
		return;
	remote->relist.due_ms = clock_now_ms() + RELIST_MS;
	loop_add_timer(remote->options.loop, &remote->relist);
}

enum {
	/* A server of the older era may drop an unknown request without an answer. */
	PROBE_MS = 2000,
	WORDS_MAX = 300, /* bytes of a server's own words in a sentence */
	SENTENCE_MAX = 1024,
	LATE_MAX = 128,
	PROMPTS_MAX = 100,
	PROMPT_NAME_MAX = 64,
};

/* Some servers still name this version. Their tools have the form of the next one. */
#define VERSION_BEFORE_ALL "2024-10-07"

static void send_value(struct remote *remote, struct value *take_value)
{
	struct buf text;

	buf_init(&text, REMOTE_LINE_MAX);
	value_set_text(take_value, "jsonrpc", "2.0");
	/* It always fits, because the arguments came in a smaller message. */
	if (value_print(take_value, 0, &text) && buf_addc(&text, '\n'))
		remote->options.send(remote->options.context, buf_str(&text));
	buf_fini(&text);
	value_free(take_value);
}

/*
 * Our only capabilities are to show the server's questions, and to ask a model, when there is
 * a person to answer.
 */
static struct value *what_we_can(const struct remote *remote)
{
	const unsigned shown = REMOTE_ASKS_FORMS | REMOTE_ASKS_ADDRESSES;
	struct value *all = value_new_object(), *kinds;

	if ((remote->options.asks & REMOTE_ASKS_MODEL) != 0)
		value_set(all, "sampling", value_new_object());
	if ((remote->options.asks & shown) == 0)
		return all;
	kinds = value_new_object();
	if ((remote->options.asks & REMOTE_ASKS_FORMS) != 0)
		value_set(kinds, "form", value_new_object());
	if ((remote->options.asks & REMOTE_ASKS_ADDRESSES) != 0)
		value_set(kinds, "url", value_new_object());
	value_set(all, "elicitation", kinds);
	return all;
}

/* In the newer era every request names its client. */
static struct value *with_meta(const struct remote *remote, struct value *take_params)
{
	struct value *params = take_params ? take_params : value_new_object();
	struct value *meta = value_member(params, "_meta");
	struct value *client = value_new_object();

	if (!remote->modern) {
		value_free(client);
		return params;
	}
	if (!meta) {
		meta = value_new_object();
		value_set(params, "_meta", meta);
	}
	value_set_text(client, "name", "glovebox");
	value_set_text(client, "version", remote->options.version);
	value_set_text(meta, MCP_META_VERSION, mcp_version_name(MCP_2026_07_28));
	value_set(meta, MCP_META_CLIENT_INFO, client);
	value_set(meta, MCP_META_CLIENT, what_we_can(remote));
	return params;
}

/* Send a request and return its id. TAKE_PARAMS: an object, or NULL. */
static int64_t remote_request(struct remote *remote, const char *method,
			      struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_integer(message, "id", ++remote->last_id);
	value_set_text(message, "method", method);
	value_set(message, "params", with_meta(remote, take_params));
	send_value(remote, message);
	return remote->last_id;
}

static void remote_notify(struct remote *remote, const char *method,
			  struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_text(message, "method", method);
	if (take_params || remote->modern)
		value_set(message, "params", with_meta(remote, take_params));
	send_value(remote, message);
}

/* Append WORDS of a server, made safe for a sentence. */
static void add_words(struct str words, struct buf *out)
{
	size_t size = words.size > WORDS_MAX ? text_character_border(words, WORDS_MAX)
					     : words.size;

	text_add_name(out, str_part(words, 0, size));
}

static void settle(struct remote *remote, const char *why)
{
	loop_remove_timer(&remote->patience);
	remote->asked = 0;
	remote->state = why ? REMOTE_LOST : REMOTE_READY;
	if (why)
		remote_calls_fail(remote, why);
	remote->options.settled(remote->options.context, why);
	if (!why)
		remote_send_waiting(remote);
}

void remote_lost(struct remote *remote, const char *why)
{
	if (remote->state != REMOTE_LOST)
		settle(remote, why);
}

/* The server is ready: its tools are known. */
static void remote_settle(struct remote *remote)
{
	settle(remote, NULL);
}

/*
 * The server cannot be used any more. The sentence has its name, WHAT and, after a colon,
 * WORDS.
 */
static void remote_give_up(struct remote *remote, const char *what, struct str words)
{
	struct buf text;

	buf_init(&text, SENTENCE_MAX);
	(void)buf_addf(&text, "The MCP server %s %s", remote->name, what);
	if (words.size) {
		(void)buf_adds(&text, ": ");
		add_words(words, &text);
	}
	(void)buf_adds(&text, ".");
	remote_lost(remote, text.data);
	buf_fini(&text);
}

/* Count one more fault. A server with too many faults is given up. */
static void remote_fault(struct remote *remote)
{
	if (++remote->faults > REMOTE_FAULTS_MAX)
		remote_give_up(remote, "sends too much that is no message", (struct str){0});
}

/*
 * Wait for the answer to ID for at most MS (negative: no limit of its own), and not
 * longer than the whole start may take.
 */
static void wait_for(struct remote *remote, int64_t id, int64_t ms)
{
	int64_t due_ms = ms < 0 ? remote->start_ms : clock_now_ms() + ms;

	if (remote->state == REMOTE_LOST)
		return;
	remote->asked = id;
	loop_remove_timer(&remote->patience);
	remote->patience.due_ms = due_ms < remote->start_ms ? due_ms : remote->start_ms;
	loop_add_timer(remote->options.loop, &remote->patience);
}

static void greet(struct remote *remote)
{
	struct value *params = value_new_object();
	struct value *client = value_new_object();

	remote->state = REMOTE_GREETS;
	remote->modern = false;
	value_set_text(client, "name", "glovebox");
	value_set_text(client, "version", remote->options.version);
	value_set_text(params, "protocolVersion", mcp_version_name(MCP_2025_11_25));
	value_set(params, "capabilities", what_we_can(remote));
	value_set(params, "clientInfo", client);
	wait_for(remote, remote_request(remote, "initialize", params), -1);
}

/* List the prompts, where there are some, before the server is ready. */
static void remote_list_prompts(struct remote *remote)
{
	if (!remote->has_prompts) {
		start_is_over(remote);
		return;
	}
	remote->state = REMOTE_LISTS_PROMPTS;
	wait_for(remote, remote_request(remote, "prompts/list", NULL), -1);
}

/* Can a person type NAME behind "/SERVER:"? */
static bool is_typed(const char *name)
{
	const size_t size =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			     "0123456789_.-");

	return size > 0 && size <= PROMPT_NAME_MAX && name[size] == '\0';
}

/* Keep PROMPTS, the first of them. A list that cannot be read is an empty one. */
static void take_prompts(struct remote *remote, const struct value *prompts)
{
	for (size_t i = 0; i < value_count(prompts); i++) {
		const struct value *prompt = value_item(prompts, i);
		const char *name = value_text(value_member(prompt, "name"));

		if (name && is_typed(name) && value_count(remote->prompts) < PROMPTS_MAX)
			value_append(remote->prompts, value_copy(prompt));
	}
}

static double start_s(const struct remote *remote)
{
	return remote->options.start_s > 0 ? remote->options.start_s : REMOTE_START_S;
}

static void patience_due(struct timer *timer)
{
	struct remote *remote = timer->context;

	char what[LATE_MAX];

	loop_remove_timer(timer);
	/* Nobody has turned the loop for long: the answer may lie in the pipe. */
	if (clock_now_ms() > remote->start_ms + REMOTE_UNHEARD_MS) {
		remote->start_ms = clock_now_ms() + REMOTE_UNHEARD_MS;
		if (remote->state == REMOTE_PROBES)
			greet(remote);
		else
			wait_for(remote, remote->asked, -1);
		return;
	}
	if (remote->state == REMOTE_PROBES && clock_now_ms() < remote->start_ms) {
		greet(remote);
		return;
	}
	/* Its tools are known, and can be used without its prompts. */
	if (remote->state == REMOTE_LISTS_PROMPTS) {
		start_is_over(remote);
		return;
	}
	(void)snprintf(what, sizeof(what),
		       "does not answer: %s within %g s (\"start_s\" of its settings gives "
		       "it more)",
		       remote->state == REMOTE_LISTS ? "no list of its tools" : "no greeting",
		       start_s(remote));
	remote->was_silent = true;
	remote_give_up(remote, what, (struct str){0});
}

/* A server without the capability for tools has none. */
static void list_if_it_can(struct remote *remote, const struct value *result)
{
	const struct value *abilities = value_member(result, "capabilities");
	const struct value *tools = value_member(abilities, "tools");

	remote->has_resources = value_member(abilities, "resources") != NULL;
	remote->has_prompts = value_member(abilities, "prompts") != NULL;
	if (!tools) {
		remote_list_prompts(remote);
		return;
	}
	remote->tells_changes = value_is_true(value_member(tools, "listChanged"));
	remote->state = REMOTE_LISTS;
	wait_for(remote, 0, -1);
	remote_list_begin(remote);
}

/* A server of the older era answers with an error, or without our newest version. */
static void discovered(struct remote *remote, const struct value *result)
{
	if (value_has_text(value_member(result, "supportedVersions"),
			   mcp_version_name(MCP_2026_07_28)))
		list_if_it_can(remote, result);
	else
		greet(remote);
}

static void greeted(struct remote *remote, const struct value *result)
{
	const char *version = value_text(value_member(result, "protocolVersion"));

	/* The modern era has no handshake. */
	if (mcp_version_find(version) >= MCP_2026_07_28 &&
	    (!version || strcmp(version, VERSION_BEFORE_ALL) != 0)) {
		remote_give_up(remote,
			       "speaks a version of the protocol that is not known here",
			       str_of(version));
		return;
	}
	remote_notify(remote, "notifications/initialized", NULL);
	list_if_it_can(remote, result);
}

static void probe(struct remote *remote)
{
	wait_for(remote, remote_request(remote, MCP_DISCOVER, NULL),
		 remote->options.answers ? -1 : PROBE_MS);
}

/* A server may refuse the first request, and name our version as one that it speaks. */
static bool wants_same_again(struct remote *remote, const struct value *error)
{
	const struct value *supported =
		value_member(value_member(error, "data"), "supported");

	if (remote->refused_once ||
	    value_integer(value_member(error, "code")) != MCP_CODE_VERSION ||
	    !value_has_text(supported, mcp_version_name(MCP_2026_07_28)))
		return false;
	remote->refused_once = true;
	return true;
}

static void settle_step(struct remote *remote, const struct mcp_message *message)
{
	if (message->error && remote->state == REMOTE_PROBES &&
	    wants_same_again(remote, message->error))
		probe(remote);
	else if (message->error && remote->state == REMOTE_PROBES)
		greet(remote);
	else if (remote->state == REMOTE_LISTS_PROMPTS) {
		take_prompts(remote, value_member(message->result, "prompts"));
		start_is_over(remote);
	} else if (message->error)
		remote_give_up(remote, "refuses",
			       value_str(value_member(message->error, "message")));
	else if (remote->state == REMOTE_PROBES)
		discovered(remote, message->result);
	else
		greeted(remote, message->result);
}

static void answered(struct remote *remote, const struct mcp_message *message)
{
	bool is_ours = value_kind(message->id) == VALUE_INTEGER;

	int64_t id = is_ours ? value_integer(message->id) : 0;

	if (id && id == remote->asked) {
		remote->asked = 0;
		settle_step(remote, message);
	} else if (id && id == remote->list.request) {
		remote_listed(remote, message);
	} else if (id && id == remote->listens) {
		/* The server reports changes no longer, or never did. */
		remote->listens = 0;
	} else if (!is_ours || !remote_call_answered(remote, message)) {
		/*
		 * An answer to a request that does not exist or for which no call waits
		 * any more.
		 */
		remote_fault(remote);
	}
}

/* Send an answer of ours. */
static void remote_reply(struct remote *remote, const struct value *id,
			 struct value *take_result, struct value *take_error)
{
	struct value *answer = value_new_object();

	value_set(answer, "id", value_ref(id));
	if (take_result)
		value_set(answer, "result", take_result);
	else
		value_set(answer, "error", take_error);
	if (remote->state != REMOTE_LOST)
		send_value(remote, answer);
	else
		value_free(answer);
}

static bool remote_asked(struct remote *remote, const struct mcp_message *message);

/*
 * A server may only send the questions that we offered to show, and `ping` in older
 * versions.
 */
static void asked(struct remote *remote, const struct mcp_message *message)
{
	struct value *error;

	if (strcmp(message->method, "ping") == 0 && !remote->modern) {
		remote_reply(remote, message->id, value_new_object(), NULL);
		return;
	}
	if (remote_asked(remote, message))
		return;
	error = value_new_object();
	value_set_integer(error, "code", MCP_CODE_METHOD);
	value_set_text(error, "message", "This client offers nothing of that kind.");
	remote_reply(remote, message->id, NULL, error);
	remote_fault(remote);
}

static void take(struct remote *remote, const struct mcp_message *message)
{
	if (message->kind == MCP_RESPONSE)
		answered(remote, message);
	else if (message->kind == MCP_REQUEST)
		asked(remote, message);
	else if (strcmp(message->method, "notifications/tools/list_changed") == 0)
		remote_list_changed(remote);
	else
		remote_call_noted(remote, message);
}

/*
 * A server of 2025-03-26 may send several messages as one list. Answers to them go back
 * as single messages, which every server can read.
 */
static void take_list(struct remote *remote, struct str line)
{
	auto_value struct value *list = NULL;
	struct mcp_message message;

	if (!value_parse(line, VALUE_HALVES | VALUE_WIDE, &list, NULL) ||
	    value_count(list) == 0)
		remote_fault(remote);
	for (size_t i = 0; i < value_count(list) && remote->state != REMOTE_LOST; i++) {
		if (mcp_message_of(value_item(list, i), &message, NULL))
			take(remote, &message);
		else
			remote_fault(remote);
		mcp_message_fini(&message);
	}
}

void remote_line(struct remote *remote, struct str line)
{
	const struct str text = str_trim(line);
	struct mcp_message message;

	if (remote->state == REMOTE_LOST || text.size == 0)
		return;
	if (str_starts(text, STR("["))) {
		take_list(remote, text);
		return;
	}
	if (mcp_message_read(text, &message, NULL))
		take(remote, &message);
	else
		remote_fault(remote);
	mcp_message_fini(&message);
}

void remote_begin(struct remote *remote)
{
	remote->state = REMOTE_PROBES;
	remote->modern = true;
	remote->start_ms = clock_deadline(start_s(remote));
	remote->refused_once = remote->was_silent = false;
	probe(remote);
}

void remote_reset(struct remote *remote)
{
	remote->state = REMOTE_NEW;
	remote->served = false;
	remote->faults = 0;
	remote_list_fini(remote);
	remote_list_init(remote);
}

struct remote *remote_new(const struct remote_options *options, const char *name)
{
	struct remote *remote = memory_alloc(sizeof(*remote));

	remote->options = *options;
	remote->name = memory_copy(name);
	remote_list_init(remote);
	remote->patience = (struct timer){.due_ms = CLOCK_NEVER,
					  .due = patience_due,
					  .context = remote};
	return remote;
}

void remote_free(struct remote *remote)
{
	if (!remote)
		return;
	loop_remove_timer(&remote->patience);
	while (remote->calls) {
		struct remote_call *call = remote->calls;

		remote->calls = call->next;
		remote_ask_fini(call);
		free(call->name);
		free(call);
	}
	remote_list_fini(remote);
	free(remote->name);
	free(remote);
}

bool remote_was_silent(const struct remote *remote)
{
	return remote->was_silent;
}

bool remote_is_ready(const struct remote *remote)
{
	return remote->state == REMOTE_READY;
}

bool remote_has_served(const struct remote *remote)
{
	return remote->served;
}

bool remote_is_modern(const struct remote *remote)
{
	return remote->modern;
}

bool remote_has_resources(const struct remote *remote)
{
	return remote->has_resources;
}

const struct value *remote_prompts(const struct remote *remote)
{
	return remote->prompts;
}

const struct value *remote_tools(const struct remote *remote)
{
	return remote->tools;
}

/*
 * Questions of a server during a call. They go to the caller, as a plugin's question
 * does. Older servers ask with a request of their own, which names no call. Newer
 * servers send the answer "input_required", and then the call is sent again with the
 * answers.
 */

enum {
	QUESTIONS_MAX = 16,  /* of one call, so that no person is worn down */
	AT_ONCE_MAX = 8,     /* questions in one answer */
	SAID_MAX = 4 << 10,  /* bytes of a text that a person reads */
	FORM_MAX = 64 << 10, /* bytes of the schema of a form */
	TOKEN_MAX = 1 << 20, /* bytes of the state that the server wants back */
};

#define ELICIT "elicitation/create"
/* The code that the protocol has for a person's no to sampling. */
enum { SAMPLING_REFUSED = -1 };

/* Free the questions that CALL holds. */
static void remote_ask_fini(struct remote_call *call)
{
	value_free(call->asked_id);
	value_free(call->asked);
	value_free(call->token);
	call->asked_id = call->asked = call->token = NULL;
}

/* The person who reads the question must know that the server asks it, and not we. */
static bool add_message(const struct remote *remote, const struct value *params,
			struct value *question)
{
	struct str said = value_str(value_member(params, "message"));
	struct buf text, clean;
	bool fits;

	buf_init(&text, 16 * SAID_MAX);
	buf_init(&clean, 8 * SAID_MAX);
	(void)buf_addf(&text, "The MCP server %s asks: ", remote->name);
	fits = said.size <= SAID_MAX && text_clean(said, &clean);
	/* Marks of direction must not put the server's words before ours either. */
	text_add_paragraph(&text, buf_str(&clean));
	if (fits)
		value_set_str(question, "message", buf_str(&text));
	buf_fini(&clean);
	buf_fini(&text);
	return fits;
}

/*
 * The parameters of elicitation/create as a plugin's question; NULL: they are no such
 * question.
 */
static struct value *question_of(const struct remote *remote, const struct value *params)
{
	struct value *schema = value_member(params, "requestedSchema");
	const struct value *url = value_member(params, "url");
	const bool by_url = str_is(value_str(value_member(params, "mode")), "url");
	struct value *question = value_new_object();
	const unsigned kind = by_url ? REMOTE_ASKS_ADDRESSES : REMOTE_ASKS_FORMS;
	bool fits = (remote->options.asks & kind) != 0 &&
		    add_message(remote, params, question);
	struct buf text;

	value_set_text(question, "kind", by_url ? "url" : "form");
	buf_init(&text, by_url ? SAID_MAX : FORM_MAX);
	if (by_url) {
		fits = fits && value_str(url).size && text_clean(value_str(url), &text) &&
		       str_equal(buf_str(&text), value_str(url));
		value_set_str(question, "url", buf_str(&text));
	} else {
		fits = fits && value_kind(schema) == VALUE_OBJECT &&
		       value_print(schema, 0, &text);
		if (fits)
			value_set(question, "schema", value_copy(schema));
	}
	buf_fini(&text);
	if (fits)
		return question;
	value_free(question);
	return NULL;
}

/* The question of METHOD with PARAMS; NULL: it cannot be asked. */
static struct value *asked_of(const struct remote *remote, const char *method,
			      const struct value *params, struct err *why)
{
	return strcmp(method, SAMPLING_METHOD) == 0
		       ? sampling_question(remote->name, params, why)
		       : question_of(remote, params);
}

static const char *kind_of(const struct value *question)
{
	return value_text(value_member(question, "kind"));
}

/* An answer of ours as a result of elicitation/create. */
static struct value *result_of(const struct value *answer)
{
	const char *action = value_text(value_member(answer, "action"));
	struct value *content = value_member(answer, "content");
	struct value *result = value_new_object();

	value_set_text(result, "action", action ? action : "decline");
	if (action && strcmp(action, "accept") == 0 && value_kind(content) == VALUE_OBJECT)
		value_set(result, "content", value_copy(content));
	return result;
}

/*
 * The question does not name its call. Choose the call that has waited for longest and
 * has no open question.
 */
static struct remote_call *find_asking(const struct remote *remote)
{
	struct remote_call *oldest = NULL;

	for (struct remote_call *at = remote->calls; at; at = at->next) {
		if (at->id && !at->asked_id && at->questions < QUESTIONS_MAX &&
		    (!oldest || at->id < oldest->id))
			oldest = at;
	}
	return oldest;
}

static void decline(struct remote *remote, const struct value *id)
{
	struct value *result = value_new_object();

	value_set_text(result, "action", "decline");
	remote_reply(remote, id, result, NULL);
}

static void refuse_sampling(struct remote *remote, const struct value *id,
			    const struct err *why)
{
	struct value *error = value_new_object();

	value_set_integer(error, "code",
			  why->code == ECANCELED ? SAMPLING_REFUSED : MCP_CODE_PARAMS);
	value_set_text(error, "message", why->text);
	remote_reply(remote, id, NULL, error);
}

/* Refuse the question MESSAGE of a server, which cannot be asked: WHY, if it is sampling. */
static void refuse_question(struct remote *remote, const struct mcp_message *message,
			    struct err *why)
{
	if (strcmp(message->method, ELICIT) == 0) {
		decline(remote, message->id);
	} else {
		if (why->text[0] == '\0')
			(void)err_set(why, ECANCELED,
				      "Only calls may ask, one question at a time, and %d in all.",
				      QUESTIONS_MAX);
		refuse_sampling(remote, message->id, why);
	}
	remote_fault(remote);
}

/* Is METHOD a question that was offered to the server? */
static bool was_offered(const struct remote *remote, const char *method)
{
	const unsigned shown = REMOTE_ASKS_FORMS | REMOTE_ASKS_ADDRESSES;

	if (strcmp(method, SAMPLING_METHOD) == 0)
		return (remote->options.asks & REMOTE_ASKS_MODEL) != 0;
	return strcmp(method, ELICIT) == 0 && (remote->options.asks & shown) != 0;
}

/* The server asks something, by a request of its own. True: an answer will be sent. */
static bool remote_asked(struct remote *remote, const struct mcp_message *message)
{
	auto_value struct value *question = NULL;
	struct remote_call *call;
	struct running *running;
	struct err why = {0};

	if (remote->modern || !was_offered(remote, message->method))
		return false;
	question = asked_of(remote, message->method, message->params, &why);
	call = question ? find_asking(remote) : NULL;
	if (!call) {
		refuse_question(remote, message, &why);
		return true;
	}
	call->questions++;
	call->asked_id = value_ref(message->id);
	call->samples = strcmp(message->method, SAMPLING_METHOD) == 0;
	/*
	 * The question may be answered, and the call may end, before running_ask returns.
	 */
	running = call->running;
	if (!running_ask(running, kind_of(question), question)) {
		auto_value struct value *nothing = value_new_object();

		remote_answer(remote, running, nothing);
	}
	return true;
}

/*
 * Send CALL again with RESPONSES to the server's questions, and the server's own state.
 */
static void send_again(struct remote *remote, struct remote_call *call,
		       struct value *take_responses)
{
	struct value *more = value_new_object();

	value_set(more, "inputResponses", take_responses);
	if (call->token)
		value_set(more, "requestState", value_ref(call->token));
	remote_ask_fini(call);
	remote_call_send(remote, call, more);
}

/* Answer the server's request ID for a model by ANSWER. */
static void reply_sampled(struct remote *remote, const struct value *id,
			  const struct value *answer)
{
	struct err why = {0};
	struct value *result = sampling_result(answer, &why);

	if (result)
		remote_reply(remote, id, value_ref(result), NULL);
	else
		refuse_sampling(remote, id, &why);
}

/*
 * Add to RESPONSES what CONTENT answers to the questions of ASKED. False: a model was not
 * asked, for which newer servers have no answer.
 */
static bool add_responses(const struct value *asked, const struct value *content,
			  struct value *responses, struct err *why)
{
	for (void *at = value_first(asked); at; at = value_next(asked, at)) {
		const struct value *answer = value_member(content, value_key(at));
		struct value *result;

		if (strcmp(kind_of(value_at(at)), CALL_ASK_SAMPLING) != 0) {
			value_set(responses, value_key(at), result_of(answer));
			continue;
		}
		result = sampling_result(answer, why);
		if (!result)
			return false;
		value_set(responses, value_key(at), value_ref(result));
	}
	return true;
}

/* CALL ends, because its server wanted a model to be asked, which was not: WHY. */
static void end_unsampled(struct remote *remote, struct remote_call *call,
			  const struct err *why)
{
	struct tool_result result;

	(void)take_call(remote, call->running, 0);
	tool_result_init(&result);
	(void)tool_fail(&result,
			"The MCP server %s wanted a model to be asked for this call: %s",
			remote->name, why->text);
	running_end(call->running, &result);
	call_free(call);
}

void remote_answer(struct remote *remote, const struct running *running,
		   const struct value *answer)
{
	struct remote_call *call = remote_call_find(remote, running);
	struct value *content = value_member(answer, "content");

	if (call && call->asked_id) {
		auto_value struct value *id = call->asked_id;

		call->asked_id = NULL;
		if (call->samples)
			reply_sampled(remote, id, answer);
		else
			remote_reply(remote, id, result_of(answer), NULL);
	} else if (call && call->asked) {
		auto_value struct value *responses = value_new_object();
		struct err why = {0};

		if (add_responses(call->asked, content, responses, &why))
			send_again(remote, call, value_ref(responses));
		else
			end_unsampled(remote, call, &why);
	}
}

/*
 * The questions of ASKED as one question of several; NULL: one of them is of a kind that
 * was not offered.
 */
static struct value *several_of(const struct remote *remote, const struct value *asked,
				struct err *why)
{
	struct value *several = value_new_object();
	size_t count = 0;

	for (void *at = value_first(asked); at; at = value_next(asked, at)) {
		const struct value *one = value_at(at);
		const char *method = value_text(value_member(one, "method"));
		struct value *question =
			method && was_offered(remote, method) && ++count <= AT_ONCE_MAX
				? asked_of(remote, method, value_member(one, "params"), why)
				: NULL;

		if (!question) {
			value_free(several);
			return NULL;
		}
		value_set(several, value_key(at), question);
	}
	return several;
}

static bool token_fits(const struct value *token)
{
	return !token ||
	       (value_kind(token) == VALUE_STRING && value_str(token).size <= TOKEN_MAX);
}

/*
 * The server answered CALL with questions. True: they are asked, and CALL is sent again
 * later.
 */
static bool remote_call_asks(struct remote *remote, struct remote_call *call,
			     const struct value *result)
{
	const struct value *asked = value_member(result, "inputRequests");
	struct value *token = value_member(result, "requestState");
	auto_value struct value *several = NULL;
	auto_value struct value *question = NULL;
	struct running *running = call->running;
	struct err why = {0};

	if (!str_is(value_str(value_member(result, "resultType")), "input_required") ||
	    !remote->options.asks || !token_fits(token) || ++call->questions > QUESTIONS_MAX)
		return false;
	several = several_of(remote, asked, &why);
	if (!several && why.text[0] != '\0') {
		end_unsampled(remote, call, &why);
		return true;
	}
	if (!several)
		return false;
	remote_ask_fini(call);
	call->token = token ? value_ref(token) : NULL;
	call->asked = value_ref(several);
	if (value_count(several) == 0) {
		/* The server asks nothing, and only wants to be called again. */
		send_again(remote, call, value_new_object());
		return true;
	}
	question = value_new_object();
	value_set(question, "requests", value_ref(several));
	if (!running_ask(running, "several", question)) {
		auto_value struct value *nothing = value_new_object();

		remote_answer(remote, running, nothing);
	}
	return true;
}
