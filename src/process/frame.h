/*
 * frame: messages between front and worker over a stream socket: a header of eight bytes
 * (kind, three zero bytes, length of the payload, all little-endian), then the payload.
 * Descriptors may travel with a frame. Both ends are ours, yet every length is checked: a
 * worker may have been taken over.
 *
 * The end of a lonely call's command is announced before the audit (FRAME_ENDING). To
 * wake the other end takes as long as the work that is done in the meantime.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

enum frame_kind {
	/* worker to front */
	FRAME_READY = 1, /* walled in, waiting for a call */
	FRAME_REFUSED,   /* set-up failed: a sentence; the worker ends */
	FRAME_STDOUT,    /* output fragments */
	FRAME_STDERR,
	/*
	 * empty: the processes of the call have ended, and its result follows
	 * immediately
	 */
	FRAME_ENDING,
	/* a result (tool_result_print): answers the oldest open FRAME_ASK */
	FRAME_ANSWER,
	FRAME_WAITS,    /* empty: a program waits for input at its terminal */
	FRAME_TELL,     /* JSON (tool/call.h): progress, or a line for the log */
	FRAME_QUESTION, /* JSON (tool/call.h): a question to the caller */
	FRAME_SECRETS, /* tool_result_print: before the call, the secrets of the workspace */
	FRAME_RESULT, /* tool_result_print */
	/* front to worker */
	FRAME_CALL, /* cell/wire.h, with up to three descriptors */
	/* several of cell/wire.h: a FRAME_RESULT for each, in the same order */
	FRAME_BATCH,
	FRAME_ASK,    /* JSON (tool/call.h): a question to the running call */
	FRAME_REPLY,  /* JSON (tool/call.h): the reply to a FRAME_QUESTION */
	FRAME_CANCEL, /* empty */
};

enum { FRAME_HEADER = 8, FRAME_MAX = 96 << 20, FRAME_FDS_MAX = 5 };

/*
 * Send one whole frame. Blocks when the socket is blocking; with DEADLINE_MS (clock.h)
 * gives up with ETIMEDOUT.
 */
bool frame_send(int socket, enum frame_kind kind, struct str payload, const int *fds,
		size_t fd_count, int64_t deadline_ms, struct err *err);

/* A reader, which keeps incomplete frames between calls. */
struct frame_reader {
	struct buf bytes;
	int fds[FRAME_FDS_MAX];
	size_t fd_count;
	/* bytes of the frame given last; the next frame_next removes them */
	size_t taken;
	bool ended; /* the other end has closed the socket */
};
void frame_reader_init(struct frame_reader *reader);
void frame_reader_fini(struct frame_reader *reader);

struct frame {
	enum frame_kind kind;
	struct str payload;     /* valid until the next frame_next, or frame_done */
	int fds[FRAME_FDS_MAX]; /* the receiver closes them; -1: none */
	size_t fd_count;
};

/*
 * Read all available bytes without waiting. EPROTO on a bad header; `ended` is set at
 * the end of the stream.
 */
bool frame_fill(struct frame_reader *reader, int socket, struct err *err);
/*
 * Give the next whole frame from the bytes that were read. False when there is none
 * yet.
 */
bool frame_next(struct frame_reader *reader, struct frame *frame);
/*
 * The caller has finished with the frame given last: free its memory now, if it is
 * large.
 */
void frame_done(struct frame_reader *reader);
/* Read and wait until a whole frame is there; ETIMEDOUT, ECONNRESET. */
bool frame_wait(struct frame_reader *reader, int socket, int64_t deadline_ms,
		struct frame *frame, struct err *err);

/*
 * Functions for a payload whose head has the sizes of its parts. Each appends a part to
 * OUT and returns its size, for the head. When a part does not fit into OUT, its size
 * is 0 and OUT has overflowed. A text ends with NUL, a value is JSON, and a part that
 * is left out has no bytes.
 */
uint32_t frame_add_text(const char *text, struct buf *out);
uint32_t frame_add_value(const struct value *value, struct buf *out);
uint32_t frame_add_unless_empty(const struct value *value, struct buf *out);

/*
 * Split PAYLOAD, behind a head of HEAD bytes, into COUNT parts. False when SIZES do not
 * match PAYLOAD.
 */
bool frame_split_parts(struct str payload, size_t head, const uint32_t *sizes,
		       size_t count, struct str *parts);
/* PART as a text; NULL when the first NUL is not at its end. */
const char *frame_text_of(struct str part);
/*
 * Read PART as a value of KIND, which the caller owns. *VALUE stays unchanged when PART
 * is empty. EPROTO on failure.
 */
bool frame_take_value(struct str part, enum value_kind kind, struct value **value,
		      struct err *err);
