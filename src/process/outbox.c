/* outbox: keeps lines until their reader takes them. */

#include "process/outbox.h"

#include "base/buf.h"
#include "base/fd.h"
#include "process/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A buffer that had to hold more gives its memory back when it is empty. */
enum { KEPT = 4 << 20 };

/* For the watch: there is room again. */
static void may_write(struct watch *watch, short events)
{
	(void)events;
	outbox_write(watch->context);
}

void outbox_open(struct outbox *outbox, struct loop *loop, int fd, size_t max)
{
	memset(outbox, 0, sizeof(*outbox));
	outbox->loop = loop;
	outbox->given = fd;
	outbox->fd = fd_open_output(fd, &outbox->is_socket);
	outbox->writing = (struct watch){.fd = outbox->fd,
					 .events = POLLOUT,
					 .ready = may_write,
					 .context = outbox};
	buf_init(&outbox->waiting, max);
}

void outbox_close(struct outbox *outbox)
{
	if (outbox->loop == NULL)
		return;
	loop_remove(&outbox->writing);
	if (outbox->fd != outbox->given)
		fd_close(&outbox->fd);
	buf_fini(&outbox->waiting);
	outbox->loop = NULL;
}

void outbox_take_line(struct outbox *outbox, struct buf *line)
{
	struct buf *waiting = &outbox->waiting;

	if (outbox->gone != 0)
		return;
	if (outbox->from > 0 && outbox->from > waiting->size / 2) {
		buf_remove(waiting, 0, outbox->from);
		outbox->from = 0;
	}
	/* While the reader reads, take the built line itself instead of a copy. */
	if (waiting->size == 0 && line->size < waiting->max)
		buf_swap(waiting, line);
	else if (!buf_addstr(waiting, buf_str(line)))
		outbox->gone = ENOBUFS;
	if (!buf_addc(waiting, '\n'))
		outbox->gone = ENOBUFS;
}

static ssize_t write_some(const struct outbox *outbox, const char *data, size_t size)
{
	if (outbox->is_socket)
		return send(outbox->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	/*
	 * The caller's descriptor may block: write no more than a pipe takes when it is
	 * ready.
	 */
	if (outbox->fd == outbox->given && size > PIPE_BUF)
		size = PIPE_BUF;
	return write(outbox->fd, data, size);
}

void outbox_write(struct outbox *outbox)
{
	struct buf *waiting = &outbox->waiting;

	while (outbox->from < waiting->size && outbox->gone == 0) {
		ssize_t n = write_some(outbox, waiting->data + outbox->from,
				       waiting->size - outbox->from);

		if (n > 0) {
			outbox->from += (size_t)n;
			outbox->written += (uint64_t)n;
			if (outbox->fd == outbox->given && !outbox->is_socket)
				break; /* the next piece might block */
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			break;
		} else {
			outbox->gone = n < 0 ? errno : EIO;
		}
	}
	if (outbox->from == waiting->size) {
		if (waiting->capacity > KEPT)
			buf_fini(waiting);
		buf_clear(waiting);
		outbox->from = 0;
	}
	if (waiting->size > 0 && outbox->gone == 0)
		loop_add(outbox->loop, &outbox->writing);
	else
		loop_remove(&outbox->writing);
}

size_t outbox_size(const struct outbox *outbox)
{
	return outbox->waiting.size - outbox->from;
}
