#include "tools/web/fetch.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/libcurl.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "policy/network.h"
#include "process/follow.h"
#include "tools/documents/pdf.h"
#include "tools/shown.h"
#include "tools/walled.h"
#include "tools/web/html.h"

#include <errno.h>
#include <iconv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool load_curl(struct libcurl *curl, struct err *err)
{
	return libcurl_load(curl, "reading the web", err);
}

/* Addresses. */

static bool add_part(const struct libcurl *curl, const CURLU *url, CURLUPart part,
		     unsigned flags, struct buf *out)
{
	char *text = NULL;
	const bool is_there =
		curl->url_get(url, part, &text, flags) == CURLUE_OK && text != NULL;

	if (is_there)
		(void)buf_adds(out, text);
	curl->free(text);
	return is_there && !out->overflowed;
}

/* Are the packets to the host of URL those of the cell's own loopback? */
static bool is_loopback(const struct libcurl *curl, const CURLU *url)
{
	struct network_host host;
	struct buf text;
	bool is;

	buf_init(&text, NETWORK_TEXT_MAX);
	is = add_part(curl, url, CURLUPART_HOST, 0, &text) &&
	     network_parse_host(buf_str(&text), &host, NULL) && network_is_loopback(&host);
	buf_fini(&text);
	return is;
}

/* Make URL what is asked for: https, without a fragment. */
static bool settle_address(const struct libcurl *curl, CURLU *url, struct err *err)
{
	char *scheme = NULL, *port = NULL, *user = NULL;
	bool is_http, is_https, has_user;

	(void)curl->url_get(url, CURLUPART_SCHEME, &scheme, 0);
	is_http = scheme != NULL && strcmp(scheme, "http") == 0;
	is_https = scheme != NULL && strcmp(scheme, "https") == 0;
	curl->free(scheme);
	if (!is_http && !is_https)
		return err_set(err, EINVAL, "only https addresses can be read");
	has_user = curl->url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK;
	curl->free(user);
	if (has_user)
		return err_set(err, EINVAL,
			       "the address has a name or a password in it; leave them out");
	(void)curl->url_set(url, CURLUPART_FRAGMENT, NULL, 0);
	if (is_https || is_loopback(curl, url))
		return true;
	if (curl->url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK && port != NULL &&
	    strcmp(port, "80") == 0)
		(void)curl->url_set(url, CURLUPART_PORT, NULL, 0);
	curl->free(port);
	return curl->url_set(url, CURLUPART_SCHEME, "https", 0) == CURLUE_OK ||
	       err_set(err, EINVAL, "only https addresses can be read");
}

/*
 * Append to OUT the address that is asked for URL. ERR says what is wrong with it. Append to HOST
 * (or NULL) its host, with the port unless that is the usual one.
 */
static bool fetch_address(const char *url, struct buf *out, struct buf *host, struct err *err)
{
	struct libcurl curl;
	CURLU *parsed;
	bool ok;

	if (!load_curl(&curl, err))
		return false;
	if (strlen(url) > FETCH_URL_MAX)
		return err_set(err, E2BIG, "the address is longer than %d bytes",
			       FETCH_URL_MAX);
	parsed = curl.url();
	if (parsed == NULL ||
	    curl.url_set(parsed, CURLUPART_URL, url, CURLU_URLENCODE) != CURLUE_OK)
		ok = err_set(err, EINVAL,
			     "this is no address; give the whole of it: \"https://example.com/page\"");
	else
		ok = settle_address(&curl, parsed, err) &&
		     (add_part(&curl, parsed, CURLUPART_URL, 0, out) ||
		      err_set(err, EINVAL, "this is no address"));
	if (ok && host != NULL) {
		const size_t size = host->size;

		ok = add_part(&curl, parsed, CURLUPART_HOST, 0, host);
		(void)buf_addc(host, ':');
		if (!add_part(&curl, parsed, CURLUPART_PORT, 0, host))
			buf_truncate(host, host->size - 1);
		ok = ok && host->size > size;
	}
	curl.url_cleanup(parsed);
	return ok;
}

