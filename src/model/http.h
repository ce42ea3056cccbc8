/*
 * http: requests whose answers come in pieces, and several short questions at the same time,
 * over libcurl, which is loaded on first use (linking it costs every start 3 ms). Redirects
 * are not followed, so that a key goes only to the named host.
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

/* A body that is read from a file while it is sent. */
struct http_file {
	int fd; /* read from its begin, also a second time when a connection breaks at once */
	uint64_t size;
};

struct http_request {
	/* GET, HEAD, PUT, POST or DELETE. NULL: a POST of JSON, answered by JSON or a stream. */
	const char *method;
	const char *url;
	const char *key; /* or NULL; never in an error text */
	/* the text before the key: "Authorization: Bearer " */
	const char *key_header;
	const char *const *headers;   /* further lines, NULL-ended; or NULL */
	struct str body;              /* JSON, unless METHOD says more */
	const struct http_file *file; /* of a PUT, in place of BODY; or NULL */
	int stop_fd; /* readable: give up with ECANCELED within 100 ms; -1: none */
	double connect_timeout_s, idle_timeout_s; /* 0: none */
	/* called when the whole request is out; or NULL */
	void (*sent)(void *context);
	/* each header of the answer, or of an interim one; or NULL */
	void (*header)(void *context, struct str name, struct str value);
};

struct http_answer {
	long status;          /* 0 when there was no answer */
	double retry_after_s; /* from retry-after-ms or retry-after; < 0: neither came */
	int should_retry;     /* x-should-retry: 1, 0, or -1 when the header is missing */
	bool has_bytes;       /* a part of the body came */
};

enum http_more {
	HTTP_GIVE_UP, /* end with the ERR that the callback has set */
	HTTP_MORE,
	HTTP_ENOUGH, /* a success, even if the server never ends its answer */
};

/*
 * All headers have come before the first BYTES. ERR for failures below HTTP:
 * ECONNREFUSED, EHOSTUNREACH (there is no such host, or it did not accept the connection
 * in time), ETIMEDOUT (silent for idle_timeout_s), ECANCELED, EPROTO (cut in the middle,
 * or no HTTP), EIO (certificates and all else). Any HTTP status is a success here.
 */
bool http_send(struct http *http, const struct http_request *request,
	       struct http_answer *answer,
	       enum http_more (*bytes)(void *context, const struct http_answer *answer,
				       struct str bytes, struct err *err),
	       void *context, struct err *err);

/* One of several short questions. */
struct http_question {
	const char *url;
	struct str body;   /* JSON to be sent by POST; empty: GET */
	struct buf answer; /* the caller's, with its limit; a longer answer is dropped */
	long status;       /* out: 0 when no complete answer came */
};

/*
 * Ask all questions at the same time, without a key, and wait until all are answered or
 * DEADLINE_MS (of clock_now_ms) has come. A question without an answer has status 0.
 */
void http_ask_all(struct http *http, struct http_question *questions, size_t count,
		  int64_t deadline_ms);

/*
 * Does the host of URL mean this machine, judged only by its name (localhost,
 * 127.0.0.0/8, [::1])?
 */
bool http_is_here(const char *url);

/*
 * The URL for requests to the service at BASE_URL, which ends with the path BEHIND, and
 * its host (with port) for messages, both malloc'ed. A BASE_URL that is NULL or empty
 * means OTHERWISE. A URL with a user, a query or a fragment is refused, because these often
 * contain keys.
 */
bool http_url_make(const char *base_url, const char *otherwise, const char *behind,
		   char **url, char **host, struct err *err);

/* Scheme, host and port of such a URL, malloc'ed: "http://127.0.0.1:8080". */
bool http_url_origin(const char *base_url, char **origin, struct err *err);
