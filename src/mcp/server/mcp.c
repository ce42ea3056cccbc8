/* mcp: the server: its peers, its requests, and the methods that answer them. */

#include "mcp/server/mcp.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/event.h"
#include "tool/schema.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { MCP_LOG_NONE = 1000 };

enum {
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	SENTENCE_MAX = 8 << 10,
	SESSION_HASH_DIGITS = 16,
};

/*
 * Finds out who the client is, and tells it about the server: the handshake of the legacy
 * era, discovery and the `_meta` of each request in the modern era.
 */

/* A box with two round ports: an SVG of 200 bytes. */
static const char icon[] =
	"data:image/svg+xml;base64,"
	"PHN2ZyB4bWxucz0naHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmcnIHZpZXdCb3g9JzAgMCAx"
	"NiAxNic+PHBhdGggZD0nTTIgM2gxMnYxMEgyeicgZmlsbD0nI2NjZCcgc3Ryb2tlPScjNDQ1"
	"Jy8+PGNpcmNsZSBjeD0nNS41JyBjeT0nOCcgcj0nMicgZmlsbD0nIzQ0NScvPjxjaXJjbGUg"
	"Y3g9JzEwLjUnIGN5PSc4JyByPScyJyBmaWxsPScjNDQ1Jy8+PC9zdmc+";

const char *mcp_modern_version(const struct mcp_message *message)
{
	const struct value *meta = value_member(message->params, "_meta");

	return value_text(value_member(meta, MCP_META_VERSION));
}

/* The version that initialize offers to a client that asks for ASKED. */
static enum mcp_version version_offered(enum mcp_version asked)
{
	/* Clients of this version may send batches, which are refused: offer the next. */
	if (asked == MCP_2025_03_26)
		return MCP_2025_06_18;
	/*
	 * A client that asks for a version without handshake gets the newest that has
	 * one.
	 */
	return asked < MCP_2026_07_28 ? asked : MCP_2025_11_25;
}

bool mcp_version_is_legacy(const char *version)
{
	const enum mcp_version asked = mcp_version_find(version);

	return version_offered(asked) == asked;
}

int mcp_log_level(const char *name)
{
	static const char *const levels[] = {"debug", "info",     "notice", "warning",
					     "error", "critical", "alert",  "emergency"};

	for (int i = 0; name != NULL && i < (int)(sizeof(levels) / sizeof(levels[0])); i++) {
		if (strcmp(levels[i], name) == 0)
			return i;
	}
	return -1;
}

static struct value *mcp_server_info(const struct mcp *mcp)
{
	struct value *info = value_new_object();

	value_set_text(info, "name", "glovebox");
	value_set_text(info, "version", mcp->version);
	return info;
}

static void read_capabilities(struct mcp_client *client, const struct value *capabilities)
{
	const struct value *elicitation = value_member(capabilities, "elicitation");

	client->url = value_member(elicitation, "url") != NULL;
	/*
	 * A client that names no kind of elicitation means forms, the kind that existed
	 * first.
	 */
	client->form = elicitation != NULL &&
		       (value_count(elicitation) == 0 ||
			value_member(elicitation, "form") != NULL || !client->url);
	client->sampling = value_member(capabilities, "sampling") != NULL;
	client->roots = value_member(capabilities, "roots") != NULL;
}

static struct value *object_with(const char *key)
{
	struct value *object = value_new_object();

	if (key != NULL)
		value_set_boolean(object, key, true);
	return object;
}

static struct value *our_capabilities(const struct mcp *mcp, bool modern)
{
	struct value *all = value_new_object();
	struct value *resources = object_with("listChanged");

	value_set_boolean(resources, "subscribe", true);
	value_set(all, "tools",
		  object_with(mcp->options.tools_change ? "listChanged" : NULL));
	value_set(all, "resources", resources);
	value_set(all, "prompts", object_with("listChanged"));
	value_set(all, "completions", object_with(NULL));
	if (!modern)
		value_set(all, "logging", object_with(NULL));
	return all;
}

static struct value *our_icons(void)
{
	struct value *icons = value_new_array(), *row = value_new_object();

	value_set_text(row, "src", icon);
	value_set_text(row, "mimeType", "image/svg+xml");
	value_set(row, "sizes", value_new_array());
	value_append(value_member(row, "sizes"), value_new_text("any"));
	value_append(icons, row);
	return icons;
}

/* The legacy era's handshake. */
static void mcp_initialize(struct mcp_request *request)
{
	struct mcp_peer *peer = request->peer;
	const char *asked = value_text(value_member(request->params, "protocolVersion"));
	const enum mcp_version version = version_offered(mcp_version_find(asked));
	struct value *result, *info;

	if (asked == NULL) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "initialize needs a protocolVersion.");
		return;
	}
	peer->known = true;
	peer->client = (struct mcp_client){.version = version};
	read_capabilities(&peer->client, value_member(request->params, "capabilities"));
	info = mcp_server_info(request->mcp);
	if (version >= MCP_2025_06_18)
		value_set_text(info, "title", "Glovebox");
	if (version >= MCP_2025_11_25)
		value_set(info, "icons", our_icons());
	result = value_new_object();
	value_set_text(result, "protocolVersion", mcp_version_name(version));
	value_set(result, "capabilities", our_capabilities(request->mcp, false));
	value_set(result, "serverInfo", info);
	value_set_text(result, "instructions", request->mcp->instructions);
	mcp_answer(request, result);
}

