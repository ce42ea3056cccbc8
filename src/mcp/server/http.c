/* http: Streamable HTTP: checks requests, finds their peers and sends the answers. */

#include "mcp/server/http.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "mcp/message.h"
#include "mcp/server/http_daemon.h"
#include "mcp/server/mcp.h"
#include "mcp/server/service.h"
#include "policy/service/service.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HTTP_TOKEN_MAX = 4096 }; /* bytes of a file with a token */

enum {
	HTTP_SESSION_ID = 48,
	HTTP_SESSIONS_MAX = 128, /* of one token, where they share cells */
	/* of all tokens; a session with a cell of its own counts as the cell does */
	HTTP_SESSIONS_ALL = 1024 + SERVICE_CELLS_MAX,
	/*
	 * A token may have so many requests beside its calls (max_calls_per_token): streams for
	 * notices, requests that come, answers that nobody reads. With more, only those that are
	 * answered immediately are taken, and with still more none.
	 */
	HTTP_BESIDE_CALLS = 32,
	HTTP_BESIDE_CALLS_ALL = 64,
	/* Of the places of all requests one token of several leaves some in any case. */
	HTTP_SHARE_MAX = 320,
};

enum {
	PORT_MAX = 65535,
	ADDRESS_MAX = 64,
	TOKEN_LEAST = 16, /* a shorter token could be guessed by trying */
	OTHERS = 077,     /* rights that a token's file must not give to others */
};

