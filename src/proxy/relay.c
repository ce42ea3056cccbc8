/*
 * relay: bytes from one socket to the other. Bytes that the other side does not accept
 * immediately are kept, and nothing is read in the meantime: memory use stays flat, and a
 * slow reader slows the writer down. Each direction is ended separately.
 */
#include "proxy/proxy_parts.h"

#include <errno.h>
#include <sys/socket.h>

enum { ROUNDS = 8 }; /* reads of one turn; then other connections get their turn */

bool relay_flush(int fd, struct stream *stream)
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
	buf_init(&stream->pending, COPY_BYTES);
	if (stream->ended && !stream->passed) {
		(void)shutdown(fd, SHUT_WR);
		stream->passed = true;
	}
	return true;
}

/* Send SIZE bytes to FD. Bytes that FD does not accept now wait in STREAM. */
static bool pass(int fd, struct stream *stream, const char *data, size_t size)
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

/*
 * Only the body of a plain request is passed on. After the body the client has no more to
 * send.
 */
static size_t part_of_body(struct connection *connection, size_t size)
{
	struct body *body = &connection->body;

	if (!connection->plain)
		return size;
	size = body_take(body, (struct str){connection->proxy->scratch, size});
	if (body->done) {
		connection->out.ended = true;
		/* Do not pass the end on: servers treat a half-closed client as gone. */
		connection->out.passed = true;
	}
	return size;
}

static bool copy(struct connection *connection, int from, int to, struct stream *stream)
{
	char *scratch = connection->proxy->scratch;
	bool outward = stream == &connection->out;

	for (int round = 0; round < ROUNDS; round++) {
		if (!relay_flush(to, stream))
			return false;
		if (stream->pending.size > 0 || stream->ended)
			return true;
		ssize_t n = recv(from, scratch, COPY_BYTES, 0);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		stream->ended = n == 0;
		if (n == 0)
			continue;
		size_t size = outward ? part_of_body(connection, (size_t)n) : (size_t)n;
		if ((outward && connection->body.broken) ||
		    (size > 0 && !pass(to, stream, scratch, size)))
			return false;
		if ((size_t)n < COPY_BYTES)
			return true; /* another read would only return EAGAIN */
	}
	return true;
}

bool relay_out(struct connection *connection)
{
	return copy(connection, connection->client.fd, connection->server.fd,
		    &connection->out);
}

bool relay_in(struct connection *connection)
{
	return copy(connection, connection->server.fd, connection->client.fd,
		    &connection->in);
}

void relay_settle(struct connection *connection)
{
	bool told = connection->in.ended && connection->in.passed;

	if (connection->state == RELAYING && told && connection->out.passed) {
		/*
		 * A plain client may have sent more than its request. Closing a socket
		 * with unread bytes could lose the answer on its way.
		 */
		connection->state = LEAVING;
		connection_set_deadline(connection, LEAVE_MS);
	}
	if (connection->state == LEAVING && told && connection->out.ended &&
	    !connection->plain)
		connection_end(connection);
	else
		connection_watch(connection);
}