/* Append the absolute address of HREF on the page BASE, without a password. False: it has none. */
static bool fetch_resolve(const char *base, const char *href, struct buf *out)
{
	static const char *const schemes[] = {"http://", "https://", "mailto:"};
	struct libcurl curl;
	const size_t size = out->size;
	CURLU *parsed;
	bool ok;

	if (strncasecmp(href, "mailto:", strlen("mailto:")) == 0)
		return strcspn(href, " \t\r\n()<>") == strlen(href) && buf_adds(out, href);
	if (!load_curl(&curl, NULL))
		return false;
	parsed = curl.url();
	ok = parsed != NULL && curl.url_set(parsed, CURLUPART_URL, base, 0) == CURLUE_OK &&
	     curl.url_set(parsed, CURLUPART_URL, href, CURLU_URLENCODE) == CURLUE_OK;
	if (ok) {
		(void)curl.url_set(parsed, CURLUPART_USER, NULL, 0);
		(void)curl.url_set(parsed, CURLUPART_PASSWORD, NULL, 0);
		ok = add_part(&curl, parsed, CURLUPART_URL, 0, out);
	}
	curl.url_cleanup(parsed);
	for (size_t i = 0; ok && i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (str_starts(str_part(buf_str(out), size, out->size), str_of(schemes[i])))
			return text_find_unseen(str_part(buf_str(out), size, out->size)) ==
			       out->size - size;
	}
	buf_truncate(out, size);
	return false;
}

/* The child: one request after the other, until one is no redirection. */

struct visit {
	struct libcurl curl;
	CURL *easy;
	const struct fetch_request *request;
	bool proxied;                 /* a proxy is asked first */
	int64_t began_ms, reached_ms; /* reached: 0 until the host may be reached */
	bool late, large;
	struct buf body;
	struct buf type;
	long status;
	char why[CURL_ERROR_SIZE];
};

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct visit *visit = context;

	if (!buf_add(&visit->body, bytes, size * count)) {
		visit->large = true;
		return 0;
	}
	return size * count;
}

/* The first head that comes is that of the proxy, when there is one. */
static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
	struct visit *visit = context;
	const struct str line = {bytes, size * count};

	if (visit->reached_ms == 0 && str_starts(line, STR("HTTP/")))
		visit->reached_ms = clock_now_ms();
	return line.size;
}

static int look_at_clock(void *context, curl_off_t total, curl_off_t now,
			 curl_off_t up_total, curl_off_t up)
{
	struct visit *visit = context;
	const bool waits = visit->proxied && visit->reached_ms == 0;
	const int64_t since = visit->reached_ms != 0 ? visit->reached_ms : visit->began_ms;
	const int64_t most = waits ? FETCH_ASKED_SECONDS : FETCH_SECONDS;

	(void)total;
	(void)now;
	(void)up_total;
	(void)up;
	visit->late = clock_now_ms() - since > most * 1000;
	return visit->late;
}

static void set_options(struct visit *visit, const char *url, struct curl_slist *headers,
			bool is_first)
{
	const struct libcurl *curl = &visit->curl;
	const char *certificates = getenv("SSL_CERT_FILE");
	CURL *easy = visit->easy;

	curl->easy_reset(easy);
	(void)curl->easy_setopt(easy, CURLOPT_URL, url);
	(void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, visit->why);
	(void)curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEDATA, visit);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERDATA, visit);
	(void)curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	(void)curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_at_clock);
	(void)curl->easy_setopt(easy, CURLOPT_XFERINFODATA, visit);
	(void)curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)FETCH_ASKED_SECONDS);
	(void)curl->easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	(void)curl->easy_setopt(easy, CURLOPT_USERAGENT, "glovebox");
	(void)curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	if (certificates != NULL)
		(void)curl->easy_setopt(easy, CURLOPT_CAINFO, certificates);
	if (is_first && visit->request->body.data != NULL) {
		(void)curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE,
					(long)visit->request->body.size);
		(void)curl->easy_setopt(easy, CURLOPT_POSTFIELDS, visit->request->body.data);
	}
}

