/*
 * http_daemon: HTTP by libmicrohttpd, loaded when it is wanted, in our loop: whole
 * requests in, answers or streams of bytes out, at any time. Knows nothing of MCP; its
 * files are the only ones that know the library. A request beyond the limits is answered
 * with 503, and the owner is not told of it.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct http_daemon;
struct http_exchange; /* one request and its answer */

struct http_daemon_options {
	struct loop *loop;
	int take_socket; /* that listens */
	size_t body_max;
	int beat_ms; /* so long a stream says nothing; 0: 15 s */
	/* The head is there. It may be answered at once: the body is then not asked for. */
	void (*head)(void *context, struct http_exchange *exchange);
	/* All of it is there. It is answered now or later. */
	void (*whole)(void *context, struct http_exchange *exchange, struct str body);
	/* The client has gone, though it has no (whole) answer yet. `over` follows. */
	void (*dropped)(void *context, struct http_exchange *exchange);
	/* It ends, for good or bad. EXCHANGE is gone afterwards. */
	void (*over)(void *context, struct http_exchange *exchange);
	void *context;
};

bool http_daemon_open(const struct http_daemon_options *options,
		      struct http_daemon **daemon, struct err *err);
void http_daemon_close(struct http_daemon *daemon); /* NULL is fine */

const char *http_daemon_method(const struct http_exchange *exchange);
const char *http_daemon_path(const struct http_exchange *exchange);
/* NULL: there is none of that name. Case does not matter. */
const char *http_daemon_header(const struct http_exchange *exchange, const char *name);
size_t http_daemon_header_count(const struct http_exchange *exchange, const char *name);
/* Is the name of each what a name may be? "Host " is read by some as "Host". */
bool http_daemon_headers_are_sound(const struct http_exchange *exchange);
/* The owner's own pointer. */
void *http_daemon_owner(const struct http_exchange *exchange);
void http_daemon_set_owner(struct http_exchange *exchange, void *owner);
void http_daemon_add_header(struct http_exchange *exchange, const char *name,
			    const char *value);
/* The whole answer. TYPE NULL: none. */
void http_daemon_answer(struct http_exchange *exchange, int status, const char *type,
			struct str body);
bool http_daemon_is_answered(const struct http_exchange *exchange); /* or has begun to be */
/*
 * So many requests are under way that this one is to be answered at once, if by a refusal
 * (http_daemon_ask_again). Of a few more nobody hears: they are answered with 503.
 */
bool http_daemon_is_crowded(const struct http_exchange *exchange);
/* Before the answer: the client is to ask again in a second, by another connection. */
void http_daemon_ask_again(struct http_exchange *exchange);

/*
 * A stream of bytes instead; nothing happens when it has begun. BEAT is sent whenever nothing
 * else was for `beat_ms`, so that nobody on the way takes it for dead.
 */
void http_daemon_stream(struct http_exchange *exchange, const char *type, struct str beat);
void http_daemon_stream_add(struct http_exchange *exchange, struct str bytes);
void http_daemon_stream_end(struct http_exchange *exchange);
bool http_daemon_is_stream(const struct http_exchange *exchange);
/* Should the exchange be unanswered for some time: begin such a stream by itself. */
void http_daemon_stream_if_late(struct http_exchange *exchange, const char *type,
				struct str beat);