static void mcp_discover(struct mcp_request *request)
{
	struct value *result = value_new_object(), *versions = value_new_array();

	/*
	 * A request cannot choose the other versions; only initialize settles on one of
	 * them.
	 */
	value_append(versions, value_new_text(mcp_version_name(MCP_2026_07_28)));
	value_set(result, "supportedVersions", versions);
	value_set(result, "capabilities", our_capabilities(request->mcp, true));
	value_set_text(result, "instructions", request->mcp->instructions);
	mcp_answer(request, result);
}

static void mcp_ping(struct mcp_request *request)
{
	mcp_answer_text(request, STR(""));
}

static void mcp_set_level(struct mcp_request *request)
{
	int level = mcp_log_level(value_text(value_member(request->params, "level")));

	if (level < 0) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "level must be debug, info, notice, warning, error, critical, alert "
			 "or emergency.");
		return;
	}
	request->peer->client.log_level = level;
	mcp_answer_text(request, STR(""));
}

static void refuse_version(struct mcp_request *request, const char *asked)
{
	struct value *data = value_new_object(), *supported = value_new_array();

	value_append(supported, value_new_text(mcp_version_name(MCP_2026_07_28)));
	value_set(data, "supported", supported);
	value_set_text(data, "requested", asked);
	mcp_fail(request, MCP_CODE_VERSION, data,
		 "Protocol version %.40s is not spoken here; %s is, and older ones after "
		 "initialize.",
		 asked, mcp_version_name(MCP_2026_07_28));
}

/* Read the `_meta` of a modern request. False: the request has been answered. */
static bool mcp_read_modern(struct mcp_request *request)
{
	const struct value *meta = value_member(request->params, "_meta");
	const char *asked = value_text(value_member(meta, MCP_META_VERSION));
	const struct value *capabilities = value_member(meta, MCP_META_CLIENT);
	const struct value *level = value_member(meta, MCP_META_LOG);

	request->client =
		(struct mcp_client){.version = MCP_2026_07_28, .log_level = MCP_LOG_NONE};
	if (asked == NULL || value_kind(capabilities) != VALUE_OBJECT) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "_meta must have %s (a text) and %s (an object).",
			 MCP_META_VERSION, MCP_META_CLIENT);
		return false;
	}
	if (mcp_version_find(asked) != MCP_2026_07_28) {
		refuse_version(request, asked);
		return false;
	}
	read_capabilities(&request->client, capabilities);
	if (level != NULL && mcp_log_level(value_text(level)) >= 0)
		request->client.log_level = mcp_log_level(value_text(level));
	return true;
}

/* Sends results, errors, notices, and requests of our own. */

/*
 * The HTTP status for CODE. In the legacy era an unknown method is an answer of status
 * 200. When a method itself refuses its params, this is such an answer in both eras.
 */
static int status_of(enum mcp_code code, bool modern, bool has_method)
{
	switch (code) {
	case MCP_CODE_PARSE:
	case MCP_CODE_INVALID:
		return HTTP_BAD_REQUEST;
	case MCP_CODE_HEADER:
	case MCP_CODE_CAPABILITY:
	case MCP_CODE_VERSION:
		return HTTP_BAD_REQUEST;
	case MCP_CODE_METHOD:
		return modern ? HTTP_NOT_FOUND : HTTP_OK;
	case MCP_CODE_PARAMS:
		return modern && !has_method ? HTTP_BAD_REQUEST : HTTP_OK;
	case MCP_CODE_BUSY:
	case MCP_CODE_NO_RESOURCE:
	case MCP_CODE_INTERNAL:
		break;
	}
	return HTTP_OK;
}

static void begin_answer(struct buf *out, const struct value *id)
{
	buf_clear(out);
	(void)buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id == NULL)
		(void)buf_adds(out, "null");
	else
		(void)value_print(id, 0, out);
}

static void send(struct mcp *mcp, struct mcp_way *way, bool last, int status)
{
	if (way == NULL)
		return;
	assert(!mcp->out.overflowed);
	way->send(way, &mcp->out, last, status);
	if (mcp->out.capacity > MCP_OUT_KEPT)
		buf_fini(&mcp->out);
}

static void end_request(struct mcp_request *request);

void mcp_answer_end(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct mcp_way *way = request->way;

	(void)buf_adds(&mcp->out, "}}");
	end_request(request);
	send(mcp, way, true, HTTP_OK);
}

/* Add the members that every modern result has beside its content. */
static void add_modern(struct mcp_request *request, bool has_type)
{
	struct buf *out = &request->mcp->out;
	auto_value struct value *info = NULL;

	if (request->client.version < MCP_2026_07_28)
		return;
	info = mcp_server_info(request->mcp);
	if (!has_type)
		(void)buf_adds(out, "\"resultType\":\"complete\",");
	if (request->method->ttl_ms >= 0)
		(void)buf_addf(out, "\"ttlMs\":%d,\"cacheScope\":\"private\",",
			       request->method->ttl_ms);
	(void)buf_adds(out, "\"_meta\":{\"" MCP_META_SERVER "\":");
	(void)value_print(info, 0, out);
	if (request->state == MCP_LISTENS) {
		(void)buf_adds(out, ",\"" MCP_META_SUBSCRIPTION "\":");
		(void)value_print(request->id, 0, out);
	}
	(void)buf_addc(out, '}');
}