static bool is_loopback(const struct http_place *place)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&place->address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&place->address;

	if (place->address.ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static bool set_address(const char *name, uint16_t port, struct http_place *place)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&place->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&place->address;

	memset(place, 0, sizeof(*place));
	if (inet_pton(AF_INET, name, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		place->size = sizeof(*four);
		place->loopback = is_loopback(place);
		return true;
	}
	if (inet_pton(AF_INET6, name, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	place->size = sizeof(*six);
	place->loopback = is_loopback(place);
	return true;
}

/*
 * HOST without its port and without the brackets of IPv6. *PORT is the text behind it, or
 * empty.
 */
static struct str split_port(struct str host, struct str *port)
{
	size_t colon = (size_t)-1;

	*port = STR("");
	if (str_starts(host, STR("["))) {
		const size_t end = str_find(host, STR("]"), 0);

		if (end == (size_t)-1)
			return STR("");
		if (end + 1 < host.size && host.data[end + 1] == ':')
			*port = str_part(host, end + 2, host.size);
		else if (end + 1 < host.size)
			return STR("");
		return str_part(host, 1, end - 1);
	}
	for (size_t i = 0; i < host.size; i++) {
		if (host.data[i] == ':')
			colon = i;
	}
	if (colon == (size_t)-1)
		return host;
	*port = str_part(host, colon + 1, host.size);
	return str_part(host, 0, colon);
}

bool http_place_read(const char *text, struct http_place *place, struct err *err)
{
	struct str port, name = split_port(str_of(text), &port);
	uint64_t number;

	if (port.size == 0 && strspn(text, "0123456789") == strlen(text)) {
		port = name;
		name = STR("127.0.0.1");
	}
	auto_free char *port_text = memory_copy_str(port);
	auto_free char *name_text = str_is(name, "localhost") ? memory_copy("127.0.0.1")
							      : memory_copy_str(name);
	if (port.size > 0 && text_parse_count(port_text, PORT_MAX, &number, NULL) &&
	    set_address(name_text, (uint16_t)number, place))
		return true;
	return err_set(err, EINVAL,
		       "--http %.100s: must be an address and a port, as 127.0.0.1:8080 or "
		       "[::1]:8080",
		       text);
}

void http_place_add(const struct http_place *place, struct buf *out)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&place->address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&place->address;
	char name[ADDRESS_MAX] = "";

	if (place->address.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &four->sin_addr, name, sizeof(name));
		(void)buf_addf(out, "%s:%d", name, ntohs(four->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &six->sin6_addr, name, sizeof(name));
		(void)buf_addf(out, "[%s]:%d", name, ntohs(six->sin6_port));
	}
}

bool http_host_is_ours(const struct http_guard *guard, struct str host)
{
	struct str port;
	const struct str name = split_port(str_trim(host), &port);
	auto_free char *text = memory_copy_str(name);
	struct http_place place;

	for (size_t i = 0; i < port.size; i++) {
		if (!isdigit((unsigned char)port.data[i]))
			return false;
	}
	if (str_is_caseless(name, "localhost"))
		return true;
	/*
	 * An address cannot be rebound as a DNS name can, and a foreign address does not
	 * lead here.
	 */
	if (set_address(text, 0, &place))
		return place.loopback || guard->token != NULL;
	for (const char *const *at = guard->hosts; at != NULL && *at != NULL; at++) {
		if (str_is_caseless(name, *at))
			return true;
	}
	return false;
}

bool http_origin_is_ours(const struct http_guard *guard, const char *origin)
{
	struct str rest = str_of(origin);

	if (origin == NULL)
		return true;
	if (str_starts(rest, STR("http://")))
		rest = str_part(rest, strlen("http://"), rest.size);
	else if (str_starts(rest, STR("https://")))
		rest = str_part(rest, strlen("https://"), rest.size);
	else
		return false;
	return http_host_is_ours(guard, rest);
}

/* The token in AUTHORIZATION, a header or NULL; empty: it has none. */
static struct str http_bearer(const char *authorization)
{
	const struct str rest = str_of(authorization);

	if (!str_starts_caseless(rest, "Bearer "))
		return STR("");
	return str_trim(str_part(rest, strlen("Bearer "), rest.size));
}

bool http_token_fits(const struct http_guard *guard, const char *authorization)
{
	char given[HASH_HEX + 1], wanted[HASH_HEX + 1];
	const struct str bearer = http_bearer(authorization);
	unsigned differs = 0;

	if (guard->token == NULL)
		return true;
	if (bearer.size == 0)
		return false;
	hash_text(bearer, given);
	hash_text(str_of(guard->token), wanted);
	for (size_t i = 0; i < HASH_HEX; i++)
		differs |= (unsigned char)given[i] ^ (unsigned char)wanted[i];
	return differs == 0;
}

/* Take the next of the comma-separated ranges of ACCEPT, without its parameters. */
static bool next_range(struct str *rest, struct str *range)
{
	size_t comma;

	if (rest->size == 0)
		return false;
	comma = str_find(*rest, STR(","), 0);
	*range = str_part(*rest, 0, comma == (size_t)-1 ? rest->size : comma);
	*rest = comma == (size_t)-1 ? STR("") : str_part(*rest, comma + 1, rest->size);
	const size_t end = str_find(*range, STR(";"), 0);
	*range = str_trim(str_part(*range, 0, end == (size_t)-1 ? range->size : end));
	return true;
}

static bool token_file_read(const char *path, struct buf *token, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, errno, "--token-file %s: %s", path, strerror(errno));
	if ((st.st_mode & OTHERS) != 0)
		return err_set(err, EPERM,
			       "--token-file %s: others may read it; chmod 600 it", path);
	if (!fd_read_file(path, HTTP_TOKEN_MAX, token, err))
		return err_while(err, "--token-file");
	const struct str trimmed = str_trim(buf_str(token));
	buf_truncate(token, (size_t)(trimmed.data + trimmed.size - token->data));
	buf_remove(token, 0, (size_t)(trimmed.data - token->data));
	return true;
}

/*
 * Set GUARD's token: to the content of the file PATH, which TOKEN (initialised) then
 * holds, or, when PATH is NULL, to GIVEN (or NULL). A token that others can read or guess
 * protects nothing, so it is refused.
 */
static bool http_token_read(const char *given, const char *path, struct buf *token,
			    struct http_guard *guard, struct err *err)
{
	if (path != NULL && !token_file_read(path, token, err))
		return false;
	guard->token = path != NULL ? token->data : given;
	if (guard->token != NULL && strlen(guard->token) < TOKEN_LEAST)
		return err_set(err, EINVAL,
			       "a token needs at least %d characters; for one: "
			       "head -c 24 /dev/urandom | base64",
			       TOKEN_LEAST);
	return true;
}

bool http_accepts(const char *accept, struct str type)
{
	const size_t slash = str_find(type, STR("/"), 0);
	struct str rest = str_of(accept), range;

	if (rest.size == 0)
		return true;
	while (next_range(&rest, &range)) {
		if (str_is(range, "*/*"))
			return true;
		if (range.size == type.size &&
		    strncasecmp(range.data, type.data, type.size) == 0)
			return true;
		if (range.size == slash + 2 && str_ends(range, STR("/*")) &&
		    strncasecmp(range.data, type.data, slash + 1) == 0)
			return true;
	}
	return false;
}

/*
 * The clients that have shaken hands over HTTP, each known by an id that cannot be
 * guessed, and only together with its token. Their number is limited. When a token has as many
 * as it may, that of its clients is removed that was silent for longest, if possible one
 * without a request under way. Sessions with cells of their own are limited by these.
 */

struct session_row {
	struct mcp_peer *peer; /* NULL: the row is free */
	struct mcp_cell *cell;
	const struct mcp_token *token;
	char id[HTTP_SESSION_ID + 1];
	int64_t used_ms;
	bool revoked; /* its token is no good any more: it ends with what is under way */
};

struct http_sessions {
	struct session_row *rows;
	size_t count; /* of rows, free or not */
	bool revoked; /* there are such rows */
};

static void http_sessions_fini(struct http_sessions *sessions)
{
	for (size_t i = 0; i < sessions->count; i++)
		mcp_peer_free(sessions->rows[i].peer);
	free(sessions->rows);
}

static void make_id(char id[HTTP_SESSION_ID + 1])
{
	if (!text_random_hex(id, HTTP_SESSION_ID))
		abort();
}

/*
 * Should the session in ROW end before that in OTHER? It should when it has no work under way,
 * or was silent for longer.
 */
static bool goes_before(const struct session_row *row, const struct session_row *other)
{
	if (mcp_peer_is_busy(row->peer) != mcp_peer_is_busy(other->peer))
		return mcp_peer_is_busy(other->peer);
	return row->used_ms < other->used_ms;
}

/* End a session of TOKEN when it has as many as it may; those in cells of their own stay. */
static void sessions_make_room(struct http_sessions *sessions, const struct mcp_token *token)
{
	struct session_row *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < sessions->count; i++) {
		struct session_row *row = &sessions->rows[i];

		if (row->peer == NULL || row->revoked || row->token != token ||
		    row->cell->of_a_session)
			continue;
		count++;
		if (first == NULL || goes_before(row, first))
			first = row;
	}
	if (count < HTTP_SESSIONS_MAX)
		return;
	mcp_peer_free(first->peer);
	first->peer = NULL;
}

/* A free row; NULL: there are as many as there may be. */
static struct session_row *session_row_new(struct http_sessions *sessions)
{
	size_t at = 0;

	while (at < sessions->count && sessions->rows[at].peer != NULL)
		at++;
	if (at == HTTP_SESSIONS_ALL)
		return NULL;
	if (at == sessions->count) {
		sessions->rows =
			memory_grow(sessions->rows, at + 1, sizeof(sessions->rows[0]));
		sessions->count++;
	}
	sessions->rows[at] = (struct session_row){0};
	return &sessions->rows[at];
}

/* NULL: there are as many sessions as there may be. */
static struct mcp_peer *http_session_begin(struct http_sessions *sessions,
					   struct mcp_cell *cell,
					   const struct mcp_token *token,
					   char id[HTTP_SESSION_ID + 1])
{
	struct session_row *row;

	if (!cell->of_a_session)
		sessions_make_room(sessions, token);
	row = session_row_new(sessions);
	if (row == NULL)
		return NULL;
	make_id(row->id);
	row->cell = cell;
	row->token = token;
	row->peer = mcp_peer_new(cell->mcp, NULL, row->id);
	row->used_ms = clock_now_ms();
	memcpy(id, row->id, sizeof(row->id));
	return row->peer;
}

