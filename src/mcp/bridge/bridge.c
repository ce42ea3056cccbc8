/* bridge: messages between lines and exchanges of HTTP. */
#include "mcp/bridge/bridge.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/bridge/auth.h"
#include "mcp/bridge/headers.h"
#include "mcp/bridge/steer.h"
#include "mcp/bridge/web.h"
#include "mcp/message.h"
#include "model/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_SIZE = 64 << 10,
	POSTS_MAX = 64,     /* under way; further lines wait unread */
	SESSION_MAX = 1024, /* bytes of the id of a session */
	WORDS_MAX = 300,    /* bytes of a server's words in a sentence */
	SENTENCE_MAX = 4 << 10,
	RETRY_MS = 1000, /* before a stream is opened again; doubled each time */
	RETRY_MOST_MS = 30000,
	RETRIES_MAX = 6, /* of a stream of notices without anything coming */
	LINGER_MS = 200, /* for the end of a stream whose answer has come */
	NOTICE_S = 30,   /* the longest exchange for a notice */
	GOODBYE_S = 2,
	IDLE_MS = 60000,
};

enum post_kind {
	POST_REQUEST,
	POST_NOTICE, /* a notice, or an answer to a question of the server */
	POST_LISTEN, /* the request whose answer is a stream of notices (modern) */
	POST_STREAM, /* that stream by GET (older) */
	POST_GOODBYE,
};

enum post_state {
	POST_DUE, /* starts at due_ms */
	POST_RUNS,
	POST_LINGERS,      /* answered; its stream may go on until due_ms */
	POST_UNAUTHORIZED, /* answered by 401 */
	POST_FORGOTTEN,    /* the server does not know the session any more */
	POST_RESTS,        /* a stream of notices that is opened by the next call */
	POST_OVER,
};

/* One message that is on its way, and the exchanges for it. */
struct post {
	struct post *next;
	struct bridge *bridge;
	enum post_kind kind;
	enum post_state state;
	struct buf line;
	struct mcp_message message; /* of `line` */
	struct web_exchange *exchange;
	struct sse *sse; /* the answer is a stream */
	struct buf body;
	const char *bad; /* the reason why its answer cannot be used; or NULL */
	char *last_event;
	int64_t due_ms, retry_ms;
	unsigned tries;
	bool answered;
	bool resumes;    /* its stream is taken up behind `last_event` */
	bool again;      /* it was sent once more after its connection was lost */
	bool authorized; /* it was sent once more with another token */
	bool renewed;    /* it was sent once more in another session */
	bool quiet;      /* its answer is for the bridge itself */
	bool broke;      /* the stream of notices was lost, and changes with it */
};

struct bridge {
	struct web *web;
	struct auth *auth;
	struct steer steer;
	const struct value *settings;
	const char *name, *url;
	struct post *posts;
	struct buf input;
	bool input_ended, over;
	bool modern;
	char *version, *session;
	struct buf initialize, initialized; /* lines of the handshake, for a new session */
	struct buf challenge;               /* the head of the last answer with 401 */
	struct value *tools;                /* name -> definition, as listed */
};

static void post_free(struct post *post)
{
	web_abort(post->exchange);
	sse_free(post->sse);
	mcp_message_fini(&post->message);
	buf_fini(&post->line);
	buf_fini(&post->body);
	free(post->last_event);
	free(post);
}

static struct post *post_new(struct bridge *bridge, enum post_kind kind, struct str line)
{
	struct post *post = memory_alloc(sizeof(*post)), **end = &bridge->posts;

	post->bridge = bridge;
	post->kind = kind;
	post->retry_ms = -1;
	buf_init(&post->line, BRIDGE_LINE_MAX);
	buf_init(&post->body, BRIDGE_LINE_MAX);
	if (buf_addstr(&post->line, line) && line.size > 0)
		(void)mcp_message_read(line, &post->message, NULL);
	while (*end)
		end = &(*end)->next;
	*end = post;
	return post;
}

/* The server cannot be used. */
static void bridge_fail(struct bridge *bridge, const char *phrase)
{
	struct value *line = value_new_object();

	value_set_text(line, "fails", phrase);
	steer_tell(&bridge->steer, line);
	bridge->over = true;
}

/* Messages for the front. */

