/* stdio_output: what goes out, and waits for its reader; see stdio_parts.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "mcp/server/stdio_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail_output(struct stdio *stdio, int code)
{
	(void)err_set(&stdio->failure, code, "standard output: %s", strerror(code));
	stdio->stopped = true;
}

static ssize_t write_some(struct stdio *stdio, const char *data, size_t size)
{
	if (stdio->is_socket)
		return send(stdio->output, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The caller's, which may wait: as much as a pipe takes when it says that it does. */
	if (stdio->output == stdio->options.output && size > PIPE_BUF)
		size = PIPE_BUF;
	return write(stdio->output, data, size);
}

static void watch_output(struct stdio *stdio, bool on)
{
	if (on)
		loop_add(stdio->options.loop, &stdio->writing);
	else
		loop_remove(&stdio->writing);
}

void stdio_write(struct stdio *stdio)
{
	while (stdio->out_from < stdio->out.size && !stdio->stopped) {
		ssize_t n = write_some(stdio, stdio->out.data + stdio->out_from,
				       stdio->out.size - stdio->out_from);

		if (n > 0) {
			stdio->out_from += (size_t)n;
			if (stdio->until_ms != CLOCK_NEVER && !stdio->ended)
				stdio->until_ms = clock_now_ms() + STDIO_LAST_WORD_MS;
			if (stdio->output == stdio->options.output && !stdio->is_socket)
				break; /* perhaps the next piece would wait */
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			break;
		} else {
			fail_output(stdio, n < 0 ? errno : EIO);
		}
	}
	if (stdio->out_from == stdio->out.size) {
		if (stdio->out.capacity > MCP_OUT_KEPT)
			buf_fini(&stdio->out);
		buf_clear(&stdio->out);
		stdio->out_from = 0;
	}
	watch_output(stdio, stdio->out.size > 0 && !stdio->stopped);
}

void stdio_output_ready(struct watch *watch, short events)
{
	(void)events;
	stdio_write(watch->context);
}

/* At the end of the loop's turn, write all messages that have been collected. */
void stdio_flush_due(struct timer *timer)
{
	stdio_write(timer->context);
}

void stdio_send(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct stdio *stdio = (struct stdio *)((char *)way - offsetof(struct stdio, way));

	(void)last;
	(void)status;
	if (stdio->stopped)
		return;
	if (stdio->out_from > 0 && stdio->out_from > stdio->out.size / 2) {
		buf_remove(&stdio->out, 0, stdio->out_from);
		stdio->out_from = 0;
	}
	/* While the client reads, take the built message itself instead of a copy. */
	if (stdio->out.size == 0 && message->size < STDIO_OUTPUT_MAX)
		buf_swap(&stdio->out, message);
	else
		(void)buf_addstr(&stdio->out, buf_str(message));
	if (!buf_addc(&stdio->out, '\n')) {
		(void)err_set(&stdio->failure, ENOBUFS,
			      "standard output: the client reads nothing, and %d MiB of "
			      "answers wait for it",
			      STDIO_OUTPUT_MAX >> 20);
		stdio->stopped = true;
	}
	stdio->flush.due_ms = 0;
}

void stdio_open_output(struct stdio *stdio)
{
	char name[FD_NAME_ROOM];
	struct stat st;

	stdio->output = stdio->options.output;
	if (fstat(stdio->output, &st) < 0)
		return;
	stdio->is_socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode))
		return;
	/* Anew, so that other holders of the pipe's end go on waiting as they did. */
	const int own =
		open(fd_name(stdio->output, name), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (own >= 0)
		stdio->output = own;
}
