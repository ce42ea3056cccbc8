/* http: one easy handle per request on a multi handle that keeps the connections. */

#include "model/http.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/libcurl.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

struct http {
	struct libcurl curl;
	CURLM *multi;
	bool trimmed; /* library_trim was called */
};

enum {
	/*
	 * Time after the answer's end for its closing bytes, so that the connection can
	 * be used again.
	 */
	LINGER_MS = 50,
	/* The loop looks at the clock this often when nothing happens. */
	POLL_MS = 1000,
	/* The longest header line that is kept. Keys have a few hundred bytes at most. */
	HEADER_MAX = 64 << 10,
	/* The most interim answers for which the timeout is prolonged. */
	ANSWERS_MAX = 16,
};

struct exchange {
	struct http *http;
	const struct http_request *request;
	struct http_answer *answer;
	enum http_more (*bytes)(void *context, const struct http_answer *answer,
				struct str bytes, struct err *err);
	void *context;
	CURL *easy;
	struct curl_slist *headers;
	char error_text[CURL_ERROR_SIZE];
	struct err *err;
	enum http_more more;
	uint64_t read;     /* bytes of the request's file that libcurl has taken */
	bool sent;         /* the request is out, and the caller was told */
	unsigned answers;  /* how many status lines came */
	int64_t last_ms;   /* when the server last sent something */
	int64_t enough_ms; /* when the callback returned HTTP_ENOUGH */
};

bool http_open(struct http **http, struct err *err)
{
	struct libcurl curl;
	struct http *opened;

	if (!libcurl_load(&curl, "asking a model", err))
		return false;
	opened = memory_alloc(sizeof(*opened));
	opened->curl = curl;
	if (opened->curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		opened->multi = opened->curl.multi_init();
	if (!opened->multi) {
		free(opened);
		return err_set(err, EIO, "libcurl could not be started");
	}
	*http = opened;
	return true;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	(void)http->curl.multi_cleanup(http->multi);
	free(http);
}

/* Is the header LINE called NAME? Then VALUE is its value. */
static bool header_is(struct str line, const char *name, struct str *value)
{
	size_t size = strlen(name);

	if (!str_starts_caseless(line, name) || line.size == size || line.data[size] != ':')
		return false;
	*value = str_trim(str_part(line, size + 1, line.size));
	return true;
}

/*
 * The seconds from now that TEXT names, as a number (times UNIT_S) or as a date; else -1.
 */
static double wait_in(struct http *http, struct str text, double unit_s)
{
	char copy[64];
	char *end;
	double number;
	time_t date;

	if (text.size == 0 || text.size >= sizeof(copy))
		return -1;
	memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	number = strtod(copy, &end);
	if (*end == '\0')
		return number >= 0 ? number * unit_s : -1;
	date = http->curl.getdate(copy, NULL);
	if (date < 0)
		return -1;
	return date > time(NULL) ? (double)(date - time(NULL)) : 0;
}

static void answer_clear(struct http_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->retry_after_s = -1;
	answer->should_retry = -1;
}

static void tell_header(const struct exchange *exchange, struct str line)
{
	const size_t colon = str_find(line, STR(":"), 0);

	if (colon != (size_t)-1)
		exchange->request->header(exchange->context, str_part(line, 0, colon),
					  str_trim(str_part(line, colon + 1, line.size)));
}

static size_t on_header(char *data, size_t unit, size_t count, void *context)
{
	struct exchange *exchange = context;
	struct str line = {data, unit * count};
	struct str value;

	/*
	 * An interim answer (100), or the answer of a proxy, comes before the real one.
	 */
	if (str_starts(line, STR("HTTP/"))) {
		answer_clear(exchange->answer);
		/*
		 * Only the first ANSWERS_MAX status lines prolong the timeout, because a
		 * server could send any number of lines.
		 */
		if (exchange->answers++ < ANSWERS_MAX)
			exchange->last_ms = clock_now_ms();
	}
	if (exchange->request->header != NULL)
		tell_header(exchange, line);
	if (header_is(line, "x-should-retry", &value))
		exchange->answer->should_retry =
			str_is(value, "true") ? 1 : (str_is(value, "false") ? 0 : -1);
	else if (header_is(line, "retry-after-ms", &value))
		exchange->answer->retry_after_s = wait_in(exchange->http, value, 0.001);
	else if (header_is(line, "retry-after", &value) &&
		 exchange->answer->retry_after_s < 0)
		exchange->answer->retry_after_s = wait_in(exchange->http, value, 1);
	return line.size;
}

static size_t on_bytes(char *data, size_t unit, size_t count, void *context)
{
	struct exchange *exchange = context;
	struct str bytes = {data, unit * count};

	exchange->last_ms = clock_now_ms();
	(void)exchange->http->curl.easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE,
						&exchange->answer->status);
	exchange->answer->has_bytes = exchange->answer->has_bytes || bytes.size > 0;
	if (exchange->more == HTTP_MORE) {
		exchange->more = exchange->bytes(exchange->context, exchange->answer,
						 bytes, exchange->err);
		exchange->enough_ms = exchange->last_ms;
	}
	/* A return value other than the size makes libcurl end the transfer. */
	return exchange->more == HTTP_GIVE_UP ? bytes.size + 1 : bytes.size;
}