static void write_value(struct bridge *bridge, const struct value *message)
{
	struct buf text;

	buf_init(&text, 2 * BRIDGE_LINE_MAX);
	if (!value_print(message, 0, &text) || !buf_addc(&text, '\n') ||
	    !fd_write_all(STDOUT_FILENO, text.data, text.size, NULL))
		bridge->over = true;
	buf_fini(&text);
}

static void write_notice(struct bridge *bridge, const char *method)
{
	auto_value struct value *message = value_new_object();

	value_set_text(message, "jsonrpc", "2.0");
	value_set_text(message, "method", method);
	write_value(bridge, message);
}

static bool is_call(const struct post *post)
{
	return post->message.method && strcmp(post->message.method, "tools/call") == 0;
}

static bool is_method(const struct post *post, const char *method)
{
	return post->message.method && strcmp(post->message.method, method) == 0;
}

/* Answer POST, a request, by an error with SENTENCE. A call gets it as its result. */
static void post_answer(struct post *post, int code, const char *sentence)
{
	auto_value struct value *message = value_new_object();
	struct value *answer = value_new_object();

	post->answered = true;
	post->state = POST_OVER;
	value_set_text(message, "jsonrpc", "2.0");
	value_set(message, "id", value_ref(post->message.id));
	if (is_call(post)) {
		struct value *content = value_new_array(), *text = value_new_object();

		value_set_text(text, "type", "text");
		value_set_text(text, "text", sentence);
		value_append(content, text);
		value_set(answer, "content", content);
		value_set_boolean(answer, "isError", true);
		value_set_text(answer, "resultType", "complete");
		value_set(message, "result", answer);
	} else {
		value_set_integer(answer, "code", code);
		value_set_text(answer, "message", sentence);
		value_set(message, "error", answer);
	}
	write_value(post->bridge, message);
}

/* POST has failed. PHRASE follows the name of the server. */
static void post_fail(struct post *post, const char *phrase)
{
	struct bridge *bridge = post->bridge;
	struct buf sentence;

	post->state = POST_OVER;
	if (post->quiet || post->kind == POST_GOODBYE || post->answered ||
	    post->kind == POST_STREAM)
		return;
	if (is_method(post, MCP_DISCOVER) || is_method(post, "initialize")) {
		bridge_fail(bridge, phrase);
		return;
	}
	if (!post->message.id || post->message.kind != MCP_REQUEST)
		return;
	buf_init(&sentence, SENTENCE_MAX);
	(void)buf_addf(&sentence, "The MCP server %s %s.", bridge->name, phrase);
	post_answer(post, MCP_CODE_INTERNAL, sentence.data);
	buf_fini(&sentence);
}

/* The messages of the server. */

/* A tool whose marks for headers are wrong must not be offered. */
static void learn_tools(struct bridge *bridge, struct value *result)
{
	struct value *tools = value_member(result, "tools");
	struct value *kept = value_new_array();
	const char *why;

	for (size_t i = 0; i < value_count(tools); i++) {
		struct value *tool = value_item(tools, i);
		const char *name = value_text(value_member(tool, "name"));

		if (bridge->modern &&
		    !headers_marks_fit(value_member(tool, "inputSchema"), &why)) {
			struct value *line = value_new_object();

			value_set_text(line, "leaves", name ? name : "");
			value_set_text(line, "why", why);
			steer_tell(&bridge->steer, line);
			continue;
		}
		if (name && value_count(bridge->tools) < 1024)
			value_set(bridge->tools, name, value_ref(tool));
		value_append(kept, value_ref(tool));
	}
	if (value_kind(tools) == VALUE_ARRAY)
		value_set(result, "tools", value_ref(kept));
	value_free(kept);
}

static void learn_version(struct bridge *bridge, const struct value *result)
{
	const char *version = value_text(value_member(result, "protocolVersion"));

	free(bridge->version);
	bridge->version =
		mcp_version_find(version) < MCP_VERSIONS ? memory_copy(version) : NULL;
}

/* The answer to POST, or another message that its stream carries. */
static void post_take(struct post *post, struct value *message)
{
	const struct value *id = value_member(message, "id");
	struct value *result = value_member(message, "result");
	const struct value *error = value_member(message, "error");
	const bool mine = post->message.id && (result || error) &&
			  (value_equal(id, post->message.id) ||
			   (error && value_kind(id) == VALUE_NULL));

	if (mine && post->answered)
		return;
	if (mine) {
		post->answered = true;
		value_set(message, "id", value_ref(post->message.id));
		if (result && is_method(post, "tools/list"))
			learn_tools(post->bridge, result);
		if (result && is_method(post, "initialize"))
			learn_version(post->bridge, result);
	}
	post->tries = 0;
	if (!post->quiet)
		write_value(post->bridge, message);
}

