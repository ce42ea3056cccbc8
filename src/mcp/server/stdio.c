/* stdio: reads messages from a descriptor, and writes messages to another one. */

#include "mcp/server/stdio.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "mcp/server/mcp.h"
#include "process/outbox.h"
#include "process/role.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* The most bytes of unread answers. With more of them the client is given up. */
	STDIO_OUTPUT_MAX = 256 << 20,
	/*
	 * How long the server still answers after the end of its input. When the client
	 * does not read its answers, and so its last messages cannot be taken, the time
	 * counts from the last byte that went out. Clients send a signal 2 s later.
	 */
	STDIO_LAST_WORD_MS = 1000,
};

enum stdio_life {
	SERVES,
	INPUT_ENDED, /* what is under way may still answer for a moment */
	STOPPED,     /* the server must end */
};

struct stdio {
	struct mcp_stdio options;
	struct mcp_way way;
	struct mcp_peer *peer;
	struct buf in;
	struct outbox out;
	uint64_t written; /* of `out`, as far as it was noted */
	size_t in_from;   /* the bytes before are taken */
	size_t searched;  /* there is no line end before */
	bool skipping;    /* the rest of a line that is too long is skipped */
	/* a message that was read and is not taken yet; without `kind`: there is none */
	struct mcp_message next;
	bool refuses; /* messages for which there is no room are taken and refused */
	struct watch reading, closing, stopping, parent;
	struct timer flush, full;
	int64_t until_ms; /* when the server ends; CLOCK_NEVER: not decided */
	enum stdio_life life;
	bool opened; /* opening the session was tried */
	struct err failure;
};

/* Output that waits for its reader. */

/* Write the waiting output, as far as it can be written without blocking. */
static void stdio_write(struct stdio *stdio)
{
	if (stdio->life == STOPPED)
		return;
	outbox_write(&stdio->out);
	if (stdio->out.written != stdio->written && stdio->until_ms != CLOCK_NEVER &&
	    stdio->life == SERVES)
		stdio->until_ms = clock_now_ms() + STDIO_LAST_WORD_MS;
	stdio->written = stdio->out.written;
	if (stdio->out.gone == 0)
		return;
	if (stdio->out.gone == ENOBUFS)
		(void)err_set(&stdio->failure, ENOBUFS,
			      "standard output: the client reads nothing, and %d MiB of "
			      "answers wait for it",
			      STDIO_OUTPUT_MAX >> 20);
	else
		(void)err_set(&stdio->failure, stdio->out.gone, "standard output: %s",
			      strerror(stdio->out.gone));
	stdio->life = STOPPED;
}

/* At the end of the loop's turn, write all messages that have been collected. */
static void stdio_flush_due(struct timer *timer)
{
	stdio_write(timer->context);
}

/*
 * For the way: append MESSAGE and a line end to the output, which is written at the end
 * of the loop's turn.
 */
static void stdio_send(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct stdio *stdio = (struct stdio *)((char *)way - offsetof(struct stdio, way));

	(void)last;
	(void)status;
	if (stdio->life == STOPPED)
		return;
	outbox_take_line(&stdio->out, message);
	stdio->flush.due_ms = 0;
}

enum {
	READ_BYTES = 64 << 10,
	/*
	 * When the server is full, reading pauses for this time. Then calls are refused
	 * until all input is read, because a ping or a cancel may stand behind the next
	 * call. Only a client that does not wait for answers meets this, with less than
	 * 650 calls a second.
	 */
	FULL_MS = 1000,
	/*
	 * When a client leaves so many bytes unread, no more of its requests are taken.
	 */
	UNREAD_MAX = 4 << 20,
};

static void drop(struct mcp_way *way)
{
	(void)way;
}

/* Read LINE into `next`. False: it is no message. */
static bool read_line(struct stdio *stdio, struct str line)
{
	struct err err;

	if (str_trim(line).size == 0)
		return false;
	if (mcp_message_read(line, &stdio->next, &err))
		return true;
	mcp_refuse(stdio->options.mcp, &stdio->way, &stdio->next, 0, &err, NULL);
	mcp_message_fini(&stdio->next);
	return false;
}

static void take_next(struct stdio *stdio)
{
	(void)mcp_take(stdio->peer, &stdio->way, &stdio->next, MCP_AS_AGREED);
	mcp_message_fini(&stdio->next);
}

static void refuse_long_line(struct stdio *stdio)
{
	struct mcp_message message = {0};
	struct err err;

	(void)err_set(&err, MCP_CODE_PARSE, "A message may have %d bytes.", MCP_MESSAGE_MAX);
	mcp_refuse(stdio->options.mcp, &stdio->way, &message, 0, &err, NULL);
	stdio->skipping = true;
	buf_clear(&stdio->in);
	stdio->in_from = 0;
	stdio->searched = 0;
}