struct buf *mcp_answer_begin(struct mcp_request *request)
{
	struct buf *out = &request->mcp->out;
	size_t before;

	begin_answer(out, request->id);
	(void)buf_adds(out, ",\"result\":{");
	before = out->size;
	add_modern(request, false);
	if (out->size > before)
		(void)buf_addc(out, ',');
	return out;
}

void mcp_answer_text(struct mcp_request *request, struct str members)
{
	struct buf *out = mcp_answer_begin(request);

	/* Without members the comma has no member behind it. */
	if (members.size == 0 && out->data[out->size - 1] == ',')
		buf_truncate(out, out->size - 1);
	(void)buf_addstr(out, members);
	mcp_answer_end(request);
}

void mcp_answer(struct mcp_request *request, struct value *take_result)
{
	struct buf *out = &request->mcp->out;
	auto_value struct value *result = take_result;
	size_t before;

	begin_answer(out, request->id);
	(void)buf_adds(out, ",\"result\":{");
	before = out->size;
	add_modern(request, value_member(result, "resultType") != NULL);
	for (void *at = value_first(result); at != NULL; at = value_next(result, at)) {
		if (out->size > before)
			(void)buf_addc(out, ',');
		(void)value_quote(str_of(value_key(at)), out);
		(void)buf_addc(out, ':');
		(void)value_print(value_at(at), 0, out);
	}
	mcp_answer_end(request);
}

static void add_error(struct buf *out, int code, const char *sentence,
		      const struct value *data)
{
	(void)buf_addf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	(void)value_quote(str_of(sentence), out);
	if (data != NULL) {
		(void)buf_adds(out, ",\"data\":");
		(void)value_print(data, 0, out);
	}
	(void)buf_adds(out, "}}");
}

void mcp_fail(struct mcp_request *request, enum mcp_code code, struct value *take_data,
	      const char *format, ...)
{
	struct mcp *mcp = request->mcp;
	struct mcp_way *way = request->way;
	const int status = status_of(code, request->client.version >= MCP_2026_07_28,
				     request->method != NULL);
	auto_value struct value *data = take_data;
	struct buf sentence;
	va_list arguments;

	buf_init(&sentence, SENTENCE_MAX);
	va_start(arguments, format);
	(void)buf_addv(&sentence, format, arguments);
	va_end(arguments);
	begin_answer(&mcp->out, request->id);
	add_error(&mcp->out, code, sentence.data, data);
	buf_fini(&sentence);
	end_request(request);
	send(mcp, way, true, status);
}

void mcp_refuse(struct mcp *mcp, struct mcp_way *way, const struct mcp_message *message,
		int status, const struct err *why, const struct value *data)
{
	const enum mcp_code code = why->code < 0 ? why->code : MCP_CODE_INVALID;

	begin_answer(&mcp->out, message->id);
	add_error(&mcp->out, code, why->text, data);
	send(mcp, way, true, status != 0 ? status : status_of(code, false, false));
}

/* End the request without an answer. */
static void mcp_drop(struct mcp_request *request)
{
	struct mcp_way *way = request->way;

	if (request->call != NULL)
		mcp_call_cancel(request->call);
	else
		mcp_request_become(request, MCP_OVER);
	if (way != NULL)
		way->drop(way);
}

void mcp_tell(struct mcp *mcp, struct mcp_way *way, const char *id, const char *method,
	      struct value *take_params)
{
	auto_value struct value *params = take_params;
	struct buf *out = &mcp->out;

	if (way == NULL)
		return;
	buf_clear(out);
	(void)buf_adds(out, "{\"jsonrpc\":\"2.0\"");
	if (id != NULL) {
		(void)buf_adds(out, ",\"id\":");
		(void)value_quote(str_of(id), out);
	}
	(void)buf_adds(out, ",\"method\":");
	(void)value_quote(str_of(method), out);
	if (params != NULL) {
		(void)buf_adds(out, ",\"params\":");
		(void)value_print(params, 0, out);
	}
	(void)buf_addc(out, '}');
	send(mcp, way, false, HTTP_OK);
}

/*
 * Tells clients about changes: through streams opened by subscriptions/listen in the
 * modern era, by each peer's own way in the legacy era. Also watches the folder of
 * prompts.
 */

enum {
	LISTENERS_MAX = 64,
	URIS_MAX = 256,
};

static const struct {
	const char *wish;   /* its name in subscriptions/listen */
	const char *notice; /* the notice that is sent */
} lists[] = {
	[MCP_LIST_TOOLS] = {"toolsListChanged", "notifications/tools/list_changed"},
	[MCP_LIST_PROMPTS] = {"promptsListChanged", "notifications/prompts/list_changed"},
	[MCP_LIST_RESOURCES] = {"resourcesListChanged",
				"notifications/resources/list_changed"},
};

static struct value *meta_of(const struct mcp_request *request)
{
	struct value *params = value_new_object(), *meta = value_new_object();

	value_set(meta, MCP_META_SUBSCRIPTION, value_ref(request->id));
	value_set(params, "_meta", meta);
	return params;
}