/* Take TEXT, one message or a list of them. False: it is none. */
static bool post_take_text(struct post *post, struct str text)
{
	auto_value struct value *message = NULL;

	if (!value_parse(text, VALUE_HALVES | VALUE_WIDE, &message, NULL))
		return false;
	if (value_kind(message) == VALUE_OBJECT && value_member(message, "jsonrpc")) {
		post_take(post, message);
		return true;
	}
	if (value_kind(message) != VALUE_ARRAY)
		return false;
	for (size_t i = 0; i < value_count(message); i++)
		post_take(post, value_item(message, i));
	return true;
}

static bool post_take_event(void *context, struct str name, struct str data, struct err *err)
{
	struct post *post = context;

	(void)name;
	(void)err;
	/* An event that is no message, such as an empty one with an id, is dropped. */
	if (str_trim(data).size > 0)
		(void)post_take_text(post, data);
	return true;
}

/* Take the id of a session from the answer to `initialize`. */
static void learn_session(struct post *post, struct str head)
{
	struct bridge *bridge = post->bridge;
	struct str id;

	if (!is_method(post, "initialize") || !headers_find(head, "Mcp-Session-Id", &id) ||
	    id.size == 0 || id.size > SESSION_MAX)
		return;
	for (size_t i = 0; i < id.size; i++) {
		if (id.data[i] < '!' || id.data[i] > '~')
			return;
	}
	free(bridge->session);
	bridge->session = memory_copy_str(id);
}

static bool is_stream(const struct web_exchange *exchange)
{
	struct str type;

	return headers_find(web_head(exchange), "Content-Type", &type) &&
	       str_starts_caseless(type, "text/event-stream");
}

/* The stream of POST began: one that was lost may have missed notices. */
static void stream_begins(struct post *post)
{
	post->sse = sse_new(post_take_event, post);
	if (post->broke && (post->kind == POST_LISTEN || post->kind == POST_STREAM))
		write_notice(post->bridge, "notifications/tools/list_changed");
	post->broke = false;
}

static bool post_bytes(void *context, struct web_exchange *exchange, struct str bytes)
{
	struct post *post = context;
	const long status = web_status(exchange);

	if (!post->sse && status >= 200 && status < 300 && is_stream(exchange)) {
		learn_session(post, web_head(exchange));
		stream_begins(post);
	}
	if (post->sse ? !sse_feed(post->sse, bytes, NULL) : !buf_addstr(&post->body, bytes))
		post->bad = "sends a message over 16 MiB";
	if (post->answered && post->state == POST_RUNS && post->sse &&
	    post->kind == POST_REQUEST) {
		post->state = POST_LINGERS;
		post->due_ms = clock_now_ms() + LINGER_MS;
	}
	return !post->bad;
}

/* The ends of exchanges. */

/* Start POST again, in MS. */
static void post_later(struct post *post, int64_t ms)
{
	post->state = POST_DUE;
	post->due_ms = clock_now_ms() + (ms < RETRY_MOST_MS ? ms : RETRY_MOST_MS);
}

/* A stream of notices has ended, or could not be opened. */
static void stream_ended(struct post *post)
{
	const unsigned tries = post->tries++;

	post->broke = true;
	if (tries >= RETRIES_MAX)
		post->state = POST_RESTS;
	else
		post_later(post, post->retry_ms >= 0 && tries == 0
					 ? post->retry_ms
					 : (int64_t)RETRY_MS << tries);
}

/* May POST be sent twice without harm? */
static bool only_reads(const struct post *post)
{
	const struct value *tool =
		value_member(post->bridge->tools,
			     is_call(post)
				     ? value_text(value_member(post->message.params, "name"))
				     : "");

	return !is_call(post) ||
	       value_is_true(
		       value_member(value_member(tool, "annotations"), "readOnlyHint"));
}

