/* peer: streams as they are, and through TLS. */

#include "broker/peer.h"

#include "base/buf.h"
#include "broker/tls.h"
#include "proxy/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Send as much of DATA as is taken; *SENT says how much. False: it is broken. */
static bool send_some(struct peer *peer, const char *data, size_t size, size_t *sent)
{
	*sent = 0;
	while (*sent < size) {
		ssize_t n = tls_write(peer->tls, data + *sent, size - *sent);

		if (n < 0)
			return tls_wants(peer->tls) != 0;
		*sent += (size_t)n;
	}
	return true;
}

bool peer_flush(struct peer *peer)
{
	struct stream *out = &peer->out;
	size_t sent;

	if (peer->tls == NULL)
		return stream_flush(out, peer->fd);
	if (out->pending.size > 0) {
		if (!send_some(peer, out->pending.data, out->pending.size, &sent))
			return false;
		if (sent < out->pending.size) {
			buf_remove(&out->pending, 0, sent);
			return true;
		}
		buf_fini(&out->pending);
		buf_init(&out->pending, STREAM_MAX);
	}
	if (out->ended && !out->passed) {
		tls_say_end(peer->tls);
		(void)shutdown(peer->fd, SHUT_WR);
		out->passed = true;
	}
	return true;
}

bool peer_pass(struct peer *peer, const char *data, size_t size)
{
	size_t sent = 0;

	if (peer->tls == NULL)
		return stream_pass(&peer->out, peer->fd, data, size);
	/* TLS goes on with the bytes that it was given first. */
	if (peer->out.pending.size == 0 && !send_some(peer, data, size, &sent))
		return false;
	return sent == size || buf_add(&peer->out.pending, data + sent, size - sent);
}

ssize_t peer_read(struct peer *peer, char data[PEER_READ_BYTES])
{
	ssize_t n;

	if (peer->tls == NULL)
		return recv(peer->fd, data, PEER_READ_BYTES, 0);
	n = tls_read(peer->tls, data, PEER_READ_BYTES);
	if (n < 0)
		errno = tls_wants(peer->tls) != 0 ? EAGAIN : ECONNRESET;
	return n;
}

void peer_drop_tls(struct peer *peer)
{
	tls_end(peer->tls);
	peer->tls = NULL;
}