static void add_header(struct exchange *exchange, const char *line)
{
	struct curl_slist *longer =
		exchange->http->curl.slist_append(exchange->headers, line);

	if (!longer)
		memory_exhausted(strlen(line));
	exchange->headers = longer;
}

static void add_headers(struct exchange *exchange)
{
	if (exchange->request->method == NULL) {
		add_header(exchange, "Content-Type: application/json");
		add_header(exchange, "Accept: text/event-stream, application/json");
	}
	/*
	 * Without this a large request waits a second for a "100 Continue" that few
	 * servers send.
	 */
	add_header(exchange, "Expect:");
	for (const char *const *line = exchange->request->headers; line && *line; line++)
		add_header(exchange, *line);
	if (exchange->request->key && exchange->request->key[0]) {
		struct buf line;

		buf_init(&line, HEADER_MAX);
		(void)buf_addf(&line, "%s%s", exchange->request->key_header,
			       exchange->request->key);
		add_header(exchange, line.data);
		explicit_bzero(line.data, line.size);
		buf_fini(&line);
	}
}

bool http_is_here(const char *url)
{
	struct str host = str_of(url);
	size_t at = str_find(host, STR("://"), 0);

	if (at != (size_t)-1)
		host = str_part(host, at + 3, host.size);
	host = str_part(host, 0, str_find(host, STR("/"), 0));
	if (str_starts(host, STR("[::1]")))
		return host.size == 5 || host.data[5] == ':';
	host = str_part(host, 0, str_find(host, STR(":"), 0));
	if (str_is(host, "localhost"))
		return true;
	/* "127.example.org" is a name, not an address. */
	for (at = 0; at < host.size; at++)
		if (!strchr("0123456789.", host.data[at]))
			return false;
	return str_starts(host, STR("127."));
}

/*
 * Set the options that every request has. The answer's bytes go to WRITE, with CONTEXT.
 * False: libcurl refuses an option.
 */
static bool http_set_common(const struct http *http, CURL *easy, const char *url,
			    size_t (*write)(char *, size_t, size_t, void *), void *context)
{
	const struct libcurl *curl = &http->curl;
	bool ok = curl->easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
		  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, write) == CURLE_OK &&
		  curl->easy_setopt(easy, CURLOPT_WRITEDATA, context) == CURLE_OK &&
		  curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
		  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;

	/*
	 * A proxy from the environment is used for other machines, never for a server on
	 * this one.
	 */
	if (ok && http_is_here(url))
		ok = curl->easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK;
		/*
		 * Older libraries lack these options, and everything works without them.
		 */
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A cancelled request does not wait for a name server. */
	(void)curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	(void)curl->easy_setopt(easy, CURLOPT_USERAGENT, "glovebox");
	return ok;
}