/* The connection of POST broke before its answer. */
static void post_lost(struct post *post, const char *why)
{
	char phrase[SENTENCE_MAX / 2];

	if (post->kind == POST_STREAM || post->kind == POST_LISTEN) {
		stream_ended(post);
	} else if (post->last_event && !post->bridge->modern) {
		/* The server keeps the rest of the answer. */
		const unsigned tries = post->tries++;

		post->resumes = true;
		post_later(post, post->retry_ms >= 0 ? post->retry_ms
						     : (int64_t)RETRY_MS << (tries % 6));
	} else if (only_reads(post) && !post->again) {
		post->again = true;
		post_later(post, RETRY_MS);
	} else {
		(void)snprintf(phrase, sizeof(phrase),
			       "lost the connection before it answered (%s)%s", why,
			       is_call(post) && !only_reads(post)
				       ? "; the call may have run: look before you make it "
					 "again"
				       : "");
		post_fail(post, phrase);
	}
}

/* Add the words of an answer that is no message of MCP. */
static void add_words(const struct post *post, struct buf *out)
{
	const struct str body = str_trim(buf_str(&post->body));

	if (body.size == 0 || body.data[0] == '<')
		return;
	(void)buf_adds(out, ": ");
	text_add_name(out, str_part(body, 0, text_character_border(body, WORDS_MAX)));
}

static void post_refused(struct post *post, long status, struct str head)
{
	struct str place;
	struct buf phrase, scope;

	buf_init(&phrase, SENTENCE_MAX / 2);
	buf_init(&scope, SENTENCE_MAX / 8);
	if (status >= 300 && status < 400 && headers_find(head, "Location", &place)) {
		(void)buf_adds(&phrase,
			       "sends us to another address, which is not followed: ");
		text_add_name(&phrase, str_part(place, 0, WORDS_MAX));
	} else if (status == 403 && headers_challenge(head, "error", &scope) &&
		   str_is(buf_str(&scope), "insufficient_scope") &&
		   headers_challenge(head, "scope", &scope)) {
		(void)buf_addf(&phrase,
			       "wants a login with more rights: glovebox servers login %s "
			       "--scope \"",
			       post->bridge->name);
		text_add_name(&phrase, buf_str(&scope));
		(void)buf_adds(&phrase, "\"");
	} else {
		(void)buf_addf(&phrase, "answers with the HTTP status %ld", status);
		add_words(post, &phrase);
	}
	post_fail(post, phrase.data);
	buf_fini(&scope);
	buf_fini(&phrase);
}

/* An answer came whole, with STATUS, and is no stream. */
static void post_whole(struct post *post, long status, struct str head)
{
	const bool success = status >= 200 && status < 300;

	if (post->kind == POST_STREAM || post->kind == POST_GOODBYE) {
		post->state = POST_OVER;
	} else if (post->kind == POST_LISTEN && post->broke && status >= 500) {
		stream_ended(post);
	} else if (status == 401 && !post->authorized) {
		post->state = POST_UNAUTHORIZED;
		buf_clear(&post->bridge->challenge);
		(void)buf_addstr(&post->bridge->challenge, head);
	} else if (status == 404 && post->bridge->session && !post->renewed &&
		   !is_method(post, "initialize")) {
		post->state = POST_FORGOTTEN;
	} else if (post->message.kind != MCP_REQUEST) {
		post->state = POST_OVER;
	} else if ((success || status >= 400) && status != 401 && status != 403 &&
		   post_take_text(post, buf_str(&post->body)) && post->answered) {
		post->state = POST_OVER;
	} else if (is_method(post, MCP_DISCOVER) &&
		   (status == 400 || status == 404 || status == 405)) {
		post_answer(post, MCP_CODE_METHOD, "The server is of the older era.");
	} else if (success) {
		post_fail(post, "does not answer: the end of its answer came before it");
	} else {
		post_refused(post, status, head);
	}
}

/* Keep what is needed to take the stream up again. */
static void keep_place(struct post *post)
{
	if (!post->sse)
		return;
	if (sse_last_id(post->sse)[0]) {
		free(post->last_event);
		post->last_event = memory_copy(sse_last_id(post->sse));
	}
	if (sse_retry_ms(post->sse) >= 0)
		post->retry_ms = sse_retry_ms(post->sse);
}

