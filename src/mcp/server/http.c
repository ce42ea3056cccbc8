/* http: Streamable HTTP; see http.h. */
#include "mcp/server/http.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "mcp/server/http_check.h"
#include "mcp/server/http_daemon.h"
#include "mcp/server/http_session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENDPOINT    "/mcp"
#define JSON        "application/json"
#define EVENTS      "text/event-stream"
#define HEARTBEAT   STR(": still here\n\n")
#define EVENT_BEGIN STR("event: message\ndata: ")
#define EVENT_END   STR("\n\n")

enum {
	STATUS_ACCEPTED = 202,
	STATUS_NO_CONTENT = 204,
	STATUS_BAD = 400,
	STATUS_UNAUTHORIZED = 401,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_METHOD = 405,
	STATUS_ACCEPT = 406,
	STATUS_CONFLICT = 409,
	STATUS_MEDIA = 415,
	STATUS_BUSY = 503,
	BACKLOG = 128,
};

static const char crowded[] =
	"As many requests as there may be are under way: wait for one to end, or cancel one by "
	"notifications/cancelled.";

struct server {
	const struct mcp_http *options;
	struct http_guard guard;
	struct buf token;
	struct http_daemon *daemon;
	struct http_sessions *sessions;
	struct watch stopping;
	bool stopped;
};

/* One request of HTTP, as a way back. */
struct carried {
	struct mcp_way way;
	struct server *server;
	struct http_exchange *exchange;
	struct mcp_peer *own; /* of a request without a session; or NULL */
};

static void send_message(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct http_exchange *exchange = ((struct carried *)way)->exchange;

	if (last && !http_is_stream(exchange)) {
		http_answer(exchange, status, JSON, buf_str(message));
		return;
	}
	http_stream(exchange, EVENTS, HEARTBEAT);
	http_stream_add(exchange, EVENT_BEGIN);
	http_stream_add(exchange, buf_str(message));
	http_stream_add(exchange, EVENT_END);
	if (last)
		http_stream_end(exchange);
}

static void drop(struct mcp_way *way)
{
	struct http_exchange *exchange = ((struct carried *)way)->exchange;

	http_stream(exchange, EVENTS, HEARTBEAT);
	http_stream_end(exchange);
}

/* Refuse a request before any MCP message of it has been read. */
static void refuse(struct carried *carried, int status, const char *sentence)
{
	const struct mcp_message none = {0};
	struct err err;

	(void)err_set(&err, MCP_CODE_INVALID, "%s", sentence);
	mcp_refuse(carried->server->options->mcp, &carried->way, &none, status, &err);
}

static bool is_method(const struct carried *carried, const char *method)
{
	return strcmp(http_method(carried->exchange), method) == 0;
}

static const char *header(const struct carried *carried, const char *name)
{
	return http_header(carried->exchange, name);
}

/* We and a proxy before us could read contradicting headers differently: refuse them. */
static bool is_unambiguous(struct carried *carried)
{
	static const char *const once[] = {
		"Host",           "Origin",         "Authorization",
		"Content-Length", "Mcp-Session-Id", "Transfer-Encoding",
		"Mcp-Method",     "Mcp-Name",       "MCP-Protocol-Version"};

	const char *coding = header(carried, "Transfer-Encoding");

	if (!http_headers_are_sound(carried->exchange)) {
		refuse(carried, STATUS_BAD, "A header's name holds what no name may hold.");
		return false;
	}
	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
		if (http_header_count(carried->exchange, once[i]) <= 1)
			continue;
		refuse(carried, STATUS_BAD, "A header that may come once comes twice.");
		return false;
	}
	if (header(carried, "Content-Length") != NULL &&
	    header(carried, "Transfer-Encoding") != NULL) {
		refuse(carried, STATUS_BAD,
		       "The size of the body is said by one header, not by two.");
		return false;
	}
	/* A proxy that sees another end of the body takes the rest for a new request. */
	if (coding != NULL && strcasecmp(coding, "chunked") != 0) {
		refuse(carried, STATUS_BAD,
		       "Of Transfer-Encoding only \"chunked\" is known here.");
		return false;
	}
	return true;
}

static bool may_ask(struct carried *carried)
{
	const struct http_guard *guard = &carried->server->guard;
	const char *host = header(carried, "Host");

	if (!is_unambiguous(carried))
		return false;
	if (host == NULL || !http_host_is_ours(guard, str_of(host))) {
		refuse(carried, STATUS_FORBIDDEN,
		       "This server is not called that; --host NAME allows a name.");
		return false;
	}
	if (!http_origin_is_ours(guard, header(carried, "Origin"))) {
		refuse(carried, STATUS_FORBIDDEN, "Pages of this origin may not ask here.");
		return false;
	}
	if (!http_token_fits(guard, header(carried, "Authorization"))) {
		http_add_header(carried->exchange, "WWW-Authenticate", "Bearer");
		refuse(carried, STATUS_UNAUTHORIZED, "A bearer token is needed.");
		return false;
	}
	if (strcmp(http_path(carried->exchange), ENDPOINT) != 0) {
		refuse(carried, STATUS_NOT_FOUND, "The endpoint is " ENDPOINT ".");
		return false;
	}
	return true;
}