static struct curl_slist *headers_of(const struct visit *visit, bool is_first)
{
	const struct libcurl *curl = &visit->curl;
	const char *const *more = is_first ? visit->request->headers : NULL;
	struct curl_slist *list = NULL;

	list = curl->slist_append(list, visit->request->form == FETCH_RAW
						? "Accept: */*"
						: "Accept: text/markdown, text/html;q=0.9, "
						  "text/plain;q=0.8, */*;q=0.5");
	if (is_first && visit->request->body.data != NULL)
		list = curl->slist_append(list, "Content-Type: application/json");
	for (; more != NULL && *more != NULL; more++)
		list = curl->slist_append(list, *more);
	return list;
}

static bool is_proxied(const char *url)
{
	const char *name =
		str_starts(str_of(url), STR("https:")) ? "https_proxy" : "http_proxy";

	return getenv(name) != NULL;
}

/* The complaint of libcurl, as a sentence about URL. */
static bool fail_visit(struct visit *visit, CURLcode code, const char *url, struct err *err)
{
	struct buf address, host;

	buf_init(&address, FETCH_URL_MAX);
	buf_init(&host, NETWORK_TEXT_MAX);
	if (!fetch_address(url, &address, &host, NULL))
		(void)buf_adds(&host, "the host");
	if (visit->large)
		(void)err_set(err, EFBIG,
			      "%s answers with more than %d MiB; nothing of it is shown",
			      host.data, FETCH_MAX >> 20);
	else if (visit->late)
		(void)err_set(err, ETIMEDOUT, "%s has not answered within %d seconds",
			      host.data,
			      visit->reached_ms != 0 || !visit->proxied
				      ? FETCH_SECONDS
				      : FETCH_ASKED_SECONDS);
	else
		(void)err_set(err, EIO, "%s cannot be reached: %s", host.data,
			      visit->why[0] != '\0' ? visit->why
						    : visit->curl.easy_strerror(code));
	buf_fini(&host);
	buf_fini(&address);
	return false;
}

/* Ask for URL. TO: the address that the answer leads to, or empty. */
static bool visit_once(struct visit *visit, const char *url, bool is_first,
		       struct buf *to, struct err *err)
{
	const struct libcurl *curl = &visit->curl;
	struct curl_slist *headers = headers_of(visit, is_first);
	const char *type = NULL, *redirect = NULL;
	CURLcode code;

	buf_clear(&visit->body);
	buf_clear(&visit->type);
	visit->why[0] = '\0';
	visit->proxied = is_proxied(url);
	visit->began_ms = clock_now_ms();
	visit->reached_ms = 0;
	set_options(visit, url, headers, is_first);
	code = curl->easy_perform(visit->easy);
	curl->slist_free_all(headers);
	if (code != CURLE_OK)
		return fail_visit(visit, code, url, err);
	(void)curl->easy_getinfo(visit->easy, CURLINFO_RESPONSE_CODE, &visit->status);
	(void)curl->easy_getinfo(visit->easy, CURLINFO_CONTENT_TYPE, &type);
	(void)curl->easy_getinfo(visit->easy, CURLINFO_REDIRECT_URL, &redirect);
	(void)buf_adds(&visit->type, type != NULL ? type : "");
	if (redirect != NULL && visit->request->body.data == NULL)
		return fetch_address(redirect, to, NULL, err);
	return true;
}

/* Follow URL to an answer; URL becomes the last address. */
static bool visit_all(struct visit *visit, struct buf *url, struct err *err)
{
	struct buf to;
	bool ok = true;
	unsigned hops = 0;

	buf_init(&to, FETCH_URL_MAX);
	for (;; hops++) {
		buf_clear(&to);
		ok = visit_once(visit, url->data, hops == 0, &to, err);
		if (!ok || to.size == 0)
			break;
		if (hops == FETCH_HOPS) {
			ok = err_set(err, ELOOP,
				     "more than %d redirections; the last one leads to %s",
				     FETCH_HOPS, to.data);
			break;
		}
		buf_swap(url, &to);
	}
	buf_fini(&to);
	return ok;
}