static void post_ended(void *context, struct web_exchange *exchange, enum web_end end,
		       const char *why)
{
	struct post *post = context;
	const long status = web_status(exchange);
	const bool was_stream = post->sse;
	char phrase[SENTENCE_MAX / 2];

	post->exchange = NULL;
	learn_session(post, web_head(exchange));
	if (post->sse && end == WEB_WHOLE)
		(void)sse_end(post->sse, NULL);
	keep_place(post);
	sse_free(post->sse);
	post->sse = NULL;
	if (post->bad) {
		post_fail(post, post->bad);
	} else if (post->answered) {
		post->state = POST_OVER;
	} else if (end == WEB_UNSENT && post->kind != POST_STREAM &&
		   post->kind != POST_LISTEN) {
		(void)snprintf(phrase, sizeof(phrase), "cannot be reached: %s", why);
		post_fail(post, phrase);
	} else if (end != WEB_WHOLE || was_stream) {
		post_lost(post, why ? why : "its stream has ended");
	} else {
		post_whole(post, status, web_head(exchange));
	}
	buf_clear(&post->body);
}

/* Begins of exchanges. */

static void add_own_headers(const struct bridge *bridge, struct value *list)
{
	const struct value *headers = value_member(bridge->settings, "headers");

	for (void *at = value_first(headers); at; at = value_next(headers, at))
		headers_add(list, value_key(at), value_str(value_at(at)));
	auth_add_header(bridge->auth, list);
}

/* The headers of the exchange for POST. */
static struct value *headers_of(const struct post *post, bool is_get)
{
	const struct bridge *bridge = post->bridge;
	const struct mcp_message *message = &post->message;
	struct value *list = value_new_array();

	headers_add(list, "Accept",
		    is_get ? STR("text/event-stream")
			   : STR("application/json, text/event-stream"));
	if (bridge->modern && message->method) {
		const char *name = value_text(value_member(message->params, "name"));

		headers_repeat(message, mcp_version_name(MCP_2026_07_28),
			       value_member(value_member(bridge->tools,
							 is_call(post) && name ? name : ""),
					    "inputSchema"),
			       list);
	} else if (bridge->version && !is_method(post, "initialize")) {
		headers_add(list, "MCP-Protocol-Version", str_of(bridge->version));
	}
	if (bridge->session && !is_method(post, "initialize"))
		headers_add(list, "Mcp-Session-Id", str_of(bridge->session));
	if (is_get && post->last_event)
		headers_add(list, "Last-Event-ID", str_of(post->last_event));
	add_own_headers(bridge, list);
	return list;
}

static void post_start(struct post *post)
{
	const bool is_get = post->kind == POST_STREAM || post->resumes;
	auto_value struct value *headers = headers_of(post, is_get);
	const bool is_short = post->kind == POST_NOTICE || post->kind == POST_GOODBYE;
	const struct web_request request = {
		.method = post->kind == POST_GOODBYE ? WEB_DELETE
			  : is_get                   ? WEB_GET
						     : WEB_POST,
		.url = post->bridge->url,
		.headers = headers,
		.body = is_get ? STR("") : buf_str(&post->line),
		.content_type =
			is_get || post->kind == POST_GOODBYE ? NULL : "application/json",
		.once = !only_reads(post),
		.limit_s = post->kind == POST_GOODBYE ? GOODBYE_S
			   : is_short                 ? NOTICE_S
						      : 0,
		.bytes = post_bytes,
		.ended = post_ended,
		.context = post,
	};
	struct err err = {0};

	post->state = POST_RUNS;
	buf_clear(&post->body);
	post->exchange = web_begin(post->bridge->web, &request, &err);
	if (!post->exchange)
		post_fail(post, err.text);
}

/* The whole. */

static size_t bridge_sweep(struct bridge *bridge, int64_t now_ms, int64_t *next_ms)
{
	size_t count = 0;

	for (struct post **at = &bridge->posts; *at;) {
		struct post *post = *at;
		const bool waits = post->state == POST_DUE || post->state == POST_LINGERS;

		if (post->state == POST_LINGERS && post->due_ms <= now_ms)
			post->state = POST_OVER;
		if (post->state == POST_DUE && post->due_ms <= now_ms)
			post_start(post);
		else if (waits && post->due_ms < *next_ms)
			*next_ms = post->due_ms;
		if (post->state == POST_OVER && !post->quiet) {
			*at = post->next;
			post_free(post);
			continue;
		}
		count++;
		at = &post->next;
	}
	return count;
}