static bool is_well_formed_post(struct carried *carried)
{
	const char *type = header(carried, "Content-Type");
	const char *accept = header(carried, "Accept");

	if (!http_accepts(accept, STR(JSON)) || !http_accepts(accept, STR(EVENTS))) {
		refuse(carried, STATUS_ACCEPT, "Accept must have " JSON " and " EVENTS ".");
		return false;
	}
	if (type == NULL || !http_accepts(type, STR(JSON))) {
		refuse(carried, STATUS_MEDIA, "The content must be " JSON ".");
		return false;
	}
	return true;
}

static bool says_modern(const struct carried *carried)
{
	const char *version = header(carried, "MCP-Protocol-Version");

	return version != NULL && !mcp_version_is_legacy(version);
}

static void head(void *context, struct http_exchange *exchange)
{
	struct carried *carried = memory_alloc(sizeof(*carried));

	*carried = (struct carried){{send_message, drop}, context, exchange, NULL};
	http_set_owner(exchange, carried);
	if (!may_ask(carried)) {
		/* Strangers hold no connection. */
		http_add_header(exchange, "Connection", "close");
		return;
	}
	if (is_method(carried, "POST")) {
		(void)is_well_formed_post(carried);
		return;
	}
	/* Later versions have requests alone. */
	if ((!is_method(carried, "GET") && !is_method(carried, "DELETE")) ||
	    says_modern(carried) || header(carried, "Mcp-Session-Id") == NULL) {
		http_add_header(exchange, "Allow", "POST");
		refuse(carried, STATUS_METHOD, "Messages are sent by POST.");
	}
}

/* The session that the request names; NULL: it names none, or it has been answered. */
static struct mcp_peer *session_of(struct carried *carried)
{
	const char *id = header(carried, "Mcp-Session-Id");
	struct mcp_peer *peer =
		id != NULL ? http_session_find(carried->server->sessions, id) : NULL;

	if (id != NULL && peer == NULL)
		refuse(carried, STATUS_NOT_FOUND,
		       "There is no such session; initialize anew.");
	return peer;
}

/* The stream on which notices come that belong to no request. */
static void open_notices(struct carried *carried)
{
	struct mcp_peer *peer = session_of(carried);

	if (peer == NULL)
		return;
	if (http_is_crowded(carried->exchange)) {
		http_ask_again(carried->exchange);
		refuse(carried, STATUS_BUSY, crowded);
		return;
	}
	if (!http_accepts(header(carried, "Accept"), STR(EVENTS))) {
		refuse(carried, STATUS_ACCEPT, "Accept must have " EVENTS ".");
		return;
	}
	if (mcp_peer_has_way(peer)) {
		refuse(carried, STATUS_CONFLICT, "This session has such a stream already.");
		return;
	}
	mcp_peer_set_way(peer, &carried->way);
	http_stream(carried->exchange, EVENTS, HEARTBEAT);
	http_stream_add(carried->exchange, HEARTBEAT);
}

static void end_session(struct carried *carried)
{
	struct mcp_peer *peer = session_of(carried);

	if (peer == NULL)
		return;
	http_session_end(carried->server->sessions, peer);
	http_answer(carried->exchange, STATUS_NO_CONTENT, NULL, STR(""));
}

static struct mcp_peer *own_peer(struct carried *carried)
{
	carried->own = mcp_peer_new(carried->server->options->mcp, NULL);
	return carried->own;
}

static const char *find_header(void *context, const char *name, size_t *count)
{
	*count = http_header_count(context, name);
	return http_header(context, name);
}

static bool take_modern(struct carried *carried, const struct mcp_message *message)
{
	const struct http_repeated headers = {
		.version = header(carried, "MCP-Protocol-Version"),
		.method = header(carried, "Mcp-Method"),
		.name = header(carried, "Mcp-Name"),
	};
	struct mcp *mcp = carried->server->options->mcp;
	struct err err;

	if (!http_repeats(&headers, message, &err) ||
	    !http_repeats_arguments(mcp_schema_of_call(mcp, message),
				    value_member(message->params, "arguments"),
				    find_header, carried->exchange, &err)) {
		mcp_refuse(mcp, &carried->way, message, STATUS_BAD, &err);
		return true;
	}
	return mcp_take(own_peer(carried), &carried->way, message, MCP_MODERN);
}

static bool take_legacy(struct carried *carried, const struct mcp_message *message)
{
	struct http_sessions *sessions = carried->server->sessions;
	struct mcp_peer *peer;

	if (message->kind == MCP_REQUEST && strcmp(message->method, "initialize") == 0) {
		char id[HTTP_SESSION_ID + 1];

		peer = http_session_begin(sessions, id);
		http_add_header(carried->exchange, "Mcp-Session-Id", id);
		return mcp_take(peer, &carried->way, message, MCP_AS_AGREED);
	}
	peer = session_of(carried);
	if (peer != NULL)
		return mcp_take(peer, &carried->way, message, MCP_AS_AGREED);
	return http_is_answered(carried->exchange) ||
	       mcp_take(own_peer(carried), &carried->way, message, MCP_LENIENT);
}

