/* remote: from the first question to the list of tools; see remote.h. */
#include "mcp/remote_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A server of the older era that drops what it does not know says nothing to it. */
	PROBE_MS = 2000,
	/* An interpreter with its modules on a cold disk: what Codex gives to the whole start. */
	ANSWER_MS = 10000,
	PAGES_MAX = 64,
	WORDS_MAX = 300, /* bytes of a server's own words in a sentence */
	SENTENCE_MAX = 1024,
};

/* Said by some servers still; their tools are those of the next. */
#define VERSION_BEFORE_ALL "2024-10-07"

static void send_value(struct remote *remote, struct value *take_value)
{
	struct buf text;

	buf_init(&text, REMOTE_LINE_MAX);
	value_set_text(take_value, "jsonrpc", "2.0");
	/* Arguments came in a smaller message. */
	if (value_print(take_value, 0, &text) && buf_addc(&text, '\n'))
		remote->options.send(remote->options.context, buf_str(&text));
	buf_fini(&text);
	value_free(take_value);
}

/* Every request of the newer era says who asks. */
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
	value_set(meta, MCP_META_CLIENT, value_new_object());
	return params;
}

int64_t remote_request(struct remote *remote, const char *method, struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_integer(message, "id", ++remote->last_id);
	value_set_text(message, "method", method);
	value_set(message, "params", with_meta(remote, take_params));
	send_value(remote, message);
	return remote->last_id;
}

void remote_notify(struct remote *remote, const char *method, struct value *take_params)
{
	struct value *message = value_new_object();

	value_set_text(message, "method", method);
	if (take_params || remote->modern)
		value_set(message, "params", with_meta(remote, take_params));
	send_value(remote, message);
}

/* A server's own words, fit for a sentence. */
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
	else
		remote_send_waiting(remote);
	remote->options.settled(remote->options.context, why);
}

void remote_lost(struct remote *remote, const char *why)
{
	if (remote->state != REMOTE_LOST)
		settle(remote, why);
}

static void give_up(struct remote *remote, const char *what, struct str words)
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

void remote_fault(struct remote *remote)
{
	if (++remote->faults > REMOTE_FAULTS_MAX)
		give_up(remote, "sends too much that is no message", (struct str){0});
}

static void wait_for(struct remote *remote, int64_t id, int64_t ms)
{
	if (remote->state == REMOTE_LOST)
		return;
	remote->asked = id;
	loop_remove_timer(&remote->patience);
	remote->patience.due_ms = clock_now_ms() + ms;
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
	value_set(params, "capabilities", value_new_object());
	value_set(params, "clientInfo", client);
	wait_for(remote, remote_request(remote, "initialize", params), ANSWER_MS);
}

static void list(struct remote *remote)
{
	struct value *params = value_new_object();

	remote->state = REMOTE_LISTS;
	if (remote->cursor)
		value_set(params, "cursor", value_ref(remote->cursor));
	wait_for(remote, remote_request(remote, "tools/list", params), ANSWER_MS);
}

static void patience_due(struct timer *timer)
{
	struct remote *remote = timer->context;

	loop_remove_timer(timer);
	if (remote->state == REMOTE_PROBES)
		greet(remote);
	else
		give_up(remote, "does not answer", (struct str){0});
}

/* One with nothing to call is as good as one without the capability. */
static void list_if_it_can(struct remote *remote, const struct value *result)
{
	if (value_member(value_member(result, "capabilities"), "tools"))
		list(remote);
	else
		settle(remote, NULL);
}

/* An answer to anything but our newest version, or an error, is one of the older era. */
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
		give_up(remote, "speaks a version of the protocol that is not known here",
			str_of(version));
		return;
	}
	remote_notify(remote, "notifications/initialized", NULL);
	list_if_it_can(remote, result);
}

/* False: there is too much, or it is no list. */
static bool take_tools(struct remote *remote, const struct value *tools)
{
	struct buf text;

	for (size_t i = 0; i < value_count(tools); i++) {
		const struct value *tool = value_item(tools, i);

		buf_init(&text, REMOTE_LIST_BYTES);
		if (value_print(tool, 0, &text))
			remote->list_bytes += text.size;
		else
			remote->list_bytes = REMOTE_LIST_BYTES + 1;
		buf_fini(&text);
		if (remote->list_bytes > REMOTE_LIST_BYTES ||
		    value_count(remote->tools) == REMOTE_TOOLS_MAX)
			return false;
		if (value_str(value_member(tool, "name")).size)
			value_append(remote->tools, value_copy(tool));
	}
	return value_kind(tools) == VALUE_ARRAY;
}

