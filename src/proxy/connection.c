/* connection: one client, from accept to the end. Its state says what it may do next. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "proxy/hello.h"
#include "proxy/proxy_parts.h"
#include "proxy/request.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	HEAD_MS = 10 * 1000, /* the client is in the same machine */
	IDLE_MS = 15 * 60 * 1000,
	/*
	 * A connection pool of a database is idle for longer. It ends with its command in
	 * any case.
	 */
	CARRIED_IDLE_MS = 2 * 60 * 60 * 1000,
	ACCEPT_BATCH = 32,
};

void connection_set_deadline(struct connection *connection, int ms)
{
	connection->deadline.due_ms = clock_now_ms() + ms;
}

static void listeners_watch(struct proxy *proxy, bool open)
{
	for (size_t i = 0; i < proxy->listener_count; i++)
		(void)poller_want(&proxy->poller, &proxy->listeners[i].source,
				  open ? EPOLLIN : 0);
}

void connection_end(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;

	if (connection->client.fd < 0)
		return;
	resolver_cancel(&connection->lookup);
	poller_remove(&proxy->poller, &connection->client);
	poller_remove(&proxy->poller, &connection->server);
	poller_remove_moment(&connection->deadline);
	fd_close(&connection->client.fd);
	fd_close(&connection->server.fd);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		proxy->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	connection->next = proxy->dead;
	proxy->dead = connection;
	if (proxy->connection_count-- == CONNECTIONS_MAX)
		listeners_watch(proxy, true);
}

void connection_end_all(struct proxy *proxy, uint64_t call)
{
	for (struct connection *at = proxy->connections; at != NULL;) {
		struct connection *next = at->next;
		if (at->call == call)
			connection_end(at);
		at = next;
	}
}

void connection_free_dead(struct proxy *proxy)
{
	while (proxy->dead != NULL) {
		struct connection *dead = proxy->dead;

		proxy->dead = dead->next;
		buf_fini(&dead->head);
		buf_fini(&dead->in.pending);
		buf_fini(&dead->out.pending);
		free(dead);
	}
}

static uint32_t client_events(const struct connection *connection)
{
	uint32_t events = connection->in.pending.size > 0 ? EPOLLOUT : 0;

	switch (connection->state) {
	case READING_HEAD:
	case READING_HELLO:
	case LEAVING:
		return connection->out.ended && connection->state != LEAVING
			       ? events
			       : events | EPOLLIN;
	case RELAYING:
		return connection->out.ended || connection->out.pending.size > 0
			       ? events
			       : events | EPOLLIN;
	case ASKING:
	case FINDING:
	case DIALING:
		break;
	}
	return events;
}

static uint32_t server_events(const struct connection *connection)
{
	uint32_t events = connection->out.pending.size > 0 ? EPOLLOUT : 0;
	bool reads = connection->state == RELAYING ||
		     (connection->state == READING_HELLO && !connection->needs_hello);

	if (connection->state == DIALING)
		return EPOLLOUT;
	if (connection->state == LEAVING)
		return 0;
	if (reads && !connection->in.ended && connection->in.pending.size == 0)
		events |= EPOLLIN;
	return events;
}

void connection_watch(struct connection *connection)
{
	struct poller *poller = &connection->proxy->poller;

	if (connection->client.fd < 0)
		return;
	if (!poller_want(poller, &connection->client, client_events(connection)) ||
	    (connection->server.fd >= 0 &&
	     !poller_want(poller, &connection->server, server_events(connection))))
		connection_end(connection);
}

/* Copy the bytes that are there now, and start the idle timeout again. */
static void relay(struct connection *connection)
{
	connection_set_deadline(connection,
				connection->call == 0 ? CARRIED_IDLE_MS : IDLE_MS);
	if (relay_out(connection) && relay_in(connection))
		relay_settle(connection);
	else
		connection_end(connection);
}

void connection_relay(struct connection *connection)
{
	connection->state = RELAYING;
	buf_fini(&connection->head);
	buf_init(&connection->head, REQUEST_HEAD_MAX);
	relay(connection);
}

void connection_connected(struct connection *connection)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	if (connection->call == 0) {
		/*
		 * The service may send first, and use any protocol. A TLS greeting must
		 * name the host.
		 */
		connection->state = READING_HELLO;
		connection_set_deadline(connection, CARRIED_IDLE_MS);
		client_hello(connection);
	} else if (connection->plain) {
		size_t size = body_take(&connection->body, buf_str(&connection->head));

		connection->out.ended = connection->body.done;
		connection->out.passed = connection->body.done;
		if (connection->body.broken ||
		    !buf_add(&connection->out.pending, connection->head.data, size))
			connection_end(connection);
		else
			connection_relay(connection);
	} else {
		connection->needs_hello = connection->port == NETWORK_PORT_TLS ||
					  connection->host.kind == NETWORK_NAME;
		connection->state = READING_HELLO;
		connection_set_deadline(connection,
					connection->needs_hello ? HELLO_MS : IDLE_MS);
		(void)buf_adds(&connection->in.pending, established);
		if (relay_flush(connection->client.fd, &connection->in))
			client_hello(connection);
		else
			connection_end(connection);
	}
}