void mcp_list_changed(struct mcp *mcp, enum mcp_list list)
{
	for (struct mcp_request *at = mcp->first; at != NULL; at = at->next) {
		if (at->state == MCP_LISTENS &&
		    value_is_true(value_member(at->listens_to, lists[list].wish)))
			mcp_tell(mcp, at->way, NULL, lists[list].notice, meta_of(at));
	}
	for (struct mcp_peer *at = mcp->first_peer; at != NULL; at = at->next) {
		if (at->known)
			mcp_tell(mcp, at->way, NULL, lists[list].notice, NULL);
	}
}

static size_t count_listeners(const struct mcp *mcp)
{
	size_t count = 0;

	for (const struct mcp_request *at = mcp->first; at != NULL; at = at->next)
		count += at->state == MCP_LISTENS;
	return count;
}

/* The part of WISHED that this server can send. */
static struct value *agree(const struct mcp *mcp, const struct value *wished)
{
	const struct value *uris = value_member(wished, "resourceSubscriptions");
	struct value *agreed = value_new_object(), *list;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *wish = lists[i].wish;

		if (i == MCP_LIST_TOOLS && !mcp->options.tools_change)
			continue;
		if (value_is_true(value_member(wished, wish)))
			value_set_boolean(agreed, wish, true);
	}
	if (value_kind(uris) == VALUE_ARRAY && value_count(uris) > 0) {
		list = value_new_array();
		for (size_t i = 0; i < value_count(uris) && i < URIS_MAX; i++) {
			if (value_text(value_item(uris, i)) != NULL)
				value_append(list, value_copy(value_item(uris, i)));
		}
		value_set(agreed, "resourceSubscriptions", list);
	}
	return agreed;
}

/* Answers subscriptions/listen. */
static void mcp_listen(struct mcp_request *request)
{
	const struct value *wished = value_member(request->params, "notifications");
	struct value *params;

	if (value_kind(wished) != VALUE_OBJECT) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "subscriptions/listen needs notifications (an object).");
		return;
	}
	if (count_listeners(request->mcp) >= LISTENERS_MAX) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "%d subscriptions are open; close one first.", LISTENERS_MAX);
		return;
	}
	request->listens_to = agree(request->mcp, wished);
	mcp_request_become(request, MCP_LISTENS);
	params = meta_of(request);
	value_set(params, "notifications", value_ref(request->listens_to));
	mcp_tell(request->mcp, request->way, NULL,
		 "notifications/subscriptions/acknowledged", params);
}

/* The legacy era has no answer with which a stream for notices could end. */
static void tell_end(struct mcp_peer *peer, const char *why)
{
	struct value *params = value_new_object();
	struct mcp_way *way = peer->way;

	value_set_text(params, "level", "error");
	value_set_text(params, "logger", "glovebox");
	value_set_text(params, "data", why);
	mcp_tell(peer->mcp, way, NULL, "notifications/message", params);
	peer->way = NULL;
	way->drop(way);
}

void mcp_goodbye(struct mcp *mcp, struct mcp_peer *peer, const char *why)
{
	struct mcp_request *next;

	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->state != MCP_LISTENS || (peer != NULL && at->peer != peer))
			continue;
		if (why != NULL)
			mcp_fail(at, MCP_CODE_INVALID, NULL, "%s", why);
		else
			mcp_answer_text(at, STR(""));
	}
	for (struct mcp_peer *at = mcp->first_peer; why != NULL && at != NULL;
	     at = at->next) {
		if (at->way != NULL && (peer == NULL || at == peer))
			tell_end(at, why);
	}
}

void mcp_stop_calls(struct mcp *mcp, const struct mcp_peer *peer, const char *why)
{
	struct mcp_request *next;

	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (peer != NULL && at->peer != peer)
			continue;
		if (at->state == MCP_WAITS)
			mcp_fail(at, MCP_CODE_INTERNAL, NULL, "%s", why);
		else if (at->call != NULL && at->state == MCP_PARKED)
			mcp_call_cancel(at->call);
		else if (at->call != NULL && at->state == MCP_BEGUN)
			mcp_call_stop(at->call, why);
	}
}

bool mcp_is_quiet(const struct mcp *mcp)
{
	const struct mcp_request *at = mcp->first;

	while (at != NULL && at->state == MCP_LISTENS)
		at = at->next;
	return at == NULL;
}

void mcp_set_notice(struct mcp *mcp, const char *text)
{
	free(mcp->notice);
	mcp->notice = memory_copy(text);
}

struct mcp_watch {
	struct mcp *mcp;
	int fd;
	struct watch watch;
};

static void folder_changed(struct watch *watch, short events)
{
	struct mcp_watch *own = watch->context;
	union {
		struct inotify_event event; /* for its alignment */
		char bytes[4096];
	} taken;

	(void)events;
	/*
	 * Read all events at the same time. Which prompt has changed does not matter,
	 * because prompts are read again when a client asks for them.
	 */
	while (read(own->fd, &taken, sizeof(taken)) > 0)
		;
	mcp_list_changed(own->mcp, MCP_LIST_PROMPTS);
}