/* The answer as text. */

/* The parameter charset of a content type. */
static bool charset_of_type(struct str type, struct buf *charset)
{
	return html_find_charset(type, charset);
}

/* Append BYTES, which are in CHARSET, to OUT in UTF-8. What is no character becomes U+FFFD. */
static void add_converted(struct str bytes, const char *charset, struct buf *out)
{
	iconv_t converter = iconv_open("UTF-8", charset);
	/* iconv changes neither the bytes nor, by this, our pointer. */
	union {
		const char *given;
		char *taken;
	} at = {bytes.data};
	size_t left = bytes.size;

	if (converter == (iconv_t)-1) {
		text_add_paragraph(out, bytes);
		return;
	}
	while (left > 0) {
		enum { ROOM = 16 << 10 };
		char *to = buf_reserve(out, ROOM), *end = to;
		size_t room = ROOM;
		size_t done;

		if (to == NULL)
			break;
		done = iconv(converter, &at.taken, &left, &end, &room);
		buf_commit(out, (size_t)(end - to));
		if (done == (size_t)-1 && errno != E2BIG && left > 0) {
			at.taken++;
			left--;
			text_add_code(0xfffd, out);
		}
	}
	(void)iconv_close(converter);
}

/* Set *TEXT to the body in UTF-8; CONVERTED holds it where it had to be changed. */
static void settle_charset(const struct visit *visit, bool is_html, struct str *text,
			   struct buf *converted)
{
	struct str body = buf_str(&visit->body);
	struct buf charset;
	bool is_named;

	buf_init(&charset, 64);
	is_named = charset_of_type(buf_str(&visit->type), &charset) ||
		   (is_html && html_find_charset(body, &charset));
	if (str_starts(body, STR("\xef\xbb\xbf")))
		body = str_part(body, 3, body.size);
	else if (str_starts(body, STR("\xff\xfe")) || str_starts(body, STR("\xfe\xff"))) {
		add_converted(body, "UTF-16", converted);
		body = buf_str(converted);
	} else if (is_named && strcmp(charset.data, "utf-8") != 0 &&
		   strcmp(charset.data, "utf8") != 0 &&
		   strcmp(charset.data, "us-ascii") != 0) {
		/* Browsers read this name so, and pages are written for them. */
		add_converted(body,
			      strcmp(charset.data, "iso-8859-1") == 0 ? "WINDOWS-1252"
								      : charset.data,
			      converted);
		body = buf_str(converted);
	} else if (!text_is_utf8(body)) {
		add_converted(body, is_named ? "UTF-8" : "WINDOWS-1252", converted);
		body = buf_str(converted);
	}
	*text = body;
	buf_fini(&charset);
}

static struct str media_type(struct str type)
{
	const size_t end = str_find(type, STR(";"), 0);

	return str_trim(end == (size_t)-1 ? type : str_part(type, 0, end));
}

static bool is_text_type(struct str type)
{
	static const char *const endings[] = {"json", "xml",     "javascript",
					      "yaml", "toml",    "x-sh",
					      "sql",  "graphql", "ecmascript"};

	if (str_starts_caseless(type, "text/"))
		return true;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (str_ends(type, str_of(endings[i])))
			return true;
	}
	return false;
}

/* The address from which those of a page begin: its own, or that of its <base>. */
struct base {
	struct buf url;
};

static void rebase(void *context, const char *href)
{
	struct base *base = context;
	struct buf url;

	buf_init(&url, FETCH_URL_MAX);
	if (fetch_resolve(base->url.data, href, &url))
		buf_swap(&base->url, &url);
	buf_fini(&url);
}

static bool resolve_on_page(void *context, const char *href, struct buf *out)
{
	return fetch_resolve(((struct base *)context)->url.data, href, out);
}

