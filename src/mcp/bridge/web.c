/* web: one easy handle for each exchange, on a multi handle that keeps the connections. */
#include "mcp/bridge/web.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/libcurl.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/bridge/headers.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONNECT_S = 10,
	FDS_MAX = 4, /* descriptors besides those of libcurl */
	WHY_MAX = 2 * CURL_ERROR_SIZE,
};

struct web {
	struct libcurl curl;
	CURLM *multi;
	struct web_exchange *first;
	const char *proxy, *certificates; /* of the environment; or NULL */
	struct curl_slist *elsewhere;     /* where a host is reached instead */
};

struct web_exchange {
	struct web *web;
	struct web_exchange *next;
	CURL *easy;
	struct curl_slist *headers;
	struct buf head;
	char error[CURL_ERROR_SIZE];
	bool refused; /* `bytes` has ended it */
	bool has_body;
	bool (*bytes)(void *context, struct web_exchange *exchange, struct str bytes);
	void (*ended)(void *context, struct web_exchange *exchange, enum web_end end,
		      const char *why);
	void *context;
};

bool web_open(struct web **opened, struct err *err)
{
	struct libcurl curl;
	struct web *web;

	if (!libcurl_load(&curl, "an MCP server over HTTP", err))
		return false;
	web = memory_alloc(sizeof(*web));
	web->curl = curl;
	web->proxy = getenv("https_proxy");
	web->certificates = getenv("SSL_CERT_FILE");
	/* In a cell localhost would be the cell's own (bridge/oauth.h). */
	web->elsewhere = curl.slist_append(NULL, "localhost::127.0.0.1:");
	if (curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		web->multi = curl.multi_init();
	if (!web->multi) {
		free(web);
		return err_set(err, EIO, "libcurl could not be started");
	}
	*opened = web;
	return true;
}

void web_close(struct web *web)
{
	if (!web)
		return;
	while (web->first)
		web_abort(web->first);
	(void)web->curl.multi_cleanup(web->multi);
	web->curl.slist_free_all(web->elsewhere);
	free(web);
}

long web_status(const struct web_exchange *exchange)
{
	long status = 0;

	(void)exchange->web->curl.easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE,
					       &status);
	return status;
}

static size_t on_header(char *data, size_t unit, size_t count, void *context)
{
	struct web_exchange *exchange = context;
	const struct str line = {data, unit * count};

	/* An interim answer comes before the real one. */
	if (str_starts(line, STR("HTTP/")))
		buf_clear(&exchange->head);
	if (!buf_addstr(&exchange->head, line))
		return line.size + 1;
	/* The blank line behind the head of the real one. */
	if (str_trim(line).size == 0 && web_status(exchange) >= 200)
		(void)exchange->bytes(exchange->context, exchange, STR(""));
	return line.size;
}

static size_t on_bytes(char *data, size_t unit, size_t count, void *context)
{
	struct web_exchange *exchange = context;
	const struct str bytes = {data, unit * count};

	if (!exchange->refused)
		exchange->refused = !exchange->bytes(exchange->context, exchange, bytes);
	/* A return value other than the size makes libcurl end the transfer. */
	return exchange->refused ? bytes.size + 1 : bytes.size;
}

static void add_header(struct web_exchange *exchange, const char *line)
{
	struct curl_slist *longer =
		exchange->web->curl.slist_append(exchange->headers, line);

	if (!longer)
		memory_exhausted(strlen(line));
	exchange->headers = longer;
}

static void add_headers(struct web_exchange *exchange, const struct web_request *request)
{
	char type[128];

	if (request->content_type) {
		(void)snprintf(type, sizeof(type), "Content-Type: %s",
			       request->content_type);
		add_header(exchange, type);
	}
	/* Without this a large request waits a second for a "100 Continue". */
	add_header(exchange, "Expect:");
	for (size_t i = 0; i < value_count(request->headers); i++)
		add_header(exchange, value_text(value_item(request->headers, i)));
}