static struct session_row *http_session_find(struct http_sessions *sessions,
					     const char *id, const struct mcp_token *token)
{
	for (size_t i = 0; i < sessions->count; i++) {
		struct session_row *row = &sessions->rows[i];

		if (row->peer != NULL && !row->revoked && row->token == token &&
		    row->cell->life == MCP_CELL_OPEN && strcmp(row->id, id) == 0) {
			row->used_ms = clock_now_ms();
			return row;
		}
	}
	return NULL;
}

static void http_session_end(struct session_row *row)
{
	struct mcp_cell *cell = row->cell;
	struct mcp_peer *peer = row->peer;

	row->peer = NULL;
	mcp_peer_free(peer);
	if (cell->of_a_session)
		mcp_cell_end(cell, "its session was ended");
}

/* Free the sessions whose token is no good any more, when their calls have been answered. */
static void http_sessions_settle(struct http_sessions *sessions)
{
	bool any = false;

	for (size_t i = 0; sessions->revoked && i < sessions->count; i++) {
		struct session_row *row = &sessions->rows[i];

		if (row->peer == NULL || !row->revoked)
			continue;
		if (mcp_peer_is_busy(row->peer)) {
			any = true;
			continue;
		}
		mcp_peer_free(row->peer);
		row->peer = NULL;
	}
	sessions->revoked = any;
}

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
	STATUS_OK = 200,
	STATUS_BUSY = 503,
	BACKLOG = 128,
	FORWARDED_MAX = 16, /* addresses in X-Forwarded-For that are looked at */
	FORWARDED_TEXT_MAX = 64 << 10, /* as much as all headers may have */
	STATUS_TOO_MANY = 429,
	METRICS_TEXT_MAX = 4 << 20,
	READY_TEXT_MAX = 8 << 10,
	NUMBER_MAX = 24,
	LINGER_MS = 1000, /* a request follows its connection sooner */
};

static const char crowded[] =
	"As many requests as there may be are under way: wait for one to end, or cancel one by "
	"notifications/cancelled.";

struct server {
	const struct mcp_http *options;
	struct http_guard guard;
	struct buf token;
	struct http_daemon *daemon, *metrics;
	struct http_sessions sessions;
	struct carried *first; /* the requests under way */
	struct watch stopping;
	bool stopped;
};

/* One HTTP request, as a way back to its client. */
struct carried {
	struct mcp_way way;
	struct server *server;
	struct carried *next, *previous;
	struct http_exchange *exchange;
	struct mcp_token *token; /* NULL: it has none that is good */
	struct mcp_cell *cell;   /* that it was brought to; NULL: none, or it has ended */
	struct mcp_peer *own;    /* the peer of a request without a session; or NULL */
};

static void send_message(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct http_exchange *exchange = ((struct carried *)way)->exchange;

	if (last && !http_daemon_is_stream(exchange)) {
		http_daemon_answer(exchange, status, JSON, buf_str(message));
		return;
	}
	http_daemon_stream(exchange, EVENTS, HEARTBEAT);
	http_daemon_stream_add(exchange, EVENT_BEGIN);
	http_daemon_stream_add(exchange, buf_str(message));
	http_daemon_stream_add(exchange, EVENT_END);
	if (last)
		http_daemon_stream_end(exchange);
}

static void drop(struct mcp_way *way)
{
	struct http_exchange *exchange = ((struct carried *)way)->exchange;

	http_daemon_stream(exchange, EVENTS, HEARTBEAT);
	http_daemon_stream_end(exchange);
}

/* The server that refuses what reaches no cell. */
static struct mcp *desk_of(const struct carried *carried)
{
	return mcp_service_desk(carried->server->options->service);
}

/* Refuse a request before any MCP message of it has been read. */
static void refuse(struct carried *carried, int status, const char *sentence)
{
	const struct mcp_message none = {0};
	struct err err;

	(void)err_set(&err, MCP_CODE_INVALID, "%s", sentence);
	mcp_refuse(desk_of(carried), &carried->way, &none, status, &err, NULL);
}

/* Refuse MESSAGE because of a bound, or because no cell could be made. */
static void refuse_busy(struct carried *carried, const struct mcp_message *message,
			const struct mcp_busy *busy)
{
	auto_value struct value *data = value_new_object();
	char seconds[NUMBER_MAX];

	(void)snprintf(seconds, sizeof(seconds), "%d", busy->retry_s);
	if (busy->status != 0)
		http_daemon_add_header(carried->exchange, "Retry-After", seconds);
	/* The next server is reached by another connection. */
	if (busy->limit != NULL && strcmp(busy->limit, "drain_s") == 0)
		http_daemon_add_header(carried->exchange, "Connection", "close");
	if (busy->kind != NULL)
		value_set_text(data, "kind", busy->kind);
	if (busy->limit != NULL) {
		value_set_text(data, "limit", busy->limit);
		if (busy->value == (double)(int64_t)busy->value)
			value_set_integer(data, "value", (int64_t)busy->value);
		else
			value_set_real(data, "value", busy->value);
	}
	mcp_refuse(desk_of(carried), &carried->way, message,
		   busy->status != 0 ? busy->status : STATUS_BAD, &busy->why,
		   value_count(data) > 0 ? data : NULL);
}

static bool is_method(const struct carried *carried, const char *method)
{
	return strcmp(http_daemon_method(carried->exchange), method) == 0;
}

static const char *header(const struct carried *carried, const char *name)
{
	return http_daemon_header(carried->exchange, name);
}

/*
 * A proxy before us could read contradicting headers differently from us, so refuse them.
 */
static bool is_unambiguous(struct carried *carried)
{
	static const char *const once[] = {
		"Host",           "Origin",         "Authorization",
		"Content-Length", "Mcp-Session-Id", "Transfer-Encoding",
		"Mcp-Method",     "Mcp-Name",       "MCP-Protocol-Version",
		"Glovebox-Cell"};

	const char *coding = header(carried, "Transfer-Encoding");

	if (!http_daemon_headers_are_sound(carried->exchange)) {
		refuse(carried, STATUS_BAD, "A header's name holds what no name may hold.");
		return false;
	}
	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
		if (http_daemon_header_count(carried->exchange, once[i]) <= 1)
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
	/*
	 * A proxy that sees the end of the body at another place takes the rest for a new
	 * request.
	 */
	if (coding != NULL && strcasecmp(coding, "chunked") != 0) {
		refuse(carried, STATUS_BAD,
		       "Of Transfer-Encoding only \"chunked\" is known here.");
		return false;
	}
	return true;
}