static void mcp_watch_open(struct mcp *mcp)
{
	struct mcp_watch *own;
	auto_close int fd = -1;

	if (mcp->prompts == NULL || mcp->options.unwatched)
		return;
	fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/*
	 * A missing folder is not watched, but prompts are still read anew for each
	 * request.
	 */
	if (fd < 0 || inotify_add_watch(fd, mcp->prompts,
					IN_CREATE | IN_DELETE | IN_CLOSE_WRITE | IN_MOVED_TO |
						IN_MOVED_FROM | IN_ONLYDIR) < 0)
		return;
	own = memory_alloc(sizeof(*own));
	own->mcp = mcp;
	own->fd = fd_take(&fd);
	own->watch = (struct watch){.fd = own->fd,
				    .events = POLLIN,
				    .ready = folder_changed,
				    .context = own};
	loop_add(mcp->options.loop, &own->watch);
	mcp->watch = own;
}

static void mcp_watch_close(struct mcp *mcp)
{
	if (mcp->watch == NULL)
		return;
	loop_remove(&mcp->watch->watch);
	fd_close(&mcp->watch->fd);
	free(mcp->watch);
	mcp->watch = NULL;
}

/* The list of tools, in the order of the table and the plugins. */

enum { TOOLS_A_PAGE = 100, TITLE_MAX = 128 };

/* Append "Read file" for "read_file". */
static void add_title(const struct tool *tool, struct buf *out)
{
	char title[TITLE_MAX];
	size_t size = 0;

	for (const char *at = tool->name; *at != '\0' && size + 1 < sizeof(title); at++)
		title[size++] = *at == '_' || *at == '-' ? ' ' : *at;
	title[size] = '\0';
	title[0] = (char)toupper((unsigned char)title[0]);
	(void)value_quote(str_of(tool->title != NULL ? tool->title : title), out);
}

/* Clients assume the worst for a missing hint, so all four hints are sent. */
static void add_annotations(const struct mcp *mcp, const struct tool *tool, struct buf *out)
{
	const bool runs = (tool->effects & EFFECT_RUNS) != 0;
	const bool changes = runs || tool->keeps || (tool->effects & EFFECT_WRITES) != 0;
	const bool open = runs && session_policy(mcp->session)->network.count > 0;
	const struct {
		const char *key;
		bool value;
	} hints[] = {
		{"readOnlyHint", !changes},
		{"destructiveHint", changes},
		{"idempotentHint", !changes},
		{"openWorldHint", open},
	};

	(void)buf_adds(out, ",\"annotations\":{");
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		const struct value *said = value_member(tool->annotations, hints[i].key);
		const bool value = said != NULL ? value_is_true(said) : hints[i].value;

		(void)buf_addf(out, "%s\"%s\":%s", i > 0 ? "," : "", hints[i].key,
			       value ? "true" : "false");
	}
	(void)buf_addc(out, '}');
}

static void add_tool(const struct mcp *mcp, const struct tool *tool,
		     enum mcp_version version, struct buf *out)
{
	auto_value struct value *made = tool->schema == NULL ? schema_of_tool(tool) : NULL;

	(void)buf_adds(out, "{\"name\":");
	(void)value_quote(str_of(tool->name), out);
	if (version >= MCP_2025_06_18) {
		(void)buf_adds(out, ",\"title\":");
		add_title(tool, out);
	}
	(void)buf_adds(out, ",\"description\":");
	(void)value_quote(str_of(tool->description), out);
	(void)buf_adds(out, ",\"inputSchema\":");
	(void)value_print(made != NULL ? made : tool->schema, 0, out);
	if (version >= MCP_2025_03_26)
		add_annotations(mcp, tool, out);
	(void)buf_addc(out, '}');
}

/*
 * A cursor is the index of the first tool of its page. After a change a client must list
 * anew.
 */
static bool read_cursor(const struct value *params, size_t count, size_t *first)
{
	const struct value *cursor = value_member(params, "cursor");
	const char *text = value_text(cursor);
	char *end;

	*first = 0;
	if (value_kind(cursor) == VALUE_NULL)
		return true;
	if (text == NULL || text[0] < '1' || text[0] > '9')
		return false;
	*first = strtoul(text, &end, 10);
	return *end == '\0' && *first < count;
}

const struct value *mcp_schema_of_call(struct mcp *mcp, const struct mcp_message *message)
{
	const char *name = value_text(value_member(message->params, "name"));
	const struct tool *tool;
	struct err err;

	if (name == NULL || message->method == NULL ||
	    strcmp(message->method, "tools/call") != 0 || !mcp_open(mcp, &err))
		return NULL;
	tool = tool_find(session_tools(mcp->session), name);
	return tool != NULL ? tool->schema : NULL;
}

/* Answers tools/list. */
static void mcp_tools_list(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	const struct tool *const *tools;
	size_t count = 0, at;
	struct buf out;
	struct err err;

	if (!mcp_open(mcp, &err)) {
		mcp_fail(request, MCP_CODE_INTERNAL, NULL, "%s", err.text);
		return;
	}
	tools = session_tools(mcp->session);
	while (tools[count] != NULL)
		count++;
	if (!read_cursor(request->params, count, &at)) {
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "This cursor is none of ours; begin again without one.");
		return;
	}
	buf_init(&out, VALUE_TEXT_MAX);
	(void)buf_adds(&out, "\"tools\":[");
	for (size_t end = at + TOOLS_A_PAGE, first = at; at < count && at < end; at++) {
		if (at > first)
			(void)buf_addc(&out, ',');
		add_tool(mcp, tools[at], request->client.version, &out);
	}
	(void)buf_addc(&out, ']');
	if (at < count)
		(void)buf_addf(&out, ",\"nextCursor\":\"%zu\"", at);
	mcp_answer_text(request, buf_str(&out));
	buf_fini(&out);
	/* A model reads the tools now; its first command need not wait for the whole look. */
	if (at == count)
		session_checkpoint(mcp->session, false);
}

