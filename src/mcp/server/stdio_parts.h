/* stdio_parts: the inside of a server over stdio, for stdio*.c only. */
#pragma once
#include "base/buf.h"
#include "mcp/server/stdio.h"

enum {
	/*
	 * Bytes of unread answers that may pile up; beyond them the client is given up.
	 */
	STDIO_OUTPUT_MAX = 256 << 20,
	/*
	 * After the end of the input; and after the last byte that went out, when the client has ended
	 * its input, reads nothing, and what it said is not read for that. Clients send a signal 2 s
	 * later.
	 */
	STDIO_LAST_WORD_MS = 1000,
};

struct stdio {
	struct mcp_stdio options;
	struct mcp_way way;
	struct mcp_peer *peer;
	struct buf in, out;
	size_t in_from, out_from; /* what is before has been taken */
	size_t searched;          /* no line ends before */
	bool skipping;            /* the rest of a line that is too long */
	struct mcp_message next;  /* has been read, and not taken */
	bool has_next;
	bool refuses; /* what there is no room for is taken, to be refused */
	int output;   /* our own, which never waits; or the caller's */
	bool is_socket;
	struct watch reading, closing, writing, stopping, parent;
	struct timer flush, stall, full;
	size_t busy_max; /* so many requests that may last are begun before others wait */
	int64_t until_ms; /* it ends then; CLOCK_NEVER: nothing says so */
	bool ended;       /* the input */
	bool stopped;     /* everything */
	bool opened;      /* the session has been opened, or tried to be */
	struct err failure;
};

/* The caller's output, or our own way to it: a socket or a pipe that never waits for its reader. */
void stdio_open_output(struct stdio *stdio);
/* Write what waits, as far as it goes without waiting. */
void stdio_write(struct stdio *stdio);
/* Of the watch `writing`: there is room again. */
void stdio_output_ready(struct watch *watch, short events);
/* Of the timer `flush`, at the end of the loop's turn: what has come together goes out at once. */
void stdio_flush_due(struct timer *timer);
/* Of the way: MESSAGE, and a line end, goes out with the next turn. */
void stdio_send(struct mcp_way *way, struct buf *message, bool last, int status);
