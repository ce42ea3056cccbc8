/* stream: sends bytes, and keeps those that a socket does not take yet. */

#include "proxy/stream.h"

#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

void stream_init(struct stream *stream)
{
	*stream = (struct stream){0};
	buf_init(&stream->pending, STREAM_MAX);
}

bool stream_flush(struct stream *stream, int fd)
{
	while (stream->pending.size > 0) {
		ssize_t n =
			send(fd, stream->pending.data, stream->pending.size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		if ((size_t)n == stream->pending.size)
			/*
			 * Free the memory as well: most connections are idle most of the
			 * time.
			 */
			buf_fini(&stream->pending);
		else
			buf_remove(&stream->pending, 0, (size_t)n);
	}
	buf_init(&stream->pending, STREAM_MAX);
	if (stream->ended && !stream->passed) {
		(void)shutdown(fd, SHUT_WR);
		stream->passed = true;
	}
	return true;
}

bool stream_pass(struct stream *stream, int fd, const char *data, size_t size)
{
	ssize_t n;

	do {
		n = send(fd, data, size, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return false;
	size_t taken = n < 0 ? 0 : (size_t)n;
	return taken == size || buf_add(&stream->pending, data + taken, size - taken);
}