bool fetch_read_page(struct str page, const char *url, bool plain, struct buf *out,
		     struct buf *title, struct err *err)
{
	struct base base;
	const struct html_options options = {.plain = plain,
					     .rebase = rebase,
					     .resolve = resolve_on_page,
					     .context = &base};
	bool ok;

	buf_init(&base.url, FETCH_URL_MAX);
	(void)buf_adds(&base.url, url);
	ok = html_read(page, &options, out, title, err);
	buf_fini(&base.url);
	return ok;
}

enum { CODE_TOLD = 0, CODE_NO_WALLS = 125, MEMORY_MAX = 1 << 30, CPU_MAX_S = 20 };

struct child {
	const struct fetch_request *request;
	const char *url;
	const char *const *environment;
};

static void tell(struct value *head, struct str text)
{
	struct buf out;

	buf_init(&out, (size_t)FETCH_MAX * 3);
	(void)value_print(head, 0, &out);
	(void)buf_addc(&out, '\n');
	(void)buf_addstr(&out, text);
	(void)fd_write_all(STDOUT_FILENO, out.data, out.size, NULL);
	/* The process ends with this. */
}

static void tell_answer(const struct visit *visit, const char *url)
{
	const enum fetch_form form = visit->request->form;
	struct str type = media_type(buf_str(&visit->type)), text = {0};
	const struct str body = buf_str(&visit->body);
	struct value *head = value_new_object();
	struct buf converted, shown, title;
	struct err err;
	const bool is_html = str_is(type, "text/html") ||
			     str_is(type, "application/xhtml+xml") ||
			     (type.size == 0 && body.size > 0 && body.data[0] == '<');
	bool is_text = is_html || is_text_type(type) ||
		       (type.size == 0 && !text_is_binary(body));

	buf_init(&converted, (size_t)FETCH_MAX * 2);
	buf_init(&shown, (size_t)FETCH_MAX * 2);
	buf_init(&title, HTML_TITLE_MAX * 4);
	value_set_integer(head, "status", visit->status);
	value_set_text(head, "url", url);
	value_set_str(head, "type", type);
	value_set_integer(head, "bytes", (int64_t)body.size);
	if (is_text) {
		settle_charset(visit, is_html, &text, &converted);
	} else if (pdf_is(body)) {
		value_set_text(head, "type", "application/pdf");
		text = body;
	}
	if (is_html && form != FETCH_RAW) {
		if (!fetch_read_page(text, url, form == FETCH_TEXT, &shown, &title, &err))
			value_set_text(head, "problem", err.text);
		text = buf_str(&shown);
	}
	if (title.size > 0)
		value_set_text(head, "title", title.data);
	value_set_boolean(head, "text", is_text);
	tell(head, text);
}

/* Runs in a copy of the worker. Standard output is the answer: a line of JSON, and the text. */
static int visit_web(void *context)
{
	const struct child *child = context;
	union {
		const char *const *given;
		char **taken;
	} variables = {child->environment};
	struct visit *visit = memory_alloc(sizeof(*visit));
	struct buf url;
	struct err err = {0};

	environ = variables.taken;
	if (!walled_enter(&(struct walled){.memory = MEMORY_MAX,
					   .cpu_s = CPU_MAX_S,
					   .network = true}))
		return CODE_NO_WALLS;
	visit->request = child->request;
	buf_init(&visit->body, FETCH_MAX);
	buf_init(&visit->type, 1 << 10);
	buf_init(&url, FETCH_URL_MAX);
	(void)buf_adds(&url, child->url);
	if (load_curl(&visit->curl, &err) &&
	    visit->curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
	    (visit->easy = visit->curl.easy_init()) != NULL &&
	    visit_all(visit, &url, &err)) {
		tell_answer(visit, url.data);
	} else {
		struct value *head = value_new_object();

		value_set_text(head, "url", url.data);
		value_set_text(head, "problem",
			       err.text[0] != '\0' ? err.text : "libcurl cannot be used");
		tell(head, (struct str){0});
	}
	return CODE_TOLD;
}

/* The worker's side. */

void fetched_init(struct fetched *fetched)
{
	*fetched = (struct fetched){.fd = -1};
}