/* Options without which an exchange must not begin. */
static bool set_needed(struct web_exchange *exchange, const struct web_request *request)
{
	const struct web *web = exchange->web;
	CURLcode (*const set)(CURL *, CURLoption, ...) = web->curl.easy_setopt;
	CURL *easy = exchange->easy;
	bool ok = set(easy, CURLOPT_URL, request->url) == CURLE_OK &&
		  set(easy, CURLOPT_PRIVATE, exchange) == CURLE_OK &&
		  set(easy, CURLOPT_WRITEFUNCTION, on_bytes) == CURLE_OK &&
		  set(easy, CURLOPT_WRITEDATA, exchange) == CURLE_OK &&
		  set(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
		  set(easy, CURLOPT_HEADERDATA, exchange) == CURLE_OK &&
		  set(easy, CURLOPT_HTTPHEADER, exchange->headers) == CURLE_OK &&
		  set(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
		  set(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		  set(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S) == CURLE_OK &&
		  set(easy, CURLOPT_TIMEOUT_MS, (long)(request->limit_s * 1000)) == CURLE_OK;

	/* "" takes no proxy, whatever the environment says. */
	ok = ok && set(easy, CURLOPT_PROXY, web->proxy ? web->proxy : "") == CURLE_OK &&
	     set(easy, CURLOPT_NOPROXY, "") == CURLE_OK &&
	     set(easy, CURLOPT_CONNECT_TO, web->elsewhere) == CURLE_OK &&
	     set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
	     /* The proxy of a cell passes plain HTTP in tunnels only, but for port 80. */
	     set(easy, CURLOPT_HTTPPROXYTUNNEL, 1L) == CURLE_OK;
	if (ok && web->certificates)
		ok = set(easy, CURLOPT_CAINFO, web->certificates) == CURLE_OK;
	if (ok && request->method == WEB_POST)
		ok = set(easy, CURLOPT_POST, 1L) == CURLE_OK &&
		     set(easy, CURLOPT_POSTFIELDSIZE_LARGE,
			 (curl_off_t)request->body.size) == CURLE_OK &&
		     set(easy, CURLOPT_COPYPOSTFIELDS, request->body.data) == CURLE_OK;
	/* libcurl sends a request again when a connection that it uses again breaks. */
	if (ok && request->once)
		ok = set(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
	if (ok && request->method == WEB_DELETE)
		ok = set(easy, CURLOPT_CUSTOMREQUEST, "DELETE") == CURLE_OK;
	return ok;
}

static void set_helpful(const struct web_exchange *exchange)
{
	CURLcode (*const set)(CURL *, CURLoption, ...) = exchange->web->curl.easy_setopt;
	CURL *easy = exchange->easy;

	(void)set(easy, CURLOPT_ERRORBUFFER, exchange->error);
	(void)set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)set(easy, CURLOPT_USERAGENT, "glovebox");
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	(void)set(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}

struct web_exchange *web_begin(struct web *web, const struct web_request *request,
			       struct err *err)
{
	struct web_exchange *exchange = memory_alloc(sizeof(*exchange));

	exchange->web = web;
	exchange->bytes = request->bytes;
	exchange->ended = request->ended;
	exchange->context = request->context;
	exchange->has_body = request->body.size > 0;
	buf_init(&exchange->head, HEADERS_MAX);
	exchange->next = web->first;
	web->first = exchange;
	exchange->easy = web->curl.easy_init();
	add_headers(exchange, request);
	if (!exchange->easy || !set_needed(exchange, request)) {
		web_abort(exchange);
		(void)err_set(err, EIO, "libcurl does not take the request");
		return NULL;
	}
	set_helpful(exchange);
	if (web->curl.multi_add_handle(web->multi, exchange->easy) != CURLM_OK) {
		web_abort(exchange);
		(void)err_set(err, EIO, "libcurl does not take the request");
		return NULL;
	}
	return exchange;
}

void web_abort(struct web_exchange *exchange)
{
	struct web_exchange **at;
	struct web *web;

	if (!exchange)
		return;
	web = exchange->web;
	at = &web->first;
	while (*at && *at != exchange)
		at = &(*at)->next;
	if (*at)
		*at = exchange->next;
	if (exchange->easy) {
		(void)web->curl.multi_remove_handle(web->multi, exchange->easy);
		web->curl.easy_cleanup(exchange->easy);
	}
	/* A line may hold a token. */
	for (struct curl_slist *line = exchange->headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	web->curl.slist_free_all(exchange->headers);
	buf_fini(&exchange->head);
	free(exchange);
}

struct str web_head(const struct web_exchange *exchange)
{
	return buf_str(&exchange->head);
}

/* Can the server have seen nothing of the request? */
static bool is_unsent(const struct web_exchange *exchange, CURLcode code)
{
	curl_off_t out = 0;

	if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
	    code == CURLE_COULDNT_RESOLVE_PROXY ||
	    code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR)
		return true;
	return exchange->has_body && exchange->head.size == 0 &&
	       exchange->web->curl.easy_getinfo(exchange->easy, CURLINFO_SIZE_UPLOAD_T,
						&out) == CURLE_OK &&
	       out == 0;
}

static void finish(struct web_exchange *exchange, CURLcode code)
{
	const struct libcurl *curl = &exchange->web->curl;
	char why[WHY_MAX];
	long tunnel = 0;

	(void)curl->easy_getinfo(exchange->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
	if (tunnel == 403)
		(void)snprintf(why, sizeof(why), "the cell's proxy refuses the host");
	else if (tunnel >= 300)
		(void)snprintf(why, sizeof(why), "the host does not answer");
	else
		(void)snprintf(why, sizeof(why), "%s",
			       exchange->error[0] ? exchange->error
						  : curl->easy_strerror(code));
	if (exchange->refused)
		exchange->ended(exchange->context, exchange, WEB_ENDED, NULL);
	else if (code == CURLE_OK)
		exchange->ended(exchange->context, exchange, WEB_WHOLE, NULL);
	else
		exchange->ended(exchange->context, exchange,
				tunnel >= 300 || is_unsent(exchange, code) ? WEB_UNSENT
									   : WEB_LOST,
				why);
	web_abort(exchange);
}

static void perform(struct web *web)
{
	CURLMsg *message;
	int running, left;

	(void)web->curl.multi_perform(web->multi, &running);
	while ((message = web->curl.multi_info_read(web->multi, &left)) != NULL) {
		struct web_exchange *exchange = NULL;
		const CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE ||
		    web->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
					   &exchange) != CURLE_OK)
			continue;
		finish(exchange, code);
	}
}

void web_turn(struct web *web, struct pollfd *fds, size_t count, int ms)
{
	struct curl_waitfd waits[FDS_MAX];

	for (size_t i = 0; i < count && i < FDS_MAX; i++)
		waits[i] = (struct curl_waitfd){.fd = fds[i].fd,
						.events = fds[i].events & POLLIN
								  ? CURL_WAIT_POLLIN
								  : 0};
	(void)web->curl.multi_poll(web->multi, waits, (unsigned)count, ms, NULL);
	for (size_t i = 0; i < count && i < FDS_MAX; i++)
		fds[i].revents = waits[i].revents;
	perform(web);
}

/* One exchange that is waited for. */

struct asking {
	struct web_reply *reply;
	bool over;
};

static bool take_bytes(void *context, struct web_exchange *exchange, struct str bytes)
{
	struct asking *asking = context;

	(void)exchange;
	return buf_addstr(&asking->reply->body, bytes);
}

static void take_end(void *context, struct web_exchange *exchange, enum web_end end,
		     const char *why)
{
	struct asking *asking = context;
	struct web_reply *reply = asking->reply;

	asking->over = true;
	(void)buf_addstr(&reply->head, web_head(exchange));
	if (end == WEB_WHOLE)
		reply->status = web_status(exchange);
	else
		(void)err_set(&reply->why, EIO, "%s", why ? why : "its answer is too long");
}

void web_reply_init(struct web_reply *reply)
{
	*reply = (struct web_reply){0};
	buf_init(&reply->head, HEADERS_MAX);
	buf_init(&reply->body, WEB_REPLY_MAX);
}

void web_reply_fini(struct web_reply *reply)
{
	/* A body may hold tokens. */
	if (reply->body.capacity > 0)
		explicit_bzero(reply->body.data, reply->body.size);
	buf_fini(&reply->head);
	buf_fini(&reply->body);
}

bool web_ask(struct web *web, const struct web_request *request, struct web_reply *reply,
	     struct err *err)
{
	struct web_request asked = *request;
	struct asking asking = {.reply = reply};

	asked.bytes = take_bytes;
	asked.ended = take_end;
	asked.context = &asking;
	asked.limit_s = WEB_ASK_S;
	buf_clear(&reply->head);
	buf_clear(&reply->body);
	reply->status = 0;
	if (!web_begin(web, &asked, err))
		return false;
	while (!asking.over)
		web_turn(web, NULL, 0, WEB_ASK_S * 1000);
	return reply->status != 0 || err_set(err, EIO, "%s", reply->why.text);
}