/* The last of the comma-separated words of LIST, which loses it. Empty: there is none. */
static struct str take_last(struct str *list)
{
	size_t from = list->size;
	struct str word;

	while (from > 0 && list->data[from - 1] != ',')
		from--;
	word = str_trim(str_part(*list, from, list->size));
	*list = str_part(*list, 0, from > 0 ? from - 1 : 0);
	return word;
}

static bool is_by_proxy(const struct carried *carried)
{
	return service_trusts(mcp_service_settings(carried->server->options->service),
			      http_daemon_peer(carried->exchange));
}

/*
 * Does the client call this server by a name of its own? A proxy may have sent another one, which
 * is the last of its list: the ones before it were written by the client.
 */
static bool host_is_ours(const struct carried *carried)
{
	const struct http_guard *guard = &carried->server->guard;
	struct str list;
	struct buf told;
	bool ours;

	if (!is_by_proxy(carried) || header(carried, "X-Forwarded-Host") == NULL)
		return http_host_is_ours(guard, str_of(header(carried, "Host")));
	buf_init(&told, FORWARDED_TEXT_MAX);
	http_daemon_header_list(carried->exchange, "X-Forwarded-Host", &told);
	list = buf_str(&told);
	ours = http_host_is_ours(guard, take_last(&list));
	buf_fini(&told);
	return ours;
}

/*
 * Append the last address in the X-Forwarded-For headers, which are one list, that is none of the
 * trusted proxies': the ones before it were written by the client. False: there is none.
 */
static bool add_forwarded(const struct carried *carried, struct buf *out)
{
	const struct service *settings =
		mcp_service_settings(carried->server->options->service);
	struct str list, word;
	struct buf told;
	bool found = false;

	buf_init(&told, FORWARDED_TEXT_MAX);
	http_daemon_header_list(carried->exchange, "X-Forwarded-For", &told);
	list = buf_str(&told);
	for (int i = 0; !found && i < FORWARDED_MAX; i++) {
		word = take_last(&list);
		if (word.size == 0 || word.size > ADDRESS_MAX)
			break;
		found = !service_trusts_text(settings, word) && buf_addstr(out, word);
	}
	buf_fini(&told);
	return found;
}

/* Append the address of the client, which may have come by trusted proxies. */
static void add_client(const struct carried *carried, struct buf *out)
{
	const struct sockaddr *peer = http_daemon_peer(carried->exchange);
	struct http_place place = {.size = 0};

	if (peer == NULL || (is_by_proxy(carried) && add_forwarded(carried, out)))
		return;
	memcpy(&place.address, peer,
	       peer->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6));
	http_place_add(&place, out);
}

/* Answer those who watch the service. True: the request was one of theirs. */
static bool answer_watcher(struct carried *carried)
{
	const char *path = http_daemon_path(carried->exchange);
	struct buf text;
	bool ready;

	if (!is_method(carried, "GET") && !is_method(carried, "HEAD"))
		return false;
	if (strcmp(path, "/healthz") == 0) {
		http_daemon_answer(carried->exchange, STATUS_OK, "text/plain", STR("ok\n"));
		return true;
	}
	if (strcmp(path, "/readyz") != 0)
		return false;
	buf_init(&text, READY_TEXT_MAX);
	ready = mcp_service_is_ready(carried->server->options->service, &text);
	http_daemon_answer(carried->exchange, ready ? STATUS_OK : STATUS_BUSY, JSON,
			   buf_str(&text));
	buf_fini(&text);
	return true;
}

/* Find the token of the request. False: it has been refused. */
static bool admit(struct carried *carried)
{
	struct mcp_service *service = carried->server->options->service;
	const char *authorization = header(carried, "Authorization");
	struct err err;

	if (!mcp_service_has_tokens(service) &&
	    !http_token_fits(&carried->server->guard, authorization))
		(void)err_set(&err, EACCES, "A bearer token is needed.");
	else if ((carried->token = mcp_service_token(service, http_bearer(authorization),
						     &err)) != NULL)
		return true;
	http_daemon_add_header(carried->exchange, "WWW-Authenticate", "Bearer");
	refuse(carried, STATUS_UNAUTHORIZED, err.text);
	return false;
}

static bool may_ask(struct carried *carried)
{
	const struct http_guard *guard = &carried->server->guard;

	if (!is_unambiguous(carried))
		return false;
	if (!host_is_ours(carried)) {
		refuse(carried, STATUS_FORBIDDEN,
		       "This server is not called that; --host NAME allows a name.");
		return false;
	}
	if (!http_origin_is_ours(guard, header(carried, "Origin"))) {
		refuse(carried, STATUS_FORBIDDEN, "Pages of this origin may not ask here.");
		return false;
	}
	if (answer_watcher(carried) || !admit(carried))
		return false;
	if (strcmp(http_daemon_path(carried->exchange), ENDPOINT) != 0) {
		refuse(carried, STATUS_NOT_FOUND, "The endpoint is " ENDPOINT ".");
		return false;
	}
	return true;
}

/*
 * Has the token of the request more than its share of all requests, BESIDE its calls? Streams for
 * notices and requests that are not there yet count as well. True: the request is to be refused,
 * and BUSY says so. Without the key `service` the only token may have all.
 */
static bool is_over_its_share(const struct carried *carried, uint64_t beside, int status,
			      struct mcp_busy *busy)
{
	const struct server *server = carried->server;
	const struct service *settings = mcp_service_settings(server->options->service);
	uint64_t most = settings->max_calls_per_token + HTTP_BESIDE_CALLS, count = 0;

