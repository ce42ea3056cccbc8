/* remote: from the first question to the list of tools; see remote.h. */
#include "mcp/client/remote_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* A server of the older era that drops what it does not know says nothing to it. */
	PROBE_MS = 2000,
	WORDS_MAX = 300, /* bytes of a server's own words in a sentence */
	SENTENCE_MAX = 1024,
	LATE_MAX = 128,
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

/* Nothing but to show its questions, where there is somebody to show them to. */
static struct value *what_we_can(const struct remote *remote)
{
	struct value *all = value_new_object(), *kinds;

	if (!remote->options.asks)
		return all;
	kinds = value_new_object();
	value_set(kinds, "form", value_new_object());
	value_set(kinds, "url", value_new_object());
	value_set(all, "elicitation", kinds);
	return all;
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
	value_set(meta, MCP_META_CLIENT, what_we_can(remote));
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
	remote->options.settled(remote->options.context, why);
	if (!why)
		remote_send_waiting(remote);
}

void remote_lost(struct remote *remote, const char *why)
{
	if (remote->state != REMOTE_LOST)
		settle(remote, why);
}

void remote_settle(struct remote *remote)
{
	settle(remote, NULL);
}

void remote_give_up(struct remote *remote, const char *what, struct str words)
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
		remote_give_up(remote, "sends too much that is no message", (struct str){0});
}

/* For MS at most, and not beyond what its whole start may take. */
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

static double start_s(const struct remote *remote)
{
	return remote->options.start_s > 0 ? remote->options.start_s : REMOTE_START_S;
}

static void patience_due(struct timer *timer)
{
	struct remote *remote = timer->context;

	char what[LATE_MAX];

	loop_remove_timer(timer);
	if (remote->state == REMOTE_PROBES && clock_now_ms() < remote->start_ms) {
		greet(remote);
		return;
	}
	(void)snprintf(what, sizeof(what),
		       "does not answer: %s within %g s (\"start_s\" of its settings gives "
		       "it more)",
		       remote->state == REMOTE_LISTS ? "no list of its tools" : "no greeting",
		       start_s(remote));
	remote_give_up(remote, what, (struct str){0});
}

/* One with nothing to call is as good as one without the capability. */
static void list_if_it_can(struct remote *remote, const struct value *result)
{
	const struct value *tools =
		value_member(value_member(result, "capabilities"), "tools");

	if (!tools) {
		settle(remote, NULL);
		return;
	}
	remote->tells_changes = value_is_true(value_member(tools, "listChanged"));
	remote->state = REMOTE_LISTS;
	wait_for(remote, 0, -1);
	remote_list_begin(remote);
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
		remote_give_up(remote,
			       "speaks a version of the protocol that is not known here",
			       str_of(version));
		return;
	}
	remote_notify(remote, "notifications/initialized", NULL);
	list_if_it_can(remote, result);
}

static void settle_step(struct remote *remote, const struct mcp_message *message)
{
	if (message->error && remote->state == REMOTE_PROBES)
		greet(remote);
	else if (message->error)
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
		/* It tells no changes any more, or never did. */
		remote->listens = 0;
	} else if (!is_ours || !remote_call_answered(remote, message)) {
		/* To nothing, or to what nobody waits for any more. */
		remote_fault(remote);
	}
}

void remote_reply(struct remote *remote, const struct value *id,
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

/* Nothing was offered to it but its questions, and the sign of life of older versions. */
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

/* Answers to a batch go back as single messages, which every server can read. */
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
	remote->start_ms = clock_deadline(start_s(remote));
	wait_for(remote, remote_request(remote, MCP_DISCOVER, NULL), PROBE_MS);
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
