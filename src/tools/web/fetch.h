/*
 * fetch: one request to the web, and what a reader sees of the answer. A child of the worker makes
 * it and reads the answer, behind walls of its own (tools/walled.h), because a page is a program's
 * worth of foreign bytes: HTML by html.h, JSON and other texts as they are, in UTF-8.
 *
 * The packets go the way of any command's: by the proxy of the cell, which judges each host, or
 * asks a person; so this module knows no list of hosts. Redirections are followed here, at most
 * FETCH_HOPS, each a request of its own. An `http:` address becomes `https:`, unless it is on the
 * loopback of the cell. No cookies, no passwords in addresses. libcurl is loaded by the child.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FETCH_HOPS = 5,
	FETCH_MAX = 5 << 20,       /* bytes of an answer, unpacked */
	FETCH_SECONDS = 20,        /* for an answer, once the host may be reached */
	FETCH_ASKED_SECONDS = 310, /* for the way there: a person may be asked */
	FETCH_URL_MAX = 8 << 10,
};

enum fetch_form { FETCH_MARKDOWN, FETCH_TEXT, FETCH_RAW };

struct fetch_request {
	const char *url;
	enum fetch_form form;
	/* "Name: value", NULL-ended; or NULL. They go to the first host only */
	const char *const *headers;
	struct str body; /* posted, as JSON; data NULL: GET */
};

/* The answer; its texts are owned. */
struct fetched {
	int64_t status;
	char *url;     /* the last one */
	char *type;    /* of the content: "text/html" */
	char *title;   /* of a page; or NULL */
	char *problem; /* a sentence: there is no answer; NULL: there is one */
	bool is_text; /* the text is in FD, from AT on; else the bytes are, or nothing is */
	uint64_t bytes; /* of the answer as it came */
	int fd;         /* a file in memory */
	size_t at;
};

void fetched_init(struct fetched *fetched);
void fetched_fini(struct fetched *fetched);

/*
 * Make REQUEST for CALL. False: CALL was stopped or the child failed, and RESULT says so. True: look
 * at `problem` first.
 */
bool fetch_run(struct call *call, const struct fetch_request *request,
	       struct fetched *fetched, struct tool_result *result);

/* html_read of a PAGE whose address is URL. */
bool fetch_read_page(struct str page, const char *url, bool plain, struct buf *out,
		     struct buf *title, struct err *err);
