/*
 * http_reader: an answer of HTTP/1.1 taken out of the bytes of a connection, however these are
 * cut. It holds no more than one line; bodies are handed on as they come.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum http_read {
	HTTP_READ_MORE,    /* of the answer is to come */
	HTTP_READ_DONE,    /* it is whole */
	HTTP_READ_STOPPED, /* `bytes` did not want more */
	HTTP_READ_BROKEN,  /* it is no HTTP, or was cut: ERR (EPROTO) */
};

struct http_reader {
	/* Of the caller: the status line and each header line, and pieces of the body. */
	void (*line)(void *context, struct str line);
	bool (*bytes)(void *context, struct str bytes);
	void *context;
	/* Found: */
	long status;  /* 0 until the head of the answer itself is whole */
	bool keeps;   /* the connection serves another answer after this one */
	bool started; /* something came */
	/* Its own. */
	int state;
	long said;         /* by the head that is being read */
	bool chunked;      /* in chunks */
	bool sized;        /* in `left` bytes */
	uint64_t left;     /* of the body or chunk */
	unsigned heads;    /* those that came before the answer itself, too */
	size_t head_bytes; /* of all of them */
	struct buf held;   /* a line's beginning */
};

void http_reader_init(struct http_reader *reader);
void http_reader_fini(struct http_reader *reader);
/* From the beginning, over another connection. */
void http_reader_restart(struct http_reader *reader);

/* The next BYTES of the connection. Those behind a whole answer make it not `keep`. */
enum http_read http_reader_feed(struct http_reader *reader, struct str bytes,
				struct err *err);
/* The connection has ended: was that the answer's end? */
enum http_read http_reader_end(struct http_reader *reader, struct err *err);