static bool is_modern(const struct carried *carried, const struct mcp_message *message)
{
	return says_modern(carried) || mcp_modern_version(message) != NULL ||
	       (message->method != NULL && strcmp(message->method, MCP_DISCOVER) == 0);
}

static void refuse_crowded(struct carried *carried, const struct mcp_message *message)
{
	struct err err;

	(void)err_set(&err, MCP_CODE_INTERNAL, "%s", crowded);
	http_ask_again(carried->exchange);
	mcp_refuse(carried->server->options->mcp, &carried->way, message, STATUS_BUSY, &err);
}

static void take_post(struct carried *carried, struct str body)
{
	struct mcp_message message;
	struct err err;
	bool answered = true;

	if (!mcp_message_read(body, &message, &err)) {
		mcp_refuse(carried->server->options->mcp, &carried->way, &message,
			   STATUS_BAD, &err);
		mcp_message_fini(&message);
		return;
	}
	http_stream_if_late(carried->exchange, EVENTS, HEARTBEAT);
	if (http_is_crowded(carried->exchange) && mcp_may_last(&message))
		refuse_crowded(carried, &message);
	else if (message.kind != MCP_RESPONSE && is_modern(carried, &message))
		answered = take_modern(carried, &message);
	else
		answered = take_legacy(carried, &message);
	if (!answered)
		http_answer(carried->exchange, STATUS_ACCEPTED, NULL, STR(""));
	mcp_message_fini(&message);
}

static void whole(void *context, struct http_exchange *exchange, struct str body)
{
	struct carried *carried = http_owner(exchange);

	(void)context;
	if (is_method(carried, "POST"))
		take_post(carried, body);
	else if (is_method(carried, "GET"))
		open_notices(carried);
	else
		end_session(carried);
}

static void dropped(void *context, struct http_exchange *exchange)
{
	struct server *server = context;
	struct carried *carried = http_owner(exchange);

	mcp_way_gone(server->options->mcp, &carried->way);
}

static void over(void *context, struct http_exchange *exchange)
{
	struct carried *carried = http_owner(exchange);

	dropped(context, exchange);
	mcp_peer_free(carried->own);
	free(carried);
}

static bool listen_at(const struct mcp_http *options, struct http_place *place,
		      int *socket_fd, struct err *err)
{
	const int on = 1;
	auto_close int fd = socket(place->address.ss_family,
				   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&place->address, place->size) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&place->address, &place->size) < 0)
		return err_set(err, errno, "--http %s: %s", options->address,
			       strerror(errno));
	*socket_fd = fd_take(&fd);
	return true;
}

static void tell_address(const struct server *server, const struct http_place *place)
{
	struct buf url;

	buf_init(&url, 256);
	(void)buf_adds(&url, "http://");
	http_place_add(place, &url);
	(void)buf_adds(&url, ENDPOINT);
	server->options->listening(server->options->context, url.data,
				   server->guard.token != NULL);
	buf_fini(&url);
}

static void stop_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;

	(void)events;
	server->stopped = true;
}

static bool open_server(struct server *server, struct err *err)
{
	const struct mcp_http *options = server->options;
	struct http_daemon_options daemon = {
		.loop = options->loop,
		.body_max = MCP_MESSAGE_MAX,
		.head = head,
		.whole = whole,
		.dropped = dropped,
		.over = over,
		.context = server,
	};
	struct http_place place;

	if (!http_place_read(options->address, &place, err) ||
	    !http_token_read(server->options->token, server->options->token_file,
			     &server->token, &server->guard, err))
		return false;
	if (!place.loopback && server->guard.token == NULL)
		return err_set(err, EINVAL,
			       "--http %s can be reached from other machines: give it a token "
			       "(--token-file FILE, or GLOVEBOX_MCP_TOKEN)",
			       options->address);
	if (!listen_at(options, &place, &daemon.take_socket, err))
		return false;
	if (!http_daemon_open(&daemon, &server->daemon, err)) {
		(void)close(daemon.take_socket);
		return false;
	}
	tell_address(server, &place);
	return true;
}

bool mcp_http_run(const struct mcp_http *options, struct err *err)
{
	struct server server = {.options = options, .guard = {.hosts = options->hosts}};
	bool ok;

	buf_init(&server.token, HTTP_TOKEN_MAX);
	server.sessions = http_sessions_new(options->mcp);
	server.stopping = (struct watch){.fd = options->stop_fd,
					 .events = POLLIN,
					 .ready = stop_ready,
					 .context = &server};
	if (options->stop_fd >= 0)
		loop_add(options->loop, &server.stopping);
	ok = open_server(&server, err);
	while (ok && !server.stopped)
		loop_turn(options->loop, CLOCK_NEVER);
	if (ok)
		mcp_goodbye(options->mcp);
	loop_remove(&server.stopping);
	http_daemon_close(server.daemon);
	http_sessions_free(server.sessions);
	buf_fini(&server.token);
	return ok;
}