void fetched_fini(struct fetched *fetched)
{
	free(fetched->url);
	free(fetched->type);
	free(fetched->title);
	free(fetched->problem);
	fd_close(&fetched->fd);
}

static char *text_of(const struct value *head, const char *key)
{
	return memory_copy(value_text(value_member(head, key)));
}

enum { HEAD_MAX = 64 << 10 };

/* Read the first line of what the child has told. */
static bool read_head(struct fetched *fetched, struct err *err)
{
	char *bytes = memory_alloc(HEAD_MAX);
	const ssize_t size = pread(fetched->fd, bytes, HEAD_MAX, 0);
	const struct str start = {bytes, size > 0 ? (size_t)size : 0};
	const size_t end = str_find(start, STR("\n"), 0);
	struct value *head = NULL;
	bool ok = end != (size_t)-1 && value_parse(str_part(start, 0, end), 0, &head, err) &&
		  value_kind(head) == VALUE_OBJECT;

	if (ok) {
		fetched->at = end + 1;
		fetched->status = value_integer(value_member(head, "status"));
		fetched->bytes = (uint64_t)value_integer(value_member(head, "bytes"));
		fetched->is_text = value_is_true(value_member(head, "text"));
		fetched->url = text_of(head, "url");
		fetched->type = text_of(head, "type");
		fetched->title = text_of(head, "title");
		fetched->problem = text_of(head, "problem");
		ok = fetched->url != NULL;
	}
	value_free(head);
	free(bytes);
	return ok || err_set(err, EPROTO, "the reader of the web has said nothing");
}

static bool has_stopped(void *context)
{
	return call_stopped(context);
}

static bool tell_ending(struct call *call, const struct program_run *run,
			struct tool_result *result)
{
	if (run->ending == PROGRAM_CANCELLED || run->ending == PROGRAM_TIMED_OUT) {
		(void)call_stop_result(call, result);
		return false;
	}
	if (run->ending == PROGRAM_ENDED && run->exit_code == CODE_TOLD)
		return true;
	if (run->exit_code == CODE_NO_WALLS)
		(void)tool_fail(result,
				"The kernel of this machine cannot wall in the reader of the web "
				"(Landlock), so it is not run; bash may run curl.");
	else
		(void)tool_fail(result,
				"The page could not be read: its reader ended in the middle of it, "
				"as it does for pages that need over %d MiB or %d seconds of "
				"processor time. Try format \"raw\".",
				MEMORY_MAX >> 20, CPU_MAX_S);
	return false;
}

bool fetch_run(struct call *call, const struct fetch_request *request,
	       struct fetched *fetched, struct tool_result *result)
{
	static const char *const argv[] = {"web", NULL};
	struct child child = {.request = request, .environment = call->environment};
	struct program_run run;
	struct buf url;
	struct err err = {0};
	bool ok;

	buf_init(&url, FETCH_URL_MAX);
	if (!fetch_address(request->url, &url, NULL, &err)) {
		(void)tool_fail(result, "%s: %s.", request->url, err.text);
		buf_fini(&url);
		return false;
	}
	child.url = url.data;
	program_run_init(&run);
	fetched->fd = memfd_create("web", MFD_CLOEXEC);
	run.start.argv = argv;
	run.start.environment = call->environment;
	run.start.folder = "/";
	run.start.terms = call->terms;
	run.start.fds[0] = -1;
	run.start.body = visit_web;
	run.start.context = &child;
	run.spill_fd = fetched->fd;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = call->control_fd;
	run.stopped = has_stopped;
	run.context = call;
	ok = fetched->fd >= 0 && follow_program(&run, &err);
	if (!ok)
		(void)tool_fail(result, "The web cannot be read: %s.", err.text);
	ok = ok && tell_ending(call, &run, result);
	if (ok && !read_head(fetched, &err)) {
		(void)tool_fail(result, "The web cannot be read: %s.", err.text);
		ok = false;
	}
	program_run_fini(&run);
	buf_fini(&url);
	return ok;
}