enum {
	LIST_TTL_MS = 300000, /* for results that do not change while the server runs */
	READ_TTL_MS = 0,      /* for results that may change */
};

/* The table ends with {0}. */
static const struct mcp_method methods[] = {
	{"initialize", true, false, -1, mcp_initialize},
	{MCP_DISCOVER, false, true, LIST_TTL_MS, mcp_discover},
	{"ping", true, false, -1, mcp_ping},
	{"tools/list", true, true, LIST_TTL_MS, mcp_tools_list},
	{"tools/call", true, true, -1, mcp_tools_call, true},
	{"resources/list", true, true, READ_TTL_MS, mcp_resources_list},
	{"resources/templates/list", true, true, LIST_TTL_MS, mcp_templates_list},
	{"resources/read", true, true, READ_TTL_MS, mcp_resources_read, true},
	{"resources/subscribe", true, false, -1, mcp_resources_subscribe},
	{"resources/unsubscribe", true, false, -1, mcp_resources_unsubscribe},
	{"prompts/list", true, true, READ_TTL_MS, mcp_prompts_list},
	{"prompts/get", true, true, -1, mcp_prompts_get},
	{"completion/complete", true, true, -1, mcp_complete},
	{"logging/setLevel", true, false, -1, mcp_set_level},
	{"subscriptions/listen", false, true, -1, mcp_listen, true},
	{0},
};

enum {
	/*
	 * More calls than keep the workers busy. Further calls wait to begin, but only
	 * for BUSY_MS when no call ends, because a call under way may need a call that
	 * waits.
	 */
	BUSY_MAX = 96,
	BUSY_MS = 250,
};

static void stall_due(struct timer *timer)
{
	struct mcp *mcp = timer->context;

	mcp->load.begun_max += BUSY_MAX;
}

static void settling_due(struct timer *timer)
{
	mcp_calls_settle(timer->context);
}

struct mcp *mcp_new(const struct mcp_options *options)
{
	struct mcp *mcp = memory_alloc(sizeof(*mcp));

	mcp->options = *options;
	mcp->instructions = memory_copy(options->instructions);
	mcp->prompts = memory_copy(options->prompts);
	mcp->version = memory_copy(options->version);
	mcp->outputs = value_new_object();
	buf_init(&mcp->out, EVENT_JSON_MAX);
	seal_key_make(&mcp->key);
	message_seal_name_make(mcp->run, sizeof(mcp->run));
	mcp->settling =
		(struct timer){.due_ms = CLOCK_NEVER, .due = settling_due, .context = mcp};
	loop_add_timer(options->loop, &mcp->settling);
	mcp->load.begun_max = BUSY_MAX;
	mcp->load.stall =
		(struct timer){.due_ms = CLOCK_NEVER, .due = stall_due, .context = mcp};
	loop_add_timer(options->loop, &mcp->load.stall);
	mcp_watch_open(mcp);
	return mcp;
}

void mcp_free(struct mcp *mcp)
{
	if (mcp == NULL)
		return;
	/* Free the timer before the calls, because the end of calls turns the loop. */
	loop_remove_timer(&mcp->settling);
	loop_remove_timer(&mcp->load.stall);
	mcp_calls_free(mcp);
	struct mcp_request *next;
	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		mcp_request_become(at, MCP_OVER);
	}
	mcp_watch_close(mcp);
	session_close(mcp->session);
	value_free(mcp->outputs);
	buf_fini(&mcp->out);
	free(mcp->instructions);
	free(mcp->prompts);
	free(mcp->version);
	free(mcp->notice);
	free(mcp);
}

bool mcp_open(struct mcp *mcp, struct err *err)
{
	if (!mcp->tried) {
		mcp->tried = true;
		if (!mcp->options.open(mcp->options.context, mcp->options.loop,
				       mcp_calls_sink(mcp), &mcp->session, &mcp->failure))
			mcp->session = NULL;
	}
	return mcp->session != NULL ||
	       err_set(err, mcp->failure.code, "%s", mcp->failure.text);
}

struct mcp_peer *mcp_peer_new(struct mcp *mcp, struct mcp_way *way, const char *session)
{
	struct mcp_peer *peer = memory_alloc(sizeof(*peer));
	char hex[HASH_HEX + 1];

	peer->mcp = mcp;
	peer->way = way;
	/* With the id itself a reader of spans could take part in the session. */
	if (session != NULL) {
		hash_text(str_of(session), hex);
		hex[SESSION_HASH_DIGITS] = '\0';
		peer->session_hash = memory_copy(hex);
	}
	/* MCP wants this version assumed for requests over HTTP that name none. */
	peer->client = (struct mcp_client){.version = MCP_2025_03_26};
	peer->next = mcp->first_peer;
	if (peer->next != NULL)
		peer->next->previous = peer;
	mcp->first_peer = peer;
	return peer;
}