/* Start and wait for one thing; READS: take input as well. */
static void bridge_turn(struct bridge *bridge, bool reads)
{
	int64_t now_ms = clock_now_ms(), next_ms = now_ms + IDLE_MS;
	struct pollfd fds[2] = {{.fd = bridge->steer.fd, .events = POLLIN}};
	size_t count = bridge_sweep(bridge, now_ms, &next_ms);
	char bytes[READ_SIZE];
	ssize_t size;

	if (bridge->over)
		return;
	reads = reads && !bridge->input_ended && count < POSTS_MAX;
	if (reads)
		fds[1] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	web_turn(bridge->web, fds, reads ? 2 : 1, (int)(next_ms - now_ms));
	/* The front says nothing unasked: its end has come. */
	if (fds[0].revents)
		bridge->over = true;
	if (!reads || !fds[1].revents)
		return;
	size = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (size > 0 && !buf_add(&bridge->input, bytes, (size_t)size))
		bridge->over = true;
	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		bridge->input_ended = true;
}

/* Carry out POST, and nothing that comes after it, until it is over. */
static void bridge_wait(struct bridge *bridge, const struct post *post)
{
	while (!bridge->over && (post->state == POST_DUE || post->state == POST_RUNS))
		bridge_turn(bridge, false);
}

/* Send LINE again for the bridge itself. True: it was answered as it must be. */
static bool bridge_repeat(struct bridge *bridge, const struct buf *line, enum post_kind kind)
{
	struct post *post = post_new(bridge, kind, buf_str(line));
	bool ok;

	post->quiet = true;
	post->renewed = true;
	bridge_wait(bridge, post);
	ok = kind == POST_NOTICE || post->answered;
	post->quiet = false;
	post->state = POST_OVER;
	return ok;
}

/* The server has forgotten the session: make another one, and send again what was refused. */
static void bridge_renew_session(struct bridge *bridge)
{
	bool ok;

	free(bridge->session);
	bridge->session = NULL;
	ok = bridge->initialize.size > 0 &&
	     bridge_repeat(bridge, &bridge->initialize, POST_REQUEST) &&
	     bridge_repeat(bridge, &bridge->initialized, POST_NOTICE);
	for (struct post *post = bridge->posts; post; post = post->next) {
		if (post->state != POST_FORGOTTEN)
			continue;
		post->renewed = true;
		if (ok)
			post_later(post, 0);
		else
			post_fail(post, "has forgotten the session, and makes no other one");
	}
	for (struct post *post = bridge->posts; post; post = post->next) {
		if (post->kind == POST_STREAM && post->state != POST_RUNS)
			post_later(post, 0);
	}
}

/* A token is missing or not valid any more. */
static void bridge_authorize(struct bridge *bridge)
{
	struct err err = {0};
	const bool ok = auth_again(bridge->auth, buf_str(&bridge->challenge), &err);

	for (struct post *post = bridge->posts; post; post = post->next) {
		if (post->state != POST_UNAUTHORIZED)
			continue;
		post->authorized = true;
		if (ok)
			post_later(post, 0);
		else
			post_fail(post, err.text);
	}
}

static bool any(const struct bridge *bridge, enum post_state state)
{
	const struct post *post = bridge->posts;

	while (post && post->state != state)
		post = post->next;
	return post;
}

/* The messages of the front. */

/* Nobody waits for the answer to the request ID any more: its stream is closed. */
static void bridge_cancel(struct bridge *bridge, const struct value *id)
{
	for (struct post *post = bridge->posts; post; post = post->next) {
		if (post->message.kind != MCP_REQUEST ||
		    !value_equal(post->message.id, id) || post->quiet)
			continue;
		web_abort(post->exchange);
		post->exchange = NULL;
		post->answered = true;
		post->state = POST_OVER;
	}
}

/* A call may find the server again, and then the notices come again as well. */
static void wake_streams(struct bridge *bridge)
{
	for (struct post *post = bridge->posts; post; post = post->next) {
		if (post->state == POST_RESTS) {
			post->tries = 0;
			post_later(post, 0);
		}
	}
}

/* Send a notice; the requests behind it wait until the server has it. */
static void bridge_notify(struct bridge *bridge, struct post *post)
{
	const bool begins = is_method(post, "notifications/initialized");

	if (begins) {
		buf_clear(&bridge->initialized);
		(void)buf_addstr(&bridge->initialized, buf_str(&post->line));
	}
	post->quiet = true;
	bridge_wait(bridge, post);
	post->quiet = false;
	if (begins)
		(void)post_new(bridge, POST_STREAM, STR(""));
}

