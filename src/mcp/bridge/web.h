/*
 * web: several exchanges of HTTP at the same time, over libcurl, which is loaded on first
 * use. Redirects are not followed, so that a token goes only to the named host. Where the
 * environment names a proxy, all exchanges go by it, those to the loopback as well: in a
 * cell it is the only way out.
 *
 * The callbacks are called from web_turn only. They may end their own exchange and no
 * other one.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct web;
struct web_exchange;

bool web_open(struct web **web, struct err *err);
/* Ends all exchanges without a callback. NULL is fine. */
void web_close(struct web *web);

enum web_method { WEB_POST, WEB_GET, WEB_DELETE };

enum web_end {
	WEB_WHOLE,  /* the answer came to its end */
	WEB_ENDED,  /* `bytes` has ended it */
	WEB_UNSENT, /* the server was not reached: it cannot have seen the request */
	WEB_LOST,   /* the connection broke, or the time was over */
};

struct web_request {
	enum web_method method;
	const char *url;
	const struct value *headers; /* lines "Name: value"; or NULL. Copied */
	struct str body;             /* of a POST. Copied */
	const char *content_type;    /* of the body */
	double limit_s;              /* of the whole exchange; 0: none */
	bool once;                   /* the request must never be sent twice */
	/*
	 * A part of the body, or nothing when the head is there. False: end the exchange,
	 * where it was a part.
	 */
	bool (*bytes)(void *context, struct web_exchange *exchange, struct str bytes);
	/* The exchange is over, and freed afterwards. WHY: a phrase, of WEB_UNSENT and WEB_LOST. */
	void (*ended)(void *context, struct web_exchange *exchange, enum web_end end,
		      const char *why);
	void *context;
};

/* Start an exchange. NULL: libcurl does not take it, with the reason in ERR. */
struct web_exchange *web_begin(struct web *web, const struct web_request *request,
			       struct err *err);
/* End EXCHANGE; `ended` is not called. NULL is fine. */
void web_abort(struct web_exchange *exchange);

long web_status(const struct web_exchange *exchange);
/* The lines of the answer's head. */
struct str web_head(const struct web_exchange *exchange);

/* Wait until something happens, at COUNT more FDS as well, or MS are over; do what is due. */
void web_turn(struct web *web, struct pollfd *fds, size_t count, int ms);

/* One short exchange that is waited for; others go on meanwhile. */

enum { WEB_REPLY_MAX = 1 << 20, WEB_ASK_S = 30 };

struct web_reply {
	long status; /* 0: no whole answer came */
	struct buf head, body;
	struct err why;
};

void web_reply_init(struct web_reply *reply);
void web_reply_fini(struct web_reply *reply);
/*
 * Carry out REQUEST, whose callbacks are not used, and fill REPLY. False: no whole answer
 * came within WEB_ASK_S seconds, or it is larger than WEB_REPLY_MAX.
 */
bool web_ask(struct web *web, const struct web_request *request, struct web_reply *reply,
	     struct err *err);