void mcp_peer_free(struct mcp_peer *peer)
{
	struct mcp_request *next;

	if (peer == NULL)
		return;
	for (struct mcp_request *at = peer->mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->peer == peer)
			mcp_drop(at);
	}
	/* No more notices go this way. */
	if (peer->way != NULL)
		peer->way->drop(peer->way);
	if (peer->previous != NULL)
		peer->previous->next = peer->next;
	else
		peer->mcp->first_peer = peer->next;
	if (peer->next != NULL)
		peer->next->previous = peer->previous;
	value_free(peer->watched);
	free(peer->session_hash);
	free(peer);
}

bool mcp_peer_set_way(struct mcp_peer *peer, struct mcp_way *way)
{
	if (peer->way != NULL)
		return false;
	peer->way = way;
	return true;
}

bool mcp_peer_is_busy(const struct mcp_peer *peer)
{
	const struct mcp_request *at = peer->mcp->first;

	while (at != NULL && at->peer != peer)
		at = at->next;
	return at != NULL || peer->way != NULL;
}

size_t mcp_busy(const struct mcp *mcp)
{
	return mcp->load.busy;
}

bool mcp_is_full(const struct mcp *mcp)
{
	return mcp->load.busy >= MCP_REQUESTS_MAX ||
	       mcp->load.bytes >= MCP_REQUESTS_BYTES_MAX;
}

