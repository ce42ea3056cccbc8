/*
 * http: streaming POSTs, and several short questions at once, over libcurl, which is loaded
 * on first use (linking it costs every start 3 ms). Redirects are not followed, so that a key
 * goes only to the named host. Only the files of http know libcurl.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

/* False (ENOENT) when libcurl is not installed: ERR names the Debian package. */
bool http_open(struct http **http, struct err *err);
void http_close(struct http *http);

struct http_request {
	const char *url;
	const char *key;            /* or NULL; never in an error text */
	const char *key_header;     /* what stands before it: "Authorization: Bearer " */
	const char *const *headers; /* further lines, NULL ends them; or NULL */
	struct str body;            /* JSON */
	int stop_fd; /* readable: give up with ECANCELED within 100 ms; -1: none */
	double connect_timeout_s, idle_timeout_s; /* 0: none */
	void (*sent)(void *context);              /* the whole of it is out; or NULL */
};

struct http_answer {
	long status;          /* 0 when there was no answer */
	double retry_after_s; /* from retry-after-ms or retry-after; < 0: not said */
	int should_retry;     /* x-should-retry: 1, 0, or -1 when not said */
	bool has_bytes;       /* some of the body came */
};

enum http_more {
	HTTP_GIVE_UP, /* end with the ERR that was set */
	HTTP_MORE,
	HTTP_ENOUGH, /* a success, even if the server never ends it */
};

/*
 * Headers are complete before the first BYTES. ERR for what failed below HTTP:
 * ECONNREFUSED, EHOSTUNREACH (no such host, or it did not take the connection in time),
 * ETIMEDOUT (silent for idle_timeout_s), ECANCELED, EPROTO (cut in the middle, or no
 * HTTP), EIO (certificates and all else). Any HTTP status is a success here.
 */
bool http_post(struct http *http, const struct http_request *request,
	       struct http_answer *answer,
	       enum http_more (*bytes)(void *context, const struct http_answer *answer,
				       struct str bytes, struct err *err),
	       void *context, struct err *err);

/* One of several short questions. */
struct http_question {
	const char *url;
	struct str body;   /* JSON to be sent by POST; empty: GET */
	struct buf answer; /* the caller's, with its ceiling; over it there is no answer */
	long status;       /* out: 0 when no whole answer came */
};

/*
 * Ask all at once, without a key, and wait until all have answered or DEADLINE_MS (of
 * clock_now_ms) is there. Whatever does not answer has status 0.
 */
void http_ask_all(struct http *http, struct http_question *questions, size_t count,
		  int64_t deadline_ms);

/* Is URL's host this machine, by its name alone: localhost, 127.0.0.0/8, [::1]? */
bool http_is_here(const char *url);