	if (!settings->given)
		return false;
	if (mcp_service_has_tokens(server->options->service) && most > HTTP_SHARE_MAX)
		most = HTTP_SHARE_MAX;
	most += beside - HTTP_BESIDE_CALLS;
	for (const struct carried *at = server->first; at != NULL; at = at->next)
		count += at->token == carried->token;
	if (count <= most)
		return false;
	*busy = (struct mcp_busy){
		.status = status,
		.retry_s = 1,
		.kind = "busy",
		.limit = "requests",
		.value = (double)most,
	};
	(void)err_set(&busy->why, MCP_CODE_BUSY,
		      "This token has %" PRIu64
		      " requests and streams open, as many as it may have: close some.",
		      most);
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

static void check_head(struct carried *carried)
{
	struct http_exchange *exchange = carried->exchange;
	const struct mcp_message none = {0};
	struct mcp_busy busy;

	if (!may_ask(carried)) {
		/* A client that may not ask does not keep its connection. */
		http_daemon_add_header(exchange, "Connection", "close");
		return;
	}
	if (is_over_its_share(carried, HTTP_BESIDE_CALLS_ALL, STATUS_BUSY, &busy)) {
		http_daemon_add_header(exchange, "Connection", "close");
		refuse_busy(carried, &none, &busy);
		return;
	}
	if (is_method(carried, "POST")) {
		(void)is_well_formed_post(carried);
		return;
	}
	/*
	 * Only the legacy era has GET (a stream for notices) and DELETE (of a session).
	 */
	if ((!is_method(carried, "GET") && !is_method(carried, "DELETE")) ||
	    says_modern(carried) || header(carried, "Mcp-Session-Id") == NULL) {
		http_daemon_add_header(exchange, "Allow", "POST");
		refuse(carried, STATUS_METHOD, "Messages are sent by POST.");
	}
}

static void *head(void *context, struct http_exchange *exchange)
{
	struct carried *carried = memory_alloc(sizeof(*carried));
	struct server *server = context;

	*carried = (struct carried){.way = {send_message, drop},
				    .server = server,
				    .next = server->first,
				    .exchange = exchange};
	if (server->first != NULL)
		server->first->previous = carried;
	server->first = carried;
	check_head(carried);
	return carried;
}

/*
 * The session that the request names. NULL: the request names none, or it has been
 * answered.
 */
static struct session_row *session_of(struct carried *carried)
{
	const char *id = header(carried, "Mcp-Session-Id");
	struct session_row *row =
		id != NULL
			? http_session_find(&carried->server->sessions, id, carried->token)
			: NULL;