static bool is_read(const struct stdio *stdio)
{
	return outbox_size(&stdio->out) < UNREAD_MAX;
}

static bool has_room(const struct mcp_way *way)
{
	const struct stdio *stdio =
		(const struct stdio *)((const char *)way - offsetof(struct stdio, way));

	return is_read(stdio);
}

static void full_due(struct timer *timer)
{
	struct stdio *stdio = timer->context;

	stdio->refuses = true;
}

/* May the next message be taken now? */
static bool may_take(struct stdio *stdio)
{
	if (stdio->refuses || !mcp_is_full(stdio->options.mcp) ||
	    !mcp_may_last(&stdio->next))
		return true;
	if (stdio->full.due_ms == CLOCK_NEVER)
		stdio->full.due_ms = clock_now_ms() + FULL_MS;
	return false;
}

static bool next_line(struct stdio *stdio, struct str *line)
{
	const struct str rest = str_part(buf_str(&stdio->in), stdio->in_from, SIZE_MAX);
	const size_t from = stdio->searched - stdio->in_from;
	const char *end =
		rest.size > from ? memchr(rest.data + from, '\n', rest.size - from) : NULL;

	if (end == NULL) {
		stdio->searched = stdio->in.size;
		if (stdio->life == SERVES || rest.size == 0)
			return false;
		end = rest.data + rest.size;
	}
	*line = str_part(rest, 0, (size_t)(end - rest.data));
	stdio->in_from += line->size + (line->size < rest.size);
	stdio->searched = stdio->in_from;
	return true;
}

static bool next_message(struct stdio *stdio)
{
	struct str line;

	while (stdio->next.kind == 0 && next_line(stdio, &line) && !read_line(stdio, line))
		;
	return stdio->next.kind != 0;
}

static void take_messages(struct stdio *stdio)
{
	while (stdio->life != STOPPED && is_read(stdio) && next_message(stdio) &&
	       may_take(stdio)) {
		take_next(stdio);
		/*
		 * Send the first answer before the cell is made, because clients limit
		 * the time for it.
		 */
		if (!stdio->opened) {
			stdio->opened = true;
			stdio_write(stdio);
			(void)mcp_open(stdio->options.mcp, NULL);
		}
	}
	if (stdio->next.kind == 0 && stdio->searched == stdio->in.size) {
		stdio->refuses = false;
		stdio->full.due_ms = CLOCK_NEVER;
	}
	if (stdio->in_from == stdio->in.size) {
		buf_clear(&stdio->in);
		stdio->in_from = 0;
		stdio->searched = 0;
	} else if (stdio->in_from > READ_BYTES) {
		buf_remove(&stdio->in, 0, stdio->in_from);
		stdio->searched -= stdio->in_from;
		stdio->in_from = 0;
	}
	if (stdio->in.size - stdio->in_from > MCP_MESSAGE_MAX &&
	    stdio->searched == stdio->in.size)
		refuse_long_line(stdio);
}

/* Skip a line that is too long, and keep only the bytes behind its end. */
static size_t skip_line(struct stdio *stdio, char *data, size_t size)
{
	char *end = memchr(data, '\n', size);

	if (end == NULL)
		return 0;
	stdio->skipping = false;
	size -= (size_t)(end + 1 - data);
	memmove(data, end + 1, size);
	return size;
}

/*
 * Only read the input here. Its messages are handled between the loop's turns, because
 * the session turns the loop itself while it is opened.
 */
static void input_ready(struct watch *watch, short events)
{
	struct stdio *stdio = watch->context;
	/* Do not read more while earlier input has not been searched for lines. */
	const bool is_enough = stdio->in.size > stdio->searched;
	char *room = is_enough ? NULL : buf_reserve(&stdio->in, READ_BYTES);
	ssize_t n;

	(void)events;
	if (room == NULL) {
		loop_remove(watch);
		return;
	}
	n = read(stdio->options.input, room, READ_BYTES);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		if (stdio->life == SERVES)
			stdio->life = INPUT_ENDED;
		stdio->until_ms = clock_now_ms() + STDIO_LAST_WORD_MS;
		loop_remove(watch);
	} else if (stdio->skipping) {
		buf_commit(&stdio->in, skip_line(stdio, room, (size_t)n));
	} else {
		buf_commit(&stdio->in, (size_t)n);
	}
}

/* The client has closed the input, although some of its bytes are still unread. */
static void closing_ready(struct watch *watch, short events)
{
	struct stdio *stdio = watch->context;

	(void)events;
	loop_remove(watch);
	stdio->until_ms = clock_now_ms() + STDIO_LAST_WORD_MS;
}