/* POST BODY with HEADERS. */
static bool http_set_body(const struct http *http, CURL *easy, struct str body,
			  const struct curl_slist *headers)
{
	const struct libcurl *curl = &http->curl;

	return curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
	       curl->easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
	       curl->easy_setopt(easy, CURLOPT_POSTFIELDS, body.data) == CURLE_OK &&
	       curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)body.size) == CURLE_OK;
}

/* The next bytes of the request's file. */
static size_t on_wanted(char *data, size_t unit, size_t count, void *context)
{
	struct exchange *exchange = context;
	const struct http_file *file = exchange->request->file;
	const uint64_t left = file->size - exchange->read;
	const size_t room = unit * count;
	ssize_t n = 0;

	/* A server that takes bytes is not silent. */
	exchange->last_ms = clock_now_ms();
	if (left > 0)
		n = pread(file->fd, data, left < room ? (size_t)left : room,
			  (off_t)exchange->read);
	if (n < 0 || (n == 0 && left > 0))
		return CURL_READFUNC_ABORT;
	exchange->read += (uint64_t)n;
	return (size_t)n;
}

static int on_seek(void *context, curl_off_t offset, int origin)
{
	struct exchange *exchange = context;

	if (origin != SEEK_SET || offset < 0)
		return CURL_SEEKFUNC_FAIL;
	exchange->read = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* PUT the request's file. */
static bool http_set_file(struct exchange *exchange)
{
	CURLcode (*const set)(CURL *, CURLoption, ...) = exchange->http->curl.easy_setopt;
	CURL *easy = exchange->easy;

	return set(easy, CURLOPT_HTTPHEADER, exchange->headers) == CURLE_OK &&
	       set(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
	       set(easy, CURLOPT_INFILESIZE_LARGE,
		   (curl_off_t)exchange->request->file->size) == CURLE_OK &&
	       set(easy, CURLOPT_READFUNCTION, on_wanted) == CURLE_OK &&
	       set(easy, CURLOPT_READDATA, exchange) == CURLE_OK &&
	       set(easy, CURLOPT_SEEKFUNCTION, on_seek) == CURLE_OK &&
	       set(easy, CURLOPT_SEEKDATA, exchange) == CURLE_OK;
}

/* The method, the headers and the body of the request. */
static bool http_set_method(struct exchange *exchange)
{
	CURLcode (*const set)(CURL *, CURLoption, ...) = exchange->http->curl.easy_setopt;
	const struct http_request *request = exchange->request;
	CURL *easy = exchange->easy;

	if (request->file != NULL)
		return http_set_file(exchange);
	if (request->method == NULL || strcmp(request->method, "PUT") == 0 ||
	    strcmp(request->method, "POST") == 0)
		return http_set_body(exchange->http, easy, request->body,
				     exchange->headers) &&
		       (request->method == NULL ||
			set(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK);
	if (set(easy, CURLOPT_HTTPHEADER, exchange->headers) != CURLE_OK)
		return false;
	if (strcmp(request->method, "HEAD") == 0)
		return set(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
	return set(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
	       set(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

static bool set_options(struct exchange *exchange, struct err *err)
{
	const struct libcurl *curl = &exchange->http->curl;
	const struct http_request *request = exchange->request;
	CURL *easy = exchange->easy;
	bool ok = http_set_common(exchange->http, easy, request->url, on_bytes, exchange) &&
		  http_set_method(exchange);

	ok = ok && curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK;
	ok = ok && curl->easy_setopt(easy, CURLOPT_HEADERDATA, exchange) == CURLE_OK;
	ok = ok && curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error_text) ==
			   CURLE_OK;
	ok = ok && curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
				     (long)(request->connect_timeout_s * 1000)) == CURLE_OK;
	if (!ok)
		return err_set(err, EIO, "libcurl does not take the request's options");
	(void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	/* A path is sent as it was written, because it may be signed. */
	(void)curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	return true;
}

/* The errno value for libcurl's CODE. */
static int code_of(const struct exchange *exchange, CURLcode code)
{
	long os = 0;

	switch (code) {
	case CURLE_COULDNT_CONNECT:
		(void)exchange->http->curl.easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO,
							&os);
		return os == 0 || os == ECONNREFUSED ? ECONNREFUSED : EHOSTUNREACH;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_OPERATION_TIMEDOUT:
		return EHOSTUNREACH;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return EPROTO;
	default:
		return EIO;
	}
}

static bool finish_transfer(struct exchange *exchange, CURLcode code)
{
	const struct libcurl *curl = &exchange->http->curl;
	const char *text = exchange->error_text[0] ? exchange->error_text
						   : curl->easy_strerror(code);

	if (exchange->more == HTTP_GIVE_UP)
		return false;
	(void)curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE,
				 &exchange->answer->status);
	if (code == CURLE_OK || exchange->more == HTTP_ENOUGH)
		return true;
	return err_set(exchange->err, code_of(exchange, code), "%s", text);
}

/* The milliseconds until the loop must look again; 0 when a deadline is over. */
static int next_wait(const struct exchange *exchange, int64_t now)
{
	int64_t wait = POLL_MS;
	int64_t left;

	if (exchange->request->idle_timeout_s > 0) {
		left = exchange->last_ms +
		       (int64_t)(exchange->request->idle_timeout_s * 1000) - now;
		wait = left < wait ? left : wait;
	}
	if (exchange->more == HTTP_ENOUGH) {
		left = exchange->enough_ms + LINGER_MS - now;
		wait = left < wait ? left : wait;
	}
	return wait > 0 ? (int)wait : 0;
}

/*
 * When the whole request is out, tell the caller, and free memory of libraries. The
 * server works at the same time, so this costs no time.
 */
static void tell_sent(struct exchange *exchange)
{
	const struct http_request *request = exchange->request;
	curl_off_t out = 0;

	if (exchange->sent ||
	    exchange->http->curl.easy_getinfo(exchange->easy, CURLINFO_SIZE_UPLOAD_T,
					      &out) != CURLE_OK ||
	    (uint64_t)out <
		    (request->file != NULL ? request->file->size : request->body.size))
		return;
	exchange->sent = true;
	if (request->sent)
		request->sent(exchange->context);
	if (!exchange->http->trimmed)
		library_trim();
	exchange->http->trimmed = true;
}

static bool run(struct exchange *exchange)
{
	const struct libcurl *curl = &exchange->http->curl;
	CURLM *multi = exchange->http->multi;
	struct curl_waitfd stop = {.fd = exchange->request->stop_fd,
				   .events = CURL_WAIT_POLLIN};
	unsigned stops = exchange->request->stop_fd >= 0 ? 1 : 0;

	for (;;) {
		int running = 0, left = 0, wait_ms;
		CURLMsg *message;

		if (curl->multi_perform(multi, &running) != CURLM_OK)
			return err_set(exchange->err, EIO, "libcurl gave up");
		tell_sent(exchange);
		message = curl->multi_info_read(multi, &left);
		if (message && message->msg == CURLMSG_DONE)
			return finish_transfer(exchange, message->data.result);
		wait_ms = next_wait(exchange, clock_now_ms());
		if (wait_ms == 0 && exchange->more == HTTP_ENOUGH)
			return finish_transfer(exchange, CURLE_OK);
		if (wait_ms == 0)
			return err_set(exchange->err, ETIMEDOUT,
				       "nothing came for %.3g seconds",
				       exchange->request->idle_timeout_s);
		stop.revents = 0;
		if (curl->multi_poll(multi, &stop, stops, wait_ms, NULL) != CURLM_OK)
			return err_set(exchange->err, EIO, "libcurl cannot wait");
		if (stop.revents)
			return err_set(exchange->err, ECANCELED, "stopped");
	}
}

static void wipe_headers(struct exchange *exchange)
{
	for (struct curl_slist *at = exchange->headers; at; at = at->next)
		explicit_bzero(at->data, strlen(at->data));
	exchange->http->curl.slist_free_all(exchange->headers);
}

bool http_send(struct http *http, const struct http_request *request,
	       struct http_answer *answer,
	       enum http_more (*bytes)(void *context, const struct http_answer *answer,
				       struct str bytes, struct err *err),
	       void *context, struct err *err)
{
	struct exchange exchange = {
		.http = http,
		.request = request,
		.answer = answer,
		.bytes = bytes,
		.context = context,
		.err = err,
		.more = HTTP_MORE,
		.last_ms = clock_now_ms(),
	};
	bool ok;

	answer_clear(answer);
	exchange.easy = http->curl.easy_init();
	if (!exchange.easy)
		return err_set(err, EIO, "libcurl could not be started");
	add_headers(&exchange);
	ok = set_options(&exchange, err) &&
	     (http->curl.multi_add_handle(http->multi, exchange.easy) == CURLM_OK ||
	      err_set(err, EIO, "libcurl does not take the request"));
	if (ok) {
		ok = run(&exchange);
		(void)http->curl.multi_remove_handle(http->multi, exchange.easy);
	}
	http->curl.easy_cleanup(exchange.easy);
	wipe_headers(&exchange);
	return ok;
}

/* Several short questions at the same time. */

/* A question while it is under way. */
struct asking {
	struct http *http;
	struct http_question *question;
	CURL *easy;
	struct curl_slist *headers;
};

static size_t on_answer(char *data, size_t unit, size_t count, void *context)
{
	struct asking *asking = context;
	size_t size = unit * count;

	return buf_add(&asking->question->answer, data, size) ? size : size + 1;
}

static bool ask_begin(struct asking *asking, int64_t left_ms)
{
	struct http *http = asking->http;
	const struct http_question *question = asking->question;
	bool ok;

	asking->easy = http->curl.easy_init();
	ok = asking->easy &&
	     http_set_common(http, asking->easy, question->url, on_answer, asking) &&
	     http->curl.easy_setopt(asking->easy, CURLOPT_TIMEOUT_MS, (long)left_ms) ==
		     CURLE_OK;
	if (ok && question->body.size > 0) {
		asking->headers =
			http->curl.slist_append(NULL, "Content-Type: application/json");
		ok = asking->headers &&
		     http_set_body(http, asking->easy, question->body, asking->headers);
	}
	return ok && http->curl.multi_add_handle(http->multi, asking->easy) == CURLM_OK;
}

/* Find which of ASKED have ended, and with which result. */
static void ask_collect(struct http *http, struct asking *asked, size_t count)
{
	const struct libcurl *curl = &http->curl;
	CURLMsg *message;
	int left;

	while ((message = curl->multi_info_read(http->multi, &left)) != NULL) {
		for (size_t i = 0; i < count; i++)
			if (message->msg == CURLMSG_DONE &&
			    message->easy_handle == asked[i].easy &&
			    message->data.result == CURLE_OK)
				(void)curl->easy_getinfo(asked[i].easy,
							 CURLINFO_RESPONSE_CODE,
							 &asked[i].question->status);
	}
}

void http_ask_all(struct http *http, struct http_question *questions, size_t count,
		  int64_t deadline_ms)
{
	const struct libcurl *curl = &http->curl;
	struct asking *asked = memory_array(count + 1, sizeof(*asked));
	int running = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t left = deadline_ms - clock_now_ms();

		asked[i] = (struct asking){.http = http, .question = &questions[i]};
		questions[i].status = 0;
		/* For libcurl a timeout of 0 means no timeout. */
		(void)ask_begin(&asked[i], left > 0 ? left : 1);
	}
	for (;;) {
		int wait_ms = clock_poll_timeout(deadline_ms);

		if (curl->multi_perform(http->multi, &running) != CURLM_OK)
			break;
		ask_collect(http, asked, count);
		if (running == 0 || wait_ms <= 0 ||
		    curl->multi_poll(http->multi, NULL, 0, wait_ms, NULL) != CURLM_OK)
			break;
	}
	for (size_t i = 0; i < count; i++) {
		if (!asked[i].easy)
			continue;
		(void)curl->multi_remove_handle(http->multi, asked[i].easy);
		curl->easy_cleanup(asked[i].easy);
		curl->slist_free_all(asked[i].headers);
	}
	free(asked);
}

/* The addresses of services, as people write them. */

enum { URL_MAX = 2048 };

static bool check_url(struct str url, struct str host, const char *path, struct err *err)
{
	for (size_t i = 0; i < url.size; i++) {
		unsigned char c = (unsigned char)url.data[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\')
			return err_set(err, EINVAL,
				       "the base URL holds a character that no URL has, at byte %zu",
				       i + 1);
	}
	if (str_find(host, STR("@"), 0) != (size_t)-1)
		return err_set(
			err, EINVAL,
			"the base URL names a user: give the key in its variable instead");
	if (str_find(url, STR("?"), 0) != (size_t)-1 ||
	    str_find(url, STR("#"), 0) != (size_t)-1)
		return err_set(err, EINVAL,
			       "the base URL has a query or a fragment: it ends "
			       "where %s begins",
			       path);
	if (host.size == 0 || str_starts(host, STR(":")))
		return err_set(err, EINVAL, "the base URL names no host");
	return true;
}

/* Find the HOST of BASE, and remove the slashes at the end of BASE. */
static bool read_base(struct str *base, const char *path, struct str *host, struct err *err)
{
	struct str rest;

	if (str_starts(*base, STR("http://")))
		rest = str_part(*base, 7, base->size);
	else if (str_starts(*base, STR("https://")))
		rest = str_part(*base, 8, base->size);
	else
		return err_set(err, EINVAL,
			       "the base URL begins with http:// or https://, as in "
			       "http://127.0.0.1:8080/v1");
	while (str_ends(rest, STR("/"))) {
		rest.size--;
		base->size--;
	}
	*host = str_part(rest, 0, str_find(rest, STR("/"), 0));
	return check_url(*base, *host, path, err);
}

bool http_url_make(const char *base_url, const char *otherwise, const char *behind,
		   char **url, char **host, struct err *err)
{
	struct str base = str_trim(str_of(base_url));
	const struct str version = STR("/v1");
	struct str path = str_of(behind);
	struct str name;
	struct buf text;

	if (base.size == 0)
		base = str_of(otherwise);
	if (!read_base(&base, behind, &name, err))
		return false;

	buf_init(&text, URL_MAX);
	(void)buf_addstr(&text, base);
	/* People copy the address of another API on the same server. */
	if (str_starts(path, STR("/api/")) && str_ends(base, version))
		base.size -= version.size;
	buf_clear(&text);
	(void)buf_addstr(&text, base);
	/*
	 * People copy the address of the endpoint, or the address with the version in it.
	 */
	if (!str_ends(base, path)) {
		if (str_ends(base, version) && str_starts(path, version))
			path = str_part(path, version.size, path.size);
		(void)buf_addstr(&text, path);
	}
	if (text.overflowed) {
		buf_fini(&text);
		return err_set(err, EINVAL, "the base URL is longer than %d bytes", URL_MAX);
	}
	*url = buf_take(&text);
	*host = memory_copy_str(name);
	return true;
}

bool http_url_origin(const char *base_url, char **origin, struct err *err)
{
	struct str base = str_trim(str_of(base_url));
	struct str host = base;

	if (!read_base(&base, "the path", &host, err))
		return false;
	if (base.size > URL_MAX)
		return err_set(err, EINVAL, "the base URL is longer than %d bytes", URL_MAX);
	*origin = memory_copy_str(
		str_part(base, 0, (size_t)(host.data - base.data) + host.size));
	return true;
}