	if (id != NULL && row == NULL)
		refuse(carried, STATUS_NOT_FOUND,
		       "There is no such session; initialize anew.");
	if (row != NULL) {
		carried->cell = row->cell;
		mcp_cell_use(row->cell);
	}
	return row;
}

/* Open the stream for notices that belong to no request. */
static void open_notices(struct carried *carried)
{
	const struct session_row *row = session_of(carried);
	const struct mcp_message none = {0};
	struct mcp_busy busy;

	if (row == NULL)
		return;
	if (http_daemon_is_crowded(carried->exchange)) {
		http_daemon_ask_again(carried->exchange);
		refuse(carried, STATUS_BUSY, crowded);
		return;
	}
	if (is_over_its_share(carried, HTTP_BESIDE_CALLS, STATUS_TOO_MANY, &busy)) {
		refuse_busy(carried, &none, &busy);
		return;
	}
	if (!http_accepts(header(carried, "Accept"), STR(EVENTS))) {
		refuse(carried, STATUS_ACCEPT, "Accept must have " EVENTS ".");
		return;
	}
	if (!mcp_peer_set_way(row->peer, &carried->way)) {
		refuse(carried, STATUS_CONFLICT, "This session has such a stream already.");
		return;
	}
	http_daemon_stream(carried->exchange, EVENTS, HEARTBEAT);
	http_daemon_stream_add(carried->exchange, HEARTBEAT);
}

static void end_session(struct carried *carried)
{
	struct session_row *row = session_of(carried);

	if (row == NULL)
		return;
	http_daemon_answer(carried->exchange, STATUS_NO_CONTENT, NULL, STR(""));
	http_session_end(row);
}

/* Bring the request, with MESSAGE, to a cell. False: it has been refused. */
static bool find_cell(struct carried *carried, const struct mcp_message *message, bool begins)
{
	struct mcp_busy busy;
	struct buf client;

	buf_init(&client, ADDRESS_MAX + NUMBER_MAX);
	add_client(carried, &client);
	carried->cell = mcp_service_cell(carried->server->options->service,
					 carried->token, header(carried, "Glovebox-Cell"),
					 begins                  ? MCP_BEGINS_SESSION
					 : mcp_may_last(message) ? MCP_IS_COUNTED
								 : MCP_IS_SHORT,
					 client.data != NULL ? client.data : "", &busy);
	buf_fini(&client);
	if (carried->cell == NULL)
		refuse_busy(carried, message, &busy);
	return carried->cell != NULL;
}

/* A peer for this request only. */
static struct mcp_peer *own_peer(struct carried *carried)
{
	carried->own = mcp_peer_new(carried->cell->mcp, NULL, NULL);
	return carried->own;
}

static const char *find_header(void *context, const char *name, size_t *count)
{
	*count = http_daemon_header_count(context, name);
	return http_daemon_header(context, name);
}

static bool take_modern(struct carried *carried, const struct mcp_message *message)
{
	const struct http_repeated headers = {
		.version = header(carried, "MCP-Protocol-Version"),
		.method = header(carried, "Mcp-Method"),
		.name = header(carried, "Mcp-Name"),
	};
	struct err err;

	if (!http_repeats(&headers, message, &err)) {
		mcp_refuse(desk_of(carried), &carried->way, message, STATUS_BAD, &err, NULL);
		return true;
	}
	if (!find_cell(carried, message, false))
		return true;
	if (!http_repeats_arguments(mcp_schema_of_call(carried->cell->mcp, message),
				    value_member(message->params, "arguments"),
				    find_header, carried->exchange, &err)) {
		mcp_refuse(desk_of(carried), &carried->way, message, STATUS_BAD, &err, NULL);
		return true;
	}
	return mcp_take(own_peer(carried), &carried->way, message, MCP_MODERN);
}

static void refuse_crowded(struct carried *carried, const struct mcp_message *message)
{
	struct err err;

	(void)err_set(&err, MCP_CODE_INTERNAL, "%s", crowded);
	http_daemon_ask_again(carried->exchange);
	mcp_refuse(desk_of(carried), &carried->way, message, STATUS_BUSY, &err, NULL);
}

/* MESSAGE is an initialize. */
static bool take_hello(struct carried *carried, const struct mcp_message *message)
{
	char id[HTTP_SESSION_ID + 1];
	struct mcp_peer *peer;

	if (!find_cell(carried, message, true))
		return true;
	peer = http_session_begin(&carried->server->sessions, carried->cell,
				  carried->token, id);
	if (peer == NULL) {
		refuse_crowded(carried, message);
		return true;
	}
	http_daemon_add_header(carried->exchange, "Mcp-Session-Id", id);
	return mcp_take(peer, &carried->way, message, MCP_AS_AGREED);
}

static bool take_legacy(struct carried *carried, const struct mcp_message *message)
{
	const struct session_row *row;

	if (message->kind == MCP_REQUEST && strcmp(message->method, "initialize") == 0)
		return take_hello(carried, message);
	row = session_of(carried);
	if (row != NULL)
		return mcp_take(row->peer, &carried->way, message, MCP_AS_AGREED);
	return http_daemon_is_answered(carried->exchange) ||
	       !find_cell(carried, message, false) ||
	       mcp_take(own_peer(carried), &carried->way, message, MCP_LENIENT);
}

static bool is_modern(const struct carried *carried, const struct mcp_message *message)
{
	return says_modern(carried) || mcp_modern_version(message) != NULL ||
	       (message->method != NULL && strcmp(message->method, MCP_DISCOVER) == 0);
}

/* May MESSAGE, which may last, begin now? False: it has been refused. */
static bool has_room(struct carried *carried, const struct mcp_message *message)
{
	struct mcp_busy busy;

	if (!mcp_may_last(message))
		return true;
	if (http_daemon_is_crowded(carried->exchange)) {
		refuse_crowded(carried, message);
		return false;
	}
	if (!is_over_its_share(carried, HTTP_BESIDE_CALLS, STATUS_TOO_MANY, &busy) &&
	    mcp_service_may_call(carried->server->options->service, carried->token, &busy))
		return true;
	refuse_busy(carried, message, &busy);
	return false;
}

/*
 * A proxy, or a library for HTTP, tells the trace of a request in its headers (W3C). A call whose `_meta`
 * names none is a part of that one.
 */
static void add_trace(const struct carried *carried, const struct mcp_message *message)
{
	static const char *const parts[] = {"traceparent", "tracestate", "baggage"};
	struct value *params = value_member(message->whole, "params");
	struct value *meta = value_member(params, "_meta");

	if (message->params == NULL || !mcp_may_last(message) ||
	    header(carried, parts[0]) == NULL || value_member(meta, parts[0]) != NULL ||
	    (meta != NULL && value_kind(meta) != VALUE_OBJECT))
		return;
	if (meta == NULL) {
		meta = value_new_object();
		value_set(params, "_meta", meta);
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *text = header(carried, parts[i]);

		if (text != NULL && value_member(meta, parts[i]) == NULL &&
		    http_daemon_header_count(carried->exchange, parts[i]) == 1)
			value_set_text(meta, parts[i], text);
	}
}

static void take_post(struct carried *carried, struct str body)
{
	struct mcp_message message;
	struct err err;
	bool answered = true;

	if (!mcp_message_read(body, &message, &err)) {
		mcp_refuse(desk_of(carried), &carried->way, &message, STATUS_BAD, &err,
			   NULL);
		mcp_message_fini(&message);
		return;
	}
	http_daemon_stream_if_late(carried->exchange, EVENTS, HEARTBEAT);
	add_trace(carried, &message);
	/* The token may have gone while the request came. */
	if (!admit(carried) || !has_room(carried, &message))
		answered = true;
	else if (message.kind != MCP_RESPONSE && is_modern(carried, &message))
		answered = take_modern(carried, &message);
	else
		answered = take_legacy(carried, &message);
	if (!answered)
		http_daemon_answer(carried->exchange, STATUS_ACCEPTED, NULL, STR(""));
	mcp_message_fini(&message);
}

static void whole(void *context, struct http_exchange *exchange, struct str body)
{
	struct carried *carried = http_daemon_owner(exchange);

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
	struct carried *carried = http_daemon_owner(exchange);

	(void)context;
	if (carried->cell != NULL)
		mcp_way_gone(carried->cell->mcp, &carried->way);
}

static void over(void *context, struct http_exchange *exchange)
{
	struct server *server = context;
	struct carried *carried = http_daemon_owner(exchange);

	dropped(context, exchange);
	mcp_peer_free(carried->own);
	if (carried->previous != NULL)
		carried->previous->next = carried->next;
	else
		server->first = carried->next;
	if (carried->next != NULL)
		carried->next->previous = carried->previous;
	free(carried);
}

/*
 * TOKEN is no good any more, because of WHY: end what it has open. A cell of its own ends anyhow; in
 * the one that all share its calls are cancelled, its streams hear WHY, and its sessions end.
 */
static void token_leaves(void *context, const struct mcp_token *token, const char *why)
{
	struct server *server = context;

	for (size_t i = 0; i < server->sessions.count; i++) {
		struct session_row *row = &server->sessions.rows[i];

		if (row->peer == NULL || row->token != token)
			continue;
		row->revoked = server->sessions.revoked = true;
		mcp_stop_calls(row->cell->mcp, row->peer, why);
		mcp_goodbye(row->cell->mcp, row->peer, why);
	}
	for (struct carried *at = server->first; at != NULL; at = at->next) {
		if (at->token != token || at->own == NULL || at->cell == NULL)
			continue;
		mcp_stop_calls(at->cell->mcp, at->own, why);
		mcp_goodbye(at->cell->mcp, at->own, why);
	}
}

/* CELL is about to be freed: end its peers, with what is left of their requests. */
static void cell_leaves(void *context, struct mcp_cell *cell)
{
	struct server *server = context;

	for (size_t i = 0; i < server->sessions.count; i++) {
		struct session_row *row = &server->sessions.rows[i];

		if (row->peer == NULL || row->cell != cell)
			continue;
		mcp_peer_free(row->peer);
		row->peer = NULL;
	}
	for (struct carried *at = server->first; at != NULL; at = at->next) {
		if (at->cell != cell)
			continue;
		mcp_peer_free(at->own);
		at->own = NULL;
		mcp_way_gone(cell->mcp, &at->way);
		at->cell = NULL;
	}
}

/* The metrics have an address of their own, which is on the loopback: no token is asked for. */

static void *metrics_head(void *context, struct http_exchange *exchange)
{
	const struct http_guard guard = {0};
	const char *host = http_daemon_header(exchange, "Host");
	const struct mcp_http *options = context;
	struct buf text;

	buf_init(&text, METRICS_TEXT_MAX);
	if (host == NULL || !http_host_is_ours(&guard, str_of(host))) {
		http_daemon_answer(exchange, STATUS_FORBIDDEN, "text/plain",
				   STR("This server is not called that.\n"));
	} else if (strcmp(http_daemon_path(exchange), "/metrics") != 0 ||
		   strcmp(http_daemon_method(exchange), "GET") != 0) {
		http_daemon_answer(exchange, STATUS_NOT_FOUND, "text/plain",
				   STR("Here is GET /metrics.\n"));
	} else {
		mcp_service_print_metrics(options->service, &text);
		http_daemon_answer(exchange, STATUS_OK, "text/plain; version=0.0.4",
				   buf_str(&text));
	}
	buf_fini(&text);
	return NULL;
}

static void metrics_whole(void *context, struct http_exchange *exchange, struct str body)
{
	(void)context;
	(void)exchange;
	(void)body;
}

static void metrics_over(void *context, struct http_exchange *exchange)
{
	(void)context;
	(void)exchange;
}

static bool listen_at(const char *option, const char *address, struct http_place *place,
		      int *socket_fd, struct err *err)
{
	const int on = 1;
	auto_close int fd = socket(place->address.ss_family,
				   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&place->address, place->size) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&place->address, &place->size) < 0)
		return err_set(err, errno, "%s %s: %s", option, address, strerror(errno));
	*socket_fd = fd_take(&fd);
	return true;
}