/* Read into `head` up to MAX bytes in all. False when nothing came. */
static bool client_read(struct connection *connection, size_t max)
{
	struct buf *head = &connection->head;
	size_t size = max > head->size ? max - head->size : 0;

	if (size > COPY_BYTES)
		size = COPY_BYTES;
	if (size == 0)
		return true; /* `head` is full: its parser reports that */
	ssize_t n = recv(connection->client.fd, connection->proxy->scratch, size, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		connection_end(connection);
		return false;
	}
	connection->out.ended = n == 0;
	return buf_add(head, connection->proxy->scratch, (size_t)n);
}

/* The answer was sent. Discard all further bytes until the client closes. */
static void leave(struct connection *connection)
{
	ssize_t n = recv(connection->client.fd, connection->proxy->scratch, COPY_BYTES, 0);

	if (!relay_flush(connection->client.fd, &connection->in) || n == 0 ||
	    (n < 0 && errno != EAGAIN && errno != EINTR))
		connection_end(connection);
	else
		relay_settle(connection);
}

static void client_ready(struct source *source, uint32_t events)
{
	struct connection *connection = source->context;

	if ((events & EPOLLERR) != 0) {
		connection_end(connection);
		return;
	}
	switch (connection->state) {
	case READING_HEAD:
		if (client_read(connection, REQUEST_HEAD_MAX))
			client_head(connection);
		break;
	case READING_HELLO:
		if (!relay_flush(connection->client.fd, &connection->in))
			connection_end(connection);
		else if ((events & (EPOLLIN | EPOLLHUP)) == 0)
			connection_watch(connection);
		else if (client_read(connection, REQUEST_HEAD_MAX))
			client_hello(connection);
		break;
	case RELAYING:
		relay(connection);
		break;
	case LEAVING:
		leave(connection);
		break;
	case ASKING:
	case FINDING:
	case DIALING:
		break;
	}
}

static void server_ready(struct source *source, uint32_t events)
{
	struct connection *connection = source->context;

	if (connection->state == DIALING) {
		dial_ready(connection);
	} else if ((events & EPOLLERR) != 0) {
		connection_end(connection);
	} else if (connection->state == RELAYING) {
		relay(connection);
	} else if (!relay_in(connection)) { /* the server speaks first */
		connection_end(connection);
	} else {
		if (connection->call == 0 && connection->head.size == 0)
			connection_set_deadline(connection, CARRIED_IDLE_MS);
		connection_watch(connection);
	}
}

static void deadline_due(struct moment *moment)
{
	struct connection *connection = moment->context;

	if (connection->state == DIALING)
		dial_due(connection);
	else if (connection->state == READING_HEAD)
		answer_error(connection, 400, "no whole request came in time");
	else if (connection->state == READING_HELLO)
		client_hello_late(connection);
	else
		connection_end(connection);
}

static struct connection *connection_new(struct listener *listener, int client)
{
	struct proxy *proxy = listener->proxy;
	struct connection *made = memory_alloc(sizeof(*made));
	const int yes = 1;

	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	made->proxy = proxy;
	made->state = READING_HEAD;
	made->client =
		(struct source){.fd = client, .ready = client_ready, .context = made};
	made->server = (struct source){.fd = -1, .ready = server_ready, .context = made};
	made->deadline = (struct moment){.due = deadline_due, .context = made};
	buf_init(&made->head, REQUEST_HEAD_MAX);
	buf_init(&made->out.pending, COPY_BYTES);
	buf_init(&made->in.pending, COPY_BYTES);
	poller_add_moment(&proxy->poller, &made->deadline);
	connection_set_deadline(made, HEAD_MS);
	made->next = proxy->connections;
	if (proxy->connections != NULL)
		proxy->connections->previous = made;
	proxy->connections = made;
	if (++proxy->connection_count == CONNECTIONS_MAX)
		listeners_watch(proxy, false);
	return made;
}

void connection_accept(struct listener *listener)
{
	struct proxy *proxy = listener->proxy;

	for (int i = 0; i < ACCEPT_BATCH && proxy->connection_count < CONNECTIONS_MAX; i++) {
		int client = accept4(listener->source.fd, NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client < 0)
			return;
		struct connection *made = connection_new(listener, client);
		if (listener->entry == NULL) {
			connection_watch(made);
			continue;
		}
		made->entry = listener->entry;
		made->host = listener->entry->host;
		made->port = listener->entry->port;
		dial_start(made);
	}
}