static void stop_ready(struct watch *watch, short events)
{
	struct stdio *stdio = watch->context;

	(void)events;
	stdio->life = STOPPED;
}

/*
 * When our parent dies, other processes may keep our input open, so watch the parent too.
 */
static void watch_parent(struct stdio *stdio)
{
	int fd;

	if (!role_parent(&fd))
		stdio->life = STOPPED;
	stdio->parent = (struct watch){.fd = fd,
				       .events = POLLIN,
				       .ready = stop_ready,
				       .context = stdio};
	if (fd >= 0)
		loop_add(stdio->options.loop, &stdio->parent);
}

static void begin(struct stdio *stdio)
{
	struct loop *loop = stdio->options.loop;

	buf_init(&stdio->in, MCP_MESSAGE_MAX + 2 * READ_BYTES);
	outbox_open(&stdio->out, loop, stdio->options.output, STDIO_OUTPUT_MAX);
	stdio->way = (struct mcp_way){stdio_send, drop, has_room};
	stdio->peer = mcp_peer_new(stdio->options.mcp, &stdio->way, NULL);
	stdio->reading = (struct watch){.fd = stdio->options.input,
					.events = POLLIN,
					.ready = input_ready,
					.context = stdio};
	stdio->closing = (struct watch){.fd = stdio->options.input,
					.events = POLLRDHUP,
					.ready = closing_ready,
					.context = stdio};
	stdio->stopping = (struct watch){.fd = stdio->options.stop_fd,
					 .events = POLLIN,
					 .ready = stop_ready,
					 .context = stdio};
	stdio->flush = (struct timer){.due_ms = CLOCK_NEVER,
				      .due = stdio_flush_due,
				      .context = stdio};
	stdio->full =
		(struct timer){.due_ms = CLOCK_NEVER, .due = full_due, .context = stdio};
	loop_add(loop, &stdio->reading);
	if (stdio->options.stop_fd >= 0)
		loop_add(loop, &stdio->stopping);
	loop_add_timer(loop, &stdio->flush);
	loop_add_timer(loop, &stdio->full);
	watch_parent(stdio);
}

static void end(struct stdio *stdio)
{
	loop_remove(&stdio->reading);
	loop_remove(&stdio->closing);
	loop_remove(&stdio->stopping);
	loop_remove(&stdio->parent);
	loop_remove_timer(&stdio->flush);
	loop_remove_timer(&stdio->full);
	mcp_message_fini(&stdio->next);
	mcp_peer_free(stdio->peer);
	fd_close(&stdio->parent.fd);
	buf_fini(&stdio->in);
	outbox_close(&stdio->out);
}

/* Take messages, and pause or continue reading as there is room. */
static void settle_reading(struct stdio *stdio)
{
	mcp_begin_waiting(stdio->options.mcp);
	take_messages(stdio);
	stdio_write(stdio);
	if (stdio->life != SERVES)
		return;
	if (is_read(stdio) && stdio->next.kind == 0 &&
	    stdio->in.size - stdio->in_from <= MCP_MESSAGE_MAX)
		loop_add(stdio->options.loop, &stdio->reading);
	else
		loop_remove(&stdio->reading);
	if (is_read(stdio)) {
		loop_remove(&stdio->closing);
		stdio->until_ms = CLOCK_NEVER;
	} else if (stdio->until_ms == CLOCK_NEVER) {
		loop_add(stdio->options.loop, &stdio->closing);
	}
}

static bool is_over(const struct stdio *stdio)
{
	return stdio->life == STOPPED || clock_now_ms() >= stdio->until_ms ||
	       (stdio->life == INPUT_ENDED && mcp_busy(stdio->options.mcp) == 0 &&
		outbox_size(&stdio->out) == 0 && stdio->in.size == stdio->in_from &&
		stdio->next.kind == 0);
}

bool mcp_stdio_run(const struct mcp_stdio *options, struct err *err)
{
	struct stdio stdio = {.options = *options, .until_ms = CLOCK_NEVER};

	begin(&stdio);
	while (!is_over(&stdio)) {
		loop_turn(options->loop, stdio.until_ms);
		settle_reading(&stdio);
	}
	if (stdio.failure.text[0] == '\0') {
		mcp_goodbye(options->mcp, NULL, NULL);
		stdio_write(&stdio);
	}
	end(&stdio);
	if (stdio.failure.text[0] != '\0' && stdio.failure.code != EPIPE)
		return err_set(err, stdio.failure.code, "%s", stdio.failure.text);
	return true;
}