/* Take the socket that systemd has made, whatever address it has. */
static bool take_socket(int fd, struct http_place *place, int *socket_fd, struct err *err)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	memset(place, 0, sizeof(*place));
	place->size = sizeof(place->address);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || listens == 0 ||
	    getsockname(fd, (struct sockaddr *)&place->address, &place->size) < 0 ||
	    (place->address.ss_family != AF_INET && place->address.ss_family != AF_INET6))
		return err_set(err, EINVAL,
			       "the descriptor of LISTEN_FDS is no socket that listens at an "
			       "address and a port (ListenStream=127.0.0.1:8080)");
	place->loopback = is_loopback(place);
	*socket_fd = fd;
	return fd_set_blocking(fd, false, err);
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

/*
 * The server is told to end. Without the key `service` it does so now. With a socket of
 * systemd's, further connections wait there for the next server.
 */
static void stop_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;
	const struct mcp_http *options = server->options;

	(void)events;
	loop_remove(watch);
	server->stopped = true;
	mcp_service_drain(options->service);
	if (options->draining != NULL)
		options->draining(options->context);
	if (options->take_socket >= 0)
		(void)http_daemon_stop_listening(server->daemon);
}

/* The server is about to end: answer requests whose connections it has taken already. */
static void linger(struct server *server)
{
	const int64_t until_ms = clock_now_ms() + LINGER_MS;

	while (!http_daemon_stop_listening(server->daemon) && clock_now_ms() < until_ms)
		loop_turn(server->options->loop, until_ms);
}

static bool open_metrics(struct server *server, struct err *err)
{
	const struct mcp_http *options = server->options;
	const char *address = mcp_service_settings(options->service)->metrics;
	struct http_daemon_options daemon = {
		.loop = options->loop,
		.head = metrics_head,
		.whole = metrics_whole,
		.dropped = metrics_over,
		.over = metrics_over,
		.context = (void *)(uintptr_t)options,
	};
	struct http_place place;

	if (address == NULL)
		return true;
	if (!http_place_read(address, &place, err) || !place.loopback)
		return err_set(err, EINVAL,
			       "service.metrics %s: must be an address of the loopback and a port, "
			       "as 127.0.0.1:9464: no token protects it",
			       address);
	if (!listen_at("service.metrics", address, &place, &daemon.take_socket, err))
		return false;
	if (!http_daemon_open(&daemon, &server->metrics, err)) {
		(void)close(daemon.take_socket);
		return false;
	}
	return true;
}

/* Find the token, the address and the socket. */
static bool open_place(struct server *server, struct http_place *place, int *socket_fd,
		       struct err *err)
{
	const struct mcp_http *options = server->options;

	if (!http_place_read(options->address, place, err) ||
	    !http_token_read(options->token, options->token_file, &server->token,
			     &server->guard, err))
		return false;
	if (mcp_service_has_tokens(options->service) && server->guard.token != NULL)
		return err_set(err, EINVAL,
			       "tokens are in service.tokens of the configuration: --token-file "
			       "and GLOVEBOX_MCP_TOKEN are for one token only");
	if (mcp_service_has_tokens(options->service))
		server->guard.token = ""; /* one is needed; the service knows them */
	if (options->take_socket >= 0 &&
	    !take_socket(options->take_socket, place, socket_fd, err))
		return false;
	if (!place->loopback && server->guard.token == NULL)
		return err_set(err, EINVAL,
			       "--http %s can be reached from other machines: give it a token "
			       "(--token-file FILE, or GLOVEBOX_MCP_TOKEN)",
			       options->address);
	return options->take_socket >= 0 ||
	       listen_at("--http", options->address, place, socket_fd, err);
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

	if (!open_place(server, &place, &daemon.take_socket, err))
		return false;
	if (!http_daemon_open(&daemon, &server->daemon, err)) {
		(void)close(daemon.take_socket);
		return false;
	}
	if (!open_metrics(server, err))
		return false;
	tell_address(server, &place);
	return true;
}