static void bridge_take(struct bridge *bridge, struct str line)
{
	struct post *post = post_new(bridge, POST_NOTICE, line);
	const struct mcp_message *message = &post->message;
	const bool cancels = is_method(post, "notifications/cancelled");

	if (message->kind == MCP_REQUEST) {
		bridge->modern = value_member(value_member(message->params, "_meta"),
					      MCP_META_VERSION);
		post->kind = is_method(post, "subscriptions/listen") ? POST_LISTEN
								     : POST_REQUEST;
		wake_streams(bridge);
	}
	if (is_method(post, "initialize")) {
		buf_clear(&bridge->initialize);
		(void)buf_addstr(&bridge->initialize, line);
	}
	if (cancels)
		bridge_cancel(bridge, value_member(message->params, "requestId"));
	/* In the modern era the end of its stream cancels a request. */
	if (message->kind == 0 || (cancels && bridge->modern))
		post->state = POST_OVER;
	else if (message->kind != MCP_REQUEST)
		bridge_notify(bridge, post);
}

/* Take the whole lines of the input. */
static void bridge_take_lines(struct bridge *bridge)
{
	size_t end;

	while (!bridge->over &&
	       (end = str_find(buf_str(&bridge->input), STR("\n"), 0)) != (size_t)-1) {
		auto_free char *line =
			memory_copy_str(str_part(buf_str(&bridge->input), 0, end));

		buf_remove(&bridge->input, 0, end + 1);
		if (line[0])
			bridge_take(bridge, str_of(line));
	}
}

/* The input has ended: no answer is read any more. A session of the older era is ended. */
static void bridge_goodbye(struct bridge *bridge)
{
	struct post *post;

	if (!bridge->session || bridge->over)
		return;
	post = post_new(bridge, POST_GOODBYE, STR(""));
	post->quiet = true;
	bridge_wait(bridge, post);
}

static void bridge_serve(struct bridge *bridge)
{
	struct err err = {0};

	while (!bridge->over && !bridge->input_ended) {
		bridge_turn(bridge, true);
		bridge_take_lines(bridge);
		if (any(bridge, POST_FORGOTTEN))
			bridge_renew_session(bridge);
		if (any(bridge, POST_UNAUTHORIZED))
			bridge_authorize(bridge);
		else if (auth_is_due(bridge->auth))
			(void)auth_again(bridge->auth, STR(""), &err);
	}
	bridge_goodbye(bridge);
}

static void bridge_init(struct bridge *bridge, const struct value *settings)
{
	bridge->settings = settings;
	bridge->name = value_text(value_member(settings, "name"));
	bridge->url = value_text(value_member(settings, "url"));
	bridge->tools = value_new_object();
	buf_init(&bridge->input, BRIDGE_LINE_MAX + READ_SIZE);
	buf_init(&bridge->initialize, BRIDGE_LINE_MAX);
	buf_init(&bridge->initialized, BRIDGE_LINE_MAX);
	buf_init(&bridge->challenge, HEADERS_MAX);
}

static void bridge_fini(struct bridge *bridge)
{
	while (bridge->posts) {
		struct post *post = bridge->posts;

		bridge->posts = post->next;
		post_free(post);
	}
	auth_free(bridge->auth);
	web_close(bridge->web);
	value_free(bridge->tools);
	free(bridge->version);
	free(bridge->session);
	buf_fini(&bridge->input);
	buf_fini(&bridge->initialize);
	buf_fini(&bridge->initialized);
	buf_fini(&bridge->challenge);
	steer_fini(&bridge->steer);
}

bool bridge_program(int argc, char **argv, int *code)
{
	struct bridge bridge = {0};
	auto_value struct value *settings = NULL;
	struct err err = {0};

	if (argc != 2 || strcmp(argv[1], BRIDGE_WORD) != 0)
		return false;
	*code = 1;
	steer_init(&bridge.steer, STDERR_FILENO);
	settings = steer_hear(&bridge.steer);
	bridge_init(&bridge, settings);
	if (!bridge.name || !bridge.url) {
		(void)fprintf(stderr, "glovebox: " BRIDGE_WORD
				      " is started by glovebox itself\n");
		*code = 2;
	} else if (!web_open(&bridge.web, &err)) {
		bridge_fail(&bridge, err.text);
	} else {
		bridge.auth = auth_new(bridge.web, &bridge.steer, settings);
		if (str_is(value_str(value_member(settings, "task")), "serve"))
			bridge_serve(&bridge);
		else
			auth_run(bridge.auth);
		*code = 0;
	}
	bridge_fini(&bridge);
	return true;
}