/* The slot of an id, which is an integer or a text (FNV-1a, 32 bits). */
static size_t slot_of(const struct value *id)
{
	const struct str text = value_str(id);
	uint32_t hash = 2166136261u;

	if (value_kind(id) == VALUE_INTEGER)
		return (size_t)((uint64_t)value_integer(id) % MCP_SLOTS);
	for (size_t i = 0; i < text.size; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * 16777619u;
	return hash % MCP_SLOTS;
}

static struct mcp_request *request_new(struct mcp_peer *peer, struct mcp_way *way,
				       const struct mcp_message *message)
{
	struct mcp_request *request = memory_alloc(sizeof(*request));
	struct mcp *mcp = peer->mcp;

	request->mcp = mcp;
	request->state = MCP_BEGUN;
	request->peer = peer;
	request->way = way;
	request->client = peer->client;
	request->id = value_ref(message->id);
	request->params =
		message->params != NULL ? value_ref(message->params) : value_new_object();
	request->previous = mcp->last;
	if (mcp->last != NULL)
		mcp->last->next = request;
	else
		mcp->first = request;
	mcp->last = request;
	request->next_here = mcp->by_id[slot_of(request->id)];
	mcp->by_id[slot_of(request->id)] = request;
	request->bytes = message->bytes;
	mcp->load.bytes += request->bytes;
	mcp->load.busy++;
	return request;
}

/* Nobody waits for an answer of REQUEST any longer, and its id may be used again. */
static void detach(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;
	struct mcp_request **at;

	if (request->id == NULL)
		return;
	at = &mcp->by_id[slot_of(request->id)];
	while (*at != request)
		at = &(*at)->next_here;
	*at = request->next_here;
	mcp->load.bytes -= request->bytes;
	value_free(request->id);
	request->id = NULL;
	request->peer = NULL;
	request->way = NULL;
}

static void request_free(struct mcp_request *request)
{
	struct mcp *mcp = request->mcp;

	if (request->previous != NULL)
		request->previous->next = request->next;
	else
		mcp->first = request->next;
	if (request->next != NULL)
		request->next->previous = request->previous;
	else
		mcp->last = request->previous;
	value_free(request->listens_to);
	value_free(request->params);
	free(request);
}

static bool is_busy(enum mcp_state state)
{
	return state == MCP_WAITS || state == MCP_BEGUN;
}

void mcp_request_become(struct mcp_request *request, enum mcp_state state)
{
	struct mcp *mcp = request->mcp;
	struct mcp_request **first = &mcp->load.first_waiting;

	mcp->load.busy -= is_busy(request->state);
	mcp->load.busy += is_busy(state);
	mcp->load.waiting -= request->state == MCP_WAITS;
	mcp->load.waiting += state == MCP_WAITS;
	request->state = state;
	if (state == MCP_WAITS && *first == NULL)
		*first = request;
	if (*first == request) {
		while (*first != NULL && (*first)->state != MCP_WAITS)
			*first = (*first)->next;
	}
	if (state != MCP_OVER)
		return;
	detach(request);
	if (request->call == NULL)
		request_free(request);
}

/* REQUEST is answered. */
static void end_request(struct mcp_request *request)
{
	if (request->state == MCP_PARKED)
		detach(request);
	else
		mcp_request_become(request, MCP_OVER);
}

static struct mcp_request *request_find(const struct mcp_peer *peer, const struct value *id)
{
	for (struct mcp_request *at = peer->mcp->by_id[slot_of(id)]; at != NULL;
	     at = at->next_here) {
		if (at->peer == peer && value_kind(at->id) == value_kind(id) &&
		    value_equal(at->id, id))
			return at;
	}
	return NULL;
}

static const struct mcp_method *method_find(const char *name, bool modern)
{
	const struct mcp_method *at = methods;

	while (at->name != NULL &&
	       (strcmp(at->name, name) != 0 || !(modern ? at->modern : at->legacy)))
		at++;
	return at->name != NULL ? at : NULL;
}

/*
 * Only a handshake tells the capabilities of an older client. `ping` may come before it.
 */
static bool may_come_now(const struct mcp_request *request, enum mcp_manner manner)
{
	return request->peer->known || manner == MCP_LENIENT ||
	       request->method->run == mcp_initialize || request->method->run == mcp_ping;
}

bool mcp_may_last(const struct mcp_message *message)
{
	const struct mcp_method *at = methods;

	if (message->kind != MCP_REQUEST)
		return false;
	while (at->name != NULL && (!at->lasts || strcmp(at->name, message->method) != 0))
		at++;
	return at->name != NULL;
}

static size_t begun(const struct mcp *mcp)
{
	return mcp->load.busy - mcp->load.waiting;
}

static bool has_room(const struct mcp_request *request)
{
	const struct mcp_way *way = request->way;

	return way->has_room == NULL ||
	       (way->has_room(way) && begun(request->mcp) < request->mcp->load.begun_max);
}

/* A request that brings answers belongs to a call that has begun already. */
static bool may_begin(const struct mcp_request *request)
{
	return !request->method->lasts ||
	       value_member(request->params, "requestState") != NULL ||
	       (request->mcp->load.waiting == 0 && has_room(request));
}

/* While requests wait for those that have begun, one of these must end before long. */
static void watch_stall(struct mcp *mcp)
{
	if (mcp->load.waiting > 0 && begun(mcp) >= mcp->load.begun_max &&
	    mcp->load.stall.due_ms == CLOCK_NEVER)
		mcp->load.stall.due_ms = clock_now_ms() + BUSY_MS;
}

void mcp_begin_waiting(struct mcp *mcp)
{
	struct mcp_request *at;

	/* A request may have ended. */
	if (begun(mcp) < mcp->load.begun_max)
		mcp->load.stall.due_ms = CLOCK_NEVER;
	if (begun(mcp) < BUSY_MAX)
		mcp->load.begun_max = BUSY_MAX;
	while ((at = mcp->load.first_waiting) != NULL && has_room(at)) {
		mcp_request_become(at, MCP_BEGUN);
		at->method->run(at);
	}
	watch_stall(mcp);
}

static void begin(struct mcp_request *request)
{
	if (may_begin(request)) {
		request->method->run(request);
	} else {
		mcp_request_become(request, MCP_WAITS);
		watch_stall(request->mcp);
	}
}

static void take_request(struct mcp_peer *peer, struct mcp_way *way,
			 const struct mcp_message *message, enum mcp_manner manner)
{
	/*
	 * server/discover opens the modern era, so without its `_meta` it gets the modern
	 * error.
	 */
	const bool modern = manner == MCP_MODERN || mcp_modern_version(message) != NULL ||
			    strcmp(message->method, MCP_DISCOVER) == 0;
	const bool taken = request_find(peer, message->id) != NULL;
	const bool full = mcp_is_full(peer->mcp);
	struct mcp_request *request = request_new(peer, way, message);

	if (modern && !mcp_read_modern(request))
		return;
	request->method = method_find(message->method, modern);
	if (taken)
		mcp_fail(request, MCP_CODE_INVALID, NULL,
			 "A request with this id is still under way.");
	else if (request->method == NULL)
		mcp_fail(request, MCP_CODE_METHOD, NULL,
			 "There is no method \"%.100s\" in this version of the protocol.",
			 message->method);
	else if (!modern && !may_come_now(request, manner))
		mcp_fail(request, MCP_CODE_PARAMS, NULL,
			 "Begin with initialize, or say in each request's _meta which "
			 "version it speaks (" MCP_META_VERSION ").");
	else if (full && request->method->lasts)
		mcp_fail(request, MCP_CODE_INTERNAL, NULL,
			 "As much as there may be is under way (%d requests, or %d MiB of "
			 "them): wait for one to end, or cancel one by notifications/cancelled.",
			 MCP_REQUESTS_MAX, MCP_REQUESTS_BYTES_MAX >> 20);
	else
		begin(request);
}

/* A cancel that comes too late is no error: some clients send one after each answer. */
static void take_cancel(const struct mcp_peer *peer, const struct mcp_message *message)
{
	const struct value *id = value_member(message->params, "requestId");
	struct mcp_request *request = id != NULL ? request_find(peer, id) : NULL;

	if (request == NULL)
		return;
	if (request->call != NULL)
		mcp_call_withdraw(request->call);
	mcp_drop(request);
}

bool mcp_take(struct mcp_peer *peer, struct mcp_way *way,
	      const struct mcp_message *message, enum mcp_manner manner)
{
	if (message->kind == MCP_REQUEST) {
		take_request(peer, way, message, manner);
		return true;
	}
	if (message->kind == MCP_RESPONSE)
		mcp_calls_answered(peer, message);
	else if (strcmp(message->method, "notifications/cancelled") == 0)
		take_cancel(peer, message);
	return false;
}

void mcp_way_gone(struct mcp *mcp, struct mcp_way *way)
{
	struct mcp_request *next;

	for (struct mcp_request *at = mcp->first; at != NULL; at = next) {
		next = at->next;
		if (at->way == way) {
			at->way = NULL;
			mcp_drop(at);
		}
	}
	for (struct mcp_peer *at = mcp->first_peer; at != NULL; at = at->next) {
		if (at->way == way)
			at->way = NULL;
	}
}