static void listed(struct remote *remote, const struct value *result)
{
	struct value *next = value_member(result, "nextCursor");

	if (!take_tools(remote, value_member(result, "tools"))) {
		give_up(remote, "lists too many tools, or none in a way that is known",
			(struct str){0});
		return;
	}
	if (value_kind(next) != VALUE_STRING) {
		settle(remote, NULL);
		return;
	}
	if (++remote->pages == PAGES_MAX || value_equal(next, remote->cursor)) {
		give_up(remote, "lists its tools without an end", (struct str){0});
		return;
	}
	next = value_ref(next);
	value_free(remote->cursor);
	remote->cursor = next;
	list(remote);
}

static void settle_step(struct remote *remote, const struct mcp_message *message)
{
	if (message->error && remote->state == REMOTE_PROBES)
		greet(remote);
	else if (message->error)
		give_up(remote, "refuses",
			value_str(value_member(message->error, "message")));
	else if (remote->state == REMOTE_PROBES)
		discovered(remote, message->result);
	else if (remote->state == REMOTE_GREETS)
		greeted(remote, message->result);
	else
		listed(remote, message->result);
}

static void answered(struct remote *remote, const struct mcp_message *message)
{
	bool is_ours = value_kind(message->id) == VALUE_INTEGER;

	if (is_ours && remote->asked && value_integer(message->id) == remote->asked) {
		remote->asked = 0;
		settle_step(remote, message);
	} else if (!is_ours || !remote_call_answered(remote, message)) {
		/* To nothing, or to what nobody waits for any more. */
		remote_fault(remote);
	}
}

/* Nothing was offered to it but the sign of life that older versions ask for. */
static void asked(struct remote *remote, const struct mcp_message *message)
{
	struct value *answer = value_new_object();
	struct value *error;

	value_set(answer, "id", value_ref((struct value *)(uintptr_t)message->id));
	if (strcmp(message->method, "ping") == 0 && !remote->modern) {
		value_set(answer, "result", value_new_object());
	} else {
		error = value_new_object();
		value_set_integer(error, "code", MCP_CODE_METHOD);
		value_set_text(error, "message", "This client offers nothing of that kind.");
		value_set(answer, "error", error);
		remote_fault(remote);
	}
	if (remote->state != REMOTE_LOST)
		send_value(remote, answer);
	else
		value_free(answer);
}

static void take(struct remote *remote, const struct mcp_message *message)
{
	if (message->kind == MCP_RESPONSE)
		answered(remote, message);
	else if (message->kind == MCP_REQUEST)
		asked(remote, message);
	else
		remote_call_noted(remote, message);
}

/* What answers a batch goes back by itself, message by message: every server reads that. */
static void take_batch(struct remote *remote, const struct value *items)
{
	struct mcp_message message;

	for (size_t i = 0; i < value_count(items) && remote->state != REMOTE_LOST; i++) {
		if (mcp_message_of(value_item(items, i), &message, NULL))
			take(remote, &message);
		else
			remote_fault(remote);
		mcp_message_fini(&message);
	}
}

void remote_line(struct remote *remote, struct str line)
{
	struct mcp_message message;
	struct err err;

	if (remote->state == REMOTE_LOST || str_trim(line).size == 0)
		return;
	if (!mcp_message_read(line, &message, &err))
		remote_fault(remote);
	else if (message.kind == MCP_BATCH)
		take_batch(remote, message.whole);
	else
		take(remote, &message);
	mcp_message_fini(&message);
}

void remote_begin(struct remote *remote)
{
	remote->state = REMOTE_PROBES;
	remote->modern = true;
	wait_for(remote, remote_request(remote, MCP_DISCOVER, NULL), PROBE_MS);
}

void remote_reset(struct remote *remote)
{
	remote->state = REMOTE_NEW;
	remote->served = false;
	remote->pages = remote->list_bytes = remote->faults = 0;
	value_free(remote->cursor);
	remote->cursor = NULL;
	value_free(remote->tools);
	remote->tools = value_new_array();
}

struct remote *remote_new(const struct remote_options *options, const char *name)
{
	struct remote *remote = memory_alloc(sizeof(*remote));

	remote->options = *options;
	remote->name = memory_copy(name);
	remote->tools = value_new_array();
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
		free(call->name);
		free(call);
	}
	value_free(remote->tools);
	value_free(remote->cursor);
	free(remote->name);
	free(remote);
}

bool remote_is_ready(const struct remote *remote)
{
	return remote->state == REMOTE_READY;
}

bool remote_has_served(const struct remote *remote)
{
	return remote->served;
}

const struct value *remote_tools(const struct remote *remote)
{
	return remote->tools;
}
