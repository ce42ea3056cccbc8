/*
 * http_daemon: HTTP by libmicrohttpd, which is loaded when it is needed, in our loop:
 * whole requests come in, answers or streams of bytes go out, at any time. It knows
 * nothing of MCP, and no other module knows the library. A request beyond the limits is
 * answered with 503, and the owner is not told of it. Connections of which the owner has not
 * let in a request have a share of the places, and a time for each head.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct http_daemon;
struct http_exchange; /* one request and its answer */

struct http_daemon_options {
	struct loop *loop;
	int take_socket; /* the listening socket */
	size_t body_max;
	int beat_ms; /* a beat is sent after so long a silence of a stream; 0: 15 s */
	int next_head_ms; /* from an answer to the end of the next head; 0: 130 s */
	/*
	 * The head of a request has come. When it is answered immediately, the body is
	 * not read. The returned pointer is http_daemon_owner from then on.
	 */
	void *(*head)(void *context, struct http_exchange *exchange);
	/* The whole request has come. It is answered now or later. */
	void (*whole)(void *context, struct http_exchange *exchange, struct str body);
	/*
	 * The client has gone before its answer was complete. `over` is called
	 * afterwards.
	 */
	void (*dropped)(void *context, struct http_exchange *exchange);
	/* The exchange ends, with or without success. EXCHANGE is freed afterwards. */
	void (*over)(void *context, struct http_exchange *exchange);
	void *context;
};

bool http_daemon_open(const struct http_daemon_options *options,
		      struct http_daemon **daemon, struct err *err);
void http_daemon_close(struct http_daemon *daemon); /* NULL is fine */

/*
 * Take no more connections, and close each with its next answer. Those that wait at the socket
 * stay there for another process that has it. True: every connection that was taken has had its
 * answer, but for streams. May be called again, to hear that.
 */
bool http_daemon_stop_listening(struct http_daemon *daemon);

/* The address of the client, or of a proxy before it; NULL: it is not known. */
const struct sockaddr *http_daemon_peer(const struct http_exchange *exchange);
const char *http_daemon_method(const struct http_exchange *exchange);
const char *http_daemon_path(const struct http_exchange *exchange);
/* NULL: there is no header of that name. Case does not matter. */
const char *http_daemon_header(const struct http_exchange *exchange, const char *name);
size_t http_daemon_header_count(const struct http_exchange *exchange, const char *name);
/*
 * Append the values of all headers NAME to OUT, in their order, with commas between them: such
 * headers are one list (RFC 9110, section 5.3). A list that is longer than OUT loses its end.
 */
void http_daemon_header_list(const struct http_exchange *exchange, const char *name,
			     struct buf *out);
/* Are the names of all headers allowed by HTTP? Some programs read "Host " as "Host". */
bool http_daemon_headers_are_sound(const struct http_exchange *exchange);
void *http_daemon_owner(const struct http_exchange *exchange);
void http_daemon_add_header(struct http_exchange *exchange, const char *name,
			    const char *value);
/* Send the whole answer. TYPE NULL: none. */
void http_daemon_answer(struct http_exchange *exchange, int status, const char *type,
			struct str body);
/* answered, or the answer has begun */
bool http_daemon_is_answered(const struct http_exchange *exchange);
/*
 * So many requests are under way that this one must be answered immediately, if necessary
 * by a refusal (http_daemon_ask_again). When there are even more, they are answered with
 * 503 and the owner is not told of them.
 */
bool http_daemon_is_crowded(const struct http_exchange *exchange);
/*
 * Call it before the answer: it tells the client to ask again in a second, by another
 * connection.
 */
void http_daemon_ask_again(struct http_exchange *exchange);

/*
 * Answer with a stream of bytes; does nothing when a stream has begun. BEAT is sent
 * whenever no other bytes were sent for `beat_ms`, so that no proxy takes the stream for
 * dead.
 */
void http_daemon_stream(struct http_exchange *exchange, const char *type, struct str beat);
void http_daemon_stream_add(struct http_exchange *exchange, struct str bytes);
void http_daemon_stream_end(struct http_exchange *exchange);
bool http_daemon_is_stream(const struct http_exchange *exchange);
/* Begin such a stream automatically when the exchange is not answered for some time. */
void http_daemon_stream_if_late(struct http_exchange *exchange, const char *type,
				struct str beat);