bool mcp_http_run(const struct mcp_http *options, struct err *err)
{
	struct server server = {.options = options, .guard = {.hosts = options->hosts}};
	struct mcp_service *service = options->service;
	bool ok;

	buf_init(&server.token, HTTP_TOKEN_MAX);
	mcp_service_on_leave(service, cell_leaves, token_leaves, &server);
	server.stopping = (struct watch){.fd = options->stop_fd,
					 .events = POLLIN,
					 .ready = stop_ready,
					 .context = &server};
	if (options->stop_fd >= 0)
		loop_add(options->loop, &server.stopping);
	ok = open_server(&server, err);
	while (ok && !(server.stopped && mcp_service_is_drained(service))) {
		loop_turn(options->loop, CLOCK_NEVER);
		mcp_service_settle(service);
		http_sessions_settle(&server.sessions);
	}
	if (ok && mcp_service_settings(service)->given)
		linger(&server);
	if (ok)
		mcp_service_goodbye(service);
	loop_remove(&server.stopping);
	http_daemon_close(server.metrics);
	http_daemon_close(server.daemon);
	http_sessions_fini(&server.sessions);
	mcp_service_on_leave(service, NULL, NULL, NULL);
	buf_fini(&server.token);
	return ok;
}

/* Checks that the headers of a modern request agree with its body. */

enum {
	NAME_MAX_BYTES = 8 << 10,
	DEPTH_MAX = 16,       /* how deep properties may lie in properties */
	MARKED_NAME_MAX = 64, /* of the part of a header's name that the schema gives */
};

/* Does HEADER have the value VALUE, either plain or between =?base64? and ?= ? */
static bool header_says(const char *header, struct str value)
{
	const struct str begin = STR("=?base64?"), end = STR("?=");
	const struct str said = str_trim(str_of(header));
	struct buf bytes;
	bool same;

	if (!str_starts(said, begin) || !str_ends(said, end) ||
	    said.size < begin.size + end.size)
		return str_equal(said, value);
	buf_init(&bytes, NAME_MAX_BYTES);
	same = buf_base64_read(str_part(said, begin.size, said.size - begin.size - end.size),
			       &bytes) &&
	       str_equal(buf_str(&bytes), value);
	buf_fini(&bytes);
	return same;
}

static bool fail_header(const char *name, const char *said, struct err *err)
{
	if (said == NULL)
		return err_set(err, MCP_CODE_HEADER, "The header %s is missing.", name);
	return err_set(err, MCP_CODE_HEADER,
		       "The header %s (%.100s) does not say what the "
		       "body says.",
		       name, said);
}

bool http_repeats(const struct http_repeated *headers, const struct mcp_message *message,
		  struct err *err)
{
	const char *version = mcp_modern_version(message);
	struct str name;

	if (headers->version == NULL)
		return fail_header("MCP-Protocol-Version", NULL, err);
	/* A body without a version passes here: the reader of the message refuses it. */
	if (version != NULL && !header_says(headers->version, str_of(version)))
		return fail_header("MCP-Protocol-Version", headers->version, err);
	if (version == NULL || message->kind != MCP_REQUEST)
		return true;
	name = mcp_message_name(message);
	if (headers->method == NULL ||
	    !header_says(headers->method, str_of(message->method)))
		return fail_header("Mcp-Method", headers->method, err);
	if (name.size > 0 && (headers->name == NULL || !header_says(headers->name, name)))
		return fail_header("Mcp-Name", headers->name, err);
	return true;
}

/* One search for the headers that repeat arguments. */
struct looking {
	http_find_header *find;
	void *context;
	struct err *err;
};

/* Does HEADER have VALUE? Integers are compared as numbers, not by their digits. */
static bool says_argument(const char *header, const struct value *value)
{
	const struct str said = str_trim(str_of(header));
	auto_value struct value *number = NULL;

	switch (value_kind(value)) {
	case VALUE_STRING:
		return header_says(header, value_str(value));
	case VALUE_BOOLEAN:
		return header_says(header,
				   value_is_true(value) ? STR("true") : STR("false"));
	case VALUE_INTEGER:
		return value_parse(said, 0, &number, NULL) && value_equal(number, value);
	default:
		return false;
	}
}

/* A mark with characters that a header's name cannot have is ignored. */
static bool is_mark(const char *mark)
{
	return mark != NULL && mark[0] != '\0' && strlen(mark) <= MARKED_NAME_MAX &&
	       strspn(mark, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "!#$%&'*+-.^_`|~") == strlen(mark);
}

static bool fits_mark(const struct looking *looking, const char *mark,
		      const struct value *value)
{
	char name[sizeof("Mcp-Param-") + MARKED_NAME_MAX];
	size_t count = 0;
	const char *header;
	const bool there = value != NULL && value_kind(value) != VALUE_NULL;

	(void)snprintf(name, sizeof(name), "Mcp-Param-%s", mark);
	header = looking->find(looking->context, name, &count);
	if (there ? header != NULL && count == 1 && says_argument(header, value)
		  : header == NULL)
		return true;
	return fail_header(name, header, looking->err);
}

/* Only marks reached through `properties` are checked: other keywords may not apply. */
static bool fits_properties(const struct looking *looking, const struct value *schema,
			    const struct value *arguments, unsigned depth)
{
	const struct value *properties = value_member(schema, "properties");

	if (value_kind(properties) != VALUE_OBJECT || depth == DEPTH_MAX)
		return true;
	for (void *at = value_first(properties); at != NULL;
	     at = value_next(properties, at)) {
		const struct value *property = value_at(at);
		const struct value *value = value_member(arguments, value_key(at));
		const char *mark = value_text(value_member(property, "x-mcp-header"));

		if (is_mark(mark) && !fits_mark(looking, mark, value))
			return false;
		if (!fits_properties(looking, property, value, depth + 1))
			return false;
	}
	return true;
}

bool http_repeats_arguments(const struct value *schema, const struct value *arguments,
			    http_find_header *find, void *context, struct err *err)
{
	return fits_properties(&(struct looking){find, context, err}, schema, arguments, 0);
}
